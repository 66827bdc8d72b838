// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// The controller of StatefulSets, and that of DaemonSets, recreates a pod that it sees
// at another revision. What it sees may be older than what there is. So a hold ends when
// its status proves that it has seen the pods as they are.

// seenTime is how long the controllers of Kubernetes may take to see a pod that was
// changed, where their status cannot prove that they have.
const seenTime = 30 * time.Second

// isObserved reports whether the controller of a StatefulSet or a DaemonSet has written its
// status in view of the present generation. Where a policy has stored another one in the
// status, an annotation tells, unless it tells of a generation that there was not yet.
func isObserved(obj metav1.Object, observed int64) bool {
	kept, err := strconv.ParseInt(obj.GetAnnotations()[native.HeldObservedGenerationAnnotation], 10, 64)
	return observed >= obj.GetGeneration() || err == nil && kept == obj.GetGeneration()
}

// atTarget returns how many pods Kubernetes counts as updated when it sees what we see:
// also those that are to go for good.
func (s *scope) atTarget() int {
	count := 0
	for _, pod := range s.allPods() {
		if pod.DeletionTimestamp == nil && inplace.RevisionOf(pod) == s.target.Name {
			count++
		}
	}
	return count
}

func (s *scope) allPods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(s.pods)+len(s.condemned))
	for _, facts := range s.pods {
		pods = append(pods, facts.Pod)
	}
	return append(pods, s.condemned...)
}

// isReturn reports whether the target is no new revision. Pods may have been at it
// before: if Kubernetes sees none of what happened since, it counts them all.
func (s *scope) isReturn(target *history.Revision) bool {
	return target != nil && s.history.HasYounger(target)
}

// isSeen reports whether enough time has passed for Kubernetes to see the pods as they
// are. If it has not, it asks for another look then.
func (s *scope) isSeen() bool {
	var last time.Time
	for _, pod := range s.allPods() {
		if at := inplace.Observe(pod, s.Now).Since; at.After(last) {
			last = at
		}
	}
	left := last.Add(seenTime).Sub(s.Now)
	if left > 0 {
		s.Requeue.Within(left)
	}
	return left <= 0
}
