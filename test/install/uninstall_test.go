// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("An uninstall in the middle of rollouts", Ordered, func() {
	var held workloads
	var settled calm

	BeforeAll(func(ctx context.Context) {
		install(ctx, presentChart)
		held = begin(ctx, "held.yaml", nginxAlpine)
		all := start(ctx, "settled.yaml", nginxAlpine)
		all.apply(ctx, nginxLatest)
		held.settled(ctx)
		settled = all.rest(ctx)
	})

	It("releases what is held: Kubernetes goes on with it", short.Spec, func(ctx context.Context) {
		// The rollouts stay in their middle, however late that is looked at. A StatefulSet has
		// no annotation for that, and its field would hold up Kubernetes, too: a
		// PodDisruptionBudget does not.
		kubectl(ctx, "annotate", "-n", held.namespace, "deployment/deployment", "daemonset/daemons", native.PartitionAnnotation+"=1")
		kubectl(ctx, "annotate", "-n", held.namespace, "statefulsets.apps/builtin-set", native.PodDisruptionBudgetAnnotation+"=Respect")
		Expect(api.Create(ctx, keeper(held.namespace))).To(Succeed())
		held.apply(ctx, nginxLatest)
		apps := []string{"builtin-set", "deployment", "daemons"}
		for _, app := range apps {
			Eventually(ctx, func(ctx context.Context) []string { return images(held.pods(ctx, app)) }).Should(ContainElement(nginxLatest))
		}
		// From here on no further pod begins, however long the uninstall takes.
		held.annotate(ctx, native.PausedAnnotation+"=true")
		Expect(held.held(ctx)).To(HaveLen(len(apps)))
		for _, app := range apps {
			Expect(images(held.pods(ctx, app))).To(ContainElement(nginxAlpine), "the rollout of %s is in its middle", app)
		}
		// Those of a Deployment belong to the ReplicaSet of the old template until its
		// update has ended: Kubernetes makes new ones.
		updated := slices.DeleteFunc(slices.Concat(held.pods(ctx, "builtin-set"), held.pods(ctx, "daemons")), func(pod observe.Pod) bool {
			return pod.Image != nginxLatest
		})

		uninstall(ctx)
		held.settled(ctx)
		Eventually(ctx, func(ctx context.Context) []string { return images(held.pods(ctx)) }).Should(HaveEach(nginxLatest), "the old pods are gone")
		Expect(uids(held.pods(ctx))).To(ContainElements(uids(updated)), "what was updated in place stays")
		traces := kubectl(ctx, "get", builtin, "-n", held.namespace, "-o", "jsonpath={.items[*].metadata.labels}{.items[*].metadata.annotations}")
		Expect(traces).NotTo(Or(ContainSubstring(native.HeldLabel), ContainSubstring(native.StatusAnnotation)))
	})

	It("leaves the workloads and their pods as they are, and the definitions of their kinds", short.Spec, func(ctx context.Context) {
		settled.expectUntouched(ctx)
		Expect(kubectl(ctx, "get", "crds", "-o", "name")).To(And(
			ContainSubstring("/statefulsets.apps.kruise.io\n"), ContainSubstring("/clonesets.apps.kruise.io\n"), ContainSubstring("/daemonsets.apps.kruise.io\n"),
			ContainSubstring("/containerrecreaterequests.apps.kruise.io\n"),
			ContainSubstring("/imagepulljobs.apps.kruise.io\n"), ContainSubstring("/imagelistpulljobs.apps.kruise.io\n")))
	})

	It("leaves nothing else of the chart", short.Spec, func(ctx context.Context) {
		const chartLabel = "app.kubernetes.io/instance=" + release
		stay := []string{
			"customresourcedefinition.apiextensions.k8s.io/statefulsets.apps.kruise.io",
			"customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io",
			"customresourcedefinition.apiextensions.k8s.io/containerrecreaterequests.apps.kruise.io",
			"customresourcedefinition.apiextensions.k8s.io/daemonsets.apps.kruise.io",
			"customresourcedefinition.apiextensions.k8s.io/imagelistpulljobs.apps.kruise.io",
			"customresourcedefinition.apiextensions.k8s.io/imagepulljobs.apps.kruise.io",
		}
		for _, kind := range []string{"deployments", "statefulsets", "daemonsets"} { // what releases works without the rest
			stay = append(stay, "mutatingadmissionpolicy.admissionregistration.k8s.io/insitu-release-"+kind,
				"mutatingadmissionpolicybinding.admissionregistration.k8s.io/insitu-release-"+kind)
		}
		Expect(objects(ctx, "--namespaced=false", "-l", chartLabel)).To(ConsistOf(stay))
		Expect(objects(ctx, "--namespaced=true", "-l", chartLabel, "--all-namespaces")).To(BeEmpty())
		// What the manager made itself: the Lease of its replicas.
		Expect(objects(ctx, "--namespaced=true", "--namespace", releaseNamespace)).To(ConsistOf(
			"lease.coordination.k8s.io/insitu-manager", "configmap/kube-root-ca.crt", "serviceaccount/default"))
	})

	It("can be taken back: an installation takes over what it finds", func(ctx context.Context) {
		install(ctx, presentChart)
		before := held.pods(ctx)
		held.apply(ctx, nginxAlpine)
		held.annotate(ctx, native.PausedAnnotation+"-")
		kubectl(ctx, "annotate", "-n", held.namespace, "deployment/deployment", "daemonset/daemons", native.PartitionAnnotation+"-")
		kubectl(ctx, "annotate", "-n", held.namespace, "statefulsets.apps/builtin-set", native.PodDisruptionBudgetAnnotation+"-")
		held.settled(ctx)
		Expect(observe.Differences(before, held.pods(ctx), 1)).To(BeEmpty())
		settled.expectUntouched(ctx)
	})
})

// keeper is a PodDisruptionBudget by which the last pod of the StatefulSet may not be
// evicted.
func keeper(namespace string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keeper"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{appsv1.StatefulSetPodNameLabel: "builtin-set-0"}},
		},
	}
}

// annotate changes an annotation of all workloads of Kubernetes.
func (w workloads) annotate(ctx context.Context, change string) {
	GinkgoHelper()
	kubectl(ctx, slices.Concat([]string{"annotate", "-n", w.namespace}, w.names(ctx, builtin), []string{change})...)
}

func uids(pods []observe.Pod) []types.UID {
	var found []types.UID
	for _, pod := range pods {
		found = append(found, pod.UID)
	}
	return found
}

// objects returns the objects of all kinds that kubectl get finds with some flags, but
// for events and what is measured when it is read. With "--namespaced=true"
// they are those of a namespace, with "--namespaced=false" the others.
func objects(ctx context.Context, namespaced string, flags ...string) []string {
	GinkgoHelper()
	kinds := strings.Fields(kubectl(ctx, "api-resources", "--verbs=list", "-o", "name", namespaced))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		return strings.HasPrefix(kind, "events") || strings.HasSuffix(kind, ".metrics.k8s.io")
	})
	found := strings.Split(kubectl(ctx, append([]string{"get", strings.Join(kinds, ","), "-o", "name", "--ignore-not-found"}, flags...)...), "\n")
	return slices.DeleteFunc(found, func(line string) bool {
		return line == "" || strings.HasPrefix(line, "Warning: ") || strings.HasPrefix(line, "componentstatus/")
	})
}
