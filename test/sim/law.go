// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// law asserts the invariants of docs/invariants.md. It judges by the truth, which is
// what the server holds and the kubelets run; where the operator cannot know the
// truth, by what it was shown and what it did itself.
type law struct {
	world *World
	// seen are the pods as this reconciliation was shown them, seenSet the set.
	seen    map[string]*corev1.Pod
	seenSet *appsv1beta1.StatefulSet
	// seenClones is the set if its pods are counted, made the pods that this
	// reconciliation has made of it.
	seenClones *appsv1beta1.CloneSet
	made       sets.Set[types.UID]
	// disturbed holds the pods that the operator took out of service and that
	// have not come back since.
	disturbed sets.Set[string]
	// unanswered holds those of them whose write was not answered, with the
	// generation of the set.
	unanswered map[string]int64
	// attempts counts what this reconciliation tried to write.
	attempts int
	// templates holds the templates of revisions, by the revisions' UID.
	templates map[string]*corev1.PodTemplateSpec
	// updates tells what was changed in pods.
	updates map[types.UID]*podUpdate
	// taken are the ready pods that this manager took out of service, as a budget
	// sees it.
	taken sets.Set[types.UID]
	// unready is since when pods are not ready: the transition time is later where a kubelet
	// was late, and says so again.
	unready   map[types.UID]time.Time
	resizes   resizeLaw
	creations creationLaw
	// seenClaims are the claims as this reconciliation was shown them.
	seenClaims map[string]*corev1.PersistentVolumeClaim
	// refusedSizes are the sizes that the server refused to this manager last, by the UIDs
	// of claims. It asks again later and later, and no pod waits for that.
	refusedSizes map[types.UID]string
	// refusedBefore are those that it had refused when this reconciliation began.
	refusedBefore map[types.UID]string
	data          *dataLaw
	// daemons is what it knows of a DaemonSet; nil for other kinds.
	daemons *daemonLaw
}

func newLaw(w *World) *law {
	l := &law{
		world: w, disturbed: sets.New[string](), unanswered: map[string]int64{}, templates: map[string]*corev1.PodTemplateSpec{},
		updates: map[types.UID]*podUpdate{}, taken: sets.New[types.UID](), resizes: newResizeLaw(), data: newDataLaw(w),
		refusedSizes: map[types.UID]string{}, unready: map[types.UID]time.Time{},
	}
	if w.settings.daemons.on {
		l.daemons = newDaemonLaw(l)
	}
	return l
}

// rules are what is asserted of a run, as it goes.
type rules interface {
	// begin is called before, notice during, end after a reconciliation, and forget
	// when a manager begins its life.
	begin()
	notice(list client.ObjectList)
	end()
	forget()
	// attempted is told of each write, judge of those that were carried out.
	attempted()
	judge(w write)
	// look sees what is, once a second.
	look()
	// checkRest asserts how a run ends; whatIsMissing says what is not so.
	checkRest()
	whatIsMissing() string
}

func (l *law) attempted() { l.attempts++ }

// begin is called before, notice during, end after a reconciliation.
func (l *law) begin() {
	l.look()
	if set := l.world.server.objects[l.world.setKey()]; set != nil {
		l.creations.version = set.GetResourceVersion()
	}
	l.seen, l.seenSet, l.attempts = nil, nil, 0
	l.seenClones, l.made, l.refusedBefore = nil, sets.New[types.UID](), maps.Clone(l.refusedSizes)
	l.daemons.begin()
}

func (l *law) notice(list client.ObjectList) {
	if _, ok := list.(*corev1.PodList); !ok {
		return
	}
	cache := l.world.manager.cache
	l.seen = map[string]*corev1.Pod{}
	for _, obj := range cache.list("Pod") {
		l.seen[obj.GetName()], _ = obj.(*corev1.Pod)
	}
	set := cache.objects[l.world.setKey()]
	l.seenSet = shown(set)
	l.seenClones = counted(set)
	if l.daemons != nil {
		l.daemons.notice(cache)
	}
	l.seenClaims = map[string]*corev1.PersistentVolumeClaim{}
	for _, obj := range cache.list("PersistentVolumeClaim") {
		l.seenClaims[obj.GetName()], _ = obj.(*corev1.PersistentVolumeClaim)
	}
	l.look() // by the minReadySeconds of this set
}

// judge asserts what a single write could break.
func (l *law) judge(w write) {
	l.checkIsOurs(w)
	l.checkOwner(w)
	switch {
	case w.isAbout("patch Pod/status"), w.isAbout("patch Pod"):
		l.judgePatch(w)
	case w.isAbout("patch Pod/resize"):
		l.judgeResize(w, w.owners)
	case w.isAbout("create " + pullerKind):
		l.checkPullers()
	case w.isAbout("delete Pod"), w.isAbout("evict Pod"):
		l.checkKept(w)
		l.checkKeptWithClaims(w)
		l.daemons.checkDeletion(w)
		l.checkHook(w, l.seenSet)
		l.checkDisruption(w)
		l.checkBudget(w)
		l.checkRole(w)
		l.checkIsOutOfDate(w)
		l.checkCanComeBack(w)
		l.checkPulledBefore(w)
	case w.isAbout("create Pod"):
		l.world.lateArrival = l.world.lateArrival || w.unheard
		l.checkNumberOfClones(w)
		l.daemons.checkCreation(w)
		l.checkName(w)
		l.checkImages(w)
		l.checkPartition(w)
		l.checkUnhooked(w)
	case w.isAbout("patch " + l.world.setKey().kind + "/status"):
		l.checkFinished(w)
	case w.isAbout("create PersistentVolumeClaim"):
		l.checkNumberOfClaims(w)
	case w.isAbout("patch PersistentVolumeClaim"):
		l.checkClaim(w)
		l.checkClaimChange(w)
	case w.isAbout("delete PersistentVolumeClaim"):
		if l.world.storage == nil || l.world.settings.clones.is() {
			l.world.violate("invariant 9: %s", w.words)
		}
	}
	l.judgeRecreation(w)
}

// judgePatch asserts what a patch of a pod, or of its status, could break.
func (l *law) judgePatch(w write) {
	l.checkStrangers(w)
	l.checkHook(w, l.seenSet)
	l.checkUnhooked(w)
	l.checkCloneLabels(w)
	l.checkWithdrawn(w)
	l.checkReturned(w)
	l.track(w)
	if w.isAbout("patch Pod") {
		l.checkImages(w)
		l.checkPartition(w)
		l.checkGrown(w)
		l.checkClaimsFirst(w)
		l.checkRestartBringsInjected(w)
	}
	if before, after, ok := l.podsOf(w); ok && lifecycleStateOf(before) != lifecycleStateOf(after) && lifecycleStateOf(after) == appsv1beta1.LifecycleStatePreparingDelete {
		l.checkPulledBefore(w)
	}
	if l.takesOut(w) {
		l.checkPulled(w)
		l.checkRole(w)
		l.checkDisruption(w)
		l.checkBudget(w)
	}
}

// takesOut reports whether a patch takes a pod out of service, now or as its
// consequence.
func (l *law) takesOut(w write) bool {
	before, after, ok := l.podsOf(w)
	return ok && (before.Generation != after.Generation || isKeptOut(after) && !isKeptOut(before) ||
		isHeldBack(after, l.seenSet) && !isHeldBack(before, l.seenSet))
}

// podsOf returns the pod of a write, as it was before and as it is then.
func (l *law) podsOf(w write) (before, after *corev1.Pod, ok bool) {
	before, was := w.before.(*corev1.Pod)
	after, is := get[*corev1.Pod](l.world.server, w.obj.GetName())
	return before, after, was && is
}

// judgeStray asserts what even the write of a manager may not break that is dead
// when it arrives. The budget is not among it: the next manager, which may have
// taken out a pod meanwhile, could not know of it.
func (l *law) judgeStray(w write, shown *appsv1beta1.StatefulSet) {
	l.checkHook(w, shown)
	if pod, ok := w.before.(*corev1.Pod); ok && w.isAbout("patch Pod/resize") {
		l.resizes.unheard.Insert(pod.UID)
		l.resizes.restarted.Insert(pod.UID)
	}
	if w.isAbout("patch Pod/status") || w.isAbout("patch Pod") {
		l.checkStrangers(w)
		l.track(w)
	}
	if w.isAbout("patch Pod") {
		l.checkImages(w)
	}
	l.judgeRecreation(w)
}

// isAvailable reports whether a pod serves in truth: its containers run what
// they should, on a node that is there.
func (w *World) isAvailable(pod *corev1.Pod) bool {
	node := w.node(pod)
	return node != nil && !node.isDead() && w.isBack(pod)
}

// isBack reports whether a pod serves as far as a client can know: that its node
// has just died is not known yet.
func (w *World) isBack(pod *corev1.Pod) bool {
	worker := w.worker(pod)
	if worker == nil || pod.DeletionTimestamp != nil ||
		!conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) || isKeptOut(pod) || isHeldBack(pod, w.shownSet()) {
		return false
	}
	since := conditionSince(pod, corev1.PodReady)
	for name, image := range images(pod) {
		c := worker.running[name]
		if c == nil || c.waiting != "" || c.image != image || w.isOwnWork(pod, worker.willRestart(pod, name)) {
			return false
		}
		if c.started.After(since) {
			since = c.started
		}
	}
	minReady := w.minReady()
	return minReady == 0 || w.clock.Now().After(since.Add(minReady))
}

// minReady returns how long a pod must have been ready, as far as the operator was
// shown: without a rolling update there is no such time.
func (w *World) minReady() time.Duration {
	if w.native != nil {
		return time.Duration(w.settings.minReadySeconds) * time.Second
	}
	return readyFor(w.shownSet())
}

// shownSet returns the set as the operator was shown it.
func (w *World) shownSet() *appsv1beta1.StatefulSet {
	if seen := w.law.seenSet; seen != nil {
		return seen
	}
	return w.set()
}

// checkImages asserts invariant 3: what a pod says it is at, it runs.
func (l *law) checkImages(w write) {
	pod, ok := get[*corev1.Pod](l.world.server, w.obj.GetName())
	if !ok {
		return
	}
	name := revisionOf(pod)
	wanted := l.imagesOf(name)
	for container, image := range ownImages(pod) {
		if wanted != nil && !means(image, wanted[container]) && !isToCome(pod, container) {
			l.world.violate("invariant 3: %s leaves it labeled %s with container %s at %s instead of %s", w.words, name, container, image, wanted[container])
		}
	}
}

// checkPartition asserts invariant 2: replicas − partition pods are updated, and the
// others stay at their revision. Which these are is said by their ordinals, or by
// their number alone. A pod that is to go is not updated before.
func (l *law) checkPartition(w write) {
	pod, ok := get[*corev1.Pod](l.world.server, w.obj.GetName())
	set := l.seenSet
	if !ok || set == nil {
		return
	}
	name := revisionOf(pod)
	if l.seenClones != nil {
		l.checkPartitionOfClones(w, name)
		return
	}
	if l.daemons != nil {
		l.daemons.checkPartition(w)
		return
	}
	if l.world.settings.unordered {
		l.checkNumber(w, name)
		return
	}
	if before, ok := w.before.(*corev1.Pod); ok && revisionOf(before) != name && !slices.Contains(podsOf(set), pod.Name) {
		l.world.violate("invariant 2: %s moves to %s, which is to be deleted", w.words, name)
	}
	if !l.isHeld(pod.Name, set) {
		return
	}
	if before, ok := w.before.(*corev1.Pod); ok && revisionOf(before) != name {
		l.world.violate("invariant 2: %s moves to %s, which the partition holds", w.words, name)
	}
	if current := set.Status.CurrentRevision; w.before == nil && name != current && l.imagesOf(current) != nil {
		l.world.violate("invariant 2: %s at %s, though the partition holds it at %s", w.words, name, current)
	}
}

// checkName asserts that a StatefulSet makes only the pods that the user asks for: none
// with an ordinal that is reserved, or before the first.
func (l *law) checkName(w write) {
	if set := l.seenSet; set != nil && l.seenClones == nil && l.daemons == nil && !slices.Contains(podsOf(set), w.obj.GetName()) {
		l.world.violate("%s, the set is to have %v", w.words, podsOf(set))
	}
}

// checkNumber asserts invariant 2 where the partition is a number of pods.
func (l *law) checkNumber(w write, name string) {
	before, existed := w.before.(*corev1.Pod)
	current := l.seenSet.Status.CurrentRevision
	if existed && revisionOf(before) == name || name == current || current == "" || l.imagesOf(current) == nil {
		return
	}
	at := 0
	for _, wanted := range podsOf(l.seenSet) {
		if pod, ok := get[*corev1.Pod](l.world.server, wanted); ok && revisionOf(pod) == name && metav1.IsControlledBy(pod, l.seenSet) {
			at++
		}
	}
	if room := replicasOf(l.seenSet) - partitionOf(l.seenSet); at > room {
		l.world.violate("invariant 2: %s makes %d pods at %s, the partition leaves room for %d", w.words, at, name, room)
	}
}

// checkClaim asserts that no pod that is wanted owns its claim: it would go with
// the pod, and all data with it.
func (l *law) checkClaim(w write) {
	claim, ok := get[*corev1.PersistentVolumeClaim](l.world.server, w.obj.GetName())
	set := l.seenSet
	if !ok || set == nil || l.seenClones != nil {
		return
	}
	for _, pod := range podsOf(set) {
		if claim.Name == "data-"+pod && slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Pod" }) {
			l.world.violate("invariant 9: %s gives the claim to %s, which is wanted", w.words, pod)
		}
	}
}

// isHeld reports whether the partition keeps a pod, by its ordinal.
func (l *law) isHeld(pod string, set *appsv1beta1.StatefulSet) bool {
	return slices.Contains(keptByPartition(set), pod)
}

// imagesOf returns the images of a revision, by container; nil if there is no
// such revision.
func (l *law) imagesOf(revision string) map[string]string {
	template := l.templateOf(revision)
	if template == nil {
		return nil
	}
	return images(&corev1.Pod{Spec: template.Spec})
}

// templateOf returns the template of a revision; nil if there is no such revision.
func (l *law) templateOf(revision string) *corev1.PodTemplateSpec {
	if l.daemons != nil {
		revision = setName + "-" + revision // pods and the status have hashes
	}
	object, ok := get[*appsv1.ControllerRevision](l.world.server, revision)
	if !ok {
		return nil
	}
	if known := l.templates[string(object.UID)]; known != nil {
		return known
	}
	data := struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(object.Data.Raw, &data); err != nil {
		l.world.violate("read revision %s: %w", revision, err)
	}
	l.templates[string(object.UID)] = &data.Spec.Template
	return l.templates[string(object.UID)]
}

// checkDrained asserts invariant 4 where it proves its worth: whatever was
// written and read before, no traffic reaches a container that is stopped for an
// update, and it has had its grace period.
func (w *World) checkDrained(pod *corev1.Pod, containers []string) {
	keptReady := w.settings.keepReady && len(containers) == 1 && containers[0] == sidecarName
	if !w.mustBeDrained(pod) || w.isPutIntoService(pod) || keptReady || len(containers) == 0 {
		return
	}
	switch {
	case !isKeptOut(pod), conditionIs(pod, corev1.PodReady, corev1.ConditionTrue):
		w.violate("invariant 4: %v of %s are stopped while it is ready", containers, pod.Name)
	case w.slices.sendsTo(pod):
		w.violate("invariant 4: %v of %s are stopped while it gets traffic", containers, pod.Name)
	}
	since := conditionSince(pod, corev1.PodReady)
	if seen := w.law.unreadySince(pod); !seen.IsZero() && seen.Before(since) {
		since = seen
	}
	if closed := firstClosed(pod); closed.After(since) {
		since = closed
	}
	if out := w.clock.Now().Sub(since); out < w.settings.gracePeriod {
		w.violate("invariant 4: %v of %s are stopped after a grace period of %s", containers, pod.Name, out)
	}
}

// firstClosed returns when the first of the readiness gates was closed that are:
// one that was closed later, for a deletion, changes nothing.
func firstClosed(pod *corev1.Pod) time.Time {
	var first time.Time
	for _, gate := range []corev1.PodConditionType{appsv1beta1.InPlaceUpdateReady, appsv1beta1.KruisePodReady} {
		if closed := conditionSince(pod, gate); conditionIs(pod, gate, corev1.ConditionFalse) && (first.IsZero() || closed.Before(first)) {
			first = closed
		}
	}
	return first
}

// placeOf returns what a pod takes: its name or, in a DaemonSet, its node.
func (l *law) placeOf(pod *corev1.Pod) string {
	if l.daemons != nil {
		return targetOf(pod)
	}
	return pod.Name
}

// look sees which pods are back in service.
func (l *law) look() {
	l.daemons.look()
	for _, pod := range all[*corev1.Pod](l.world.server) {
		if _, known := l.unready[pod.UID]; conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
			delete(l.unready, pod.UID)
		} else if !known {
			l.unready[pod.UID] = l.world.clock.Now()
		}
		if l.taken.Has(pod.UID) && l.world.serves(pod) {
			l.taken.Delete(pod.UID)
		}
		if place := l.placeOf(pod); l.disturbed.Has(place) && l.world.isBack(pod) {
			l.disturbed.Delete(place)
			delete(l.unanswered, place)
		}
	}
}
