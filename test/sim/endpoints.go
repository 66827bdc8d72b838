// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// sliceName is the EndpointSlice of the Service that sends traffic to the pods.
const sliceName = "sample-abcde"

// endpoints is the controller of the EndpointSlice: it follows the pods, later.
type endpoints struct {
	world *World
	// due is when the next change is written; zero if there is none.
	due time.Time
}

func newEndpoints(w *World) *endpoints {
	return &endpoints{world: w}
}

func (e *endpoints) create() error {
	return e.world.server.create(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: sliceName, Labels: map[string]string{
			discoveryv1.LabelServiceName: setName,
			discoveryv1.LabelManagedBy:   "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
	})
}

// step is one second.
func (e *endpoints) step() {
	if e.world.settings.unserved {
		return
	}
	slice, ok := get[*discoveryv1.EndpointSlice](e.world.server, sliceName)
	wanted := e.wanted()
	if !ok || apiequality.Semantic.DeepEqual(slice.Endpoints, wanted) {
		e.due = time.Time{}
		return
	}
	now := e.world.clock.Now()
	if e.due.IsZero() {
		s := e.world.settings
		e.due = now.Add(time.Duration(s.minEndpointDelay)*time.Second + e.world.choices.seconds(s.endpointDelay-s.minEndpointDelay))
	}
	if now.Before(e.due) {
		return
	}
	e.due = time.Time{}
	mutate(e.world.server, sliceName, func(s *discoveryv1.EndpointSlice) { s.Endpoints = wanted })
}

func (e *endpoints) wanted() []discoveryv1.Endpoint {
	pods := all[*corev1.Pod](e.world.server)
	var wanted []discoveryv1.Endpoint
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[name]
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		ready, terminating := conditionIs(pod, corev1.PodReady, corev1.ConditionTrue), pod.DeletionTimestamp != nil
		wanted = append(wanted, discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.1"},
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(ready && !terminating), Serving: ptr.To(ready), Terminating: ptr.To(terminating),
			},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID},
		})
	}
	return wanted
}

// sendsTo reports whether traffic is sent to a pod.
func (e *endpoints) sendsTo(pod *corev1.Pod) bool {
	slice, ok := get[*discoveryv1.EndpointSlice](e.world.server, sliceName)
	return ok && slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
		return endpoint.TargetRef.UID == pod.UID && ptr.Deref(endpoint.Conditions.Ready, true)
	})
}
