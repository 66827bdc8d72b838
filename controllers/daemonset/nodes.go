// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// placement says what a node is to a set.
type placement struct {
	// runs: a pod is made on the node if there is none. keeps: a pod that is there stays.
	runs, keeps bool
}

// selection says which nodes a pod template selects.
type selection struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func selectionOf(spec *corev1.PodSpec) selection {
	return selection{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
		tolerations: withDaemonTolerations(spec),
	}
}

// of returns what a node is to the set. A pod that is there survives a taint that only keeps new
// pods away. A selector that cannot be read selects no node, as with DaemonSets of Kubernetes.
func (s selection) of(node *corev1.Node) placement {
	if s.nodeName != "" && s.nodeName != node.Name {
		return placement{}
	}
	if matches, err := s.affinity.Match(node); err != nil || !matches {
		return placement{}
	}
	return placement{
		runs:  s.tolerates(node, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		keeps: s.tolerates(node, corev1.TaintEffectNoExecute),
	}
}

// tolerates reports whether the pods tolerate all taints of a node with one of the effects.
func (s selection) tolerates(node *corev1.Node, effects ...corev1.TaintEffect) bool {
	isMeant := func(taint *corev1.Taint) bool { return slices.Contains(effects, taint.Effect) }
	_, isKeptAway := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, s.tolerations, isMeant, true)
	return !isKeptAway
}

// daemonTolerations are those of each pod of a DaemonSet, whatever its template says: it stays on
// a node that is not ready, and comes to one that is cordoned or short of resources. So it is with
// DaemonSets of Kubernetes and of OpenKruise.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// withDaemonTolerations returns the tolerations of a pod of the set. One of the template that is
// about the same taint gives way.
func withDaemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	added := daemonTolerations
	if spec.HostNetwork {
		added = append(slices.Clip(added), corev1.Toleration{
			Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	isReplaced := func(own corev1.Toleration) bool {
		return slices.ContainsFunc(added, func(other corev1.Toleration) bool { return other.MatchToleration(&own) })
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(spec.Tolerations), isReplaced), added)
}

// targetOf returns the node that a pod runs on or is made for: the scheduler has not bound it yet
// then. It returns nothing for a pod that is made for no single node, and is none of a DaemonSet.
func targetOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == nodeNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// nodeNameField is the field of a node that a pod of a DaemonSet asks for.
const nodeNameField = "metadata.name"

// aim makes a pod one for a node: the scheduler binds it to that. What else the pod requires of
// nodes has been asked already.
func aim(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: nodeNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}},
	}
	spec.Tolerations = withDaemonTolerations(spec)
}

// whyNotNow returns why no pod is changed on a node now, in words; nothing if pods may be. The
// conditions of nodes that are being drained or maintained are those of Kubernetes 1.37.
func whyNotNow(node *corev1.Node) string {
	if isSilent(node) {
		return "node " + node.Name + " is not ready"
	}
	for _, condition := range node.Status.Conditions {
		switch condition.Type { //nolint:exhaustive // the others say nothing of this
		case corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress, corev1.NodeGracefulNodeShutdownInProgress:
			if condition.Status == corev1.ConditionTrue {
				return "node " + node.Name + " is being maintained: " + string(condition.Type)
			}
		}
	}
	return ""
}

// isSilent reports whether the kubelet of a node says nothing of its pods.
func isSilent(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue
	})
}
