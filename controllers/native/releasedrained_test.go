// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// drainedPod is a pod whose drain is to be ended.
func drainedPod() *builders.PodBuilder {
	return builders.Pod("web-1-0", "web-1", "app:a").Ready(false, builders.Start).Label(appsv1beta1.DrainedLabel, "sidecars.update").
		With(func(pod *corev1.Pod) { pod.Namespace = "shop" })
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
			if times--; times >= 0 {
				return err
			}
			return next(ctx, c, subresource, object, patch, options...)
		}
	}
}

// patchesLabels patches the labels, too, which the fake client leaves out.
func patchesLabels(ctx context.Context, c client.Client, _ string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return c.Patch(ctx, object, patch)
}

func TestEndAllDrains(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "web-1-0", errors.New("changed meanwhile"))
	const told = "Ended the drain of pod shop/web-1-0\n"
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		intercept func(*interceptor.Funcs)
		out, err  string
		stays     bool
		patience  bool // until then, the pod stays drained
	}{
		"whoever drains it":                        {pod: drainedPod(), out: told},
		"its containers are about to be stopped":   {pod: unobserved(drainedPod()), out: told, patience: true},
		"the pod changes meanwhile":                {pod: drainedPod(), intercept: fails(3, conflict), out: told},
		"the pod changes when patience ends":       {pod: unobserved(drainedPod()), intercept: fails(3, conflict), out: told, patience: true},
		"the API server fails for a moment":        {pod: drainedPod(), intercept: fails(3, errors.New("no leader")), out: told},
		"the API server goes on failing":           {pod: drainedPod(), intercept: fails(1000, errors.New("no leader")), err: "pod shop/web-1-0: no leader", stays: true, patience: true},
		"it has ended":                             {pod: drainedPod().With(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), stays: true},
		"it is being deleted, which will take it":  {pod: drainedPod().Deleted(builders.Start), stays: true},
		"it is gone when its drain is to be ended": {pod: drainedPod(), intercept: fails(1, apierrors.NewNotFound(corev1.Resource("pods"), "web-1-0")), out: told},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				funcs := interceptor.Funcs{SubResourcePatch: patchesLabels}
				if tc.intercept != nil {
					tc.intercept(&funcs)
				}
				pod := tc.pod.With(func(pod *corev1.Pod) {
					if pod.DeletionTimestamp != nil {
						pod.Finalizers = []string{"example.com/keeps-it"}
					}
				}).Build()
				c := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(funcs).Build()
				out, began := &bytes.Buffer{}, time.Now()

				err := endAllDrains(t.Context(), c, []string{"shop"}, out)

				if tc.err == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				}
				g.Expect(out.String()).To(Equal(tc.out))
				g.Expect(time.Since(began) >= releasePatience).To(Equal(tc.patience), "took %s", time.Since(began))
				live := &corev1.Pod{}
				g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(pod), live)).To(Succeed())
				if tc.stays {
					g.Expect(live.Labels).To(HaveKey(appsv1beta1.DrainedLabel))
				} else {
					g.Expect(live.Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
				}
			})
		})
	}
}
