// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/build"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/test/builders"
)

var _ = Describe("a workload", func() {
	It("is found by any spelling, unless two have the name", func(ctx SpecContext) {
		w := newWorld(ctx)
		create(w, builders.StatefulSet("", "db", oldImage).Build())
		for _, args := range [][]string{{"sts/db"}, {"statefulset", "db"}, {"StatefulSets.apps.kruise.io/db"}, {"asts/db"}, {"statefulsets.v1beta1.apps.kruise.io/db"}} {
			found, err := w.cluster.Find(ctx, w.namespace, args...)
			Expect(err).NotTo(HaveOccurred(), "%v", args)
			Expect(found.String()).To(Equal("statefulset.apps.kruise.io/db"))
		}
		w.statefulSet(nil)
		create(w, builders.StatefulSet("", "web", oldImage).Build())
		_, err := w.cluster.Find(ctx, w.namespace, "sts/web")
		Expect(err).To(MatchError(And(ContainSubstring("statefulset.apps.kruise.io/web"), ContainSubstring("statefulset.apps/web"))))
		found, err := w.cluster.Find(ctx, w.namespace, "sts.apps/web")
		Expect(err).NotTo(HaveOccurred())
		Expect(found.String()).To(Equal("statefulset.apps/web"))
		for _, args := range [][]string{{"pod/x"}, {"db"}, {"sts/"}, {"sts/a/b"}, {}, {"sts.example.io/db"}} {
			_, err := w.cluster.Find(ctx, w.namespace, args...)
			Expect(err).To(MatchError(ContainSubstring("accepted")), "%v", args)
		}
		_, err = w.cluster.Find(ctx, w.namespace, "deploy/none")
		Expect(err).To(MatchError("deploy/none was not found in namespace " + w.namespace))
	})

	It("is shown to who may view, and planned for who may edit", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).Build())
		w.settle(set)
		w.allow("viewer", "system:aggregate-to-view", "insitu-view")
		w.allow("editor", "system:aggregate-to-view", "system:aggregate-to-edit", "insitu-view", "insitu-edit")

		viewer, audit := w.asUser("viewer")
		found := w.found(set)
		Eventually(func() error { _, err := viewer.Report(ctx, found); return err }).Should(Succeed())
		_, err := viewer.Find(ctx, w.namespace, "sts/db")
		Expect(err).NotTo(HaveOccurred())
		_, err = viewer.Watch(ctx, w.namespace)
		Expect(err).NotTo(HaveOccurred())
		_, err = viewer.List(ctx, w.namespace)
		Expect(err).NotTo(HaveOccurred())
		plan, err := viewer.Plan(ctx, found, found.Object.DeepCopyObject().(client.Object))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Notes).To(ContainElement(ContainSubstring("you may not patch pods:")))
		Expect(audit.Writes()).To(BeEmpty())

		editor, audit := w.asUser("editor")
		Eventually(func() error { _, err := w.tryPlan(editor, set, image(newImage)); return err }).Should(Succeed())
		plan, err = w.tryPlan(editor, set, image(newImage))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Notes).NotTo(ContainElement(ContainSubstring("may not patch pods:")), "the role has that right")
		golden := found.Object.DeepCopyObject().(*appsv1beta1.StatefulSet)
		golden.Spec.Template.Spec.PriorityClassName = "golden"
		denied, err := editor.Plan(ctx, found, golden)
		Expect(err).NotTo(HaveOccurred())
		Expect(denied.Refusals).To(ConsistOf(ContainSubstring("no PriorityClass with name golden was found")), "the role may create pods")
		unasked, err := viewer.Plan(ctx, found, golden)
		Expect(err).NotTo(HaveOccurred())
		Expect(ways(unasked)).To(Equal(map[string]report.Way{"db-0": report.Recreate, "db-1": report.Recreate, "db-2": report.Recreate}))
		Expect(unasked.Notes).To(ContainElement(ContainSubstring("was not asked about new pods")))
		Expect(ways(plan)).To(Equal(map[string]report.Way{"db-0": report.InPlace, "db-1": report.InPlace, "db-2": report.InPlace}))
		Expect(audit.Writes()).To(BeEmpty())

		d := w.deployment(optedIn())
		plan, err = w.tryPlan(editor, d, image(newImage))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Notes).To(ContainElement(ContainSubstring("whether it keeps drained pods out of service: that takes the right to patch pods and pods/status")))
		Expect(plan.Pods).To(And(HaveLen(2), HaveEach(HaveField("Way", report.InPlace))))
		Expect(w.plan(d, image(newImage)).Notes).NotTo(ContainElement(ContainSubstring("was not asked")), "an administrator has it")

		guest, _ := w.asUser("guest")
		_, err = guest.Find(ctx, w.namespace, "sts/db")
		Expect(err).To(MatchError(ContainSubstring("you lack a right")))
		_, err = guest.Report(ctx, found)
		Expect(err).To(MatchError(ContainSubstring("you lack a right")))
		_, err = guest.Watch(ctx, w.namespace)
		Expect(err).To(MatchError(ContainSubstring("you lack a right")))
	})

	It("is reported again when it changes, until it is gone", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).Build())
		w.settle(set)
		watcher, err := w.cluster.Watch(ctx, w.namespace)
		Expect(err).NotTo(HaveOccurred())
		phase := func() report.Phase {
			told, err := watcher.Report(ctx, w.found(set))
			Expect(err).NotTo(HaveOccurred())
			return told.Phase
		}
		Expect(phase()).To(Equal(report.Healthy))
		Eventually(watcher.Changed()).Should(Receive())
		setImage(newImage)(w, set)
		Eventually(watcher.Changed()).Should(Receive())
		Eventually(phase).Should(Equal(report.Unknown))
		found := w.found(set)
		Expect(w.api.Delete(ctx, set)).To(Succeed())
		Eventually(func() bool { _, err := watcher.Report(ctx, found); return apierrors.IsNotFound(err) }).Should(BeTrue())
	})

	It("has an exit code for each phase", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).Build())
		Expect(w.run("status", "sts/db")).To(Equal(commands.ExitUnknown))
		Expect(w.run("status", "sts/db", "--watch", "--timeout=2s")).To(Equal(commands.ExitTimeout))
		w.settle(set)
		Expect(w.run("status", "sts/db")).To(Equal(commands.ExitOK))
		Expect(w.run("status", "sts/db", "--watch")).To(Equal(commands.ExitOK))
		setImage(newImage)(w, set)
		w.reconcile(set)
		Expect(w.run("status", "sts/db")).To(Equal(commands.ExitProgressing))
		mutate(w, set, func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true })
		w.settle(set)
		Expect(w.run("status", "sts/db")).To(Equal(commands.ExitPaused))
		Expect(w.run("status", "sts/db", "--success-on-pause")).To(Equal(commands.ExitOK))
		mutateStatus(w, set, func(set *appsv1beta1.StatefulSet) {
			set.Status.Conditions = append([]metav1.Condition{}, set.Status.Conditions...)
			for i := range set.Status.Conditions {
				if set.Status.Conditions[i].Type == appsv1beta1.ConditionStalled {
					set.Status.Conditions[i].Status, set.Status.Conditions[i].Reason = metav1.ConditionTrue, "Refused"
				}
			}
		})
		Expect(w.run("status", "sts/db")).To(Equal(commands.ExitStalled))
		Expect(w.run("status", "sts/none")).To(Equal(commands.ExitError))
		Expect(w.run("plan", "sts/db", "--image=main="+newImage, "--detailed-exitcode")).To(Equal(commands.ExitOK))
		Expect(w.run("why", "sts/db")).To(Equal(commands.ExitOK))
	})
})

// run runs the plugin as a program of its own would.
func (w *world) run(args ...string) int {
	GinkgoHelper()
	connection := server.Config()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: connection.Host, CertificateAuthorityData: connection.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: connection.CertData, ClientKeyData: connection.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user", Namespace: w.namespace}
	config.CurrentContext = "test"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	defer cancel()
	out := &bytes.Buffer{}
	code := commands.Run(ctx, append(args, "--kubeconfig="+path), genericiooptions.IOStreams{In: os.Stdin, Out: out, ErrOut: out}, build.Build{})
	GinkgoWriter.Println(args, code, out.String())
	return code
}

// allow gives a user roles in the namespace.
func (w *world) allow(user string, roles ...string) {
	GinkgoHelper()
	for _, role := range roles {
		create(w, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
}

// installUserRoles creates the roles of users that come with the operator.
func installUserRoles(ctx context.Context, c client.Client) {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", "user_roles.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		Expect(yaml.Unmarshal(document, role)).To(Succeed())
		Expect(c.Create(ctx, role)).To(Succeed())
	}
}
