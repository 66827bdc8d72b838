// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/ptr"
)

// simulatedPod is a pod on a simulated node. Only one worker handles it at a
// time; node and requests are guarded by the lock of the simulation.
type simulatedPod struct {
	uid     types.UID
	ip      string
	runtime *Runtime
	// written is the pod as our last write left it, which the informer may not
	// have seen yet.
	written *corev1.Pod
	// removed means that we have asked the API server to remove it.
	removed bool

	node     string
	requests corev1.ResourceList
}

// process brings one pod to the present.
func (s *simulation) process(ctx context.Context, name cache.ObjectName) error {
	pod, err := s.lister.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		s.forget(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	if s.nodes[pod.Spec.NodeName] == "" {
		return nil
	}
	own, err := s.podFor(name, pod)
	if err != nil {
		return err
	}
	pod = own.newest(pod)
	for _, spec := range allContainers(pod) {
		s.images.pull(ctx, spec.Image)
	}
	now := s.opts.Clock.Now()
	outcome := own.runtime.Step(pod, Facts{
		Now:   now,
		Image: s.images.image,
		Fits:  func(requests corev1.ResourceList) error { return s.fits(own, requests) },
	})
	if outcome.Invalid != nil {
		klog.FromContext(ctx).Error(outcome.Invalid, "Ignored annotation", "Pod", klog.KObj(pod))
	}
	s.account(own, outcome)
	if !outcome.Wake.IsZero() {
		s.queue.AddAfter(name, outcome.Wake.Sub(now))
	}
	return s.publish(ctx, own, pod, outcome)
}

// publish writes what has changed of the status, and removes the pod if it has
// come to its end.
func (s *simulation) publish(ctx context.Context, own *simulatedPod, pod *corev1.Pod, outcome Outcome) error {
	merged := mergeStatus(pod.Status, outcome.Status)
	patch, err := statusPatch(pod, merged)
	if err != nil {
		return err
	}
	if patch != nil && !isBeingRemoved(pod) {
		written, err := s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if isGone(err) {
			return nil // the informer will tell
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		own.written = written
	}
	if !outcome.Finished || own.removed {
		return nil
	}
	now := int64(0)
	err = s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !isGone(err) {
		return fmt.Errorf("remove pod: %w", err)
	}
	own.removed = true
	return nil
}

// isBeingRemoved tells whether the API server is removing the pod at this moment. A patch
// that comes meanwhile makes it remove what has the name, and not only this UID: that can
// be the next pod.
func isBeingRemoved(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && len(pod.Finalizers) == 0
}

// isGone tells whether a write came too late: the pod is not there any more, or
// another one has its name.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// newest returns the newer of what the informer has and what we wrote.
func (p *simulatedPod) newest(cached *corev1.Pod) *corev1.Pod {
	if p.written == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(p.written.ResourceVersion, cached.ResourceVersion)
	if err != nil || order <= 0 {
		p.written = nil
		return cached
	}
	return p.written
}

// podFor returns what is known of a pod. A pod that is seen for the first time
// but has run before was left by an earlier run.
func (s *simulation) podFor(name cache.ObjectName, pod *corev1.Pod) (*simulatedPod, error) {
	s.mu.Lock()
	known := s.pods[name]
	s.mu.Unlock()
	if known != nil && known.uid == pod.UID {
		return known, nil
	}
	s.forget(name)
	ip := pod.Status.PodIP
	if ip == "" {
		var err error
		if ip, err = s.podIPs.take(); err != nil {
			return nil, err
		}
	}
	own := &simulatedPod{
		uid:     pod.UID,
		ip:      ip,
		node:    pod.Spec.NodeName,
		runtime: NewRuntime(s.opts.Timing, s.nodes[pod.Spec.NodeName], ip),
	}
	if pod.Status.StartTime != nil {
		own.runtime.Adopt(pod, s.opts.Clock.Now())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[name] = own
	return own, nil
}

func (s *simulation) forget(name cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.pods[name]; own != nil {
		s.podIPs.release(own.ip)
		delete(s.pods, name)
	}
}

// account notes what a pod takes of its node: what was promised to it, until it
// has ended.
func (s *simulation) account(own *simulatedPod, outcome Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own.requests = outcome.Status.AllocatedResources
	if isTerminal(outcome.Status.Phase) {
		own.requests = nil
	}
}

// fits returns nil if the pod's node can hold requests beside those of the
// other pods there. Otherwise the error is in the words of the kubelet.
func (s *simulation) fits(own *simulatedPod, requests corev1.ResourceList) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := corev1.ResourceList{}
	for _, other := range s.pods {
		if other != own && other.node == own.node {
			for name, quantity := range other.requests {
				sum := used[name]
				sum.Add(quantity)
				used[name] = sum
			}
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		capacity, asked, taken := amount(name, s.opts.Allocatable), amount(name, requests), amount(name, used)
		if taken+asked > capacity {
			return &lifecycle.InsufficientResourceError{
				ResourceName: name, Requested: asked, Used: taken, Capacity: capacity,
			}
		}
	}
	return nil
}

// amount returns thousandths of CPUs, or bytes.
func amount(name corev1.ResourceName, list corev1.ResourceList) int64 {
	quantity := list[name]
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
