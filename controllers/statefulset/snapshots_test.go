// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/stage"
)

// snapshotView starts an API server that serves snapshots, for the specs of a container.
func snapshotView() cluster.Cluster {
	GinkgoHelper()
	definitions, err := apiserver.SnapshotDefinitions()
	Expect(err).NotTo(HaveOccurred())
	Expect(definitions).NotTo(BeEmpty())
	server, err := apiserver.Start(definitions...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
	return stage.NewView(server.Config())
}

// csi plays the volume binder, the provisioner, the snapshot controller and the driver for
// the claims of a namespace.
type csi struct {
	w *world
	// driver and the storage classes slow and fast are of the namespace only.
	driver string
	// volumes are those of the namespace, the last one last.
	volumes []string
	// stalled: no snapshot becomes ready; stuck: no volume is made.
	stalled, stuck bool
}

// newCSI makes a driver with two storage classes; one that takes snapshots has a class
// for them.
func (w *world) newCSI(takesSnapshots bool) *csi {
	GinkgoHelper()
	s := &csi{w: w, driver: w.namespace + ".example.io"}
	objects := []client.Object{&storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: s.driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)},
	}}
	for _, name := range []string{"slow", "fast"} {
		objects = append(objects, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: s.class(name)}, Provisioner: s.driver})
	}
	if takesSnapshots {
		objects = append(objects, &snapshotv1.VolumeSnapshotClass{
			ObjectMeta: metav1.ObjectMeta{Name: s.driver, Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
			Driver:     s.driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		})
	}
	for _, object := range objects {
		Expect(w.api.Create(w.ctx, object)).To(Succeed())
		DeferCleanup(func() { Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, object))).To(Succeed()) })
	}
	return s
}

func (s *csi) class(name string) string { return s.w.namespace + "-" + name }

// start makes a set of one pod whose claim is recreated, and brings it to rest.
func (s *csi) start(changes ...func(*appsv1beta1.StatefulSet)) {
	GinkgoHelper()
	set := reference().Replicas(1).With(func(set *appsv1beta1.StatefulSet) {
		template := claimTemplate("data", "1Gi")
		template.Spec.StorageClassName = ptr.To(s.class("slow"))
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{template}
		set.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{
			Type: appsv1beta1.RecreateVolumeClaimUpdateStrategyType, Recreate: &appsv1beta1.VolumeClaimRecreateStrategy{TimeoutSeconds: ptr.To[int32](60)},
		}
	})
	for _, change := range changes {
		set.With(change)
	}
	s.w.apply(set.Build())
	s.settle()
	s.w.expectSettled(1)
	s.w.manager.Forget()
}

// of returns a change of the storage class of the template.
func (s *csi) of(name string) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To(s.class(name))
	}
}

// settle lets reconciler, kubelet and storage take turns until all are at rest.
func (s *csi) settle() {
	GinkgoHelper()
	for quiet, rounds := 0, 0; quiet < 5; quiet++ {
		rounds++
		if rounds > maxRounds {
			Fail(fmt.Sprintf("not at rest: %+v\n%v", s.w.status(), s.w.manager.Writes("")))
		}
		before := len(s.w.manager.Writes(""))
		result := s.round()
		if result.moved || len(s.w.manager.Writes("")) > before {
			quiet = 0
		}
	}
}

func (s *csi) rounds(n int) {
	GinkgoHelper()
	for range n {
		s.round()
	}
}

func (s *csi) round() turn {
	GinkgoHelper()
	result := s.w.reconcile()
	s.w.clock.Step(max(min(result.RequeueAfter, 5*time.Second), time.Second))
	storage := s.sync()
	s.w.kubelet.Away["sample-0"] = !s.isBound() // the scheduler does not place it
	kubelet := s.w.kubelet.Sync(s.w.ctx)
	return turn{storage || kubelet, result.RequeueAfter}
}

// isBound reports whether the claim has a volume, if there is one.
func (s *csi) isBound() bool {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	err := s.w.live.Get(s.w.ctx, client.ObjectKey{Namespace: s.w.namespace, Name: "data-sample-0"}, claim)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil && claim.Status.Phase == corev1.ClaimBound
}

// sync does one thing for every object, and reports whether there was any to do.
func (s *csi) sync() bool {
	GinkgoHelper()
	moved := false
	claims := &corev1.PersistentVolumeClaimList{}
	Expect(s.w.live.List(s.w.ctx, claims, client.InNamespace(s.w.namespace))).To(Succeed())
	for i := range claims.Items {
		claim := &claims.Items[i]
		switch {
		case claim.DeletionTimestamp != nil:
			moved = s.release(claim) || moved
		case claim.Status.Phase != corev1.ClaimBound:
			moved = s.bind(claim) || moved
		}
	}
	for _, name := range s.volumes {
		moved = s.reclaim(name) || moved
	}
	return s.snapshot() || moved
}

// release lets Kubernetes delete a claim that no pod uses.
func (s *csi) release(claim *corev1.PersistentVolumeClaim) bool {
	GinkgoHelper()
	for _, pod := range s.w.pods() {
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name && pod.Spec.NodeName != "" {
				return false
			}
		}
	}
	s.unprotect(claim)
	if pv := s.volume(claim.Spec.VolumeName); pv != nil && pv.Spec.ClaimRef.UID == claim.UID {
		s.phase(pv, corev1.VolumeReleased)
	}
	return true
}

func (s *csi) unprotect(object client.Object) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(nil)
	Expect(client.IgnoreNotFound(s.w.api.Patch(s.w.ctx, object, client.MergeFrom(before)))).To(Succeed())
}

func (s *csi) phase(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	GinkgoHelper()
	before := pv.DeepCopy()
	pv.Status.Phase = phase
	Expect(s.w.api.Status().Patch(s.w.ctx, pv, client.MergeFrom(before))).To(Succeed())
}

// bind binds a claim to the volume that it names, or to a new one.
func (s *csi) bind(claim *corev1.PersistentVolumeClaim) bool {
	GinkgoHelper()
	pv := s.volume(claim.Spec.VolumeName)
	switch {
	case claim.Spec.VolumeName == "" && s.stuck, claim.Spec.VolumeName != "" && (pv == nil || pv.Spec.ClaimRef.UID != ""):
		return false
	case pv == nil:
		pv = s.provision(claim)
	}
	before := pv.DeepCopy()
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	Expect(s.w.api.Patch(s.w.ctx, pv, client.MergeFrom(before))).To(Succeed())
	s.phase(pv, corev1.VolumeBound)
	unbound := claim.DeepCopy()
	claim.Spec.VolumeName = pv.Name
	Expect(s.w.api.Patch(s.w.ctx, claim, client.MergeFrom(unbound))).To(Succeed())
	s.w.bind(claim.Name)
	return true
}

// provision makes a volume.
func (s *csi) provision(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-pv-%d", s.w.namespace, len(s.volumes)+1)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: s.driver, VolumeHandle: "1"}},
		},
	}
	Expect(s.w.api.Create(s.w.ctx, pv)).To(Succeed())
	s.volumes = append(s.volumes, pv.Name)
	DeferCleanup(func() {
		if left := s.volume(pv.Name); left != nil {
			Expect(client.IgnoreNotFound(s.w.api.Delete(s.w.ctx, left))).To(Succeed())
			s.unprotect(left)
		}
	})
	return pv
}

// reclaim goes on with a volume that no claim has.
func (s *csi) reclaim(name string) bool {
	GinkgoHelper()
	pv := s.volume(name)
	switch {
	case pv == nil || pv.Status.Phase != corev1.VolumeReleased:
		return false
	case pv.Spec.ClaimRef.UID == "":
		s.phase(pv, corev1.VolumeAvailable)
	case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		Expect(s.w.api.Delete(s.w.ctx, pv)).To(Succeed())
		s.unprotect(pv)
	default:
		return false
	}
	return true
}

// volume reads a volume; nil if it does not exist.
func (s *csi) volume(name string) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := &corev1.PersistentVolume{}
	if name == "" {
		return nil
	}
	err := s.w.live.Get(s.w.ctx, client.ObjectKey{Name: name}, pv)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return pv
}

// snapshot makes the snapshots ready.
func (s *csi) snapshot() bool {
	GinkgoHelper()
	moved := false
	for _, snapshot := range s.snapshots() {
		if s.stalled || snapshot.Status != nil {
			continue
		}
		s.ready(&snapshot, "1Gi")
		moved = true
	}
	return moved
}

// snapshots returns those of the namespace by name.
func (s *csi) snapshots() map[string]snapshotv1.VolumeSnapshot {
	GinkgoHelper()
	list := &snapshotv1.VolumeSnapshotList{}
	found := map[string]snapshotv1.VolumeSnapshot{}
	if err := s.w.live.List(s.w.ctx, list, client.InNamespace(s.w.namespace)); err == nil {
		for _, snapshot := range list.Items {
			found[snapshot.Name] = snapshot
		}
	}
	return found
}

func (s *csi) snapshotNames() []string {
	GinkgoHelper()
	return slices.Sorted(maps.Keys(s.snapshots()))
}

// claim reads the claim of the pod.
func (s *csi) claim() *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	Expect(s.w.live.Get(s.w.ctx, client.ObjectKey{Namespace: s.w.namespace, Name: "data-sample-0"}, claim)).To(Succeed())
	return claim
}

// ready is what the snapshot controller shows of a snapshot that has been taken.
func (s *csi) ready(snapshot *snapshotv1.VolumeSnapshot, size string) {
	GinkgoHelper()
	before := snapshot.DeepCopy()
	snapshot.Status = &snapshotv1.VolumeSnapshotStatus{
		ReadyToUse: ptr.To(true), BoundVolumeSnapshotContentName: ptr.To("content-" + snapshot.Name), RestoreSize: ptr.To(resource.MustParse(size)),
	}
	Expect(s.w.api.Status().Patch(s.w.ctx, snapshot, client.MergeFrom(before))).To(Succeed())
}
