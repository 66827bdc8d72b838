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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What only a CloneSet has is here.

// clones are the settings of a set whose pods are counted. The zero value stands for a
// StatefulSet.
type clones struct {
	// of is the kind.
	of       countedKind
	maxSurge int
	// scaleLimit is how many pods may be unavailable while pods are created; 0 for
	// no limit.
	scaleLimit int
	// reuse: the claims of deleted pods are for the next ones.
	reuse bool
	// progressDeadline is in seconds; 0 for none.
	progressDeadline int
}

// ofAnyKind returns the settings for a StatefulSet, or sometimes for a CloneSet.
func (s settings) ofAnyKind(c *Choices) settings {
	if !c.oneIn(oneInCloneSets) {
		return s
	}
	s.ordered, s.unordered, s.deleteScaled = false, false, false
	s.clones = clones{of: cloneSets{}, maxSurge: c.intN(3), reuse: c.oneIn(3)}
	if s.clones.maxSurge > 0 && c.oneIn(2) {
		s.maxUnavailable = 0
	}
	if c.oneIn(4) {
		s.clones.scaleLimit = 1 + c.intN(2)
	}
	if c.oneIn(4) {
		s.clones.progressDeadline = 60
	}
	return s
}

// oneInCloneSets: in one run of so many the set is a CloneSet.
const oneInCloneSets = 3

// is reports whether the pods of the set are counted, whatever their names are.
func (c clones) is() bool { return c.of != nil }

// isPlain reports whether they have neither claims, hooks nor an identity.
func (c clones) isPlain() bool { return c.is() && c.of.isPlain() }

func (c clones) String() string {
	if !c.is() {
		return "StatefulSet"
	}
	return fmt.Sprintf("%s, surge %d, scale limit %d, claims reused %t, progress deadline %ds", c.of.name(), c.maxSurge, c.scaleLimit, c.reuse, c.progressDeadline)
}

// cloneSet returns the CloneSet at a revision.
func (s settings) cloneSet(r revision) *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace},
		Spec:       appsv1beta1.CloneSetSpec{UpdateStrategy: appsv1beta1.CloneSetUpdateStrategy{RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{}}},
	}
	put(s.set(r), &set.Spec)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": setName}}
	set.Spec.RevisionHistoryLimit = ptr.To[int32](3)
	set.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimUpdateStrategy = s.set(r).Spec.VolumeClaimTemplates, s.volumes.strategy
	set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(s.clones.maxSurge))
	set.Spec.ScaleStrategy.EnablePVCReuse = &s.clones.reuse
	if limit := s.clones.scaleLimit; limit > 0 {
		set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt(limit))
	}
	if deadline := s.clones.progressDeadline; deadline > 0 {
		set.Spec.ProgressDeadlineSeconds = ptr.To(int32(deadline))
	}
	return set
}

// put makes the spec of a CloneSet say what a StatefulSet says. What a StatefulSet does not
// have stays as it is.
func put(from *appsv1beta1.StatefulSet, spec *appsv1beta1.CloneSetSpec) {
	spec.Replicas, spec.Template, spec.Lifecycle = from.Spec.Replicas, from.Spec.Template, from.Spec.Lifecycle
	spec.MinReadySeconds = int32(readyFor(from) / time.Second)
	spec.UpdateStrategy.Type = appsv1beta1.CloneSetUpdateStrategyType(from.Spec.UpdateStrategy.Type)
	rolling := from.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return
	}
	to := spec.UpdateStrategy.RollingUpdate
	to.PodUpdatePolicy, to.MaxUnavailable, to.Paused = rolling.PodUpdatePolicy, rolling.MaxUnavailable, rolling.Paused
	to.InPlaceUpdateStrategy, to.Partition = rolling.InPlaceUpdateStrategy, nil
	if rolling.Partition != nil {
		to.Partition = ptr.To(intstr.FromInt32(*rolling.Partition))
	}
}

// viewOf shows a CloneSet in the shape of a StatefulSet. It shares what it points to.
func viewOf(set *appsv1beta1.CloneSet) *appsv1beta1.StatefulSet {
	view := &appsv1beta1.StatefulSet{ObjectMeta: set.ObjectMeta}
	view.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	view.Spec.Replicas, view.Spec.Template, view.Spec.Lifecycle = set.Spec.Replicas, set.Spec.Template, set.Spec.Lifecycle
	view.Spec.VolumeClaimTemplates, view.Spec.VolumeClaimUpdateStrategy = set.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimUpdateStrategy
	view.Spec.UpdateStrategy.Type = appsv1.StatefulSetUpdateStrategyType(set.Spec.UpdateStrategy.Type)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; set.Spec.UpdateStrategy.Type != appsv1beta1.OnDeleteCloneSetUpdateStrategyType {
		view.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateStatefulSetStrategy{
			PodUpdatePolicy: rolling.PodUpdatePolicy, MaxUnavailable: rolling.MaxUnavailable, Paused: rolling.Paused,
			MinReadySeconds: &set.Spec.MinReadySeconds, InPlaceUpdateStrategy: rolling.InPlaceUpdateStrategy,
			Partition: ptr.To(int32(promiseOf(set).partition)), //nolint:gosec // small
		}
	}
	status := set.Status
	view.Status = appsv1beta1.StatefulSetStatus{
		ObservedGeneration: status.ObservedGeneration,
		Replicas:           status.Replicas, ReadyReplicas: status.ReadyReplicas, AvailableReplicas: status.AvailableReplicas,
		UpdatedReplicas: status.UpdatedReplicas, UpdatedReadyReplicas: status.UpdatedReadyReplicas, UpdatedAvailableReplicas: status.UpdatedAvailableReplicas,
		CurrentReplicas: status.Replicas, // a CloneSet does not count these
		InPlaceUpdated:  status.InPlaceUpdated, Recreated: status.Recreated, VolumeClaims: status.VolumeClaims,
		CurrentRevision: status.CurrentRevision, UpdateRevision: status.UpdateRevision, Blockers: status.Blockers,
	}
	for _, c := range status.Conditions {
		view.Status.Conditions = append(view.Status.Conditions, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return view
}

// setKey returns where the set is.
func (w *World) setKey() objectKey {
	return objectKey{w.settings.kind().name(), setName}
}

// counted returns the set as the server holds it, in the shape of a CloneSet; nil if there is
// none, or its pods are not counted.
func (w *World) counted() *appsv1beta1.CloneSet {
	return counted(w.server.objects[w.setKey()])
}

// changeClones changes what only a CloneSet has.
func (w *World) changeClones(change func(*appsv1beta1.CloneSet)) {
	mutate(w.server, setName, change)
}

// newID gives the instance IDs of new pods. Their order has nothing to do with
// their age, and now and then one comes again.
func (w *World) newID(length int) string {
	if w.ids > 0 && w.choices.oneIn(8) {
		return w.lastID
	}
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	w.ids++
	w.lastID = fmt.Sprintf("%c%0*d", letters[w.choices.intN(len(letters))], length-1, w.ids)
	return w.lastID
}

// nameForDeletion names pods in the spec, to be deleted; among them may be such
// as are gone.
func (w *World) nameForDeletion() {
	if !w.settings.clones.is() || w.settings.clones.isPlain() {
		return
	}
	var names []string
	for range w.choices.intN(3) {
		if pod := w.anyPod(); pod != nil && !slices.Contains(names, pod.Name) {
			names = append(names, pod.Name)
		}
	}
	if w.lastID != "" && w.choices.oneIn(4) {
		names = append(names, setName+"-"+w.lastID)
	}
	w.say("user: podsToDelete %v", names)
	w.changeClones(func(set *appsv1beta1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = names })
}

// changeSurge changes how many pods may exist beyond replicas.
func (w *World) changeSurge() {
	if !w.settings.clones.is() || w.settings.clones.isPlain() {
		return
	}
	surge := w.choices.intN(4)
	w.say("user: maxSurge %d", surge)
	w.changeClones(func(set *appsv1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(surge))
	})
}

// maxUnavailable returns how many pods of the set may be unavailable.
func (w *World) maxUnavailable(set *appsv1beta1.StatefulSet) int {
	if clones := w.counted(); clones != nil {
		return promiseOf(clones).maxUnavailable
	}
	return budgetOfSet(set)
}

// names returns the names that the pods of the set have, or are to have.
func (w *World) names(set *appsv1beta1.StatefulSet) []string {
	if !w.settings.clones.is() {
		return podsOf(set)
	}
	replicas := replicasOf(set)
	names := slices.Sorted(maps.Keys(w.podsOfSet()))
	for len(names) < replicas {
		names = append(names, fmt.Sprintf("pod %d of %d", len(names)+1, replicas))
	}
	return names[:replicas]
}

// contentOnly sorts lines, without the names that a CloneSet gives to pods and
// claims: these differ from run to run.
func contentOnly(lines []string) []string {
	left := make([]string, 0, len(lines))
	for _, line := range lines {
		words := strings.Fields(line)
		left = append(left, strings.Join(slices.DeleteFunc(words, func(word string) bool {
			word = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(word, ","), "data-"), "log-")
			return strings.HasPrefix(word, setName+"-") && len(word) == len(setName)+6
		}), " "))
	}
	slices.Sort(left)
	return left
}
