// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// A hold of a Deployment goes by its strategy: Kubernetes makes one pod of the new template,
// which never counts as available for it, and waits. That pod proves the template before
// any pod that serves is touched, and gives the room that few replicas lack. When the others
// are updated in place, it is drained and goes, see retire.go.

// surges reports whether a hold has made Kubernetes make a pod more.
func (w deployment) surges() bool {
	return w.Spec.MinReadySeconds == native.HeldMinReadySeconds
}

// wished returns the Deployment as it is without such a hold. What the hold has kept and the
// API server would not accept counts as absent: users can change annotations.
func (w deployment) wished() *appsv1.Deployment {
	if !w.surges() {
		return w.Deployment
	}
	minReady, isNumber := keptSeconds(w, native.HeldMinReadySecondsAnnotation, 0)
	deadline, isDeadline := keptSeconds(w, native.HeldProgressDeadlineSecondsAnnotation, int32(defaultProgressDeadline.Seconds()))
	unavailable := heldValue(w, native.HeldMaxUnavailableAnnotation, defaultMaxUnavailable)
	surge := heldValue(w, native.HeldMaxSurgeAnnotation, defaultMaxUnavailable)
	if !isNumber || !isDeadline || deadline <= minReady || minReady == native.HeldMinReadySeconds || !isShare(unavailable, true) || !isShare(surge, false) || isZero(unavailable) && isZero(surge) {
		minReady, deadline = 0, int32(defaultProgressDeadline.Seconds())
		unavailable, surge = intstr.FromString(defaultMaxUnavailable), intstr.FromString(defaultMaxUnavailable)
	}
	wished := *w.Deployment
	wished.Spec.MinReadySeconds, wished.Spec.ProgressDeadlineSeconds = minReady, &deadline
	wished.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}
	return &wished
}

// keptSeconds returns a number of seconds that a hold has kept, and whether it is one.
func keptSeconds(w deployment, key string, absent int32) (int32, bool) {
	text, ok := w.Annotations[key]
	if !ok {
		return absent, true
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	return int32(seconds), err == nil && seconds >= 0
}

// isShare reports whether the API server accepts a number of pods, or a percentage of them.
func isShare(value intstr.IntOrString, atMostAll bool) bool {
	const all = 100
	scaled, err := intstr.GetScaledValueFromIntOrPercent(&value, all, true)
	return err == nil && scaled >= 0 && scaled <= math.MaxInt32 && (!atMostAll || value.Type == intstr.Int || scaled <= all)
}

func isZero(value intstr.IntOrString) bool {
	const all = 100
	scaled, err := intstr.GetScaledValueFromIntOrPercent(&value, all, true)
	return err == nil && scaled == 0
}

// isSurge reports whether Kubernetes takes a ReplicaSet for that of the template of a
// Deployment that is held, or did so last.
func (rs *replicaSet) isSurge() bool {
	return rs.Spec.MinReadySeconds == native.HeldMinReadySeconds
}

// hasSpare reports whether there are more pods than there are to be when those that stay
// serve, since others serve that are to go: they give room.
func (s *scope) hasSpare() bool {
	count := 0
	for i, facts := range s.pods {
		if !s.isOfOther(i) || s.isAvailable(facts.Pod) {
			count++
		}
	}
	return count > s.spec.replicas
}

func (s *scope) isAvailable(pod *corev1.Pod) bool {
	return podutils.IsPodAvailable(pod, s.spec.minReadySeconds, metav1.NewTime(s.Now))
}

// newPods returns the pods that the hold has Kubernetes make of the template. One that says
// that it was made from another has got this ReplicaSet afterwards.
func (s *scope) newPods() []*corev1.Pod {
	var found []*corev1.Pod
	for _, facts := range s.pods {
		isOfTemplate := inplace.RevisionOf(facts.Pod) == "" || inplace.RevisionOf(facts.Pod) == s.target.Name
		if s.surge != nil && metav1.IsControlledBy(facts.Pod, s.surge) && isOfTemplate {
			found = append(found, facts.Pod)
		}
	}
	return found
}

// isKeeper reports whether a ReplicaSet was chosen in this hold for the one whose pods stay.
func (rs *replicaSet) isKeeper() bool {
	return rs.Annotations[native.KeeperAnnotation] == string(rs.UID)
}

// markKeeper records which ReplicaSet has the pods that stay.
func (w deployment) markKeeper(ctx context.Context, r *Reconciler, s *scope) error {
	if !s.spec.surges || s.ahead || s.keeper.isKeeper() {
		return nil
	}
	rs := s.keeper.ReplicaSet
	err := workloads.PatchMetadata(ctx, r.client, rs, s.keeper.reference(), map[string]any{"annotations": map[string]any{native.KeeperAnnotation: string(rs.UID)}})
	if err != nil {
		return fmt.Errorf("mark ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return nil
}

// moves returns what is to be done to pods now. What is not to stay is let be once that is
// sure.
func (s *scope) moves() []inplace.Move {
	if s.keeper == nil || !s.keeper.isPromoted() {
		return s.Plan.Moves
	}
	return slices.DeleteFunc(slices.Clone(s.Plan.Moves), func(m inplace.Move) bool { return !metav1.IsControlledBy(m.Pod, s.keeper) })
}

// waitsFor says what has to be before a pod that serves may be taken out of service: a pod of
// the new template that serves. Where Kubernetes cannot make that one, maxUnavailable counts
// alone, as it does natively.
func (s *scope) waitsFor() string {
	switch {
	case !s.spec.surges, s.ahead, s.keeper == nil, s.keeper.isPromoted(), s.isBack():
		return ""
	case slices.ContainsFunc(s.newPods(), s.isAvailable):
		return ""
	}
	refused := s.noNewPod()
	switch pods := s.newPods(); {
	case refused != "" && s.maxUnavailable() > 0:
		return ""
	case refused != "":
		return "maxUnavailable is 0, and there is no pod more: " + refused + "; the annotation " + native.MaxUnavailableAnnotation + ` "1" allows one pod to be out of service`
	case len(pods) == 0:
		return "Kubernetes has not made a pod of the new template yet"
	default:
		return fmt.Sprintf("pod %s of the new template does not serve yet%s", pods[0].Name, whyNotServing(pods[0]))
	}
}

// startTime is how long the image of a pod may take, and its volumes, before it counts as one
// that does not start.
const startTime = 5 * time.Minute

// noNewPod says why Kubernetes cannot make a pod of the new template run; empty if it can, or
// that is not sure yet. What is in its way, as a node that is about to come, may go by itself.
func (s *scope) noNewPod() string {
	if s.surge == nil {
		return ""
	}
	if failure := s.surge.failure(); failure != nil {
		return fmt.Sprintf("ReplicaSet %s cannot make it: %s", s.surge.Name, failure.Message)
	}
	for _, pod := range s.newPods() {
		if pod.Status.Phase != corev1.PodPending || hasRun(pod) || inplace.IsBroken(pod) {
			continue
		}
		patience, why := startTime, fmt.Sprintf("pod %s has not started for %s", pod.Name, startTime)
		if pod.Spec.NodeName == "" {
			patience, why = unfinishedTime, fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, whyUnscheduled(pod))
		}
		if wait := pod.CreationTimestamp.Add(patience).Sub(s.Now); wait > 0 {
			s.Requeue.Within(wait)
			continue
		}
		return why
	}
	return ""
}

// hasRun reports whether an init container of a pod runs, or has run.
func hasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

func whyUnscheduled(pod *corev1.Pod) string {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if i < 0 {
		return "no scheduler has looked at it"
	}
	return pod.Status.Conditions[i].Message
}

// whyNotServing says what keeps a pod from serving, in words that follow a sentence; empty if
// its status does not say it.
func whyNotServing(pod *corev1.Pod) string {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := ptr.Deref(container.State.Waiting, corev1.ContainerStateWaiting{})
		if waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
			return strings.TrimSuffix(fmt.Sprintf(": container %s: %s: %s", container.Name, waiting.Reason, waiting.Message), ": ")
		}
	}
	return ""
}

// nameNoNewPod has one of the pods call for its user, where all wait for a pod more that
// cannot be made.
func (s *scope) nameNoNewPod() {
	if s.Asked.WaitsFor == "" || s.noNewPod() == "" || s.options.paused {
		return
	}
	blockers := slices.Clone(s.Plan.Blockers)
	i := slices.IndexFunc(blockers, func(b inplace.Blocker) bool { return b.Reason == inplace.ReasonNewPod })
	if i >= 0 {
		blockers[i].State = inplace.Stuck
		s.Plan = s.Plan.Reworded(blockers)
	}
}

// besides says in words that follow a sentence that pods of the new template stay beside the
// others while the hold lasts; empty if there are none.
func (s *scope) besides() string {
	if pods := s.newPods(); len(pods) > 0 {
		return fmt.Sprintf("; pod %s runs the new template beside them", pods[0].Name)
	}
	return ""
}

// isAboutToSurge reports whether the controller of Deployments has not yet made a ReplicaSet
// of the present template. Once the keeper has that template, none is to be made.
func (w deployment) isAboutToSurge(s *scope) bool {
	return s.spec.surges && !s.spec.isPaused &&
		(w.Status.ObservedGeneration < w.Generation || w.Annotations[revisionAnnotation] == s.keeper.Annotations[revisionAnnotation])
}

// countAvailable has Kubernetes count the pods that serve of ReplicaSets that are not of the
// present template any more. It takes their pods for unavailable else, as it does those of the
// present one during the hold, and deletes such pods first.
func (w deployment) countAvailable(ctx context.Context, r *Reconciler, live []*replicaSet) error {
	for _, rs := range live {
		if !w.surges() || !rs.isSurge() || rs.isOf(&w.Spec.Template) {
			continue
		}
		patch := client.MergeFromWithOptions(rs.DeepCopy(), client.MergeFromWithOptimisticLock{})
		changed := rs.DeepCopy()
		changed.Spec.MinReadySeconds = w.wished().Spec.MinReadySeconds
		if err := r.client.Patch(ctx, changed, patch); err != nil {
			return fmt.Errorf("write minReadySeconds of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
	}
	return nil
}
