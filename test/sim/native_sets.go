// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revisionsOf returns the revisions of the workload, the oldest first.
func (n *nativeWorkload) revisionsOf(owner client.Object) []*appsv1.ControllerRevision {
	found := slices.DeleteFunc(slices.Collect(maps.Values(all[*appsv1.ControllerRevision](n.shown()))), func(r *appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(r, owner)
	})
	slices.SortFunc(found, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// ensureRevision returns the revision of a template, which becomes the newest. It
// has the label of its hash, if that is how its pods name it.
func (n *nativeWorkload) ensureRevision(owner client.Object, kind string, template *corev1.PodTemplateSpec, labeled bool) *appsv1.ControllerRevision {
	data := revisionData(template)
	known, newest := n.revisionsOf(owner), int64(0)
	if len(known) > 0 {
		newest = known[len(known)-1].Revision
	}
	for _, r := range known {
		if string(r.Data.Raw) != string(data) {
			continue
		}
		if r.Revision < newest {
			mutate(n.world.server, r.Name, func(r *appsv1.ControllerRevision) { r.Revision = newest + 1 })
		}
		r, _ = get[*appsv1.ControllerRevision](n.world.server, r.Name)
		return r // nil: it is gone, which is seen late
	}
	hash := hashOf(template, 0)
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: setName + "-" + hash, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: newest + 1,
	}
	if labeled {
		r.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
	}
	if held, there := get[*appsv1.ControllerRevision](n.world.server, r.Name); there {
		return held // it is seen late
	}
	n.say("creates ControllerRevision %s", r.Name)
	_ = n.world.server.create(r) // no other has the name
	return r
}

// revisionData returns what a revision keeps of a template.
func revisionData(template *corev1.PodTemplateSpec) []byte {
	fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(template) // a template can be converted
	fields["$patch"] = "replace"
	raw, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}}) // so can this
	return raw
}

// templateIn returns the template that a revision keeps.
func templateIn(r *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	found := struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}{}
	_ = json.Unmarshal(r.Data.Raw, &found) // it was marshaled
	return &found.Spec.Template
}

// truncate deletes the oldest revisions that no pod is at, beyond the limit.
func (n *nativeWorkload) truncate(owner client.Object, limit int, inUse sets.Set[string]) {
	var dead []*appsv1.ControllerRevision
	for _, r := range n.revisionsOf(owner) {
		if !inUse.Has(r.Name) && !inUse.Has(strings.TrimPrefix(r.Name, setName+"-")) {
			dead = append(dead, r)
		}
	}
	for _, r := range dead[:max(len(dead)-limit, 0)] {
		n.world.server.remove(objectKey{"ControllerRevision", r.Name})
	}
}

// stepStatefulSet is one sync of the controller of StatefulSets.
func (n *nativeWorkload) stepStatefulSet() {
	set, ok := get[*appsv1.StatefulSet](n.shown(), setName)
	if !ok || set.DeletionTimestamp != nil || n.late.waits(set) {
		return
	}
	update := n.ensureRevision(set, "StatefulSet", &set.Spec.Template, false)
	if update == nil {
		return
	}
	current, ok := get[*appsv1.ControllerRevision](n.shown(), set.Status.CurrentRevision)
	if !ok {
		current = update
	}
	s := &statefulSetSync{n: n, set: set, update: update, current: current, pods: map[int]*corev1.Pod{}, made: map[int]*corev1.Pod{}}
	s.sync()
	s.report()
}

// statefulSetSync is one sync: what it has found, and done.
type statefulSetSync struct {
	n               *nativeWorkload
	set             *appsv1.StatefulSet
	update, current *appsv1.ControllerRevision
	// pods are those that were there when it began, made those that it made.
	pods, made map[int]*corev1.Pod
	// rolled is how many pods it deleted for their revision.
	rolled int32
}

func (s *statefulSetSync) isOrdered() bool {
	return s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// sync creates what is missing, deletes what is too many and, in the end, what is at
// another revision. In order, one waits for the other.
func (s *statefulSetSync) sync() {
	for _, pod := range s.n.allPodsOf(s.set) {
		if ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, setName+"-")); err == nil {
			s.pods[ordinal] = pod
		}
	}
	for ordinal := range int(*s.set.Spec.Replicas) {
		pod := s.pods[ordinal]
		switch {
		case pod == nil:
			s.create(ordinal)
			if s.isOrdered() {
				return
			}
		case pod.Status.Phase == corev1.PodFailed:
			if pod.DeletionTimestamp == nil {
				s.n.deletePod(s.set, pod, "it has failed")
			}
			return
		case s.isOrdered() && (pod.DeletionTimestamp != nil || !s.n.isAvailable(pod)):
			return
		}
	}
	for _, ordinal := range slices.Backward(slices.Sorted(maps.Keys(s.pods))) {
		pod := s.pods[ordinal]
		switch {
		case ordinal < int(*s.set.Spec.Replicas):
		case pod.DeletionTimestamp == nil:
			s.n.deletePod(s.set, pod, "there are too many")
			fallthrough
		default:
			if s.isOrdered() {
				return
			}
		}
	}
	if s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		s.roll()
	}
}

func (s *statefulSetSync) partition() int {
	if s.set.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return int(ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
}

func (s *statefulSetSync) create(ordinal int) {
	kept := s.partition()
	if s.set.Spec.UpdateStrategy.RollingUpdate == nil && s.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		kept = int(s.set.Status.CurrentReplicas)
	}
	revision := s.update
	if ordinal < kept {
		revision = s.current
	}
	name := fmt.Sprintf("%s-%d", setName, ordinal)
	if s.n.refuses(templateIn(revision)) {
		s.n.say("cannot create pod %s: it is refused", name)
		return
	}
	made := s.n.createPod(s.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), templateIn(revision), name, map[string]string{
		appsv1.ControllerRevisionHashLabelKey: revision.Name, appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(ordinal),
	})
	if made != nil {
		s.made[ordinal] = made
	}
}

// roll deletes pods of other revisions, those that do not serve first where there is
// no order; also those that it made a moment ago.
func (s *statefulSetSync) roll() {
	least := intstr.FromInt32(1)
	if rolling := s.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		least = *rolling.MaxUnavailable
	}
	budget, _ := intstr.GetScaledValueFromIntOrPercent(&least, int(*s.set.Spec.Replicas), true) // it is valid
	budget = max(budget, 1)
	var old []*corev1.Pod
	for ordinal := int(*s.set.Spec.Replicas) - 1; ordinal >= 0; ordinal-- {
		pod := cmp.Or(s.pods[ordinal], s.made[ordinal])
		isOut := pod == nil || !s.n.isAvailable(pod)
		if isOut {
			budget--
		}
		isOld := pod != nil && ordinal >= s.partition() && pod.DeletionTimestamp == nil && revisionOf(pod) != s.update.Name
		switch {
		case isOld && isOut && !s.isOrdered():
			s.remove(pod)
		case isOld:
			old = append(old, pod)
		}
	}
	for _, pod := range old[:max(min(budget, len(old)), 0)] {
		s.remove(pod)
	}
}

func (s *statefulSetSync) remove(pod *corev1.Pod) {
	s.n.deletePod(s.set, pod, "it is at another revision")
	s.rolled++
}

// report writes the status, and cleans up the history. Counted are the pods that were
// there when the sync began.
func (s *statefulSetSync) report() {
	status := appsv1.StatefulSetStatus{ObservedGeneration: s.set.Generation, CurrentRevision: s.current.Name, UpdateRevision: s.update.Name}
	inUse := sets.New(s.current.Name, s.update.Name)
	for _, pod := range s.pods {
		inUse.Insert(revisionOf(pod))
		status.Replicas++
		if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
			status.ReadyReplicas++
		}
		if s.n.isAvailable(pod) {
			status.AvailableReplicas++
		}
		if pod.DeletionTimestamp == nil && revisionOf(pod) == s.update.Name {
			status.UpdatedReplicas++
		}
		if pod.DeletionTimestamp == nil && revisionOf(pod) == s.current.Name {
			status.CurrentReplicas++
		}
	}
	status.CurrentReplicas -= s.rolled
	if replicas := *s.set.Spec.Replicas; status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas && status.Replicas == replicas {
		status.CurrentRevision, status.CurrentReplicas = status.UpdateRevision, status.UpdatedReplicas
	}
	if status.CurrentReplicas >= 0 { // else the server refuses it
		mutateStatus(s.n.world.server, setName, func(set *appsv1.StatefulSet) { set.Status = status })
	}
	s.n.truncate(s.set, int(ptr.Deref(s.set.Spec.RevisionHistoryLimit, 10)), inUse)
}

// stepDaemonSet is one sync of the controller of DaemonSets.
func (n *nativeWorkload) stepDaemonSet() {
	ds, ok := get[*appsv1.DaemonSet](n.shown(), setName)
	if !ok || ds.DeletionTimestamp != nil || n.late.waits(ds) {
		return
	}
	update := n.ensureRevision(ds, "DaemonSet", &ds.Spec.Template, true)
	if update == nil {
		return
	}
	hash := update.Labels[appsv1.ControllerRevisionHashLabelKey]
	status := appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation}
	inUse, old, unavailable := sets.New(update.Name), []*corev1.Pod(nil), 0
	expects := n.late.expects(ds)
	for _, node := range n.world.nodes {
		status.DesiredNumberScheduled++
		pod := n.daemonOn(ds, node, hash, expects)
		if pod == nil {
			unavailable++
			continue
		}
		inUse.Insert(setName + "-" + revisionOf(pod))
		isOut := pod.DeletionTimestamp != nil || !n.isAvailable(pod)
		isOld := revisionOf(pod) != hash
		switch {
		case isOut:
			unavailable++
		default:
			status.NumberAvailable++
		}
		status.CurrentNumberScheduled++
		if !isOld {
			status.UpdatedNumberScheduled++
		}
		switch {
		case !isOld || pod.DeletionTimestamp != nil || ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		case isOut && !n.late.expects(ds):
			n.deletePod(ds, pod, "it is at another revision")
		case isOut:
		default:
			old = append(old, pod)
		}
	}
	budget, _ := intstr.GetScaledValueFromIntOrPercent(maxUnavailableOf(ds), len(n.world.nodes), true) // it is valid
	if n.late.expects(ds) {
		budget = 0
	}
	for _, pod := range old[:max(min(budget-unavailable, len(old)), 0)] {
		n.deletePod(ds, pod, "it is at another revision")
	}
	mutateStatus(n.world.server, setName, func(ds *appsv1.DaemonSet) { ds.Status = status })
	n.truncate(ds, int(ptr.Deref(ds.Spec.RevisionHistoryLimit, 10)), inUse)
}

func maxUnavailableOf(ds *appsv1.DaemonSet) *intstr.IntOrString {
	if rolling := ds.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return rolling.MaxUnavailable
	}
	return ptr.To(intstr.FromInt32(1))
}

// daemonOn returns the pod of a node, and makes one if it has none; nil where that
// has to wait.
func (n *nativeWorkload) daemonOn(ds *appsv1.DaemonSet, node *kubelet, hash string, expects bool) *corev1.Pod {
	var found *corev1.Pod
	for _, pod := range n.allPodsOf(ds) {
		switch {
		case pod.Spec.NodeName != node.node:
		case expects && pod.Status.Phase == corev1.PodFailed:
		case pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil:
			n.deletePod(ds, pod, "it has failed")
		case found == nil || pod.DeletionTimestamp == nil:
			found = pod
		}
	}
	if found != nil || node.isDead() || expects {
		return found
	}
	if n.refuses(&ds.Spec.Template) {
		n.say("cannot create a pod on %s: it is refused", node.node)
		return nil
	}
	pod := n.createPod(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), &ds.Spec.Template, fmt.Sprintf("%s-%05d", setName, n.nextID()), map[string]string{
		appsv1.ControllerRevisionHashLabelKey: hash,
	})
	n.world.server.bind(pod, node.node)
	found, _ = get[*corev1.Pod](n.world.server, pod.Name)
	return found
}
