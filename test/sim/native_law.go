// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// nativeLaw is what is asserted of native workloads: our acts stay within the
// budget; while a workload is held, Kubernetes recreates no pod for its template, nor
// later one that was updated in place; in the end everything is as the user wrote it.
type nativeLaw struct {
	n *nativeWorkload
	// seen are the pods and the workload as the reconciliation was shown them.
	seen       map[string]*corev1.Pod
	seenObject client.Object
	// disturbed are the pods that the operator took out of service, and disturbedAt is when.
	disturbed   sets.Set[string]
	disturbedAt map[string]time.Time
	// askedAt is when the user asked for what may cost a pod in a hold, or deleted one.
	askedAt time.Time
	// ran are the revisions that pods of a StatefulSet were given last, by their names.
	ran map[string]string
	// keeper is the only ReplicaSet that had pods when the hold began; empty if several had.
	keeper types.UID
	// left is what the operator said last of pods that an update has left behind, at leftAt.
	left   string
	leftAt time.Time
	// releasedAt is when the operator ended the last hold.
	releasedAt time.Time
	// updated are the pods of a workload that was released as updated, until the user
	// asks for something else.
	updated sets.Set[types.UID]
}

// newNativeLaw shares with the law of other sets which pods are out by our doing.
func newNativeLaw(n *nativeWorkload, of *law) *nativeLaw {
	return &nativeLaw{n: n, disturbed: of.disturbed, disturbedAt: map[string]time.Time{}, ran: map[string]string{}}
}

func (l *nativeLaw) begin() {
	l.look()
	l.seen, l.seenObject = nil, nil
}

func (l *nativeLaw) notice(list client.ObjectList) {
	if _, ok := list.(*corev1.PodList); ok {
		l.show(l.n.world.manager.cache.objects)
	}
}

// noticeLive is notice for what was read from the API server.
func (l *nativeLaw) noticeLive(list client.ObjectList) {
	if _, ok := list.(*corev1.PodList); ok {
		l.show(l.n.world.server.objects)
	}
}

// show notes what the operator is shown.
func (l *nativeLaw) show(objects map[objectKey]client.Object) {
	l.seen = map[string]*corev1.Pod{}
	for key, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok {
			l.seen[key.name] = pod
		}
	}
	l.seenObject = objects[l.n.key()]
}

func (l *nativeLaw) end()       {}
func (l *nativeLaw) forget()    {}
func (l *nativeLaw) attempted() {}

// look sees which pods are back in service.
func (l *nativeLaw) look() {
	for name := range l.disturbed {
		if pod, ok := get[*corev1.Pod](l.n.world.server, name); ok && l.n.world.isBack(pod) {
			l.disturbed.Delete(name)
		}
	}
}

// judge asserts what a single write could break.
func (l *nativeLaw) judge(w write) {
	switch {
	case w.isAbout("delete Pod"), w.isAbout("evict Pod"):
		l.checkBudget(w)
		if pod, ok := w.before.(*corev1.Pod); ok {
			l.checkCanComeBack(pod, w.words, l.n.world.clock.Now())
		}
	case w.isAbout("patch Pod/status"), w.isAbout("patch Pod"), w.isAbout("patch Pod/resize"):
		before, was := w.before.(*corev1.Pod)
		after, is := get[*corev1.Pod](l.n.world.server, w.obj.GetName())
		if is {
			l.ran[after.Name] = revisionOf(after)
		}
		if was && is && (before.Generation != after.Generation && !w.isAbout("patch Pod/resize") || isKeptOut(after) && !isKeptOut(before)) {
			l.checkBudget(w)
			l.checkPulled(w, before, after)
		}
	case w.isAbout("create " + pullerKind):
		l.n.world.law.checkPullers()
	case w.isAbout("delete " + pullerKind):
	case w.isAbout("patch " + kindOf(l.n.manifest())):
		if w.before != nil && isHeld(w.before) && !isHeld(l.n.object()) {
			l.releasedAt = l.n.world.clock.Now()
		}
	case strings.HasPrefix(w.words, "delete ") && !w.isAbout("delete ControllerRevision"):
		l.n.world.violate("%s: nothing but pods and our revisions is deleted", w.words)
	}
}

// checkBudget asserts invariant 1 when the operator takes a pod out of service: as
// far as it was shown, enough others are available.
func (l *nativeLaw) checkBudget(w write) {
	pod, ok := w.before.(*corev1.Pod)
	if !ok || l.seenObject == nil {
		return
	}
	shown := l.seen[pod.Name]
	served := !l.disturbed.Has(pod.Name) && shown != nil && l.n.world.isAvailable(pod) && l.n.isAvailable(shown) && !isKeptOut(shown)
	if served || !w.unheard {
		l.disturbed.Insert(pod.Name)
		l.disturbedAt[pod.Name] = l.n.world.clock.Now()
	}
	if !served {
		return
	}
	left := sets.New[string]()
	for name, other := range l.seen {
		if !l.disturbed.Has(name) && l.n.isAvailable(other) && !isKeptOut(other) {
			left.Insert(name)
		}
	}
	replicas, budget := l.budgetFor(pod)
	if left.Len() < replicas-budget {
		l.n.world.violate("invariant 1: %s leaves %v available, %d pods are needed", w.words, sets.List(left), replicas-budget)
	}
	l.checkProof(w, pod)
}

// checkProof asserts that a pod that serves, and is to stay, is taken out of service only when a pod of the
// new template serves, or none can be made.
func (l *nativeLaw) checkProof(w write, pod *corev1.Pod) {
	d, ok := l.seenObject.(*appsv1.Deployment)
	if !ok || !surges(d) || l.isOfTemplate(pod, d) || !l.isOfKeeper(pod) || l.isPromoted() {
		return
	}
	if r := l.n.revisionIn(&d.Spec.Template); r != nil && l.n.isRefused(r) {
		return
	}
	for _, other := range l.seen {
		if l.isOfTemplate(other, d) && l.n.isAvailable(other) {
			return
		}
	}
	l.n.world.violate("%s takes a pod out of service, and no pod of the new template serves", w.words)
}

// isOfTemplate reports whether a pod is of the ReplicaSet of a template.
func (l *nativeLaw) isOfTemplate(pod *corev1.Pod, d *appsv1.Deployment) bool {
	for _, rs := range l.n.replicaSets() {
		if metav1.IsControlledBy(pod, rs) {
			return equalButHash(&rs.Spec.Template, &d.Spec.Template)
		}
	}
	return false
}

// budgetFor returns how many pods a workload is to have, and how many may be out of service
// for the sake of one of them. Kubernetes makes no pod more for a Deployment that goes back. A
// pod that is to go makes up for none that is needed.
func (l *nativeLaw) budgetFor(pod *corev1.Pod) (replicas, budget int) {
	replicas, budget = budgetOf(l.seenObject)
	d, ok := l.seenObject.(*appsv1.Deployment)
	switch {
	case !ok || !surges(d):
	case !l.isOfKeeper(pod):
		budget = 0
	case l.isOfTemplate(pod, d):
		budget = max(budget, 1)
	}
	return replicas, budget
}

// isOfKeeper reports whether a pod is of the ReplicaSet whose pods stay.
func (l *nativeLaw) isOfKeeper(pod *corev1.Pod) bool {
	return slices.ContainsFunc(l.n.replicaSets(), func(rs *appsv1.ReplicaSet) bool { return metav1.IsControlledBy(pod, rs) && l.isKeeper(rs) })
}

// isKeeper reports whether a ReplicaSet is the one whose pods stay: the one that had all of
// them, or, of several, the one that the operator has chosen.
func (l *nativeLaw) isKeeper(rs *appsv1.ReplicaSet) bool {
	if l.keeper != "" {
		return rs.UID == l.keeper
	}
	return rs.Annotations[native.KeeperAnnotation] == string(rs.UID)
}

// budgetOf returns how many pods a workload is to have, and how many of them may be
// out of service.
func budgetOf(obj client.Object) (replicas, budget int) {
	value, up := ptr.To(intstr.FromInt32(1)), true
	switch typed := obj.(type) {
	case *appsv1.Deployment:
		return int(*typed.Spec.Replicas), mayMiss(typed)
	case *appsv1.StatefulSet:
		replicas, up = int(*typed.Spec.Replicas), false
	case *appsv1.DaemonSet:
		replicas = int(typed.Status.DesiredNumberScheduled)
	}
	if kept := keptBy(obj)[native.HeldMaxUnavailableAnnotation]; kept != nil {
		value = kept
	}
	budget, _ = intstr.GetScaledValueFromIntOrPercent(value, replicas, up) // it is valid
	return replicas, max(budget, 1)
}

// mayMiss returns how many pods of a Deployment its user lets be out of service.
func mayMiss(d *appsv1.Deployment) int {
	said := deploymentStrategy{d}.fields()
	if surges(d) {
		said = keptFields(d)
	}
	unavailable, surge := said[native.HeldMaxUnavailableAnnotation], said[native.HeldMaxSurgeAnnotation]
	missing, _ := intstr.GetScaledValueFromIntOrPercent(&unavailable, int(*d.Spec.Replicas), false) // it is valid
	if isNone(surge) {
		return max(missing, 1)
	}
	return missing
}

// asked is told that the user asks for something.
func (l *nativeLaw) asked() { l.updated, l.releasedAt = nil, time.Time{} }

// wrote is told of a write of the user. Another number of pods, another template during a hold
// or the end of a pause with one, other numbers of the strategy and the end of the hold may cost
// a pod.
func (l *nativeLaw) wrote(before, after client.Object) {
	old, ok := before.(*appsv1.Deployment)
	d, _ := after.(*appsv1.Deployment)
	if !ok {
		return
	}
	if *old.Spec.Replicas != *d.Spec.Replicas || isHeld(old) &&
		(!isHeld(d) || old.Spec.Paused != d.Spec.Paused || !equalButHash(&old.Spec.Template, &d.Spec.Template) || !maps.Equal(keptFields(old), keptFields(d))) {
		l.askedAt = l.n.world.clock.Now()
	}
	live := slices.DeleteFunc(l.n.replicaSets(), func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas == 0 })
	switch {
	case isHeld(d) && !isHeld(old) && len(live) == 1:
		l.keeper = live[0].UID
	case isHeld(d) && !isHeld(old):
		l.keeper = ""
	}
}

// lost is told that Kubernetes is to have no pods of a ReplicaSet any more.
func (l *nativeLaw) lost(rs *appsv1.ReplicaSet) {
	if rs.UID == l.keeper {
		l.keeper = ""
	}
}

// deleted is told of a pod that Kubernetes deletes.
func (l *nativeLaw) deleted(pod *corev1.Pod, why string) {
	obj := l.n.object()
	if isRollout := strings.Contains(why, "another revision") || strings.Contains(why, "fewer"); isRollout && l.updated == nil && l.n.world.clock.Since(l.askedAt) >= askedDelay {
		l.checkCanComeBack(pod, "Kubernetes deletes "+pod.Name, l.releasedAt)
	}
	isAlive := l.updated.Has(pod.UID) && l.updated.Len() <= l.n.replicas()
	switch {
	case strings.Contains(why, "another revision") && isHeld(obj):
		l.n.world.violate("Kubernetes recreates %s, though the workload is held", pod.Name)
	case isHeld(obj) && l.leavesTooFew(pod):
		l.n.world.violate("Kubernetes deletes %s, which serves, though the workload is held: %s", pod.Name, why)
	case l.isLostByRelease(pod):
		l.n.world.violate("Kubernetes deletes %s, which was made for the hold, while it serves: %s", pod.Name, why)
	case strings.Contains(why, "fewer") && l.n.late != nil && l.n.world.clock.Since(l.askedAt) < askedDelay: // decided before that
	case strings.Contains(why, "another revision") && l.updated.Has(pod.UID), strings.Contains(why, "fewer") && isAlive:
		l.n.world.violate("Kubernetes recreates %s, which was updated in place: %s", pod.Name, why)
	}
}

// isPromoted reports whether the pods that stay are updated, and their ReplicaSet says so.
func (l *nativeLaw) isPromoted() bool {
	return slices.ContainsFunc(l.n.replicaSets(), func(rs *appsv1.ReplicaSet) bool {
		return strings.HasPrefix(rs.Annotations[native.PreviousRevisionAnnotation], string(rs.UID)+" ")
	})
}

// isNeeded reports whether the pods that stay are fewer than there are to be: then Kubernetes
// replaces others, as it always does.
func (l *nativeLaw) isNeeded() bool {
	staying := 0
	for _, pod := range l.n.pods() {
		if l.isOfKeeper(pod) && l.n.isAvailable(pod) {
			staying++
		}
	}
	return staying < l.n.replicas()
}

// newDelay is how long the operator may take to see a new pod serve, and to drain it.
const newDelay = 10 * time.Second

// askedDelay is how long Kubernetes may take to do what a user has asked for.
const askedDelay = 15 * time.Second

// shrinks is told that Kubernetes takes pods from a ReplicaSet for the sake of the template. That
// whose pods stay loses none in a hold, unless a user has just asked for something.
func (l *nativeLaw) shrinks(rs *appsv1.ReplicaSet, why string) {
	d, _ := l.n.object().(*appsv1.Deployment)
	if isHeld(d) && surges(d) && l.isKeeper(rs) && l.n.late == nil && l.n.world.clock.Since(l.askedAt) >= askedDelay {
		l.n.world.violate("Kubernetes takes pods from ReplicaSet %s, though the workload is held: %s", rs.Name, why)
	}
}

// statusDelay is how late the status of a ReplicaSet may tell of a pod.
const statusDelay = 3 * time.Second

// leavesTooFew reports whether a pod of a Deployment serves, and is needed. What Kubernetes
// counts is a moment old, and it knows nothing of a pod whose kubelet is silent.
func (l *nativeLaw) leavesTooFew(pod *corev1.Pod) bool {
	isNew := l.n.world.clock.Since(conditionSince(pod, corev1.PodReady)) < statusDelay
	if l.n.kind != nativecontroller.Deployment || l.n.late != nil || !l.n.isAvailable(pod) || isKeptOut(pod) || isNew {
		return false
	}
	left := 0
	for _, other := range l.n.pods() {
		if other.UID != pod.UID && (l.n.isAvailable(other) || l.n.world.clock.Since(l.disturbedAt[other.Name]) < statusDelay) {
			left++
		}
	}
	replicas, budget := budgetOf(l.n.object())
	if l.n.world.clock.Since(l.askedAt) < askedDelay {
		budget++ // a third revision in the middle may cost one pod
	}
	return left < replicas-budget
}

// rolls is told that Kubernetes changes the sizes of ReplicaSets for the template.
func (l *nativeLaw) rolls(what string, all []*appsv1.ReplicaSet) {
	d, _ := l.n.object().(*appsv1.Deployment)
	if isHeld(d) && l.n.late == nil && (!surges(d) || sum(all, specReplicas) > *d.Spec.Replicas+1) {
		l.n.world.violate("Kubernetes rolls, though the workload is held: %s", what)
	}
}

// created is told of a pod that Kubernetes makes. What has run the new revision has written its
// volume: during a hold it does not come back at another.
func (l *nativeLaw) created(pod *corev1.Pod) {
	set, isSet := l.n.object().(*appsv1.StatefulSet)
	if !isSet {
		return
	}
	ran, newest := l.ran[pod.Name], setName+"-"+hashOf(&set.Spec.Template, 0)
	l.ran[pod.Name] = revisionOf(pod)
	if isHeld(set) && ran == newest && revisionOf(pod) != ran {
		l.n.world.violate("Kubernetes makes %s at revision %s, on a volume that %s has written", pod.Name, revisionOf(pod), ran)
	}
}

func (l *nativeLaw) checkRest() {
	if missing := l.whatIsMissing(); missing != "" {
		l.n.world.violate("in the end, %s", missing)
	}
}

// whatIsMissing says what is not as the user asked for; empty if all is.
func (l *nativeLaw) whatIsMissing() string {
	obj, manifest := l.n.object(), l.n.manifest()
	var missing []string
	say := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	if !apiequality.Semantic.DeepEqual(specOf(obj), specOf(manifest)) {
		say("the spec is not as the user wrote it: %s", diff.Diff(specOf(manifest), specOf(obj)))
	}
	if status := obj.GetAnnotations()[native.StatusAnnotation]; status != "" {
		say("the status is %s", status)
	}
	if !maps.Equal(obj.GetLabels(), manifest.GetLabels()) {
		say("the labels are %v instead of %v", obj.GetLabels(), manifest.GetLabels())
	}
	for key := range obj.GetAnnotations() {
		if _, wanted := manifest.GetAnnotations()[key]; strings.HasPrefix(key, native.OptionPrefix) && !wanted {
			say("annotation %s is left", key)
		}
	}
	pods := l.n.pods()
	if len(pods) != l.n.replicas() {
		say("there are %d pods instead of %d", len(pods), l.n.replicas())
	}
	if left := slices.Sorted(maps.Keys(l.n.world.pullers())); len(left) > 0 {
		say("%v are left", left)
	}
	for _, pod := range pods {
		if !l.waitsForRollout(pod) {
			missing = append(missing, l.whatIsWrong(pod)...)
		}
		if !l.n.world.isAvailable(pod) || !l.n.world.settings.unserved && !l.n.world.slices.sendsTo(pod) {
			say("%s does not serve", pod.Name)
		}
	}
	if l.n.kind == nativecontroller.Deployment {
		missing = append(missing, l.whatIsWrongWithHistory()...)
	}
	return strings.Join(missing, "; ")
}

// waitsForRollout reports whether the operator tells the user that a pod, which an update has
// left behind, waits for the next rollout, since the strategy spares none. It says so every
// few seconds.
func (l *nativeLaw) waitsForRollout(pod *corev1.Pod) bool {
	d, ok := l.n.object().(*appsv1.Deployment)
	return ok && !isHeld(d) && mayMiss(d) == 0 && strings.Contains(l.left, pod.Name) && strings.Contains(l.left, "kubectl rollout restart") &&
		l.n.world.clock.Since(l.leftAt) < askedDelay
}

// whatIsWrong says what of a pod is not as the template says.
func (l *nativeLaw) whatIsWrong(pod *corev1.Pod) []string {
	template := l.n.world.settings.template(l.n.wish.revision)
	var words []string
	if wanted := images(&corev1.Pod{Spec: template.Spec}); !maps.EqualFunc(images(pod), wanted, means) {
		words = append(words, fmt.Sprintf("%s has images %v instead of %v", pod.Name, images(pod), wanted))
	}
	if hasDrainedLabel(pod) {
		words = append(words, pod.Name+" is still drained")
	}
	if pod.Labels["tier"] != template.Labels["tier"] {
		words = append(words, fmt.Sprintf("%s has label %q", pod.Name, pod.Labels["tier"]))
	}
	if pod.Annotations[levelKey] != template.Annotations[levelKey] {
		words = append(words, fmt.Sprintf("%s has annotation %s=%q", pod.Name, levelKey, pod.Annotations[levelKey]))
	}
	for _, why := range l.n.world.whatWasNotRestarted(pod, &template) {
		words = append(words, pod.Name+": "+why)
	}
	if len(pod.Spec.Containers[0].Env) != len(template.Spec.Containers[0].Env) {
		words = append(words, pod.Name+" has another environment")
	}
	return words
}

// whatIsWrongWithHistory says what of the ReplicaSets is not as it should be: one has
// pods, and is the newest.
func (l *nativeLaw) whatIsWrongWithHistory() []string {
	var words []string
	live, newest, at := 0, 0, 0
	numbers := map[int]string{}
	for _, rs := range l.n.replicaSets() {
		number := revisionNumber(rs)
		newest = max(newest, number)
		if other := numbers[number]; other != "" && l.n.late == nil { // see openFindings
			words = append(words, fmt.Sprintf("%s and %s are both revision %d", other, rs.Name, number))
		}
		numbers[number] = rs.Name
		if *rs.Spec.Replicas > 0 {
			live, at = live+1, number
		}
		// Once the user has opted out, the manager may not finish the promotion. What
		// was copied from another ReplicaSet means nothing.
		if strings.HasPrefix(rs.Annotations[native.PreviousRevisionAnnotation], string(rs.UID)+" ") && l.n.wish.policy != "" {
			words = append(words, rs.Name+" is still promoted")
		}
	}
	if l.n.replicas() > 0 && (live != 1 || at != newest) {
		words = append(words, fmt.Sprintf("%d ReplicaSets have pods, at revision %d of %d", live, at, newest))
	}
	return words
}
