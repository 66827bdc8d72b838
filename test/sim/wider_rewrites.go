// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rewrites are what admission changes in objects. The zero value changes nothing.
type rewrites struct {
	// registry is put before images that name none, when pods are created and when they
	// are changed.
	registry string
	// all: it is put before all images of a pod that is changed in any way, not only
	// before those that are changed.
	all bool
	// injects: an injector adds a container and a label to new pods; inFront: before all
	// others.
	injects, inFront bool
	// upgraded: the injected container has a newer image.
	upgraded bool
	// defaults: a LimitRange gives new pods the resources that their template leaves out.
	defaults bool
	// class is the storage class that all new claims get; empty for theirs.
	class string
}

const (
	// mirror is a registry that has copies of all images.
	mirror = "mirror.example.io/"
	// injected is the container that the injector adds.
	injected = "mesh"
	// limitRanger is the annotation in which the server says what a LimitRange has set.
	limitRanger = "kubernetes.io/limit-ranger"
)

// chosenRewrites returns settings as the choices have it.
func chosenRewrites(c *Choices) rewrites {
	if !c.oneIn(2) {
		return rewrites{}
	}
	return rewrites{
		registry: pick(c, []string{"", mirror, dockerHub}), all: c.oneIn(2), injects: c.oneIn(2), inFront: c.oneIn(3), defaults: c.oneIn(3),
		class: pick(c, []string{"", "", "whole", "fixed"}),
	}
}

func (r rewrites) String() string {
	return fmt.Sprintf("registry %q (before all %t), injects %t (in front %t, upgraded %t), defaults %t, class %q", r.registry, r.all, r.injects, r.inFront, r.upgraded, r.defaults, r.class)
}

// toggleRewrites lets admission rewrite objects from now on, or no more.
func (w *World) toggleRewrites() {
	a := &w.server.admission
	if a.rewrites == (rewrites{}) {
		a.upgraded = !a.upgraded
		w.rewrite(w.settings.wider.rewrites)
	} else {
		w.rewrite(rewrites{})
	}
}

// rewrite lets admission rewrite objects in this way from now on.
func (w *World) rewrite(r rewrites) {
	a := &w.server.admission
	r.upgraded = r.injects && a.upgraded
	a.rewrites, a.rewrittenSince = r, w.clock.Now()
	w.say("admission: rewrites: %s", a.rewrites)
}

// apply rewrites an object that is created.
func (r rewrites) apply(obj client.Object) {
	switch typed := obj.(type) {
	case *corev1.Pod:
		r.inject(typed)
		r.moveImages(typed, nil)
		r.fillResources(typed)
	case *corev1.PersistentVolumeClaim:
		if r.class != "" {
			typed.Spec.StorageClassName = ptr.To(r.class)
		}
	}
}

// moveImages puts the registry before images that name none. before are the images of a
// pod that is changed.
func (r rewrites) moveImages(pod *corev1.Pod, before map[string]string) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			image := &containers[i].Image
			if r.registry != "" && !strings.Contains(*image, "/") && (r.all || *image != before[containers[i].Name]) {
				*image = r.registry + *image
			}
		}
	}
}

func (r rewrites) inject(pod *corev1.Pod) {
	if !r.injects {
		return
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "mesh.example.io/injected", "true")
	c := corev1.Container{Name: injected, Image: "mesh:a"}
	if r.upgraded {
		c.Image = "mesh:b"
	}
	if pod.Spec.Containers[0].Resources.Requests != nil {
		size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
		c.Resources = corev1.ResourceRequirements{Requests: size, Limits: size.DeepCopy()}
	}
	at := len(pod.Spec.Containers)
	if r.inFront {
		at = 0
	}
	pod.Spec.Containers = slices.Insert(pod.Spec.Containers, at, c)
}

// fillResources gives containers what they leave out, and says so, as a LimitRange does.
func (r rewrites) fillResources(pod *corev1.Pod) {
	if !r.defaults {
		return
	}
	defaultSizes(&pod.Spec)
	var words []string
	fill := func(list *corev1.ResourceList, name corev1.ResourceName, size, said string) {
		if _, has := (*list)[name]; has {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = resource.MustParse(size)
		words = append(words, said)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		for name, sizes := range map[corev1.ResourceName][2]string{corev1.ResourceCPU: {"50m", "2"}, corev1.ResourceMemory: {"32Mi", "1Gi"}} {
			fill(&c.Resources.Requests, name, sizes[0], fmt.Sprintf("%s request for container %s", name, c.Name))
			fill(&c.Resources.Limits, name, sizes[1], fmt.Sprintf("%s limit for container %s", name, c.Name))
		}
	}
	if len(words) > 0 {
		slices.Sort(words)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, limitRanger, "LimitRanger plugin set: "+strings.Join(words, "; "))
	}
}

// isFilled reports whether a LimitRange has set a number of a pod. What the server derives
// for the pod as a whole counts as well.
func isFilled(pod *corev1.Pod, key sizeKey) bool {
	if key.container == "" {
		return pod.Annotations[limitRanger] != ""
	}
	words := fmt.Sprintf("%s %s for container %s", key.resource, strings.TrimSuffix(key.list, "s"), key.container)
	return slices.Contains(strings.Split(strings.TrimPrefix(pod.Annotations[limitRanger], "LimitRanger plugin set: "), "; "), words)
}

// ownImages returns the images of the containers of a pod that its template has.
func ownImages(pod *corev1.Pod) map[string]string {
	found := images(pod)
	delete(found, injected)
	return found
}
