// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// admission is what an API server asks of quotas, policies and webhooks before it
// stores an object. The zero value admits everything as it is.
type admission struct {
	clock clock.PassiveClock
	// refusals say how the creation of a kind is refused.
	refusals map[string]refusal
	// refusesPod says why a pod is refused for what it is made from; nil if none is.
	refusesPod func(*corev1.Pod) error
	// forbidsFirst: a policy allows no pod with the image of the first template.
	forbidsFirst bool
	// rewrites are what is changed in objects.
	rewrites rewrites
	// upgraded: there is a newer image of what is injected; rewrittenSince is since when
	// objects are rewritten as they are.
	upgraded       bool
	rewrittenSince time.Time
	// ungates: new pods lack the gate, as those do that were made when the policy was another.
	ungates bool
	// refused is the last error that a refused creation got.
	refused error
}

// refusal refuses creations from one time until another.
type refusal struct {
	since, until time.Time
	err          func(client.Object) error
}

// admitCreation rewrites an object, and refuses it or lets it be created.
func (a *admission) admitCreation(obj client.Object) error {
	if pod, ok := obj.(*corev1.Pod); ok && a.ungates {
		pod.Spec.ReadinessGates = slices.DeleteFunc(slices.Clone(pod.Spec.ReadinessGates), func(gate corev1.PodReadinessGate) bool {
			return gate.ConditionType == appsv1beta1.InPlaceUpdateReady
		})
	}
	a.rewrites.apply(obj)
	if err := a.refuse(obj); err != nil {
		a.refused = err
		return err
	}
	return nil
}

func (a *admission) refuse(obj client.Object) error {
	if r, is := a.refusals[kindOf(obj)]; is && a.clock.Now().Before(r.until) {
		return r.err(obj)
	}
	pod, ok := obj.(*corev1.Pod)
	switch {
	case !ok:
		return nil
	case a.refusesPod != nil:
		return a.refusesPod(pod)
	default:
		return a.admitImages(pod)
	}
}

// admitImages refuses a pod with an image that the policy on images forbids.
func (a *admission) admitImages(pod *corev1.Pod) error {
	for _, c := range pod.Spec.Containers {
		if a.forbidsFirst && isImage(c.Image, forbiddenImage) {
			return apierrors.NewForbidden(plurals["Pod"], pod.Name, errImage)
		}
	}
	return nil
}

// plurals are the names of kinds in the words of the server.
var plurals = map[string]schema.GroupResource{
	"Pod":                   {Resource: "pods"},
	"PersistentVolumeClaim": {Resource: "persistentvolumeclaims"},
	"ControllerRevision":    {Group: "apps", Resource: "controllerrevisions"},
}
