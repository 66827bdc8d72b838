// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"fmt"
	"runtime"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apimachinery/lease"
)

// leasePeriods is for how many of their intervals a node counts as alive after a heartbeat.
const leasePeriods = 4

// nodeName returns the name of the i-th node, counted from 1.
func nodeName(i int) string { return fmt.Sprintf("%s%d", NodePrefix, i) }

// newNode returns a node as it registers itself.
func newNode(name, ip string, opts Options) *corev1.Node {
	now := metav1.NewTime(opts.Clock.Now())
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				SimulatedKey:           "true",
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "simulated://" + name,
			Taints:     []corev1.Taint{{Key: SimulatedKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Capacity:    opts.Allocatable,
			Allocatable: opts.Allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: ip},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "simulated kubelet is posting ready status"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          opts.KubeletVersion,
				ContainerRuntimeVersion: "containerd://simulated",
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
				OSImage:                 "Simulated",
				KernelVersion:           "simulated",
			},
		},
	}
}

// register creates a node, or brings one that an earlier run has left up to
// date. Labels and taints that others have added to it stay.
func register(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register node %s: %w", node.Name, err)
	}
	existing, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("register node %s: %w", node.Name, err)
	}
	if existing.Labels[SimulatedKey] != "true" {
		return fmt.Errorf("register node %s: a node of this name exists and is not simulated", node.Name)
	}
	existing.Status = node.Status
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, existing, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of node %s: %w", node.Name, err)
	}
	return nil
}

// heartbeat renews the lease of a node until ctx is done.
func heartbeat(ctx context.Context, client kubernetes.Interface, name string, opts Options) {
	own := func(lease *coordinationv1.Lease) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(node, corev1.SchemeGroupVersion.WithKind("Node")),
		}
		lease.OwnerReferences[0].Controller, lease.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		return nil
	}
	seconds := max(int32((leasePeriods * opts.Timing.Lease).Seconds()), 1)
	lease.NewController(opts.Clock, client, name, seconds, nil, opts.Timing.Lease,
		name, corev1.NamespaceNodeLease, own).Run(ctx)
}
