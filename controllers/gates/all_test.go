// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/builders"
)

// drainedPod is a pod whose drain is to be ended.
func drainedPod() *builders.PodBuilder {
	return builders.Pod("web-1-0", "web-1", "app:a").Ready(false, builders.Start).Label(appsv1beta1.DrainedLabel, "sidecars.update").
		With(func(pod *corev1.Pod) { pod.Namespace = "shop" })
}

// closedPod is a pod that was taken out of service by its readiness gate.
func closedPod() *builders.PodBuilder {
	return builders.Pod("web-1-0", "web-1", "app:a").Ready(false, builders.Start).Gated(corev1.ConditionFalse, builders.Start).
		With(func(pod *corev1.Pod) { pod.Namespace = "shop" })
}

// neverOpened is a pod whose readiness gate has no condition yet.
func neverOpened() *builders.PodBuilder {
	return drainedPod().With(func(pod *corev1.Pod) {
		delete(pod.Labels, appsv1beta1.DrainedLabel)
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	})
}

// owned is a pod of a StatefulSet of Kubernetes.
func owned(b *builders.PodBuilder) *builders.PodBuilder {
	return b.With(func(pod *corev1.Pod) {
		owner := &metav1.ObjectMeta{Name: "web", UID: "web"}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, statefulSetKind)}
	})
}

// unobserved is a pod whose kubelet has not seen its new image yet.
func unobserved(b *builders.PodBuilder) *builders.PodBuilder {
	status := b.Build().Status.ContainerStatuses[0]
	return b.Generation(2, 1).Record(appsv1beta1.InPlaceUpdateState{
		Revision: "web-2", UpdateTimestamp: metav1.NewTime(builders.Start),
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
			"main": {Image: "app:before", ImageID: status.ImageID, ContainerID: status.ContainerID},
		},
	})
}

// fails lets the first patches fail.
func fails(times int, err error) func(*interceptor.Funcs) {
	return func(funcs *interceptor.Funcs) {
		next := funcs.SubResourcePatch
		funcs.SubResourcePatch = func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			times--
			if times >= 0 {
				return err
			}
			return next(ctx, c, subresource, object, patch, options...)
		}
	}
}

// patches is a patch of pods/status, of which the fake client would leave out the labels.
func patches(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, object, patch); err != nil {
		return err
	}
	rest := map[string]any{}
	if err := json.Unmarshal(body, &rest); err != nil {
		return err
	}
	delete(rest, "metadata") // the version is another one now
	if body, err = json.Marshal(rest); err != nil {
		return err
	}
	return c.SubResource(subresource).Patch(ctx, object, client.RawPatch(patch.Type(), body))
}

func TestLetAllServe(t *testing.T) {
	const (
		patience = 20 * time.Second
		ended    = "Ended the drain of pod shop/web-1-0\n"
		opened   = "Opened the readiness gates of pod shop/web-1-0\n"
	)
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "web-1-0", errors.New("changed meanwhile"))
	held := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "web", Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceOnly", native.HeldLabel: native.Held},
	}}
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		workload  client.Object
		intercept func(*interceptor.Funcs)
		out, err  string
		stays     bool // out of service
		waits     bool // until patience is over
	}{
		"whoever drains it":                        {pod: drainedPod(), out: ended},
		"its containers are about to be stopped":   {pod: unobserved(drainedPod()), out: ended, waits: true},
		"the pod changes meanwhile":                {pod: drainedPod(), intercept: fails(3, conflict), out: ended},
		"the pod changes when patience ends":       {pod: unobserved(drainedPod()), intercept: fails(3, conflict), out: ended, waits: true},
		"the API server fails for a moment":        {pod: drainedPod(), intercept: fails(3, errors.New("no leader")), out: ended},
		"the API server goes on failing":           {pod: drainedPod(), intercept: fails(1000, errors.New("no leader")), err: "pod shop/web-1-0: no leader", stays: true, waits: true},
		"the pod changes again and again":          {pod: drainedPod(), intercept: fails(1000, conflict), err: "pods [shop/web-1-0] change again and again", stays: true, waits: true},
		"it has ended":                             {pod: drainedPod().With(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), stays: true},
		"it is being deleted, which will take it":  {pod: drainedPod().Deleted(builders.Start), stays: true},
		"it is gone when its drain is to be ended": {pod: drainedPod(), intercept: fails(1, apierrors.NewNotFound(corev1.Resource("pods"), "web-1-0")), out: ended},
		"it is drained, and still held":            {pod: owned(drainedPod()), workload: held, stays: true},

		"its gate was closed for an update":         {pod: owned(closedPod()), out: opened},
		"its gate was closed, and it restarts":      {pod: owned(unobserved(closedPod())), out: opened, waits: true},
		"its gate was closed, and it is still held": {pod: owned(closedPod()), workload: held, stays: true},
		"its gate was never opened":                 {pod: owned(neverOpened()), out: opened},
		"its gate was closed, and it is drained":    {pod: owned(closedPod().Label(appsv1beta1.DrainedLabel, "sidecars")), out: ended + opened},
		"its gate is that of another controller":    {pod: closedPod(), stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				funcs := interceptor.Funcs{SubResourcePatch: patches}
				if tc.intercept != nil {
					tc.intercept(&funcs)
				}
				pod := tc.pod.With(func(pod *corev1.Pod) {
					if pod.DeletionTimestamp != nil {
						pod.Finalizers = []string{"example.com/keeps-it"}
					}
				}).Build()
				b := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(funcs)
				if tc.workload != nil {
					b = b.WithObjects(tc.workload)
				}
				c, out, began := b.Build(), &bytes.Buffer{}, time.Now()

				err := LetAllServe(t.Context(), c, []string{"shop"}, patience, out)

				if tc.err == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				}
				g.Expect(out.String()).To(Equal(tc.out))
				if tc.waits {
					g.Expect(time.Since(began)).To(BeNumerically(">=", patience))
				} else {
					g.Expect(time.Since(began)).To(BeNumerically("<", patience))
				}
				live := &corev1.Pod{}
				g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(pod), live)).To(Succeed())
				g.Expect(isOutOfService(live)).To(Equal(tc.stays))
			})
		})
	}
}

// isOutOfService reports whether something keeps a pod out of service.
func isOutOfService(pod *corev1.Pod) bool {
	_, drained := pod.Labels[appsv1beta1.DrainedLabel]
	return drained || slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
}
