// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/volumes"
)

// plugin runs "kubectl insitu" in a namespace, and returns what it printed and its exit
// code. The plugin is found as kubectl finds plugins: by its name, in the PATH.
func plugin(ctx context.Context, namespace string, args ...string) (string, int) {
	GinkgoHelper()
	folder := os.Getenv("INSITU_PLUGIN")
	Expect(folder).NotTo(BeEmpty(), "INSITU_PLUGIN names the folder with kubectl-insitu; run the suite with: make test-e2e")
	command := exec.CommandContext(ctx, labtools.KubectlPath(), append([]string{"insitu", "--namespace", namespace}, args...)...)
	command.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	failed := &exec.ExitError{}
	if err != nil && !errors.As(err, &failed) {
		Expect(err).NotTo(HaveOccurred(), string(output))
	}
	GinkgoWriter.Printf("$ kubectl insitu %s\n%s", strings.Join(args, " "), output)
	return string(output), command.ProcessState.ExitCode()
}

// stuck is a rollout that does not end by itself.
type stuck struct {
	workload string
	// patch is what breaks it: the operations of a JSON patch of the workload.
	patch string
	// reason and advice are what people are to read.
	reason, advice string
}

func stuckRollouts() []stuck {
	image := func(name string) string {
		return fmt.Sprintf(`{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}`, name)
	}
	size := `{"op":"replace","path":"/spec/template/spec/containers/0/resources","value":` +
		`{"requests":{"cpu":"10m","memory":"900Gi"},"limits":{"cpu":"100m","memory":"900Gi"}}}`
	claim := `{"op":"replace","path":"/spec/volumeClaimTemplates/0/spec/resources/requests/storage","value":"4Gi"}`
	return []stuck{
		{"statefulset.apps.kruise.io/image", image(nginxMissing), inplace.ReasonImageNotPullable, "kubectl insitu undo statefulset.apps.kruise.io/image"},
		{"cloneset.apps.kruise.io/hook", image(nginxLatest), inplace.ReasonInPlaceUpdateHook, "example.io/hold"},
		{"deployment.apps/size", size, inplace.ReasonResizeInfeasible, "kubectl insitu undo deployment.apps/size"},
		{"statefulset.apps.kruise.io/claim", claim, volumes.ReasonExpansionInfeasible, "smaller size"},
	}
}

var _ = Describe("The kubectl plugin", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	// start applies the workloads and waits until they are healthy.
	start := func(ctx context.Context) map[types.UID]string {
		GinkgoHelper()
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "stuck.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		for _, rollout := range stuckRollouts() {
			output, code := plugin(ctx, namespace, "status", rollout.workload, "--watch", "--timeout=3m")
			Expect(code).To(Equal(commands.ExitOK), output)
		}
		return podsByUID(ctx, namespace)
	}

	It("names what four rollouts wait for, and undo frees each", func(ctx context.Context) {
		before := start(ctx)
		for _, rollout := range stuckRollouts() {
			output, err := kubectl(ctx, "patch", "-n", namespace, rollout.workload, "--type=json", "-p", "["+rollout.patch+"]")
			Expect(err).NotTo(HaveOccurred(), output)
		}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			screen, _ := plugin(ctx, namespace, "status")
			for _, rollout := range stuckRollouts() {
				g.Expect(screen).To(MatchRegexp(`(?m)^%s .*%s`, rollout.workload, rollout.reason))
			}
			g.Expect(strings.Count(screen, "\n")).To(Equal(5), "a line for each, and one above them")
			_, code := plugin(ctx, namespace, "status", "statefulset.apps.kruise.io/image")
			g.Expect(code).To(Equal(commands.ExitStalled))
		}).WithPolling(time.Second).Should(Succeed())
		offered, _ := plugin(ctx, namespace, "__complete", "undo", "clone")
		Expect(offered).To(HavePrefix("cloneset.apps.kruise.io/hook\n"), "the shell completes workloads")
		for _, rollout := range stuckRollouts() {
			why, code := plugin(ctx, namespace, "why", rollout.workload)
			Expect(code).To(Equal(commands.ExitOK), why)
			first, _, _ := strings.Cut(why, "\n")
			Expect(first).To(And(ContainSubstring(rollout.reason), ContainSubstring(" since "), ContainSubstring(rollout.advice)))

			tree, _ := plugin(ctx, namespace, "status", rollout.workload)
			Expect(tree).To(ContainSubstring(rollout.reason))
		}

		for _, rollout := range stuckRollouts() {
			output, code := plugin(ctx, namespace, "undo", rollout.workload)
			Expect(code).To(Equal(commands.ExitOK), output)
			Expect(output).To(ContainSubstring(rollout.workload + " rolled back"))
		}
		for _, rollout := range stuckRollouts() {
			// What was stalled a moment ago may still be said to be.
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				output, code := plugin(ctx, namespace, "status", rollout.workload, "--watch", "--timeout=1m")
				g.Expect(code).To(Equal(commands.ExitOK), output)
			}).Should(Succeed())
			why, _ := plugin(ctx, namespace, "why", rollout.workload)
			Expect(why).NotTo(ContainSubstring(rollout.reason))
		}
		Expect(podsByUID(ctx, namespace)).To(Equal(before), "no pod was recreated")
	})

	It("says beforehand what comes of a change, and nothing is changed by that", func(ctx context.Context) {
		before := start(ctx)
		generations, err := kubectl(ctx, "get", "-n", namespace, "asts,cloneset,deploy", "-o", "jsonpath={.items[*].metadata.generation}")
		Expect(err).NotTo(HaveOccurred(), generations)

		inPlace, code := plugin(ctx, namespace, "plan", "sts.apps.kruise.io/image", "--image", "main="+nginxLatest, "--detailed-exitcode")
		Expect(code).To(Equal(commands.ExitOK), inPlace)
		Expect(inPlace).To(And(
			MatchRegexp(`image-0, image-1, image-2 +InPlace +main`),
			ContainSubstring(`spec.template.spec.containers[main].image: "nginx:alpine" -> "nginx:latest"`),
			ContainSubstring("3 pods in place, 0 recreated"),
		))
		fits, _ := plugin(ctx, namespace, "plan", "deployment.apps/size", "--limits=memory=96Mi", "--requests=memory=48Mi")
		Expect(fits).To(And(MatchRegexp(`InPlace +Fits`), ContainSubstring("memory limit of main: 64Mi to 96Mi")))
		tooLarge, code := plugin(ctx, namespace, "plan", "deployment.apps/size", "--limits=memory=900Gi", "--requests=memory=900Gi", "--detailed-exitcode")
		Expect(code).To(Equal(commands.ExitDisrupts), tooLarge)
		Expect(tooLarge).To(ContainSubstring(inplace.ReasonResizeInfeasible))

		manifest, err := os.ReadFile(filepath.Join("testdata", "stuck.yaml"))
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "changed.yaml")
		changed := strings.NewReplacer("storage: 320Mi", "storage: 640Mi", "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 2").
			Replace(string(manifest))
		Expect(os.WriteFile(path, []byte(changed), 0o600)).To(Succeed())
		files, code := plugin(ctx, namespace, "plan", "-f", path, "--detailed-exitcode")
		Expect(code).To(Equal(commands.ExitDisrupts), files)
		Expect(files).To(And(
			ContainSubstring("Plan for deployment.apps/size"),
			MatchRegexp(`image-0, image-1, image-2 +Recreate +`+inplace.ReasonFieldImmutable),
			MatchRegexp(`size-\w+-\w+, size-\w+-\w+ +Recreate +ByKubernetes`),
			MatchRegexp(`data-claim-0: .*640Mi`),
		))

		after, err := kubectl(ctx, "get", "-n", namespace, "asts,cloneset,deploy", "-o", "jsonpath={.items[*].metadata.generation}")
		Expect(err).NotTo(HaveOccurred(), after)
		Expect(after).To(Equal(generations))
		Expect(podsByUID(ctx, namespace)).To(Equal(before))
	})
})

// podsByUID returns the names of the pods of a namespace.
func podsByUID(ctx context.Context, namespace string) map[types.UID]string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	found := map[types.UID]string{}
	for i := range list.Items {
		found[list.Items[i].UID] = list.Items[i].Name
	}
	return found
}
