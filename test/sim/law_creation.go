// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
)

// What the law says of creations, and of creations that the server refuses.

// creationLaw is what the law knows of creations.
type creationLaw struct {
	// refused are the creations that the server refused in this reconciliation.
	refused []refusedCreation
	// failed: another write of this reconciliation came to nothing.
	failed bool
	// version is that of the set when it began.
	version string
	// claims counts the claims that were made since the user asked for something, while
	// pods are refused.
	claims int
	since  setGeneration
}

type refusedCreation struct{ kind, name, words string }

// turnedDown is told of each write that did not succeed.
func (l *law) turnedDown(w write, err error) {
	l.noteRefusedSize(w, err)
	if err != l.world.server.admission.refused { //nolint:errorlint // this very error
		l.creations.failed = true
		return
	}
	kind, name, words := kindOf(w.obj), w.obj.GetName(), err.Error()
	if l.world.settings.hasMadeUpNames() && kind != "ControllerRevision" {
		// The name of a pod is made up, and that of its claim with it: it says nothing.
		said := name[:strings.LastIndex(name, "-")+1] + "…"
		words, name = strings.ReplaceAll(words, name, said), said
	}
	l.creations.refused = append(l.creations.refused, refusedCreation{kind, name, words})
}

// checkRefusalsAreNamed asserts, after a reconciliation, that the user finds in the
// status what the server refuses: an object of each kind, and the words of the server.
func (l *law) checkRefusalsAreNamed() {
	refused, failed := l.creations.refused, l.creations.failed
	l.creations.refused, l.creations.failed = nil, false
	set := l.world.set()
	if failed || set == nil || l.seenSet == nil || l.seenSet.ResourceVersion != l.creations.version {
		return // it may know of no status that it would have to change
	}
	for kind := range plurals {
		ofKind := slices.DeleteFunc(slices.Clone(refused), func(r refusedCreation) bool { return r.kind != kind })
		isNamed := slices.ContainsFunc(ofKind, func(r refusedCreation) bool { return says(set, r) })
		if len(ofKind) > 0 && !isNamed {
			l.world.violate("the server refuses %v, and the status does not say so: %s, blockers %v", ofKind, conditionWords(set), set.Status.Blockers)
		}
	}
}

// says reports whether the status names an object and says why the server refuses it.
// The words of the server may be cut off.
func says(set *appsv1beta1.StatefulSet, r refusedCreation) bool {
	words := r.words[:min(len(r.words), 80)]
	for _, c := range set.Status.Conditions {
		if strings.Contains(c.Message, r.name) && strings.Contains(c.Message, words) {
			return true
		}
	}
	return slices.ContainsFunc(set.Status.Blockers, func(b appsv1beta1.Blocker) bool {
		return strings.Contains(b.Pod+b.Message, r.name) && strings.Contains(b.Message, words)
	})
}

// longKnown is how long the server refuses new pods before the manager may no longer
// recreate one that serves.
const longKnown = 20 * time.Second

// checkCanComeBack asserts that no pod that serves is deleted to be made again, while the server
// would not accept another one, and has not for a while. A quota has room for it then.
func (l *law) checkCanComeBack(w write) {
	pod, ok := w.before.(*corev1.Pod)
	r, is := l.world.server.admission.refusals["Pod"]
	now := l.world.clock.Now()
	if !ok || !is || l.seenSet == nil || !isHealthy(pod) || now.Sub(r.since) < longKnown || !now.Before(r.until) || executor.IsOfQuota(r.err(pod)) {
		return
	}
	if l.seenClones != nil && l.isTooMany(w) || l.seenClones == nil && !slices.Contains(podsOf(l.seenSet), pod.Name) {
		return // it goes for good
	}
	l.world.violate("%s, which serves, and the server has refused new pods for %s", w.words, now.Sub(r.since))
}

// checkRestartBringsInjected asserts that no pod is restarted in place, as the user asked for all
// of its containers, while a new pod would have another one from admission, and has had for a
// while.
func (l *law) checkRestartBringsInjected(w write) {
	before, was := w.before.(*corev1.Pod)
	set, a := l.seenSet, l.world.server.admission
	if !was || set == nil || set.Spec.UpdateStrategy.RollingUpdate == nil || set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType {
		return
	}
	after, is := get[*corev1.Pod](l.world.server, before.Name)
	isAsked := is && after.Annotations[restartedAt] != "" && after.Annotations[restartedAt] != before.Annotations[restartedAt]
	now := l.world.clock.Now()
	if !isAsked || now.Sub(a.rewrittenSince) < longKnown || now.Sub(a.refusals["Pod"].until) < longKnown {
		return
	}
	made := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	a.rewrites.apply(made)
	if old, fresh := images(before)[injected], images(made)[injected]; old != fresh {
		l.world.violate("%s restarts it in place with %q injected, and a new pod has %q", w.words, old, fresh)
	}
}

// checkNumberOfClaims asserts that a set makes no more claims than its pods need while
// the server refuses the pods, however often it tries.
func (l *law) checkNumberOfClaims(w write) {
	if l.seenSet == nil {
		return
	}
	c, now := &l.creations, setGeneration{l.seenSet.UID, l.seenSet.Generation}
	if c.since != now || !l.world.isRefused("Pod") {
		c.claims, c.since = 0, now
		return
	}
	c.claims++
	limit := len(l.world.names(l.seenSet)) * max(len(l.seenSet.Spec.VolumeClaimTemplates), 1)
	if l.seenClones != nil {
		limit += int(l.seenClones.GetMaxSurge()) * max(len(l.seenSet.Spec.VolumeClaimTemplates), 1)
	}
	if c.claims > limit {
		l.world.violate("%s is claim %d that is made while pods are refused, %d are needed", w.words, c.claims, limit)
	}
}

// checkIsOutOfDate asserts that the operator deletes no pod that is as the user wants it:
// for its template, or for anything that others did to it. One that was marked not ready
// for its deletion does not come back.
func (l *law) checkIsOutOfDate(w write) {
	pod, ok := w.before.(*corev1.Pod)
	set := l.seenSet
	if !ok || set == nil || pod.DeletionTimestamp != nil || l.world.storage != nil || l.hasLostRevision(pod) {
		return
	}
	if lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingDelete && isMarkedNotReady(pod) {
		return
	}
	_, asked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	if asked || l.seenClones != nil && l.isAsked(pod) || !l.isToStay(w, pod) || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || isResizing(pod) {
		return
	}
	if isAtTemplate(pod, set) && l.hasRestarted(pod, set) && len(l.whatSizeIsWrong(pod, &set.Spec.Template.Spec)) == 0 && revisionOf(pod) == set.Status.UpdateRevision && set.Status.ObservedGeneration == set.Generation {
		l.world.violate("%s, which is as the user wants it", w.words)
	}
}

// isToStay reports whether the workload is to have a pod that the operator deletes.
func (l *law) isToStay(w write, pod *corev1.Pod) bool {
	switch {
	case l.daemons != nil:
		return !l.daemons.isToGo(pod)
	case l.seenClones != nil:
		return !l.isTooMany(w)
	default:
		return slices.Contains(l.world.names(l.seenSet), pod.Name)
	}
}

// hasRestarted reports whether the containers of a pod have been started since what they
// read of it changed, and since they were asked to.
func (l *law) hasRestarted(pod *corev1.Pod, set *appsv1beta1.StatefulSet) bool {
	if worker, reads := l.world.worker(pod), levels(pod); worker != nil {
		for name, c := range worker.running {
			if c.level != reads[name] {
				return false
			}
		}
	}
	return len(l.world.whatWasNotRestarted(pod, &set.Spec.Template)) == 0
}

// isAtTemplate reports whether a pod has what the template of a set asks for, whatever
// others have added to it.
func isAtTemplate(pod *corev1.Pod, set *appsv1beta1.StatefulSet) bool {
	template := set.Spec.Template
	wanted, found := images(&corev1.Pod{Spec: template.Spec}), images(pod)
	for name, image := range wanted {
		if !means(found[name], image) {
			return false
		}
	}
	for key, value := range template.Labels {
		if pod.Labels[key] != value {
			return false
		}
	}
	for key, value := range template.Annotations {
		if pod.Annotations[key] != value {
			return false
		}
	}
	return hasEnvironment(pod, &template.Spec)
}

// hasEnvironment reports whether the containers of a pod have the environment that the
// template gives them.
func hasEnvironment(pod *corev1.Pod, template *corev1.PodSpec) bool {
	for _, wanted := range template.Containers {
		i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == wanted.Name })
		if i < 0 || len(pod.Spec.Containers[i].Env) != len(wanted.Env) {
			return false
		}
	}
	return true
}
