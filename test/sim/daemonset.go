// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What only a DaemonSet has is here, and in nodes.go.

// daemons are the settings of a DaemonSet. The zero value stands for another kind.
type daemons struct {
	on bool
	// maxSurge is how many nodes may run a new pod beside the old one. It counts while pods are
	// recreated.
	maxSurge int
	// burst is how many pods are made, and how many go, at a time; 0 for what is usual.
	burst int
	// partitioned: the partition limits on which nodes pods are made, too.
	partitioned bool
}

// kindWords says which kind of set there is.
func (s settings) kindWords() string {
	if d := s.daemons; d.on {
		return fmt.Sprintf("DaemonSet, surge %d, burst %d, partitioned scaling %t", d.maxSurge, d.burst, d.partitioned)
	}
	return s.clones.String()
}

// chosenDaemons returns the settings of a DaemonSet as the choices have it.
func chosenDaemons(c *Choices) settings {
	s := chosen(c)
	s.clones, s.ordered, s.unordered, s.claims, s.deleteScaled = clones{}, false, false, false, false
	s.replicas, s.maxUnavailable = 1+c.intN(5), 1+c.intN(3)
	s.daemons = daemons{on: true, burst: pick(c, []int{0, 0, 0, 1, 2}), partitioned: c.oneIn(6)}
	if c.oneIn(4) {
		s.policy, s.daemons.maxSurge = appsv1beta1.RecreatePodUpdateStrategyType, 1+c.intN(2)
	}
	return s
}

// hasMadeUpNames reports whether the names of the pods differ from run to run.
func (s settings) hasMadeUpNames() bool { return s.clones.is() || s.daemons.on }

// nodeRole is the label of nodes that the pods of a DaemonSet select, at the value worker; nodeZone
// is one by which updates are limited to some of them.
const (
	nodeRole   = "example.io/role"
	nodeZone   = "example.io/zone"
	workerRole = "worker"
)

// daemonSet returns the DaemonSet at a revision.
func (s settings) daemonSet(r revision) *appsv1beta1.DaemonSet {
	set := &appsv1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace},
		Spec:       appsv1beta1.DaemonSetSpec{UpdateStrategy: appsv1beta1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1beta1.RollingUpdateDaemonSetStrategy{}}},
	}
	set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(s.daemons.maxSurge))
	putDaemons(s.set(r), &set.Spec)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": setName}}
	set.Spec.RevisionHistoryLimit = ptr.To[int32](3)
	set.Spec.ScaleStrategy = &appsv1beta1.DaemonSetScaleStrategy{PartitionedScaling: s.daemons.partitioned}
	if s.daemons.burst > 0 {
		set.Spec.BurstReplicas = ptr.To(intstr.FromInt(s.daemons.burst))
	}
	return set
}

// updateTypes are the types of rolling updates, by what they do to pods.
var updateTypes = map[appsv1beta1.PodUpdateStrategyType]appsv1beta1.DaemonSetRollingUpdateType{
	appsv1beta1.RecreatePodUpdateStrategyType:          appsv1beta1.StandardDaemonSetRollingUpdateType,
	appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType: appsv1beta1.InPlaceIfPossibleDaemonSetRollingUpdateType,
	appsv1beta1.InPlaceOnlyPodUpdateStrategyType:       appsv1beta1.InPlaceOnlyDaemonSetRollingUpdateType,
}

// putDaemons makes the spec of a DaemonSet say what a StatefulSet says. What a StatefulSet does not
// have stays as it is, but for a surge, which is only where pods are recreated.
func putDaemons(from *appsv1beta1.StatefulSet, spec *appsv1beta1.DaemonSetSpec) {
	spec.Template, spec.Lifecycle, spec.MinReadySeconds = from.Spec.Template, from.Spec.Lifecycle, int32(readyFor(from)/time.Second)
	spec.UpdateStrategy.Type = appsv1.DaemonSetUpdateStrategyType(from.Spec.UpdateStrategy.Type)
	rolling := from.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return
	}
	to := spec.UpdateStrategy.RollingUpdate
	to.RollingUpdateType, to.Paused, to.InPlaceUpdateStrategy = updateTypes[rolling.PodUpdatePolicy], &rolling.Paused, rolling.InPlaceUpdateStrategy
	to.MaxUnavailable, to.Partition = rolling.MaxUnavailable, nil
	if rolling.Partition != nil {
		to.Partition = ptr.To(intstr.FromInt32(*rolling.Partition))
	}
	if to.RollingUpdateType != appsv1beta1.StandardDaemonSetRollingUpdateType {
		to.MaxSurge = nil
	}
	if to.MaxSurge != nil && to.MaxSurge.IntVal > 0 {
		to.MaxUnavailable = nil
	}
}

// viewOfDaemons shows a DaemonSet in the shape of a StatefulSet. It shares what it points to.
func viewOfDaemons(set *appsv1beta1.DaemonSet) *appsv1beta1.StatefulSet {
	view, status := &appsv1beta1.StatefulSet{ObjectMeta: set.ObjectMeta}, set.Status
	view.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	view.Spec.Replicas = ptr.To(status.DesiredNumberScheduled)
	view.Spec.Template, view.Spec.Lifecycle = set.Spec.Template, set.Spec.Lifecycle
	view.Spec.UpdateStrategy.Type = appsv1.StatefulSetUpdateStrategyType(set.Spec.UpdateStrategy.Type)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		to := &appsv1beta1.RollingUpdateStatefulSetStrategy{
			MaxUnavailable: rolling.MaxUnavailable, Paused: ptr.Deref(rolling.Paused, false), MinReadySeconds: &set.Spec.MinReadySeconds,
			InPlaceUpdateStrategy: rolling.InPlaceUpdateStrategy,
		}
		for policy, name := range updateTypes {
			if name == rolling.RollingUpdateType {
				to.PodUpdatePolicy = policy
			}
		}
		if rolling.Partition != nil {
			to.Partition = &rolling.Partition.IntVal
		}
		view.Spec.UpdateStrategy.RollingUpdate = to
	}
	view.Status = appsv1beta1.StatefulSetStatus{
		ObservedGeneration: status.ObservedGeneration, CollisionCount: status.CollisionCount,
		Replicas: status.CurrentNumberScheduled, ReadyReplicas: status.NumberReady, AvailableReplicas: status.NumberAvailable,
		UpdatedReplicas: status.UpdatedNumberScheduled, InPlaceUpdated: status.InPlaceUpdated, Recreated: status.Recreated,
		CurrentRevision: status.CurrentRevision, UpdateRevision: status.UpdateRevision,
		Blockers: status.Blockers, Conditions: status.Conditions, Resize: status.Resize,
	}
	return view
}

// daemonSetIn returns the DaemonSet that objects hold; nil if there is none.
func (w *World) daemonSetIn(objects map[objectKey]client.Object) *appsv1beta1.DaemonSet {
	set, _ := objects[w.setKey()].(*appsv1beta1.DaemonSet)
	return set
}

// changeDaemons changes what only a DaemonSet has.
func (w *World) changeDaemons(change func(*appsv1beta1.DaemonSet)) {
	mutate(w.server, setName, change)
}

// targetOf returns the node that a pod runs on, or that it is made for; empty for neither.
func targetOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil {
		return pod.Spec.NodeName
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			return field.Values[0]
		}
	}
	return ""
}
