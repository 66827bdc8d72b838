// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TargetIndex finds the EndpointSlices that send traffic to a pod by its name.
const TargetIndex = "endpoints.targetRef.name"

const podKind = "Pod"

// ServicesTo returns the names of the Services that still send traffic to a pod
// according to their EndpointSlices, sorted. A drained pod has none. A slice
// without the label of a Service counts under its own name.
//
// An endpoint gets traffic unless it is known not to be serving, or to be
// terminating. The condition "ready" alone would not do: a Service with
// publishNotReadyAddresses, as headless Services of StatefulSets often are,
// reports every pod as ready, for as long as the pod lives.
func ServicesTo(ctx context.Context, reader client.Reader, pod *corev1.Pod) ([]string, error) {
	list := &discoveryv1.EndpointSliceList{}
	// What is listed here is only read, so it need not be a copy.
	err := reader.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{TargetIndex: pod.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices with pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	var services []string
	for i := range list.Items {
		slice := &list.Items[i]
		if !followsReadiness(slice) || !slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return sendsTo(e, pod) }) {
			continue
		}
		services = append(services, serviceOf(slice))
	}
	slices.Sort(services)

	return slices.Compact(services), nil
}

// sendsTo reports whether the endpoint is the pod, and not one of the same name
// that was there before.
func sendsTo(endpoint discoveryv1.Endpoint, pod *corev1.Pod) bool {
	target := endpoint.TargetRef

	return getsTraffic(endpoint) && target.Name == pod.Name && (target.UID == "" || target.UID == pod.UID)
}

// getsTraffic reports whether traffic is sent to a pod because of the endpoint.
func getsTraffic(endpoint discoveryv1.Endpoint) bool {
	if endpoint.TargetRef == nil || endpoint.TargetRef.Kind != podKind {
		return false
	}
	conditions := endpoint.Conditions
	if ptr.Deref(conditions.Terminating, false) {
		return false
	}
	// Absent means true: unknown counts as serving. Source: EndpointConditions.
	return ptr.Deref(conditions.Serving, ptr.Deref(conditions.Ready, true))
}

// managedByController is the value of the label endpointslice.kubernetes.io/managed-by
// on the slices that follow the readiness of their pods. Others are written by
// hand or mirrored from Endpoints: they may list a pod as ready for ever, and
// nothing that is done to the pod changes that.
const managedByController = "endpointslice-controller.k8s.io"

func followsReadiness(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == managedByController
}

func serviceOf(slice *discoveryv1.EndpointSlice) string {
	if service := slice.Labels[discoveryv1.LabelServiceName]; service != "" {
		return service
	}

	return slice.Name
}

// trimEndpointSlice keeps the name of the Service, and of the endpoints those
// pods that get traffic. A slice with 100 pods of which none is ready becomes
// empty.
func trimEndpointSlice(in any) (any, error) {
	slice, ok := in.(*discoveryv1.EndpointSlice)
	if !ok {
		return in, nil
	}
	meta := metav1.ObjectMeta{
		Name:            slice.Name,
		Namespace:       slice.Namespace,
		UID:             slice.UID,
		ResourceVersion: slice.ResourceVersion,
	}
	for _, label := range []string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy} {
		if value := slice.Labels[label]; value != "" {
			metav1.SetMetaDataLabel(&meta, label, value)
		}
	}
	var endpoints []discoveryv1.Endpoint
	for _, endpoint := range slice.Endpoints {
		if !followsReadiness(slice) || !getsTraffic(endpoint) {
			continue
		}
		target := &corev1.ObjectReference{Kind: podKind, Name: endpoint.TargetRef.Name, UID: endpoint.TargetRef.UID}
		endpoints = append(endpoints, discoveryv1.Endpoint{Conditions: endpoint.Conditions, TargetRef: target})
	}

	return &discoveryv1.EndpointSlice{TypeMeta: slice.TypeMeta, ObjectMeta: meta, AddressType: slice.AddressType, Endpoints: endpoints}, nil
}

func targetsOf(obj client.Object) []string {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	var names []string
	for _, endpoint := range slice.Endpoints {
		if followsReadiness(slice) && getsTraffic(endpoint) {
			names = append(names, endpoint.TargetRef.Name)
		}
	}

	return names
}
