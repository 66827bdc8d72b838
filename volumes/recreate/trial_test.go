// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

func tries(what appsv1beta1.RecreateTrialType) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.Trial = what }
}

// TestTrial: what is tried before the pod is stopped, and that nothing is left of it.
func TestTrial(t *testing.T) {
	for trial, writes := range map[appsv1beta1.RecreateTrialType][]string{
		"":         {"Note begin", "CreateTrial", "TryRestore", "Note", "EndRestore", "Note stop", "DeletePod"},
		"Restore":  {"Note begin", "CreateTrial", "TryRestore", "Note", "EndRestore", "Note stop", "DeletePod"},
		"Snapshot": {"Note begin", "CreateTrial", "Note", "Note stop", "DeletePod"},
		"None":     {"Note stop", "DeletePod"},
	} {
		t.Run(string(trial), func(t *testing.T) {
			l := newLife(t, tries(trial))
			l.wants("fast")
			l.until("DeletePod")
			NewWithT(t).Expect(l.wrote()).To(Equal(writes))
			l.settle()
			l.expectOn("pv-2", "fast")
			NewWithT(t).Expect(l.trial).To(BeNil())
		})
	}
}

// TestWhatFailsOnTrialStopsNoPod: TestRecreateFails has what becomes of the claim.
func TestWhatFailsOnTrialStopsNoPod(t *testing.T) {
	for name, fail := range map[string]func(*life){
		"no snapshot becomes ready":     func(l *life) { l.stalled = true },
		"the driver takes no snapshots": func(l *life) { l.failing = true },
		"no volume is made":             func(l *life) { l.stuckOnTrial = true },
		"admission changes the claim": func(l *life) {
			l.admission = func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To("odd") }
		},
		"the API server refuses the claim": func(l *life) {
			l.refuses = func(*corev1.PersistentVolumeClaim) string { return "forbidden by policy" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.wants("fast")
			fail(l)
			pod := l.pod
			l.rounds(200)
			g.Expect(l.failure()).NotTo(BeEmpty())
			g.Expect(l.pod).To(BeIdenticalTo(pod))
			g.Expect(l.wrote()).NotTo(ContainElement("DeletePod"))
			l.expectClean()
		})
	}
}

// TestTrialWhoseVolumeIsRetained: a storage class with the reclaim policy Retain keeps
// nothing of a trial.
func TestTrialWhoseVolumeIsRetained(t *testing.T) {
	l := newLife(t, nil)
	l.retains = true
	l.wants("fast")
	l.settle()
	l.expectOn("pv-2", "fast")
	NewWithT(t).Expect(l.wrote()).To(ContainElement("DiscardVolume trial-pv-1"))
}

// TestTrialWhereVolumesWaitForPods: the new volume is made for the node of the old one, on
// trial and afterwards: no pod but that mounts it, and the scheduler could choose a node
// that the snapshot cannot be restored to.
func TestTrialWhereVolumesWaitForPods(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.lazy = true
	l.wants("fast")
	l.until("TryRestore")
	const selected = "volume.kubernetes.io/selected-node"
	g.Expect(l.trial.Annotations).To(HaveKeyWithValue(selected, "node-1"))
	l.until("CreateClaim")
	g.Expect(l.claim.Annotations).To(HaveKeyWithValue(selected, "node-1"))
	l.settle()
	l.expectOn("pv-2", "fast")

	// The pod may have moved since the trial.
	pod := podWith("pod-2")
	pod.Spec.NodeName = "node-2"
	g.Expect(Stop(Attempt{Node: "node-1"}, pod, start).Node).To(Equal("node-2"))
	g.Expect(Stop(Attempt{}, pod, start).Node).To(BeEmpty(), "the class does not wait for pods")
}

// TestTrialOfAnotherClient: a claim that has the name of the trial is neither taken for it
// nor deleted.
func TestTrialOfAnotherClient(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.until("CreateTrial")
	l.trial = templateOf("fast", "1Gi")
	l.trial.Name, l.trial.Status.Phase = volumes.RecordOf(l.claim).Recreate.TrialClaim, corev1.ClaimBound
	l.settle()
	l.expectOn("pv-2", "fast")
	g.Expect(l.trial).NotTo(BeNil())
	g.Expect(l.wrote()).NotTo(ContainElement("TryRestore"))
}

// TestTrialWithoutRoom: where a quota has room for one claim but not for two, nothing is
// restored on trial, and the claim is recreated nevertheless.
func TestTrialWithoutRoom(t *testing.T) {
	g := NewWithT(t)
	f := possible()
	g.Expect(Preflight(*f).Trial).To(Equal(appsv1beta1.RestoreRecreateTrial))
	limits("persistentvolumeclaims", "1", "1")(f)
	g.Expect(Preflight(*f)).To(And(HaveField("Refused", BeNil()), HaveField("Trial", appsv1beta1.SnapshotRecreateTrial)))

	f = possible()
	f.Class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	g.Expect(Preflight(*f).Trial).To(Equal(appsv1beta1.SnapshotRecreateTrial), "the pod has no node to restore it for")
	f.Node = "node-1"
	g.Expect(Preflight(*f)).To(And(HaveField("Trial", appsv1beta1.RestoreRecreateTrial), HaveField("Node", "node-1")))

	// A quota with a scope is not calculated with: the API server refuses the claim.
	l := newLife(t, nil)
	l.wants("fast")
	l.until("CreateTrial")
	l.turn()
	facts := l.facts()
	facts.Refused, facts.OverQuota = "exceeded quota: q", true
	step := Next(facts, l.now)
	g.Expect(step).To(And(HaveField("Action", Note), HaveField("Failed", false), HaveField("Record.Recreate.TriedTimestamp", Not(BeNil()))))
}

// TestRehearsal: what is asked for by a dry run is what is created, and what admission
// makes of it is compared.
func TestRehearsal(t *testing.T) {
	g := NewWithT(t)
	f := possible()
	f.Claim.Labels = map[string]string{"team": "storage"}
	judgement := Preflight(*f)
	asked := f.Rehearsal(judgement)
	g.Expect(asked.Name).To(Equal(f.Claim.Name + "-trial"))
	g.Expect(asked.Spec.StorageClassName).To(HaveValue(Equal("fast")))
	g.Expect(asked.Spec.DataSource).To(HaveField("Kind", "VolumeSnapshot"))
	g.Expect(asked.Labels).To(HaveKeyWithValue("team", "storage"), "policies may go by labels")
	g.Expect(asked.Annotations).NotTo(HaveKey(appsv1beta1.VolumeClaimUpdateStateKey))
	g.Expect(f.Rewritten(judgement, asked, asked)).To(BeNil())

	answer := asked.DeepCopy()
	answer.Labels = map[string]string{"added": "by a webhook"}
	g.Expect(f.Rewritten(judgement, asked, answer)).To(BeNil())
	answer.Spec.StorageClassName = ptr.To("odd")
	g.Expect(f.Rewritten(judgement, asked, answer)).To(And(HaveField("Reason", ReasonClaimRewritten), HaveField("Message", ContainSubstring(`its storage class is "odd"`))))
	answer = asked.DeepCopy()
	answer.Spec.DataSource = nil
	g.Expect(f.Rewritten(judgement, asked, answer)).To(HaveField("Message", ContainSubstring("would not start from its snapshot")))
}

// TestRehearsalOfAnUndo: a claim that gets an earlier volume back asks for that and its
// class, whatever the template says.
func TestRehearsalOfAnUndo(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.settle()
	l.undo("pv-1")
	f := l.preflight(false)
	judgement := Preflight(f)
	g.Expect(judgement.Source).To(Equal(appsv1beta1.VolumeRecreateSource))
	asked := f.Rehearsal(judgement)
	g.Expect(asked.Spec).To(And(HaveField("VolumeName", "pv-1"), HaveField("StorageClassName", HaveValue(Equal("slow"))), HaveField("DataSource", BeNil())))
	g.Expect(f.Rewritten(judgement, asked, asked)).To(BeNil())
	limits("slow.storageclass.storage.k8s.io/requests.storage", "1Gi", "1Gi")(&f)
	g.Expect(Preflight(f).Refused).To(HaveField("Reason", ReasonQuotaExceeded), "the claim would be deleted, and not created again")

	answer := asked.DeepCopy()
	answer.Spec.StorageClassName = ptr.To("odd")
	g.Expect(f.Rewritten(judgement, asked, answer)).To(HaveField("Message", ContainSubstring(`its storage class would be "odd", and that of volume pv-1 is "slow"`)))
}
