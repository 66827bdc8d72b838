// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of objects that people made or deleted by hand.

// inTheWayFor is how long the operator has at most to say what is in its way.
const inTheWayFor = 4 * time.Minute

// checkIsOurs asserts that the operator changes and deletes only what is the
// set's: nothing that has another controller, be it an earlier set of the name, and nothing
// that has neither a controller nor the labels of the set. What it was shown counts, too: a
// person may have taken the labels since. It may take back what it has noted on a claim
// itself, when that was the set's.
func (l *law) checkIsOurs(w write) {
	if w.before == nil || !slices.Contains(ofSet, kindOf(w.obj)) || l.isOurs(w.before) || l.changesItsNoteOnly(w) {
		return
	}
	shown := l.world.manager.cache.objects[objectKey{kindOf(w.obj), w.obj.GetName()}]
	if shown == nil || shown.GetUID() != w.before.GetUID() || !l.isOurs(shown) {
		l.world.violate("%s, which is not the set's: labels %v, owners %v", w.words, w.before.GetLabels(), w.before.GetOwnerReferences())
	}
}

// changesItsNoteOnly reports whether a write changes nothing of a claim but what the
// operator has noted on it before.
func (l *law) changesItsNoteOnly(w write) bool {
	after := l.world.server.objects[objectKey{kindOf(w.obj), w.obj.GetName()}]
	if _, noted := w.before.GetAnnotations()[appsv1beta1.VolumeClaimUpdateStateKey]; !noted || after == nil {
		return false
	}
	without := func(obj client.Object) client.Object {
		other := obj.DeepCopyObject().(client.Object)
		delete(other.GetAnnotations(), appsv1beta1.VolumeClaimUpdateStateKey)
		other.SetResourceVersion("")
		return other
	}
	return equality.Semantic.DeepEqual(without(w.before), without(after))
}

// ofSet are the kinds of which a set has objects.
var ofSet = []string{"Pod", "PersistentVolumeClaim", "ControllerRevision"}

// isOurs reports whether an object is the set's, or may become so. A claim is by its
// name, whoever made it.
func (l *law) isOurs(obj client.Object) bool {
	owner := metav1.GetControllerOf(obj)
	switch {
	case owner == nil && kindOf(obj) == "PersistentVolumeClaim":
		return true
	case owner == nil:
		return obj.GetLabels()["app"] == setName && strings.HasPrefix(obj.GetName(), setName+"-")
	case owner.Kind == "Pod" && kindOf(obj) == "PersistentVolumeClaim":
		return strings.HasPrefix(owner.Name, setName+"-")
	default:
		return l.seenSet != nil && owner.UID == l.seenSet.UID
	}
}

// checkOwner asserts that nothing is given to a set that is gone, or about to go: it
// would be deleted with that.
func (l *law) checkOwner(w write) {
	after := l.world.server.objects[objectKey{kindOf(w.obj), w.obj.GetName()}]
	if w.before == nil || after == nil || !slices.Contains(ofSet, kindOf(w.obj)) {
		return
	}
	set := l.world.server.objects[l.world.setKey()]
	for _, owner := range after.GetOwnerReferences() {
		isNew := !slices.ContainsFunc(w.before.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
		if isNew && owner.Kind == l.world.setKey().kind && (set == nil || set.GetUID() != owner.UID || set.GetDeletionTimestamp() != nil) {
			l.world.violate("%s gives it to a set that is gone, or about to go", w.words)
		}
	}
}

// isNamedIn reports whether a status names an object.
func isNamedIn(set *appsv1beta1.StatefulSet, name string) bool {
	for _, c := range set.Status.Conditions {
		if strings.Contains(c.Message, name) {
			return true
		}
	}
	return slices.ContainsFunc(set.Status.Blockers, func(b appsv1beta1.Blocker) bool { return strings.Contains(b.Pod+" "+b.Message, name) })
}

// hasLostRevision reports whether a user has deleted the revision of a pod: nothing
// tells what it was made from, so it is recreated.
func (l *law) hasLostRevision(pod *corev1.Pod) bool { return l.world.hands.revisions[revisionOf(pod)] }
