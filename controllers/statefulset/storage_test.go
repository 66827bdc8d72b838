// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// storage plays the external-resizer and the kubelets for the claims of a namespace,
// with a driver that does everything at once, unless told otherwise.
type storage struct {
	w *world
	// class is the storage class of the namespace.
	class string
	// limit is the size beyond which it does not expand; none if it is zero.
	limit resource.Quantity
	// offline: it does not expand volumes in use.
	offline bool
	// stalled: nothing comes of anything.
	stalled bool
}

// newStorage makes a storage class that lets claims grow or not, and waits until the
// API server knows of it.
func (w *world) newStorage(expands bool) *storage {
	GinkgoHelper()
	s := &storage{w: w, class: w.namespace}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.class}, Provisioner: "csi.example.io", AllowVolumeExpansion: ptr.To(expands),
	}
	Expect(w.api.Create(w.ctx, class)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, class))).To(Succeed()) })
	if expands {
		s.awaitExpansion()
	}
	return s
}

// awaitExpansion waits until the API server lets claims grow.
func (s *storage) awaitExpansion() {
	GinkgoHelper()
	template := claimTemplate("probe", "1Gi")
	probe := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.w.namespace, GenerateName: "probe-"}, Spec: template.Spec}
	probe.Spec.StorageClassName = &s.class
	Expect(s.w.api.Create(s.w.ctx, probe)).To(Succeed())
	s.w.bind(probe.Name)
	Eventually(func() error {
		body := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		return s.w.api.Patch(s.w.ctx, probe.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.DryRunAll, client.DisableReadYourWritesConsistency)
	}).Should(Succeed())
	Expect(s.w.api.Patch(s.w.ctx, probe, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	Expect(s.w.api.Delete(s.w.ctx, probe)).To(Succeed())
}

// attributes makes a VolumeAttributesClass.
func (w *world) attributes(name string) string {
	GinkgoHelper()
	class := &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}, DriverName: "csi.example.io", Parameters: map[string]string{"iops": "1000"},
	}
	Expect(w.api.Create(w.ctx, class)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, class))).To(Succeed()) })
	return class.Name
}

// following is a set whose claims follow their template.
func (s *storage) following(set *appsv1beta1.StatefulSet) {
	template := claimTemplate("data", "1Gi")
	template.Spec.StorageClassName = &s.class
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{template}
	set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// sized sets the size of the first claim template.
func sized(size string) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// sync does what is to be done for every claim, and reports whether that was
// anything.
func (s *storage) sync() bool {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(s.w.live.List(s.w.ctx, list, client.InNamespace(s.w.namespace))).To(Succeed())
	moved := false
	for i := range list.Items {
		claim := &list.Items[i]
		before := claim.DeepCopy()
		s.advance(claim)
		if !equality.Semantic.DeepEqual(before.Status, claim.Status) {
			moved = true
			Expect(s.w.api.Status().Patch(s.w.ctx, claim, client.MergeFrom(before))).To(Succeed())
		}
	}
	return moved
}

func (s *storage) advance(claim *corev1.PersistentVolumeClaim) {
	status, asked := &claim.Status, claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if status.Phase != corev1.ClaimBound {
		status.Phase, status.Capacity, status.CurrentVolumeAttributesClassName = corev1.ClaimBound, claim.Spec.Resources.Requests, claim.Spec.VolumeAttributesClassName
		return
	}
	if s.stalled {
		return
	}
	status.CurrentVolumeAttributesClassName = claim.Spec.VolumeAttributesClassName
	if asked.Cmp(status.Capacity[corev1.ResourceStorage]) <= 0 {
		return
	}
	switch {
	case !s.limit.IsZero() && asked.Cmp(s.limit) > 0:
		s.fail(claim, corev1.PersistentVolumeClaimControllerResizeInfeasible, "OutOfRange desc = it is too much")
	case s.offline && s.isUsed(claim.Name):
		s.fail(claim, corev1.PersistentVolumeClaimControllerResizeInProgress, "FailedPrecondition desc = it is in use")
	default:
		status.Capacity = claim.Spec.Resources.Requests
		status.AllocatedResourceStatuses, status.Conditions = nil, nil
	}
}

func (s *storage) fail(claim *corev1.PersistentVolumeClaim, status corev1.ClaimResourceStatus, code string) {
	if claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == status && claim.Status.AllocatedResources.Storage().Equal(*claim.Spec.Resources.Requests.Storage()) {
		return
	}
	claim.Status.AllocatedResources = claim.Spec.Resources.Requests
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue,
		Message: "failed to expand pvc with rpc error: code = " + code, LastTransitionTime: metav1.NewTime(s.w.clock.Now()),
	}}
}

func (s *storage) isUsed(claim string) bool {
	for _, pod := range s.w.pods() {
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim {
				return true
			}
		}
	}
	return false
}

// settle lets reconciler, kubelet and storage take turns until all are at rest.
func (s *storage) settle() {
	GinkgoHelper()
	s.settleWith(func() {})
}

func (s *storage) settleWith(look func()) {
	GinkgoHelper()
	for range maxRounds {
		before := len(s.w.manager.Writes(""))
		result := s.round(look)
		if !result.moved && len(s.w.manager.Writes("")) == before {
			if result.after == 0 {
				return
			}
			s.w.clock.Step(result.after)
		}
	}
	Fail("not at rest")
}

// rounds lets them take turns a number of times.
func (s *storage) rounds(n int) {
	GinkgoHelper()
	for range n {
		s.round(func() {})
	}
}

type turn struct {
	moved bool
	after time.Duration
}

func (s *storage) round(look func()) turn {
	GinkgoHelper()
	result := s.w.reconcile()
	look()
	s.w.clock.Step(time.Second)
	kubelet, driver := s.w.kubelet.Sync(s.w.ctx), s.sync()
	look()
	return turn{kubelet || driver, result.RequeueAfter}
}

// sizes returns what the claims ask for and have, by name.
func (w *world) sizes() map[string]string {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	sizes := map[string]string{}
	for _, claim := range list.Items {
		sizes[claim.Name] = claim.Spec.Resources.Requests.Storage().String() + "/" + claim.Status.Capacity.Storage().String()
	}
	return sizes
}

func threeSizes(first, second, third string) map[string]string {
	return map[string]string{"data-sample-0": first, "data-sample-1": second, "data-sample-2": third}
}
