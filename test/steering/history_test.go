// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// setImage changes an image, without a note in the transcript.
func (w *world) setImage(name, image string) {
	w.t.Helper()
	_, stderr, code := w.run("set", "image", name, "main="+image)
	w.Expect(code).To(BeZero(), stderr)
}

// goBack tells of sets that have three revisions: the second was overtaken by the third.
// hashes: pods name revisions by their hashes.
func (w *world) goBack(of client.Object, name string, hashes bool) {
	w.t.Helper()
	revision := func(hash string) map[string]string {
		if hashes {
			return map[string]string{"controller-revision-hash": hash}
		}
		return map[string]string{"controller-revision-hash": "web-" + hash}
	}
	w.record(of, "first", 1, "the first")
	w.setImage(name, "nginx:2")
	w.record(of, "second", 2, "")
	w.setImage(name, "nginx:3")
	w.insitu(of, "undo "+name+" --dry-run=server")
	w.record(of, "third", 3, "the third")

	w.insitu(of, "history "+name)
	w.insitu(of, "undo "+name+" --dry-run=server")
	w.pod("web-0", of, revision("first"))
	w.pod("web-1", of, revision("first"))
	w.pod("web-2", of, revision("second"))
	w.pod("web-3", of, revision("third"))
	w.insitu(of, "history "+name)
	w.insitu(of, "history "+name+" --revision 2")
	w.insitu(of, "history "+name+" --revision 4")
	w.insitu(of, "undo "+name)
	w.insitu(of, "undo "+name+" --to-revision 1")
	w.insitu(of, "undo "+name+" --to-revision web-second")
	w.insitu(of, "undo "+name+" --to-revision 9")
}

func TestHistoryOfOurStatefulSet(t *testing.T) {
	w := newWorld(t)
	w.goBack(w.statefulSet(), "sts/web", false)
	w.matches("history-statefulset.apps.kruise.io")
}

func TestHistoryOfACloneSet(t *testing.T) {
	w := newWorld(t)
	w.goBack(w.cloneSet(), "cloneset/web", false)
	w.matches("history-cloneset.apps.kruise.io")
}

func TestHistoryOfANativeStatefulSet(t *testing.T) {
	w := newWorld(t)
	w.goBack(w.nativeStatefulSet(optedIn), "sts/web", false)
	w.matches("history-statefulset")
}

func TestHistoryOfADaemonSet(t *testing.T) {
	w := newWorld(t)
	w.goBack(w.daemonSet(nil), "ds/web", true)
	w.matches("history-daemonset")
}

func TestHistoryOfOurDaemonSet(t *testing.T) {
	w := newWorld(t)
	w.goBack(w.ourDaemonSet(), "daemonset.apps.kruise.io/web", true)
	w.matches("history-daemonset.apps.kruise.io")
}

// The status of a DaemonSet names revisions by their hashes, as its pods do. The second revision
// was overtaken when most pods had it.
func TestHistoryOfADaemonSetMarksWhatItsStatusNames(t *testing.T) {
	w := newWorld(t)
	set := &appsv1beta1.DaemonSet{}
	w.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(w.ourDaemonSet()), set)).To(Succeed())
	for number, hash := range []string{"first", "second", "third"} {
		w.setImage("ads/web", "nginx:"+hash)
		w.record(set, hash, int64(number)+1, "")
	}
	w.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	set.Status.UpdateRevision, set.Status.CurrentRevision = "third", "first"
	w.Expect(w.c.Status().Update(t.Context(), set)).To(Succeed())
	for name, hash := range map[string]string{"web-a": "first", "web-b": "second", "web-c": "second", "web-d": "third"} {
		w.pod(name, set, map[string]string{appsv1beta1.ControllerRevisionHashLabel: hash})
	}

	stdout, stderr, code := w.run("history", "ads/web", "-o", "json")

	w.Expect(code).To(BeZero(), stderr)
	said := report.History{}
	w.Expect(json.Unmarshal([]byte(stdout), &said)).To(Succeed())
	w.Expect(said.Revisions).To(ConsistOf(
		And(HaveField("Name", "web-first"), HaveField("IsCurrent", true), HaveField("IsUpdate", false)),
		And(HaveField("Name", "web-second"), HaveField("IsCurrent", false), HaveField("IsUpdate", false)),
		And(HaveField("Name", "web-third"), HaveField("IsCurrent", false), HaveField("IsUpdate", true)),
	))
}

// A held Deployment has ReplicaSets for what has been, and ControllerRevisions for what
// its pods are updated to. kubectl refuses to undo it.
func TestHistoryOfAHeldDeployment(t *testing.T) {
	w := newWorld(t)
	deployment := w.deployment(optedIn)
	w.replicaSet(deployment, "aaa", "1")
	w.setImage("deploy/web", "nginx:2")
	keeper := w.replicaSet(deployment, "bbb", "2")
	w.keep(deployment, 1)
	w.setImage("deploy/web", "nginx:3")
	overtaken := w.keep(deployment, 2)
	w.setImage("deploy/web", "nginx:4")
	update := w.keep(deployment, 3)
	w.pod("web-0", keeper, map[string]string{"pod-template-hash": "bbb"})
	w.pod("web-1", keeper, map[string]string{"pod-template-hash": "bbb"})
	w.pod("web-2", keeper, map[string]string{"pod-template-hash": "bbb", "controller-revision-hash": overtaken.Hash()})
	w.pod("web-3", keeper, map[string]string{"pod-template-hash": "bbb", "controller-revision-hash": update.Hash()})

	w.insitu(deployment, "history deploy/web")
	w.insitu(deployment, "undo deploy/web")
	w.insitu(deployment, "undo deploy/web --to-revision "+overtaken.Name())
	w.insitu(deployment, "undo deploy/web --to-revision 1")
	w.Expect(w.read(deployment).GetLabels()).To(HaveKey("insitu.dev/held"))
	w.matches("history-deployment")
}

// keep keeps the present template of a Deployment, as the operator does.
func (w *world) keep(of *appsv1.Deployment, number int) *history.Revision {
	w.t.Helper()
	deployment := &appsv1.Deployment{}
	w.Expect(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(of), deployment)).To(Succeed())
	parsed, err := inplace.NewTemplate(deployment.Spec.Template)
	w.Expect(err).NotTo(HaveOccurred())
	owner := history.Owner{Object: deployment, Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Labels: deployment.Spec.Template.Labels}
	list := &appsv1.ControllerRevisionList{}
	w.Expect(w.c.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
	h, err := history.Read(list.Items)
	w.Expect(err).NotTo(HaveOccurred())
	revision, _, err := history.NewKeeper(w.c).Ensure(w.t.Context(), owner, h, history.Content{Template: parsed.Native()})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(list.Items).To(HaveLen(number-1), "it is the one after those")
	return revision
}

func TestHistoryAsJSON(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet()
	w.record(set, "first", 1, "the first")
	stdout, stderr, code := w.run("history", "sts/web", "-o", "json")
	w.Expect(code).To(BeZero(), stderr)
	said := report.History{}
	w.Expect(json.Unmarshal([]byte(stdout), &said)).To(Succeed())
	w.Expect(said.Ref).To(Equal(report.Ref{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Namespace: w.namespace, Name: "web"}))
	w.Expect(said.Revisions).To(HaveLen(1))
	w.Expect(said.Revisions[0]).To(And(
		HaveField("Number", int64(1)), HaveField("Name", "web-first"), HaveField("ChangeCause", "the first"), HaveField("IsUpdate", true),
		HaveField("Images", []string{"nginx:alpine", "envoy:1"}), HaveField("Template", HaveKey("spec")),
	))
}

// claims is a set with a claim template.
func (w *world) claims(size, class string) *appsv1beta1.StatefulSet {
	set := builders.StatefulSet(w.namespace, "web", "nginx:alpine").Build()
	set.Spec.Template = template()
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(class),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}}
	return w.create(set).(*appsv1beta1.StatefulSet)
}

// change edits a set as its user does.
func (w *world) change(set *appsv1beta1.StatefulSet, edit func(*appsv1beta1.StatefulSet)) {
	w.t.Helper()
	w.Expect(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	edit(set)
	w.Expect(w.c.Update(w.t.Context(), set)).To(Succeed())
}

func TestUndoTakesClaimTemplatesBack(t *testing.T) {
	w := newWorld(t)
	set := w.claims("1Gi", "standard")
	w.record(set, "first", 1, "")
	w.change(set, func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	})
	w.record(set, "second", 2, "")

	stdout, stderr, code := w.run("undo", "sts/web")

	w.Expect(code).To(BeZero(), stderr)
	w.Expect(stdout).To(Equal("statefulset.apps.kruise.io/web rolled back to revision 1\n"))
	w.Expect(stderr).To(Equal("note: statefulset.apps.kruise.io/web: volumeClaimTemplates go back, too (not with --keep-claims)\n"))
	w.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	w.Expect(set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
	stdout, _, _ = w.run("undo", "sts/web", "--to-revision=1")
	w.Expect(stdout).To(HaveSuffix("already at revision 1: nothing to do\n"))
}

// The class of claims that follow their template cannot change. A user can go back
// with the pods all the same.
func TestUndoGoesOnWithoutClaimTemplates(t *testing.T) {
	w := newWorld(t)
	set := w.claims("1Gi", "standard")
	w.record(set, "first", 1, "")
	w.change(set, func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("fast")
		set.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	})
	w.record(set, "second", 2, "")
	w.change(set, func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{Type: "OnPodRollingUpdate"}
	})

	stdout, stderr, code := w.run("undo", "sts/web")

	w.Expect(code).To(BeZero(), stderr)
	w.Expect(stdout).To(Equal("statefulset.apps.kruise.io/web rolled back to revision 1\n"))
	w.Expect(stderr).To(And(ContainSubstring("volumeClaimTemplates stay as they are"), ContainSubstring("storageClassName")))
	w.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	w.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:alpine"))
	w.Expect(*set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName).To(Equal("fast"))
}

func TestUndoKeepsClaimTemplatesIfAsked(t *testing.T) {
	w := newWorld(t)
	set := w.claims("1Gi", "standard")
	w.record(set, "first", 1, "")
	w.change(set, func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		set.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	})
	w.record(set, "second", 2, "")

	_, stderr, code := w.run("undo", "sts/web", "--keep-claims")

	w.Expect(code).To(BeZero(), stderr)
	w.Expect(stderr).To(ContainSubstring("volumeClaimTemplates stay as they are"))
	w.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	w.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:alpine"))
	w.Expect(set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
}

// A pod that has ended, such as one that was evicted, may lie about for months. It
// does not mean that a rollout from its revision is under way.
func TestUndoLooksAtNoPodThatHasEnded(t *testing.T) {
	w := newWorld(t)
	set := w.claims("1Gi", "standard")
	for number, hash := range []string{"first", "second", "third"} {
		w.change(set, func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = "nginx:" + hash
		})
		w.record(set, hash, int64(number)+1, "")
	}
	w.pod("web-7", set, map[string]string{appsv1beta1.ControllerRevisionHashLabel: "web-first"})
	pod := &corev1.Pod{}
	w.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web-7"}, pod)).To(Succeed())
	pod.Status.Phase = corev1.PodFailed
	w.Expect(w.c.Status().Update(t.Context(), pod)).To(Succeed())

	stdout, stderr, code := w.run("undo", "sts/web")

	w.Expect(code).To(BeZero(), stderr)
	w.Expect(stdout).To(Equal("statefulset.apps.kruise.io/web rolled back to revision 2\n"))
}

func TestAFileIsNotNarrowedDownByLabels(t *testing.T) {
	w := newWorld(t)

	_, stderr, code := w.run("restart", "-f", "web.yaml", "-l", "app=web")

	w.Expect(code).To(Equal(1))
	w.Expect(stderr).To(Equal("error: found -f with -l or --all: accepted is one of them\n"))
}
