// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// change is what a rollout changes. The states that it goes through are numbered;
// 0 is what the pods start with.
type change struct {
	// set brings the container of a template to a state.
	set func(container *corev1.Container, state int)
	// limit lets so many pods change at a time.
	limit func(p parts, budget intstr.IntOrString)
	// restarts and writes are how often a rollout restarts each pod, and how often
	// it may write to it.
	restarts int32
	writes   int
	// minimal is what the minimal client does to a pod to bring it to a state.
	minimal func(state int) steps
}

// changes are the changes by the name that --change takes.
var changes = map[string]change{
	"image": {
		set:      func(container *corev1.Container, state int) { container.Image = image(state) },
		limit:    func(p parts, budget intstr.IntOrString) { *p.maxUnavailable = &budget },
		restarts: 1,
		writes:   3,
		minimal:  func(state int) steps { return newImage(image(state)) },
	},
	"resize": {
		set: func(container *corev1.Container, state int) {
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu(state)}
		},
		limit: func(p parts, budget intstr.IntOrString) {
			*p.inPlace = &appsv1beta1.InPlaceUpdateStrategy{Resize: &appsv1beta1.ResizePolicy{MaxConcurrent: &budget}}
		},
		writes:  2,
		minimal: func(state int) steps { return newSize(cpu(state)) },
	},
}

func changeNamed(name string) (change, error) {
	c, ok := changes[name]
	if !ok {
		return change{}, fmt.Errorf("change %q cannot be measured", name)
	}
	return c, nil
}

// image returns an image. On simulated nodes every image exists. None comes back:
// a kubelet delays the start of what it has started a short time ago.
func image(state int) string { return fmt.Sprintf("nginx:%d", state) }

// cpu returns what a container requests, which is little: many pods share a node.
func cpu(state int) resource.Quantity {
	return *resource.NewMilliQuantity(int64(1+state), resource.DecimalSI)
}
