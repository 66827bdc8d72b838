// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// observePullers reads the pods that pull images for the workload.
func (s *scope) observePullers(ctx context.Context, reader client.Reader) error {
	list := &corev1.PodList{}
	if err := podcache.Pullers(ctx, reader, s.object, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		s.Pullers = append(s.Pullers, &list.Items[i])
	}
	return nil
}

// deletePullersOf deletes the pods that pull images for a workload that is gone, or has no opt-in any
// more, which looks the same from here.
func (r *Reconciler) deletePullersOf(ctx context.Context, workload client.ObjectKey) error {
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(workload.Namespace), client.HasLabels{appsv1beta1.PullerLabel}); err != nil {
		return fmt.Errorf("list pods that pull images in namespace %s: %w", workload.Namespace, err)
	}
	var errs []error
	for i := range list.Items {
		if owner := r.ownerOf(ctx, &list.Items[i]); owner != nil && owner.Name == workload.Name {
			errs = append(errs, executor.DeletePuller(ctx, r.client, &list.Items[i]))
		}
	}
	return errors.Join(errs...)
}

// pullerController returns what controls the pods that pull images; nil for the workload itself,
// which can be that of a Deployment only: the controllers of the other kinds take the reference off
// a pod that the selector does not select. Without a controller, nodes could not be drained
// (kubectl drain refuses such pods). So it is the revision whose images they pull.
func (s *scope) pullerController() *metav1.OwnerReference {
	var revision *history.Revision
	switch s.kind {
	case StatefulSet:
		revision = s.history.Get(s.target.Name)
	case DaemonSet:
		revision = s.history.GetByHash(s.target.Name)
	case Deployment:
	}
	if revision == nil {
		return nil
	}
	object := revision.Object()
	return &metav1.OwnerReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision",
		Name: object.Name, UID: object.UID, Controller: ptr.To(true),
	}
}

// waitsForImages reports whether pods stay as they are since their images are not on their nodes, as
// the user wants it. Kubernetes would take them out of service without.
func (s *scope) waitsForImages() bool {
	if s.Asked.Target.Pull.Policy != appsv1beta1.RequireImagePull || s.mustTellOfImages() {
		return false
	}
	waits := func(b inplace.Blocker) bool {
		return b.Reason == inplace.ReasonImagePull || b.Reason == inplace.ReasonImageNotPullable
	}
	return slices.ContainsFunc(s.Plan.Blockers, waits) || slices.ContainsFunc(s.newPods(), lacksImage)
}

// pullsForNewPods reports whether pods that Kubernetes would delete wait until the images of those in
// their places are pulled. Pods whose nodes cannot pull them are not to be deleted in the plan.
func (s *scope) pullsForNewPods() bool {
	deleted := sets.New[types.UID]()
	for _, pod := range s.Plan.Pods {
		if pod.Step.Deletes() {
			deleted.Insert(pod.Pod.UID)
		}
	}
	return slices.ContainsFunc(s.Plan.Blockers, func(b inplace.Blocker) bool { return b.Reason == inplace.ReasonImagePull && deleted.Has(b.Pod.UID) })
}

// mustTellOfImages reports whether a hold ends in the end although images are not on the nodes. Clients
// of Kubernetes hear by the progress deadline only that the rollout of a Deployment does not come to
// an end, and it does not pass during a hold. Who wants to wait all the same says so.
func (s *scope) mustTellOfImages() bool {
	return s.kind == Deployment && s.options.strategy.ImagePull == nil
}

// lacksImage reports whether the kubelet cannot pull an image of a pod.
func lacksImage(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), inplace.LacksImage)
}
