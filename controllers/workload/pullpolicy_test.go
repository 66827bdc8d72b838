// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

func TestPullPolicies(t *testing.T) {
	const (
		parallelism = appsv1beta1.ImagePreDownloadParallelismKey
		timeout     = appsv1beta1.ImagePreDownloadTimeoutSecondsKey
		minimum     = appsv1beta1.ImagePreDownloadMinUpdatedReadyPodsKey
	)
	fields := func(change func(*appsv1beta1.InPlaceUpdateStrategy)) appsv1beta1.InPlaceUpdateStrategy {
		strategy := appsv1beta1.InPlaceUpdateStrategy{
			ImagePreDownloadParallelism:         ptr.To(intstr.FromString("20%")),
			ImagePreDownloadTimeoutSeconds:      ptr.To[int32](120),
			ImagePreDownloadMinUpdatedReadyPods: ptr.To[int32](2),
		}
		change(&strategy)
		return strategy
	}
	as := func(*appsv1beta1.InPlaceUpdateStrategy) {}
	absent := inplace.PullPolicy{Timeout: 300 * time.Second, RefusedTimeout: 30 * time.Second}
	minutes := func(policy inplace.PullPolicy) inplace.PullPolicy {
		policy.Timeout, policy.RefusedTimeout = 2*time.Minute, 30*time.Second
		return policy
	}
	for name, test := range map[string]struct {
		strategy    appsv1beta1.InPlaceUpdateStrategy
		annotations map[string]string
		want        inplace.PullPolicy
	}{
		"nothing": {want: absent},
		"fields of OpenKruise": {
			strategy: fields(as), want: minutes(inplace.PullPolicy{Parallelism: 3, MinUpdatedReady: 2}),
		},
		"its annotations": {
			annotations: map[string]string{parallelism: "20%", timeout: "120", minimum: "11%"},
			want:        minutes(inplace.PullPolicy{Parallelism: 3, MinUpdatedReady: 2}),
		},
		"numbers": {
			annotations: map[string]string{parallelism: "5", minimum: "0"},
			want:        inplace.PullPolicy{Parallelism: 5, Timeout: absent.Timeout, RefusedTimeout: absent.RefusedTimeout},
		},
		"its fields before its annotations": {
			strategy: fields(as), annotations: map[string]string{parallelism: "5", timeout: "60", minimum: "9"},
			want: minutes(inplace.PullPolicy{Parallelism: 3, MinUpdatedReady: 2}),
		},
		"ours before its": {
			strategy: fields(func(s *appsv1beta1.InPlaceUpdateStrategy) {
				s.ImagePull = &appsv1beta1.ImagePullPolicy{TimeoutSeconds: ptr.To[int32](10), Parallelism: ptr.To[int32](1)}
			}),
			want: inplace.PullPolicy{
				Policy: appsv1beta1.RequireImagePull, Timeout: 10 * time.Second, RefusedTimeout: 10 * time.Second, Parallelism: 1, MinUpdatedReady: 2,
			},
		},
		"ours that says the rest only": {
			strategy: fields(func(s *appsv1beta1.InPlaceUpdateStrategy) {
				s.ImagePull = &appsv1beta1.ImagePullPolicy{Policy: appsv1beta1.PreferImagePull}
			}),
			want: inplace.PullPolicy{
				Policy: appsv1beta1.PreferImagePull, Timeout: 2 * time.Minute, RefusedTimeout: 2 * time.Minute, Parallelism: 3, MinUpdatedReady: 2,
			},
		},
		"ours that says nothing": {
			strategy: appsv1beta1.InPlaceUpdateStrategy{ImagePull: &appsv1beta1.ImagePullPolicy{}},
			want:     inplace.PullPolicy{Policy: appsv1beta1.RequireImagePull, Timeout: 5 * time.Minute, RefusedTimeout: 5 * time.Minute},
		},
		"a timeout of 0": {
			strategy: fields(func(s *appsv1beta1.InPlaceUpdateStrategy) { s.ImagePreDownloadTimeoutSeconds = ptr.To[int32](0) }),
			want:     inplace.PullPolicy{Parallelism: 3, MinUpdatedReady: 2, Timeout: absent.Timeout, RefusedTimeout: absent.RefusedTimeout},
		},
		"annotations that say nothing": {
			annotations: map[string]string{parallelism: "many", timeout: "2m", minimum: "-1"}, want: absent,
		},
		"annotations of none": {
			annotations: map[string]string{parallelism: "0", timeout: "-5", minimum: ""}, want: absent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(PullPolicyOf(test.strategy, test.annotations, 12)).To(Equal(test.want))
		})
	}
}
