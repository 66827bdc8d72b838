// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// IsHealthy reports whether a pod runs, has been ready for minReadySeconds, and
// stays.
func IsHealthy(pod *corev1.Pod, lifecycle *appsv1beta1.Lifecycle, minReadySeconds int32, now time.Time) bool {
	return inplace.IsServing(pod, lifecycle) && isUp(pod, minReadySeconds, now)
}

// Yields reports whether a pod would be healthy, had its hook not given it up. Nothing
// that is created is to wait for it: it serves until a PodDisruptionBudget allows its
// eviction, which may wait for what is created.
func Yields(pod *corev1.Pod, lifecycle *appsv1beta1.Lifecycle, minReadySeconds int32, now time.Time) bool {
	return inplace.IsGivenUp(pod, lifecycle) && isUp(pod, minReadySeconds, now)
}

func isUp(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning &&
		podutils.IsPodAvailable(pod, minReadySeconds, metav1.NewTime(now))
}

// HealthyAt returns when a pod that is ready will have been so for minReadySeconds; zero for
// another one.
func HealthyAt(pod *corev1.Pod, minReadySeconds int32) time.Time {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return time.Time{}
	}
	return pod.Status.Conditions[i].LastTransitionTime.Add(time.Duration(minReadySeconds)*time.Second + time.Second)
}

// Facts returns what the planner has to know of a pod that the pod does not tell
// itself: what it was made from, and who still sends it traffic.
func Facts(ctx context.Context, reader client.Reader, revisions Revisions, pod *corev1.Pod, now time.Time) (inplace.PodFacts, error) {
	facts := inplace.PodFacts{Pod: pod}
	if from := revisions.Of(pod); from != nil {
		facts.From = ptr.To(revisions.InPlace(from))
	}
	// It is only asked of pods that are being taken out of service.
	if inplace.IsMarkedNotReady(pod) {
		var err error
		if facts.Services, err = podcache.ServicesTo(ctx, reader, pod); err != nil {
			return facts, err
		}
	}
	return facts.Read(now), nil
}
