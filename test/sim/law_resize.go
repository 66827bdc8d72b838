// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of the sizes of pods.

// resizeLaw is what the law knows of resizes of the operator.
type resizeLaw struct {
	// unheard are the pods with a resize whose answer was lost.
	unheard sets.Set[types.UID]
	// restarted are the pods of which containers were restarted for their sizes.
	restarted sets.Set[types.UID]
	// written tells at which generation of which set a number was written.
	written map[types.UID]map[sizedValue]sizedFor
}

type setGeneration struct {
	uid        types.UID
	generation int64
}

// sizedFor is what decides which number a pod gets.
type sizedFor struct {
	setGeneration

	// pods are those of a CloneSet, which share its places: a pod more may take the place of
	// one that was resized for it. It is empty for a StatefulSet, whose ordinals are places.
	pods string
}

type sizedValue struct {
	sizeKey

	value string
}

func newResizeLaw() resizeLaw {
	return resizeLaw{
		unheard: sets.New[types.UID](), restarted: sets.New[types.UID](), written: map[types.UID]map[sizedValue]sizedFor{},
	}
}

// judgeResize asserts what a write to pods/resize could break.
func (l *law) judgeResize(w write, ownersBefore map[sizeKey]owner) {
	before, after, ok := l.podsOf(w)
	if !ok || l.seenSet == nil {
		return
	}
	keys := sizesOf(&before.Spec).changes(sizesOf(&after.Spec))
	if len(keys) == 0 {
		l.world.violate("%s changes nothing", w.words)
		return
	}
	l.checkHook(w, l.seenSet)
	l.checkRepeated(w, after, keys, ownersBefore)
	l.checkFight(w, before, keys, ownersBefore)
	if names := restarting(after, keys); len(names) > 0 {
		l.resizes.restarted.Insert(after.UID)
		l.checkResizeRestarts(w, before, names)
	} else {
		l.checkConcurrent(w, before)
	}
	if w.unheard {
		l.resizes.unheard.Insert(after.UID)
	}
}

// restarting returns the containers that restart when numbers change.
func restarting(pod *corev1.Pod, keys []sizeKey) []string {
	names := sets.New[string]()
	for _, key := range keys {
		if restartsFor(pod, key.container, key.resource) {
			names.Insert(key.container)
		}
	}
	return sets.List(names)
}

// checkResizeRestarts asserts invariants 1 and 4 for a resize that restarts
// containers.
func (l *law) checkResizeRestarts(w write, before *corev1.Pod, containers []string) {
	if l.isServed(before, containers) {
		l.world.violate("invariant 4: %s restarts %v while the pod serves", w.words, containers)
	}
	l.checkDisruption(w)
	l.checkBudget(w)
}

// checkConcurrent asserts that no more pods are resized in service than
// maxConcurrent. What a lost answer or a dead manager began does not count; nor does
// what cannot be seen, as a kubelet reports it, or a pod that is not shown as ready:
// its kubelet may never answer.
func (l *law) checkConcurrent(w write, before *corev1.Pod) {
	if !conditionIs(before, corev1.PodReady, corev1.ConditionTrue) || l.getsImages(before) || l.world.settings.resizes.reports != exact {
		return
	}
	if worker := l.world.worker(before); worker != nil && l.world.isOwnWork(before, worker.size.actual.changes(sizesOf(&before.Spec))) {
		return // it is being resized already
	}
	if before.Status.ObservedGeneration < before.Generation && l.world.isOwnWork(before, slices.Collect(maps.Keys(sizesOf(&before.Spec).values()))) {
		return // so it is as far as its kubelet has said: that has not seen the last change
	}
	var inWork []string
	for name, pod := range all[*corev1.Pod](l.world.server) {
		if pod.DeletionTimestamp == nil && pod.Labels["app"] == setName && !l.resizes.unheard.Has(pod.UID) &&
			!l.daemons.leavesAlone(pod) && (pod.UID == before.UID || l.world.isBeingResized(pod) && l.isShownReady(pod) && !l.getsImages(pod)) {
			inWork = append(inWork, name)
		}
	}
	slices.Sort(inWork)
	if limit := atATime(resizePolicyOf(l.seenSet).MaxConcurrent, replicasOf(l.seenSet)); len(inWork) > limit {
		l.world.violate("%s: %v are being resized, maxConcurrent is %d", w.words, inWork, limit)
	}
}

func (l *law) isShownReady(pod *corev1.Pod) bool {
	shown := l.seen[pod.Name]
	return shown == nil || shown.UID == pod.UID && conditionIs(shown, corev1.PodReady, corev1.ConditionTrue)
}

// getsImages reports whether a pod grows for the images that it gets next: that is
// counted as unavailable.
func (l *law) getsImages(pod *corev1.Pod) bool {
	template := l.seenSet.Spec.Template
	rereads := l.world.settings.reads && pod.Annotations[levelKey] != template.Annotations[levelKey]
	restarts := !restartsAsked(pod.Annotations).hasAll(restartsAsked(template.Annotations))
	return rereads || restarts || !maps.EqualFunc(ownImages(pod), images(&corev1.Pod{Spec: template.Spec}), means)
}

// isBeingResized reports whether a kubelet has not made what the operator wants a
// pod to have, is able to, and does not wait for room.
func (w *World) isBeingResized(pod *corev1.Pod) bool {
	worker := w.worker(pod)
	if worker == nil || worker.size.pending != nil || worker.size.progress != nil && worker.size.progress.Reason != "" || lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingDelete || !w.isBack(pod) || !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
		return false
	}
	return w.isOwnWork(pod, worker.size.actual.changes(sizesOf(&pod.Spec)))
}

// checkGrown asserts that a pod is given another image only when its node has made
// what it was to grow before, as far as that was begun for the same revision and shown.
func (l *law) checkGrown(w write) {
	before, after, ok := l.podsOf(w)
	shown := l.seen[w.obj.GetName()]
	if !ok || shown == nil || shown.UID != before.UID || l.seenSet == nil || l.world.settings.resizes.reports != exact || maps.Equal(images(before), images(after)) {
		return
	}
	worker, own := l.world.worker(before), l.sizesIn(revisionOf(before))
	if worker == nil || own == nil || worker.size.actual == nil {
		return
	}
	wanted := l.sizesIn(revisionOf(after)).values()
	actual, was, has := worker.size.actual.values(), own.values(), sizesOf(&shown.Spec).values()
	for key, owned := range l.world.server.sizes.owners[before.UID] {
		c := worker.running[key.container]
		made, size, held := actual[key], wanted[key], has[key]
		if old := was[key]; c == nil || c.waiting != "" || owned.name != operatorManager || old.Cmp(size) == 0 || restartsFor(before, key.container, key.resource) {
			continue
		}
		if held.Cmp(size) == 0 && made.Cmp(size) < 0 {
			l.world.violate("%s changes an image, and %v has not grown to %s", w.words, key, size.String())
		}
	}
}

// checkRepeated asserts that no number is written twice for one revision.
func (l *law) checkRepeated(w write, after *corev1.Pod, keys []sizeKey, owners map[sizeKey]owner) {
	if l.world.settings.resizes.mayRepeat {
		return
	}
	written := l.resizes.written[after.UID]
	if written == nil {
		written = map[sizedValue]sizedFor{}
		l.resizes.written[after.UID] = written
	}
	values, now := sizesOf(&after.Spec).values(), sizedFor{setGeneration{l.seenSet.UID, l.seenSet.Generation}, l.sharePlaces()}
	for _, key := range keys {
		value := values[key]
		entry := sizedValue{key, value.String()}
		if at, is := written[entry]; is && at == now && owners[key].name == operatorManager {
			l.world.violate("%s writes %v = %s once more for one revision", w.words, key, entry.value)
		}
		written[entry] = now
	}
}

// sharePlaces returns the pods of a CloneSet, which share its places.
func (l *law) sharePlaces() string {
	if !l.world.settings.clones.is() {
		return ""
	}
	pods := all[*corev1.Pod](l.world.server)
	maps.DeleteFunc(pods, func(_ string, pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Labels["app"] != setName
	})
	return strings.Join(slices.Sorted(maps.Keys(pods)), " ")
}

// checkFight asserts that what others wrote into a pod of this revision stays, if
// it is to stay. A request that is above a limit which is asked for cannot, nor can a limit
// that is below a request which is asked for.
func (l *law) checkFight(w write, before *corev1.Pod, keys []sizeKey, owners map[sizeKey]owner) {
	own := l.sizesIn(revisionOf(before))
	if own == nil || resizePolicyOf(l.seenSet).Drift == appsv1beta1.EnforceResizeDrift {
		return
	}
	template := l.seenSet.Spec.Template.Spec.DeepCopy()
	defaultSizes(template)
	changed := sets.New(own.changes(sizesOf(template))...)
	for _, name := range []string{l.seenSet.Status.CurrentRevision, l.seenSet.Status.UpdateRevision} {
		if other := l.sizesIn(name); other != nil {
			changed.Insert(own.changes(other)...)
		}
	}
	state := appsv1beta1.InPlaceUpdateState{}
	_ = json.Unmarshal([]byte(before.Annotations[appsv1beta1.InPlaceUpdateStateKey]), &state) // none is an empty one
	due, was, asked := sizes(state.NextContainerResources).values(), sizesOf(&before.Spec).values(), sizesOf(template).values()
	for _, key := range keys {
		limit, limited := asked[sizeKey{key.container, "limits", key.resource}]
		request, requested := asked[sizeKey{key.container, "requests", key.resource}]
		if own := was[key]; key.list == "requests" && limited && own.Cmp(limit) > 0 || key.list == "limits" && requested && own.Cmp(request) < 0 {
			continue
		}
		by := owners[key].name
		if _, isDue := due[key]; !isDue && !changed.Has(key) && by != operatorManager {
			l.world.violate("%s changes %v, which %q has set", w.words, key, by)
		}
	}
}

// checkKept asserts that no pod is recreated for what is to be kept.
func (l *law) checkKept(w write) {
	set := l.seenSet
	if set == nil || !w.isAbout("evict Pod") || l.world.settings.respects {
		return
	}
	policy := resizePolicyOf(set)
	recreates := policy.OnDeferred == appsv1beta1.RecreateResizeDeferred ||
		policy.OnInfeasible == appsv1beta1.RecreateResizeFailure || policy.OnError == appsv1beta1.RecreateResizeFailure
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; !recreates || rolling != nil && rolling.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		l.world.violate("%s, though nothing is to be recreated for a resize", w.words)
	}
}

// sizesIn returns the sizes in a revision; nil if there is no such revision.
func (l *law) sizesIn(revision string) sizes {
	template := l.templateOf(revision)
	if template == nil {
		return nil
	}
	spec := template.Spec.DeepCopy()
	defaultSizes(spec)
	return sizesOf(spec)
}

// isServed reports whether a pod could be drained and was not, before containers
// of it restart.
func (l *law) isServed(before *corev1.Pod, containers []string) bool {
	keptReady := l.world.settings.keepReady && slices.Equal(containers, []string{sidecarName})
	lifecycle := hooksOf(l.seenSet)
	marks := lifecycle != nil && lifecycle.InPlaceUpdate != nil && lifecycle.InPlaceUpdate.MarkPodNotReady && isGatedBy(before, appsv1beta1.KruisePodReady)
	if len(containers) == 0 || keptReady || !l.world.mustBeDrained(before) && !marks {
		return false
	}
	return !isKeptOut(before) || conditionIs(before, corev1.PodReady, corev1.ConditionTrue) || l.world.slices.sendsTo(before)
}

// isResizing reports whether the node has not made a resize of a pod, so that it may
// be recreated for it, and be replaced before.
func isResizing(pod *corev1.Pod) bool {
	return conditionIs(pod, corev1.PodResizePending, corev1.ConditionTrue) || conditionIs(pod, corev1.PodResizeInProgress, corev1.ConditionTrue)
}

func resizePolicyOf(set *appsv1beta1.StatefulSet) *appsv1beta1.ResizePolicy {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.InPlaceUpdateStrategy != nil && rolling.InPlaceUpdateStrategy.Resize != nil {
		return rolling.InPlaceUpdateStrategy.Resize
	}
	return &appsv1beta1.ResizePolicy{}
}

// whatSizeIsWrong says which sizes of a pod at rest are neither those of the template
// nor those that another client wants.
func (l *law) whatSizeIsWrong(pod *corev1.Pod, template *corev1.PodSpec) []string {
	wanted := template.DeepCopy()
	for _, c := range pod.Spec.Containers {
		if c.Name == injected {
			wanted.Containers = append(wanted.Containers, c)
		}
	}
	defaultSizes(wanted)
	var words []string
	has, shall := sizesOf(&pod.Spec), sizesOf(wanted)
	drift := resizePolicyOf(l.world.set()).Drift
	for _, key := range shall.changes(has) {
		by := l.world.server.sizes.owners[pod.UID][key].name
		if _, asked := shall.values()[key]; key.container == injected || !asked && isFilled(pod, key) || followsContainers(pod, template, key) {
			continue
		}
		if drift == appsv1beta1.EnforceResizeDrift || by == "" || by == operatorManager {
			words = append(words, fmt.Sprintf("%v is not as the template says", key))
		}
	}
	if worker := l.world.worker(pod); worker != nil && (!worker.size.granted.equal(has) || !worker.isActual()) {
		words = append(words, "it does not have its size")
	}
	slices.Sort(words)
	return words
}

// followsContainers reports whether a number of a pod as a whole that its template leaves
// out is what the server makes of the containers that the pod has. docs/resize.md: "what is
// not named there follows the containers".
func followsContainers(pod *corev1.Pod, template *corev1.PodSpec, key sizeKey) bool {
	if _, named := sizesOf(template).values()[key]; named || key.container != "" {
		return false
	}
	derived := pod.Spec.DeepCopy()
	derived.Resources = template.Resources.DeepCopy()
	defaultSizes(derived)
	has, follows := sizesOf(&pod.Spec).values()[key], sizesOf(derived).values()[key]
	return has.Cmp(follows) == 0
}
