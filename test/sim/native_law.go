// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	// disturbed are the pods that the operator took out of service.
	disturbed sets.Set[string]
	// updated are the pods of a workload that was released as updated, until the user
	// asks for something else.
	updated sets.Set[types.UID]
}

// newNativeLaw shares with the law of other sets which pods are out by our doing.
func newNativeLaw(n *nativeWorkload, of *law) *nativeLaw {
	return &nativeLaw{n: n, disturbed: of.disturbed}
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
	case w.isAbout("patch Pod/status"), w.isAbout("patch Pod"), w.isAbout("patch Pod/resize"):
		before, was := w.before.(*corev1.Pod)
		after, is := get[*corev1.Pod](l.n.world.server, w.obj.GetName())
		if was && is && (before.Generation != after.Generation && !w.isAbout("patch Pod/resize") || isKeptOut(after) && !isKeptOut(before)) {
			l.checkBudget(w)
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
	replicas, budget := budgetOf(l.seenObject)
	if left.Len() < replicas-budget {
		l.n.world.violate("invariant 1: %s leaves %v available, %d pods are needed", w.words, sets.List(left), replicas-budget)
	}
}

// budgetOf returns how many pods a workload is to have, and how many of them may be
// out of service.
func budgetOf(obj client.Object) (replicas, budget int) {
	value, up := ptr.To(intstr.FromInt32(1)), true
	switch typed := obj.(type) {
	case *appsv1.Deployment:
		replicas, value, up = int(*typed.Spec.Replicas), typed.Spec.Strategy.RollingUpdate.MaxUnavailable, false
	case *appsv1.StatefulSet:
		replicas = int(*typed.Spec.Replicas)
	case *appsv1.DaemonSet:
		replicas = int(typed.Status.DesiredNumberScheduled)
	}
	if kept := keptBy(obj)[native.HeldMaxUnavailableAnnotation]; kept != nil {
		value = kept
	}
	budget, _ = intstr.GetScaledValueFromIntOrPercent(value, replicas, up) // it is valid
	return replicas, max(budget, 1)
}

// asked is told that the user asks for something.
func (l *nativeLaw) asked() {
	l.updated = nil
}

// tell is told of the events of the operator.
func (l *nativeLaw) tell(reason string) {
	if reason != "UpdatedInPlace" {
		return
	}
	l.updated = sets.New[types.UID]()
	for _, pod := range l.n.pods() {
		if len(l.whatIsWrong(pod)) == 0 {
			l.updated.Insert(pod.UID)
		}
	}
}

// deleted is told of a pod that Kubernetes deletes.
func (l *nativeLaw) deleted(pod *corev1.Pod, why string) {
	obj := l.n.object()
	isAlive := l.updated.Has(pod.UID) && l.updated.Len() <= l.n.replicas()
	switch {
	case strings.Contains(why, "another revision") && isHeld(obj):
		l.n.world.violate("Kubernetes recreates %s, though the workload is held", pod.Name)
	case strings.Contains(why, "another revision") && l.updated.Has(pod.UID), strings.Contains(why, "fewer") && isAlive:
		l.n.world.violate("Kubernetes recreates %s, which was updated in place: %s", pod.Name, why)
	}
}

// rolls is told that Kubernetes changes the sizes of ReplicaSets for the template.
func (l *nativeLaw) rolls(what string) {
	if isHeld(l.n.object()) {
		l.n.world.violate("Kubernetes rolls, though the workload is held: %s", what)
	}
}

func (l *nativeLaw) created(*corev1.Pod) {}

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
	if !apiequality.Semantic.DeepEqual(nativeSpec(obj), nativeSpec(manifest)) {
		say("the spec is not as the user wrote it: %s", diff.Diff(nativeSpec(manifest), nativeSpec(obj)))
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
	for _, pod := range pods {
		missing = append(missing, l.whatIsWrong(pod)...)
		if !l.n.world.isAvailable(pod) || !l.n.world.settings.unserved && !l.n.world.slices.sendsTo(pod) {
			say("%s does not serve", pod.Name)
		}
	}
	if l.n.kind == nativecontroller.Deployment {
		missing = append(missing, l.whatIsWrongWithHistory()...)
	}
	return strings.Join(missing, "; ")
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
		// Once the user has opted out, nobody may finish that. What was copied from
		// another ReplicaSet means nothing.
		if strings.HasPrefix(rs.Annotations[native.PreviousRevisionAnnotation], string(rs.UID)+" ") && l.n.wish.policy != "" {
			words = append(words, rs.Name+" is still promoted")
		}
	}
	if l.n.replicas() > 0 && (live != 1 || at != newest) {
		words = append(words, fmt.Sprintf("%d ReplicaSets have pods, at revision %d of %d", live, at, newest))
	}
	return words
}
