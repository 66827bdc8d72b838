// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
)

// blockers returns what a workload waits for: what the operator has reported comes first,
// since it knows since when, and what the API server said. That list is bounded; the plan
// has the others.
func blockers(f Facts, w Workload) []Blocker {
	found := []Blocker{}
	known := sets.New[string]()
	for _, b := range reported(f, w) {
		known.Insert(b.Pod + "/" + b.Reason)
		found = append(found, newBlocker(b, f.Now))
	}
	told := sets.New[string]()
	for _, b := range found {
		told.Insert(b.Pod)
	}
	for _, b := range f.Inspection.Plan.Blockers {
		if f.Partial && (b.Claim != nil || b.State == inplace.UpdatingClaims) {
			continue
		}
		if b.Pod == nil || known.Has(b.Pod.Name+"/"+b.Reason) || told.Has(b.Pod.Name) && b.Claim == nil {
			continue
		}
		found = append(found, newBlocker(appsv1beta1.Blocker{
			Pod: b.Pod.Name, Step: string(b.State), Reason: b.Reason, Message: b.Message, Since: metav1.NewTime(b.Since),
		}, f.Now))
	}
	if !f.Inspection.Planned && w.Phase != Healthy {
		found = append(found, ofPods(f, told)...)
	}
	if isWorkloadsOwn(w, found) {
		found = append(found, Blocker{
			Reason: w.Reason, Message: w.Message, Since: transition(f.view.Conditions), NeedsHelp: w.Phase == Stalled,
		})
	}
	slices.SortStableFunc(found, func(a, b Blocker) int { return cmp.Compare(rank(a), rank(b)) })
	return found
}

// ofPods returns what the pods themselves say that do not start, where the operator
// does not plan for them: Kubernetes recreates them.
func ofPods(f Facts, told sets.Set[string]) []Blocker {
	var found []Blocker
	for _, pod := range f.Pods {
		if told.Has(pod.Name) || pod.DeletionTimestamp != nil || inplace.HasEnded(pod) || podutils.IsPodReady(pod) {
			continue
		}
		if reason, message := whyNotRunning(pod); reason != "" {
			found = append(found, newBlocker(appsv1beta1.Blocker{
				Pod: pod.Name, Step: Starting, Reason: reason, Message: message, Since: pod.CreationTimestamp,
			}, f.Now))
		}
	}
	return found
}

// whyNotRunning returns what keeps a pod from running, in the words of the kubelet or the
// scheduler; empty if they say nothing.
func whyNotRunning(pod *corev1.Pod) (reason, message string) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && helpless.Has(waiting.Reason) {
			return waiting.Reason, "container " + status.Name + ": " + waiting.Message
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason, condition.Message
		}
	}
	return "", ""
}

// isWorkloadsOwn reports whether a workload waits for something that is no pod's: its
// owner, or a user who has to fix what none of its pods names.
func isWorkloadsOwn(w Workload, ofPods []Blocker) bool {
	switch w.Phase {
	case Paused, Unknown:
		return true
	case Stalled:
		isOwn := slices.Contains([]string{
			appsv1beta1.ReasonInvalidSpec, appsv1beta1.ReasonNotServed, appsv1beta1.ReasonRefused, reasonRolloutFailed,
			string(native.InvalidOptions), string(native.ProgressDeadlineExceeded),
		}, w.Reason)
		return isOwn || !slices.ContainsFunc(ofPods, func(b Blocker) bool { return b.NeedsHelp })
	case Healthy, Progressing:
		return false
	default:
		return false
	}
}

// patience is how long a container may fail to start before a user is asked for help:
// registries and configuration come late at times.
const patience = 2 * time.Minute

// helpless are reasons of the kubelet for which a container does not start, and will not
// before something is fixed.
var helpless = sets.New(
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
	"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
)

func newBlocker(b appsv1beta1.Blocker, now time.Time) Blocker {
	isHelpless := helpless.Has(b.Reason) && !b.Since.IsZero() && now.Sub(b.Since.Time) >= patience
	return Blocker{
		Pod: b.Pod, Step: b.Step, Reason: b.Reason, Message: b.Message, Since: b.Since,
		NeedsHelp: b.Step == string(inplace.Stuck) || isHelpless,
	}
}

// rank orders blockers: what needs help comes first.
func rank(b Blocker) int {
	if b.NeedsHelp {
		return 0
	}
	return 1
}

// reported returns the blockers that the operator has reported. Those of another spec than
// the present one say nothing where there is a plan.
func reported(f Facts, w Workload) []appsv1beta1.Blocker {
	if w.Phase == Unknown && f.Inspection.Planned {
		return nil
	}
	return f.view.Blockers
}

// transition returns since when the conditions of a workload of ours say what they say.
func transition(conditions []metav1.Condition) metav1.Time {
	latest := metav1.Time{}
	for _, condition := range conditions {
		if latest.Before(&condition.LastTransitionTime) {
			latest = condition.LastTransitionTime
		}
	}
	return latest
}

func trim(message string) string {
	return strings.TrimSpace(strings.TrimSuffix(message, "\n"))
}
