// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	recreator "github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// written returns the writes of the manager to claims, volumes and snapshots since it was
// asked last, and what pods it made and deleted, without the names.
func (w *world) written() []string {
	writes := []string{}
	for _, write := range w.manager.Writes("") {
		verb, rest, _ := strings.Cut(write, " ")
		kind, name, _ := strings.Cut(rest, " ")
		if short, known := map[string]string{
			"PersistentVolumeClaim": "claim", "PersistentVolume": "volume", "VolumeSnapshot": "snapshot", "Pod": "pod",
		}[kind]; known && write != "patch Pod "+name {
			if strings.HasSuffix(name, "-trial") {
				short = map[string]string{"snapshot": "first snapshot", "claim": "claim on trial"}[short]
			}
			writes = append(writes, verb+" "+short)
		}
	}
	w.manager.Forget()
	return writes
}

// withoutRestore has nothing restored on trial: the next claim that is deleted, or created,
// is that of the pod.
func withoutRestore(set *appsv1beta1.StatefulSet) {
	set.Spec.VolumeClaimUpdateStrategy.Recreate.Trial = appsv1beta1.SnapshotRecreateTrial
}

// before has something happen right before a write of the manager, once.
func (w *world) before(write string, happen func()) {
	w.manager.Before = func(next string, _ client.Object) error {
		if strings.HasPrefix(next, write) {
			w.manager.Before = nil
			happen()
		}
		return nil
	}
}

var _ = Describe("A claim that is recreated", Ordered, ContinueOnFailure, func() {
	var view cluster.Cluster
	var w *world
	var s *csi
	BeforeAll(func() { view = snapshotView() })
	BeforeEach(func(ctx context.Context) {
		w = newWorldOf(ctx, view)
		s = w.newCSI(true)
	})
	deletions := func() int { return len(w.manager.Writes("delete PersistentVolumeClaim")) }

	It("has one write after the other, and keeps its volume and its snapshot", short.Spec, func() {
		s.start()
		uid, old := w.uids()["sample-0"], s.claim()
		w.change(s.of("fast"))
		s.settle()
		Expect(w.written()).To(Equal([]string{
			"patch claim", "create first snapshot", "create claim on trial", "patch claim", "delete claim on trial", "patch claim", "delete pod", "patch claim", "patch volume", "create snapshot",
			"delete first snapshot", "delete claim", "create claim", "create pod", "patch volume", "patch claim",
		}))
		w.expectSettled(1)
		claim, held := s.claim(), s.volume(old.Spec.VolumeName)
		Expect(claim.UID).NotTo(Equal(old.UID))
		Expect(w.uids()["sample-0"]).NotTo(Equal(uid))
		Expect(claim.Spec.StorageClassName).To(HaveValue(Equal(s.class("fast"))))
		Expect(s.snapshotNames()).To(HaveLen(1))
		Expect(claim.Spec.DataSource).To(HaveValue(And(HaveField("Kind", "VolumeSnapshot"), HaveField("Name", s.snapshotNames()[0]))))
		Expect(s.snapshots()[s.snapshotNames()[0]]).To(And(
			HaveField("Spec.VolumeSnapshotClassName", HaveValue(Equal(s.driver))),
			HaveField("Annotations", HaveKeyWithValue(appsv1beta1.RecreateOfAnnotation, string(old.UID))),
			HaveField("Labels", HaveKeyWithValue(appsv1beta1.ClaimLabel, "data-sample-0"))))
		Expect(held.Spec).To(And(
			HaveField("PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain), HaveField("ClaimRef.UID", old.UID)))
		Expect(held.Labels).To(And(
			HaveKeyWithValue(appsv1beta1.ClaimNamespaceLabel, w.namespace), HaveKeyWithValue(appsv1beta1.ClaimLabel, "data-sample-0")))
		Expect(held.Finalizers).NotTo(ContainElement(appsv1beta1.HeldVolumeFinalizer), "it is proved")
		Expect(w.counts()).To(And(HaveField("CompatibleReplicas", int32(1)), HaveField("CompatibleReadyReplicas", int32(1)), HaveField("UpdatingReplicas", int32(0))))
		Expect(w.counts().Kept).To(HaveValue(And(HaveField("Volumes", int32(1)), HaveField("Snapshots", int32(1)), HaveField("Overdue", int32(0)))))
		Expect(w.counts().Kept.Capacity.String()).To(Equal("1Gi"))
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreatingClaim)).NotTo(BeEmpty())
		s.rounds(5)
		Expect(w.written()).To(BeEmpty())

		By("giving its volume back")
		w.annotate(claim, appsv1beta1.UndoRecreateAnnotation, appsv1beta1.UndoRecreatePrevious)
		s.settle()
		Expect(w.written()).To(Equal([]string{
			"patch claim", "delete pod", "patch claim", "patch volume", "delete claim", "patch volume", "create claim", "create pod",
			"patch volume", "patch claim", "patch volume", "patch claim",
		}))
		Expect(s.claim().Spec).To(And(HaveField("VolumeName", old.Spec.VolumeName), HaveField("StorageClassName", HaveValue(Equal(s.class("slow"))))))
		Expect(s.volume(old.Spec.VolumeName)).To(And(
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete),
			HaveField("Annotations", Not(HaveKey(appsv1beta1.HeldVolumeStateKey))), HaveField("Labels", Not(HaveKey(appsv1beta1.ClaimLabel))),
			HaveField("Finalizers", Not(ContainElement(appsv1beta1.HeldVolumeFinalizer)))))
		Expect(s.volume(claim.Spec.VolumeName).Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		Expect(w.blockerOf("sample-0")).To(HaveField("Reason", recreate.ReasonRecreateUndone))
		s.rounds(5)
		Expect(w.written()).To(BeEmpty())

		By("settling that with the template")
		w.change(s.of("slow"))
		s.settle()
		w.expectSettled(1)
		Expect(w.written()).To(BeEmpty())
	})

	It("leaves nothing behind where that is told", func() {
		s.start(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimUpdateStrategy.Recreate = &appsv1beta1.VolumeClaimRecreateStrategy{
				OldVolume: "Delete", Snapshot: "Delete", HoldSeconds: ptr.To[int32](3600),
			}
		})
		old := s.claim()
		w.change(s.of("fast"))
		s.settle()
		w.expectSettled(1)
		Expect(s.volume(old.Spec.VolumeName)).NotTo(BeNil())
		Expect(s.snapshotNames()).To(HaveLen(1))
		w.written()
		w.clock.Step(time.Hour)
		s.settle()
		Expect(w.written()).To(Equal([]string{"delete snapshot", "patch volume", "patch claim"}))
		Expect(s.volume(old.Spec.VolumeName)).To(BeNil())
		Expect(s.snapshotNames()).To(BeEmpty())
		w.clock.Step(recreator.KeptPeriod)
		s.settle()
		Expect(w.counts().Kept).To(BeNil())
	})

	It("is told to keep what it keeps, and notices what users delete", func() {
		s.start(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimUpdateStrategy.Recreate = &appsv1beta1.VolumeClaimRecreateStrategy{OldVolume: "Delete", HoldSeconds: ptr.To[int32](60)}
		})
		old := s.claim()
		w.change(s.of("fast"))
		s.settle()
		kept := w.counts().Kept
		Expect(kept).To(HaveField("OldestTimestamp", Not(BeNil())))

		By("not deleting a volume that another client has bound to another claim")
		pv := s.volume(old.Spec.VolumeName)
		pv.Status.Phase = corev1.VolumeBound
		Expect(w.api.Status().Update(w.ctx, pv)).To(Succeed())
		w.clock.Step(time.Hour)
		s.settle()
		Expect(w.counts().Kept).To(HaveValue(And(HaveField("Volumes", int32(1)), HaveField("Overdue", int32(1)))))

		By("deleting it by hand")
		pv.Finalizers = nil
		Expect(w.api.Update(w.ctx, pv)).To(Succeed())
		Expect(w.api.Delete(w.ctx, pv)).To(Succeed())
		w.clock.Step(recreator.KeptPeriod)
		s.settle()
		Expect(w.counts().Kept).To(HaveValue(And(HaveField("Volumes", int32(0)), HaveField("Snapshots", int32(1)), HaveField("Overdue", int32(0)))))
		for _, snapshot := range s.snapshots() {
			Expect(w.api.Delete(w.ctx, &snapshot)).To(Succeed())
		}
		w.clock.Step(recreator.KeptPeriod)
		s.settle()
		Expect(w.counts().Kept).To(BeNil())
		Expect(volumes.RecordOf(s.claim()).HeldVolumes).To(BeEmpty(), "it names nothing that is gone")
		w.expectNoWrites()
	})

	It("stops no pod for a snapshot that does not come", func() {
		s.start()
		uids := w.uids()
		s.stalled = true
		w.change(s.of("fast"))
		s.rounds(60)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.written()).To(Equal([]string{"patch claim", "create first snapshot", "patch claim", "delete first snapshot", "patch claim"}))
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonRecreateTimedOut), HaveField("Message", ContainSubstring("not ready within 1m0s"))))
		Expect(w.recorder.Events(recreate.ReasonRecreateTimedOut)).NotTo(BeEmpty())
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
	})

	It("waits until its volume is detached, and says from where", func() {
		s.start()
		attachment := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: s.driver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(s.claim().Spec.VolumeName)},
			},
		}
		Expect(w.api.Create(w.ctx, attachment)).To(Succeed())
		w.change(s.of("fast"))
		s.rounds(15)
		Expect(w.pods()).To(BeEmpty())
		Expect(s.snapshotNames()).To(HaveExactElements(HaveSuffix("-trial")))
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonVolumeAttached), HaveField("Message", ContainSubstring("node-1"))))
		Expect(w.counts()).To(And(HaveField("UpdatingReplicas", int32(1)), HaveField("BlockedReplicas", int32(0))))
		Expect(w.api.Delete(w.ctx, attachment)).To(Succeed())
		s.settle()
		w.expectSettled(1)
		Expect(s.claim().Spec.StorageClassName).To(HaveValue(Equal(s.class("fast"))))
	})

	DescribeTable("is not deleted if something has changed since that was decided",
		func(happen func(), again bool) {
			s.start(withoutRestore)
			old := s.claim()
			w.change(s.of("fast"))
			w.before("delete PersistentVolumeClaim", func() {
				happen()
				Expect(s.claim().UID).To(Equal(old.UID))
				w.before("delete PersistentVolumeClaim", func() {
					if !again {
						Fail("it is deleted all the same")
					}
				})
			})
			for range maxRounds {
				if s.round(); deletions() > 0 {
					break
				}
			}
			Expect(s.w.manager.Before == nil).To(Equal(again))
			Expect(s.volume(old.Spec.VolumeName)).NotTo(BeNil())
		},
		Entry("the claim", func() { w.annotate(s.claim(), "example.com/note", "x") }, true),
		Entry("the template", func() { w.change(s.of("slow")) }, false),
		Entry("the strategy", func() {
			w.change(func(set *appsv1beta1.StatefulSet) {
				set.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{Type: appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType}
			})
		}, false),
	)

	It("does not have its volume held if that has changed since", func() {
		s.start()
		name := s.claim().Spec.VolumeName
		w.change(s.of("fast"))
		refused := false
		w.before("patch PersistentVolume "+name, func() {
			pv := s.volume(name)
			w.annotate(pv, "example.com/note", "x")
			refused = true
		})
		s.settle()
		Expect(refused).To(BeTrue())
		w.expectSettled(1)
		Expect(s.volume(name).Annotations).To(And(HaveKeyWithValue("example.com/note", "x"), HaveKey(appsv1beta1.HeldVolumeStateKey)))
	})

	It("never becomes an empty one, whatever the strategy is by then, also under a pod that waits for it", func() {
		s.start(withoutRestore)
		old := s.claim()
		w.change(s.of("fast"))
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "create PersistentVolumeClaim") {
				w.manager.Lives = 0
				return stage.ErrDead
			}
			return nil
		}
		for range maxRounds {
			result, _ := w.tryReconcile()
			if w.manager.IsDead() {
				break
			}
			w.clock.Step(max(min(result.RequeueAfter, 5*time.Second), time.Second))
			s.sync()
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.manager.IsDead()).To(BeTrue())
		Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(old), old.DeepCopy())).NotTo(Succeed(), "the claim is gone")

		w.startManager(view)
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{Type: appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType}
		})
		// Another client makes a pod that waits for the claim.
		pod := w.newPodOf("sample-0")
		Expect(w.api.Create(w.ctx, pod)).To(Succeed())
		w.reconcile()
		Expect(w.manager.Writes("create PersistentVolumeClaim")).To(HaveLen(1))
		Expect(s.claim().Spec.DataSource).To(HaveValue(HaveField("Kind", "VolumeSnapshot")))
		s.settle()
		Expect(s.claim().Spec.StorageClassName).To(HaveValue(Equal(s.class("fast"))))
		Expect(s.volume(old.Spec.VolumeName).Annotations[appsv1beta1.HeldVolumeStateKey]).To(ContainSubstring("provedTimestamp"))
	})

	It("stays as it is where nothing can be restored", func() {
		s.start()
		uids, old := w.uids(), s.claim()
		s.stuck = true
		w.change(s.of("fast"))
		s.rounds(100)
		Expect(w.uids()).To(Equal(uids))
		Expect(s.claim().UID).To(Equal(old.UID))
		Expect(w.claims()).To(HaveLen(1), "nothing is left of the trial")
		Expect(s.snapshotNames()).To(BeEmpty())
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonRecreateTimedOut), HaveField("Message", ContainSubstring("restores its first snapshot on trial"))))
	})

	It("is restored on trial to a claim that goes with its pod", func() {
		s.start()
		s.stuck = true
		w.change(s.of("fast"))
		Eventually(func() map[string]types.UID {
			s.round()
			return w.claims()
		}).Should(HaveLen(2))
		trial := &corev1.PersistentVolumeClaim{}
		Expect(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: volumes.RecordOf(s.claim()).Recreate.TrialClaim}, trial)).To(Succeed())
		Expect(trial.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Pod"), HaveField("UID", w.uids()["sample-0"]))))
		Expect(trial.Spec.StorageClassName).To(HaveValue(Equal(s.class("fast"))))
		Expect(trial.Spec.DataSource).To(HaveValue(HaveField("Name", trial.Name)))
	})

	It("gets its volume back where no new one is made", func() {
		s.start(withoutRestore)
		old := s.claim()
		w.change(s.of("fast"))
		s.stuck = true
		for range 100 {
			s.round()
		}
		s.stuck = false
		s.settle()
		Expect(s.claim().Spec).To(And(HaveField("VolumeName", old.Spec.VolumeName), HaveField("StorageClassName", HaveValue(Equal(s.class("slow"))))))
		Expect(w.blockerOf("sample-0")).To(HaveField("Reason", recreate.ReasonRecreateTimedOut))
		Expect(s.snapshotNames()).To(BeEmpty())
		Expect(s.volume(old.Spec.VolumeName).Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
		w.written()
		s.rounds(5)
		Expect(w.written()).To(BeEmpty())
	})

	// refuseWhenStopped makes a quota that refuses the new claim, and is there only when the
	// pod is stopped.
	refuseWhenStopped := func() *corev1.ResourceQuota {
		// The clock of the spec runs ahead of that of the API server.
		s.start(withoutRestore, func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimUpdateStrategy.Recreate.TimeoutSeconds = ptr.To[int32](3600)
		})
		w.change(s.of("fast"))
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourceName(s.class("fast") + ".storageclass.storage.k8s.io/requests.storage"): resource.MustParse("1Mi")},
		}}
		w.before("delete PersistentVolumeClaim", func() {
			Expect(w.api.Create(w.ctx, quota)).To(Succeed())
			used := quota.DeepCopy()
			used.Status.Hard = quota.Spec.Hard
			used.Status.Used = corev1.ResourceList{}
			for name := range quota.Spec.Hard {
				used.Status.Used[name] = resource.MustParse("0")
			}
			Expect(w.api.Status().Patch(w.ctx, used, client.MergeFrom(quota))).To(Succeed())
		})
		Eventually(func() []appsv1beta1.Blocker {
			s.round()
			return w.status().Blockers
		}).WithTimeout(time.Minute).Should(ContainElement(HaveField("Reason", volumes.ReasonClaimRefused)))
		return quota
	}

	It("that the API server refuses for long has its old volume back", func() {
		refuseWhenStopped()
		s.rounds(60)
		s.settle()
		Expect(s.claim().Spec.StorageClassName).To(HaveValue(Equal(s.class("slow"))))
		Expect(w.pods()).To(HaveLen(1))
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", volumes.ReasonClaimRefused), HaveField("Message", ContainSubstring("exceeded quota: q"))))
	})

	It("that the API server refuses is named, and tried again", func() {
		quota := refuseWhenStopped()
		Expect(w.pods()).To(BeEmpty())
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", volumes.ReasonClaimRefused), HaveField("Message", And(
			ContainSubstring("claim data-sample-0"), ContainSubstring("refuses to create it"), ContainSubstring("exceeded quota: q")))))
		Expect(w.recorder.Events(volumes.ReasonClaimRefused)).NotTo(BeEmpty())
		Expect(w.api.Delete(w.ctx, quota)).To(Succeed())
		Eventually(func() map[string]types.UID {
			s.rounds(5)
			return w.claims()
		}).Should(HaveKey("data-sample-0"))
		s.settle()
		w.expectSettled(1)
	})

	It("that a quota has no room for stops no pod", func() {
		s.start()
		uids := w.uids()
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "q"}}
		Expect(w.api.Create(w.ctx, quota)).To(Succeed())
		before := quota.DeepCopy()
		of := corev1.ResourceName(s.class("fast") + ".storageclass.storage.k8s.io/requests.storage")
		quota.Status.Hard = corev1.ResourceList{of: resource.MustParse("1Mi")}
		quota.Status.Used = corev1.ResourceList{of: resource.MustParse("0")}
		Expect(w.api.Status().Patch(w.ctx, quota, client.MergeFrom(before))).To(Succeed())
		w.change(s.of("fast"))
		s.rounds(10)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.written()).To(BeEmpty())
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonQuotaExceeded), HaveField("Message", ContainSubstring("ResourceQuota q"))))
	})

	DescribeTable("starts from the snapshot that its template names",
		func(from string) {
			s.foreign("nightly-0", "2Gi")
			s.start(restoredFrom(from, ""))
			Expect(s.claim()).To(And(
				HaveField("Spec.DataSource", HaveValue(HaveField("Name", "nightly-0"))),
				HaveField("Annotations", HaveKeyWithValue(appsv1beta1.RestoredFromAnnotation, "nightly-0")),
				HaveField("Annotations", Not(HaveKey(appsv1beta1.RestoreFromAnnotation)))))
			Expect(s.claim().Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
			w.expectNoWrites()
		},
		Entry("a pattern", short.Spec, "nightly-$(ordinal)"),
		Entry("a map", `{"0":"nightly-0"}`),
	)

	It("has no pod without the snapshot that its template names, and says so", short.Spec, func() {
		template := reference().Replicas(1).With(func(set *appsv1beta1.StatefulSet) {
			template := claimTemplate("data", "1Gi")
			template.Spec.StorageClassName = ptr.To(s.class("slow"))
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{template}
		}).With(restoredFrom("nightly-$(ordinal)", ""))
		w.apply(template.Build())
		s.rounds(5)
		Expect(w.written()).To(BeEmpty())
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonRestoreMissing), HaveField("Message", ContainSubstring("snapshot nightly-0"))))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(HaveField("Reason", recreate.ReasonRestoreMissing))
		s.foreign("nightly-0", "1Gi")
		s.settle()
		w.expectSettled(1)
		Expect(s.claim().Spec.DataSource).To(HaveValue(HaveField("Name", "nightly-0")))
	})

	It("starts empty without its snapshot where that is told", func() {
		s.start(restoredFrom("nightly-$(ordinal)", appsv1beta1.RestoreMissingEmpty))
		Expect(s.claim().Spec.DataSource).To(BeNil())
	})
})

var _ = Describe("A claim that would be recreated, where no snapshots are served", func() {
	It("is named, and its pod is not stopped", func(ctx context.Context) {
		w := newWorld(ctx)
		s := w.newCSI(false)
		s.start()
		uids := w.uids()
		w.change(s.of("fast"))
		s.rounds(5)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.written()).To(BeEmpty())
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", recreate.ReasonSnapshotsNotServed), HaveField("Message", ContainSubstring("external-snapshotter"))))
		Expect(w.counts()).To(HaveField("BlockedReplicas", int32(1)))

		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimUpdateStrategy.Recreate.WithoutSnapshot = "Empty"
		})
		s.settle()
		w.expectSettled(1)
		Expect(s.claim().Spec).To(And(HaveField("StorageClassName", HaveValue(Equal(s.class("fast")))), HaveField("DataSource", BeNil())))
	})
})

// annotate sets an annotation of an object, as a user does.
func (w *world) annotate(object client.Object, key, value string) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
	Expect(w.api.Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
}

// newPodOf returns a pod of the set as its controller makes it, which waits for its claim.
func (w *world) newPodOf(name string) *corev1.Pod {
	GinkgoHelper()
	set := w.refresh()
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = w.namespace, name
	pod.Labels["controller-revision-hash"] = set.Status.UpdateRevision
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1beta1.GroupVersion.WithKind("StatefulSet"))}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
	}})
	return pod
}

// foreign makes a snapshot that is ready.
func (s *csi) foreign(name, size string) {
	GinkgoHelper()
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.w.namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To("content")}},
	}
	Expect(s.w.api.Create(s.w.ctx, snapshot)).To(Succeed())
	s.ready(snapshot, size)
}

func restoredFrom(from, missing string) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		template := &set.Spec.VolumeClaimTemplates[0]
		template.Annotations = map[string]string{appsv1beta1.RestoreFromAnnotation: from}
		if missing != "" {
			template.Annotations[appsv1beta1.RestoreMissingAnnotation] = missing
		}
	}
}
