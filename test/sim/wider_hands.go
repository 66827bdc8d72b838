// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What people do to single objects by hand: they create and delete claims, pods and
// revisions, also with the names that the set is about to give. Volumes and snapshots
// are in wider_hands_storage.go.

// making is how a user makes an object.
type making string

const (
	// bare: it has no label of the set.
	bare making = "without labels"
	// labeled: it has the labels of the set and no owner, so the set may adopt it.
	labeled making = "with the labels of the set"
	// controlled: it has the labels of the set, and another controller.
	controlled making = "of another controller"
)

var makings = []making{bare, labeled, controlled}

// otherController is what controls the objects that are made so.
const otherController = "other"

// hands is what is known of what people did by hand.
type hands struct {
	// made are the objects that users made, and how.
	made map[types.UID]making
	// ahead are kinds: a user makes the next object that the manager means to make of
	// it, just before the manager does.
	ahead map[string]making
	// revisions are those that users have deleted, by name.
	revisions map[string]bool
}

func newHands() hands {
	return hands{made: map[types.UID]making{}, ahead: map[string]making{}, revisions: map[string]bool{}}
}

var handDisturbances = []disturbance{
	{"claim made by hand", func(w *World) {
		w.makeClaimByHand(w.nextPodName(), pick(w.choices, makings))
	}, 4},
	{"claim deleted by hand", (*World).deleteClaimByHand, 3},
	{"pod made by hand", func(w *World) { w.makePodByHand(w.nextPodName(), pick(w.choices, makings)) }, 4},
	{"pod deleted with grace 0", (*World).deletePodAtOnce, 3},
	{"revision made by hand", func(w *World) { w.makeRevisionByHand(w.newRevisionName(), pick(w.choices, makings)) }, 2},
	{"revision deleted by hand", (*World).deleteRevision, 3},
	{"made just before", func(w *World) {
		kind := pick(w.choices, []string{"Pod", "PersistentVolumeClaim", "ControllerRevision"})
		w.goAhead(kind, pick(w.choices, makings))
	}, 5},
}

// makeByHand lets a user make an object.
func (w *World) makeByHand(obj client.Object, how making) {
	if how != bare {
		obj.SetLabels(labels.Merge(obj.GetLabels(), labels.Set{"app": setName}))
	}
	if how == controlled {
		obj.SetOwnerReferences([]metav1.OwnerReference{*w.otherOwner()})
	}
	err := w.server.create(obj)
	w.say("user: makes %s, %s: %v", describe(obj), how, err)
	if err == nil {
		w.hands.made[obj.GetUID()] = how
	}
}

// otherOwner returns the reference to a controller that is not of the set.
func (w *World) otherOwner() *metav1.OwnerReference {
	owner, there := get[*appsv1.Deployment](w.server, otherController)
	if !there {
		owner = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: otherController}}
		_ = w.server.create(owner) // there is none
	}
	return metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))
}

// nextPodName returns a name that the set may give to its next pod: for a StatefulSet
// mostly that of a pod that is missing.
func (w *World) nextPodName() string {
	if w.settings.clones.is() {
		return fmt.Sprintf("%s-by%03d", setName, w.server.uids%1000)
	}
	ordinals := ordinalsOf(w.set())
	for _, name := range podsOf(w.set()) {
		if w.server.objects[objectKey{"Pod", name}] == nil && !w.choices.oneIn(4) {
			return name
		}
	}
	next := 0
	if len(ordinals) > 0 {
		next = ordinals[len(ordinals)-1] + 1
	}
	return fmt.Sprintf("%s-%d", setName, next+w.choices.intN(2))
}

// makePodByHand lets a user make a pod, which is as some revision says.
func (w *World) makePodByHand(name string, how making) {
	template := w.settings.template(pick(w.choices, revisions[:2]))
	w.makeByHand(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template.Spec}, how)
}

// makeClaimByHand lets a user make a claim for a pod.
func (w *World) makeClaimByHand(pod string, how making) {
	if !w.settings.claims {
		return
	}
	w.makeByHand(w.claimByHand("data-"+pod), how)
}

func (w *World) claimByHand(name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if w.storage != nil {
		claim.Spec = corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(pick(w.choices, []string{w.claims.class, "standard", "whole"})),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(w.choices, claimSizes[:2]))}},
		}
	}
	return claim
}

// deleteClaimByHand lets a user delete a claim. Where claims have no volumes, nothing
// protects those in use: all are left alone.
func (w *World) deleteClaimByHand() {
	claim := w.anyClaim()
	if claim == nil || w.storage == nil {
		return
	}
	w.say("user: deletes claim %s", claim.Name)
	_ = w.server.delete(objectKey{"PersistentVolumeClaim", claim.Name}, nil) // it is there: it was just seen
}

// deletePodAtOnce lets a user delete a pod with a grace period of 0.
func (w *World) deletePodAtOnce() {
	if pod := w.anyPod(); pod != nil {
		w.say("user: deletes %s with grace 0", pod.Name)
		w.server.finish(objectKey{"Pod", pod.Name})
	}
}

// makeRevisionByHand lets a user make a copy of a revision.
func (w *World) makeRevisionByHand(name string, how making) {
	known := all[*appsv1.ControllerRevision](w.server)
	if len(known) == 0 {
		return
	}
	from := known[pick(w.choices, slices.Sorted(maps.Keys(known)))]
	w.makeByHand(revisionByHand(name, *from.Data.DeepCopy(), from.Revision+int64(w.choices.intN(3))), how)
}

// revisionByHand is a revision with the hash that its name says.
func revisionByHand(name string, data runtime.RawExtension, number int64) *appsv1.ControllerRevision {
	hash := strings.TrimPrefix(name, setName+"-")
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}},
		Data:       data, Revision: number,
	}
}

func (w *World) newRevisionName() string { return fmt.Sprintf("%s-mine%d", setName, w.server.uids) }

func (w *World) deleteRevision() {
	known := all[*appsv1.ControllerRevision](w.server)
	if len(known) == 0 {
		return
	}
	name := pick(w.choices, slices.Sorted(maps.Keys(known)))
	w.say("user: deletes revision %s", name)
	w.hands.revisions[name] = true
	_ = w.server.delete(objectKey{"ControllerRevision", name}, nil) // it is there: it was just seen
}

// goAhead lets a user make the next object of a kind that the manager means to make,
// just before the manager does.
func (w *World) goAhead(kind string, how making) { w.hands.ahead[kind] = how }

// getAhead lets a user make the object that the manager is about to make.
func (w *World) getAhead(written write) {
	kind, name := kindOf(written.obj), written.obj.GetName()
	how, is := w.hands.ahead[kind]
	if !is || !written.isAbout("create "+kind) {
		return
	}
	delete(w.hands.ahead, kind)
	switch kind {
	case "Pod":
		w.makePodByHand(name, how)
	case "PersistentVolumeClaim":
		w.makeByHand(w.claimByHand(name), how)
	case "ControllerRevision":
		if w.choices.oneIn(2) {
			w.makeRevisionByHand(name, how)
			return
		}
		meant, _ := written.obj.(*appsv1.ControllerRevision) // its kind says so
		w.makeByHand(revisionByHand(name, *meant.Data.DeepCopy(), meant.Revision), how)
	case "VolumeSnapshot":
		taken, _ := written.obj.DeepCopyObject().(*snapshotv1.VolumeSnapshot) // its kind says so
		w.makeByHand(&snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: taken.Spec}, how)
	}
}

// isOfSet reports whether a pod counts as one of the set, or may come to: what a user
// made and what has another controller does not.
func (w *World) isOfSet(pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind == w.setKey().kind && owner.Name == setName
	}
	return w.hands.made[pod.UID] != bare || pod.Labels["app"] == setName
}

// podsOfSet returns the pods that count as those of the set, by name.
func (w *World) podsOfSet() map[string]*corev1.Pod {
	pods := all[*corev1.Pod](w.server)
	maps.DeleteFunc(pods, func(_ string, pod *corev1.Pod) bool { return !w.isOfSet(pod) })
	return pods
}

// inTheWay returns the names of pods that are not of the set, and have the name of one
// that is to be made. A CloneSet chooses other names, but where a claim waits for its pod.
func (w *World) inTheWay() []string {
	names := podsOf(w.set())
	if w.settings.clones.is() {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(all[*corev1.Pod](w.server))), func(name string) bool {
			return w.server.objects[objectKey{"PersistentVolumeClaim", "data-" + name}] == nil
		})
	}
	return slices.DeleteFunc(names, func(name string) bool {
		pod, there := get[*corev1.Pod](w.server, name)
		return !there || w.isOfSet(pod)
	})
}

// clearTheWay lets the user find in the status what is in the way, and delete that. What
// is left of a set of before goes by itself.
func (w *World) clearTheWay() {
	for len(w.inTheWay()) > 0 && w.failure == nil {
		w.settleOr(inTheWayFor)
		names := w.inTheWay()
		named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isNamedIn(w.set(), name) })
		if len(names) > 0 && len(named) == 0 && !w.settings.clones.is() {
			w.violate("%v are in the way, and the status does not say so: %s, blockers %v", names, conditionWords(w.set()), w.set().Status.Blockers)
		}
		if len(named) == 0 {
			return
		}
		for _, name := range named {
			w.say("user: deletes %s, which is in the way", name)
			w.server.finish(objectKey{"Pod", name})
		}
	}
}
