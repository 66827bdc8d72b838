// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// refusedTimeout is how long a workload that does not say what it wants of pulls waits where no pod
// that pulls is accepted: a namespace with a quota, or a policy, that has no room for such pods is to
// be no slower than without pulls, but for a moment.
const refusedTimeout = 30 * time.Second

// PullPolicyOf returns what is said of pulls for a number of pods: in imagePull, else in the fields
// imagePreDownload* of OpenKruise, else in its annotations of the same meaning. An annotation that
// holds nothing of use says nothing, as there.
func PullPolicyOf(strategy appsv1beta1.InPlaceUpdateStrategy, annotations map[string]string, replicas int) inplace.PullPolicy {
	said := ptr.Deref(strategy.ImagePull, appsv1beta1.ImagePullPolicy{})
	timeout := firstFrom(1, said.TimeoutSeconds, strategy.ImagePreDownloadTimeoutSeconds,
		number(annotations[appsv1beta1.ImagePreDownloadTimeoutSecondsKey]))
	pull := inplace.PullPolicy{
		Timeout:        seconds(timeout, appsv1beta1.DefaultImagePullTimeoutSeconds),
		RefusedTimeout: refusedTimeout,
	}
	if strategy.ImagePull != nil {
		pull.Policy, pull.RefusedTimeout = cmp.Or(said.Policy, appsv1beta1.RequireImagePull), pull.Timeout
	}
	pull.Parallelism = int(firstFrom(1, said.Parallelism,
		scaled(strategy.ImagePreDownloadParallelism, replicas), share(annotations[appsv1beta1.ImagePreDownloadParallelismKey], replicas)))
	pull.MinUpdatedReady = int(firstFrom(0, strategy.ImagePreDownloadMinUpdatedReadyPods,
		share(annotations[appsv1beta1.ImagePreDownloadMinUpdatedReadyPodsKey], replicas)))
	return pull
}

// firstFrom returns the first value that is there and at least so much; 0 if there is none.
func firstFrom(least int32, values ...*int32) int32 {
	for _, value := range values {
		if value != nil && *value >= least {
			return *value
		}
	}
	return 0
}

func seconds(said, fallback int32) time.Duration {
	return time.Duration(cmp.Or(said, fallback)) * time.Second
}

// number returns the number that a text is; nil if it is none.
func number(text string) *int32 {
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	return ptr.To(int32(value))
}

// share returns the number, or the percentage of the pods, that a text is; nil if it is none.
func share(text string, replicas int) *int32 {
	if text == "" {
		return nil
	}
	return scaled(ptr.To(intstr.Parse(text)), replicas)
}

// scaled returns the number, or the percentage of the pods rounded up, that a value is; nil if it is
// none.
func scaled(value *intstr.IntOrString, replicas int) *int32 {
	if value == nil {
		return nil
	}
	count, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, true)
	if err != nil {
		return nil
	}
	return ptr.To(int32(count)) //nolint:gosec // it is an int32, or a part of one
}
