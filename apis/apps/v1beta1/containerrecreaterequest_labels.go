// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/types"
)

// Labels of ContainerRecreateRequests. The operator writes them when it sees a request first.
const (
	// ContainerRecreateRequestPodUIDKey is the UID of the pod that the request is about.
	ContainerRecreateRequestPodUIDKey = "crr.apps.kruise.io/pod-uid"
	// ContainerRecreateRequestNodeNameKey is the name of its node.
	ContainerRecreateRequestNodeNameKey = "crr.apps.kruise.io/node-name"
	// ContainerRecreateRequestActiveKey is "true" until the request is complete, and then absent.
	ContainerRecreateRequestActiveKey = "crr.apps.kruise.io/active"
)

// ContainerRecreateRequestFinalizer is what OpenKruise puts on requests while their pods are out of
// service. Insitu has no use for it, and takes it off.
const ContainerRecreateRequestFinalizer = "crr.apps.kruise.io/unready-acquired"

// RecreateRequestAnnotation is an annotation on pods whose containers a ContainerRecreateRequest
// asks to restart: a PodRecreateRequest. It is there while the request is carried out.
const RecreateRequestAnnotation = "insitu.dev/recreate-request"

// PodRecreateRequest is what a ContainerRecreateRequest asks of a pod.
//
// +kubebuilder:object:generate=true
type PodRecreateRequest struct {
	// name and uid are those of the request.
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// containers are to be restarted: all at once or, if ordered is true, each when the one before
	// it has been ready for minStartedSeconds.
	Containers        []string `json:"containers"`
	Ordered           bool     `json:"ordered,omitempty"`
	MinStartedSeconds int32    `json:"minStartedSeconds,omitempty"`
	// unreadyGracePeriodSeconds is for how long the pod is out of service before, in any case;
	// absent, it is what the pod's workload says of updates.
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
}

// InPlaceUpdateRecreateRequest says which containers of a pod were restarted for a
// ContainerRecreateRequest.
//
// +kubebuilder:object:generate=true
type InPlaceUpdateRecreateRequest struct {
	// uid is that of the request.
	UID types.UID `json:"uid"`
	// containers are the names of the containers, in the order of their restarts.
	Containers []string `json:"containers"`
}
