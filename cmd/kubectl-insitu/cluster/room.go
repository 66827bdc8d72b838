// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
)

// resizable are the resources that a live pod can change.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// measure says whether the nodes, and the quotas of the namespace, have room for the new
// resources of pods.
func (p *planner) measure(ctx context.Context, live client.Client) {
	if len(p.resized) == 0 {
		return
	}
	p.measureQuotas(ctx, live)
	nodes := map[string]*nodeRoom{}
	for _, pod := range p.resized {
		name := pod.before.Spec.NodeName
		if name == "" {
			continue
		}
		if nodes[name] == nil {
			nodes[name] = readNode(ctx, live, name)
		}
		i := slices.IndexFunc(p.plan.Pods, func(planned report.PlannedPod) bool { return planned.Name == pod.before.Name })
		if i >= 0 {
			p.plan.Pods[i].Feasibility, p.plan.Pods[i].FeasibilityMessage = nodes[name].judge(pod)
		}
	}
}

// nodeRoom is what a node has, and what its pods take of it.
type nodeRoom struct {
	name        string
	allocatable corev1.ResourceList
	taken       corev1.ResourceList
	err         error
}

func readNode(ctx context.Context, live client.Client, name string) *nodeRoom {
	room := &nodeRoom{name: name, taken: corev1.ResourceList{}}
	node := &corev1.Node{}
	if room.err = live.Get(ctx, client.ObjectKey{Name: name}, node); room.err != nil {
		return room
	}
	room.allocatable = node.Status.Allocatable
	pods := &corev1.PodList{}
	if room.err = live.List(ctx, pods, client.MatchingFields{"spec.nodeName": name}); room.err != nil {
		return room
	}
	for i := range pods.Items {
		if !inplace.HasEnded(&pods.Items[i]) {
			add(room.taken, requestsOf(&pods.Items[i]))
		}
	}
	return room
}

// judge says whether a node has room for the new requests of a pod, as its kubelet will. A
// pod that fits takes its room.
func (n *nodeRoom) judge(pod resizedPod) (verdict report.Feasibility, message string) {
	if n.err != nil {
		return report.UnknownRoom, fmt.Sprintf("the room of node %s could not be read: %v", n.name, n.err)
	}
	before, after := requestsOf(pod.before), requestsOf(pod.after)
	verdict, message = report.Fits, "node "+n.name+" has room"
	for _, name := range resizable {
		wants, has, all := after[name], before[name], n.allocatable[name]
		if wants.Cmp(has) <= 0 {
			continue
		}
		if wants.Cmp(all) > 0 {
			return report.Infeasible, fmt.Sprintf("it requests %s of %s, and node %s has %s in all", wants.String(), name, n.name, all.String())
		}
		total := n.taken[name].DeepCopy()
		total.Sub(has)
		total.Add(wants)
		if total.Cmp(all) > 0 {
			total.Sub(all)
			verdict, message = report.Deferred, fmt.Sprintf("node %s lacks %s of %s for it now", n.name, total.String(), name)
		}
	}
	if verdict == report.Fits {
		for _, name := range resizable {
			total := n.taken[name].DeepCopy()
			wants, has := after[name], before[name]
			total.Sub(has)
			total.Add(wants)
			n.taken[name] = total
		}
	}
	return verdict, message
}

func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

func add(sum, more corev1.ResourceList) {
	for name, amount := range more {
		total := sum[name].DeepCopy()
		total.Add(amount)
		sum[name] = total
	}
}

// measureQuotas says which quotas do not have room for all pods.
func (p *planner) measureQuotas(ctx context.Context, live client.Client) {
	quotas := &corev1.ResourceQuotaList{}
	if err := live.List(ctx, quotas, client.InNamespace(p.found.Object.GetNamespace())); err != nil {
		p.note("the quotas of the namespace could not be read: %v", err)
		return
	}
	more := p.growth()
	for i := range quotas.Items {
		quota := &quotas.Items[i]
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			p.note("quota %s has scopes: whether it has room was not found out", quota.Name)
			continue
		}
		for name, grows := range more {
			hard, limited := quota.Status.Hard[name]
			left := hard.DeepCopy()
			left.Sub(quota.Status.Used[name])
			if limited && grows.Sign() > 0 && grows.Cmp(left) > 0 {
				p.plan.Refusals = append(p.plan.Refusals, fmt.Sprintf(
					"quota %s has %s of %s left, and all pods together grow by %s: pods beyond that keep their old size",
					quota.Name, left.String(), name, grows.String()))
			}
		}
	}
}

// growth returns by how much the pods grow together, in the names of quotas.
func (p *planner) growth() map[corev1.ResourceName]resource.Quantity {
	sum := corev1.ResourceList{}
	for _, pod := range p.resized {
		for prefix, of := range map[string]func(*corev1.Pod) corev1.ResourceList{
			"requests.": func(pod *corev1.Pod) corev1.ResourceList {
				return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
			},
			"limits.": func(pod *corev1.Pod) corev1.ResourceList {
				return resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
			},
		} {
			before, after := of(pod.before), of(pod.after)
			for _, name := range resizable {
				delta := after[name].DeepCopy()
				delta.Sub(before[name])
				add(sum, corev1.ResourceList{corev1.ResourceName(prefix) + name: delta})
				if prefix == "requests." {
					add(sum, corev1.ResourceList{name: delta})
				}
			}
		}
	}
	return sum
}
