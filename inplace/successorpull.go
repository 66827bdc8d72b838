// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A pod that is deleted for another one waits until the images of that can be pulled, on its own
// node. The scheduler may give the other one another node: it is known then that the images are
// there, and that the account of the new pod may have them.

// PullAccount is what a kubelet pulls images with.
type PullAccount struct {
	// ServiceAccountName is "default" for a pod that names none.
	ServiceAccountName string
	ImagePullSecrets   []corev1.LocalObjectReference
}

// pullAccountOf returns what a kubelet pulls the images of a pod template with.
func pullAccountOf(fields map[string]any) PullAccount {
	named := func(path ...string) string {
		name, _, _ := unstructured.NestedString(fields, path...)
		return name
	}
	account := PullAccount{ServiceAccountName: cmp.Or(named("spec", "serviceAccountName"), named("spec", "serviceAccount"), "default")}
	secrets, _, _ := unstructured.NestedSlice(fields, "spec", "imagePullSecrets")
	for _, item := range secrets {
		secret, _ := item.(map[string]any)
		name, _ := secret["name"].(string)
		account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return account
}

// placementFields are those of a pod's spec by which nodes are chosen, or left out.
var placementFields = []string{"affinity", "nodeName", "nodeSelector", "os", "runtimeClassName"}

func placementOf(fields map[string]any) map[string]any {
	spec, _ := fields["spec"].(map[string]any)
	placement := map[string]any{}
	for _, field := range placementFields {
		if value, has := spec[field]; has {
			placement[field] = value
		}
	}
	return placement
}

// pullWay is what the templates alone say of the images that pods need which come in the place of
// others.
type pullWay struct {
	// images are those that the earlier template does not have.
	images []Image
	// otherAccount is true where they are pulled with another account than those before.
	otherAccount bool
}

// pullWays are those of the ways from one template to another, for all pods of a plan, and the names
// of images on nodes.
type pullWays struct {
	known map[[2]*Template]pullWay
	names map[string]string
}

func newPullWays() *pullWays {
	return &pullWays{known: map[[2]*Template]pullWay{}, names: map[string]string{}}
}

// nameOf is nameOnNode, which it asks once for each image.
func (w *pullWays) nameOf(image string) string {
	name, known := w.names[image]
	if !known {
		name = nameOnNode(image)
		w.names[image] = name
	}
	return name
}

// of returns the way from a template, which may be nil, to another one. Where other nodes are
// wanted, the images need not be right for those that there are: nothing is pulled. Images of the
// earlier template are there already, or admission has given its pods others. They count as
// missing where a kubelet asks the registry for them each time, with another account than before.
func (w *pullWays) of(from, to *Template) pullWay {
	key := [2]*Template{from, to}
	if way, known := w.known[key]; known {
		return way
	}
	if from == nil {
		from = &Template{}
	} else if !reflect.DeepEqual(from.placement, to.placement) {
		w.known[key] = pullWay{}
		return pullWay{}
	}
	way := pullWay{otherAccount: !equality.Semantic.DeepEqual(from.account, to.account)}
	for _, c := range to.allContainers() {
		image := Image{Name: c.Image, PullPolicy: cmp.Or(c.pullPolicy, defaultPullPolicy(c.Image))}
		isKnown := slices.ContainsFunc(from.allContainers(), func(known Container) bool { return w.nameOf(known.Image) == w.nameOf(c.Image) })
		if !isKnown || way.asksAgain(image) {
			way.images = append(way.images, image)
		}
	}
	way.images = sortedImages(way.images)
	w.known[key] = way
	return way
}

// asksAgain reports whether the kubelet asks the registry for an image that is on its node, with
// another account than before.
func (w pullWay) asksAgain(image Image) bool {
	return w.otherAccount && image.PullPolicy == corev1.PullAlways
}

// successorPull returns what a new pod in the place of one needs that has the step: nothing where
// the step does not delete the pod, or that does not serve anyway, and will not by itself.
func (p *planner) successorPull(v *view) Pull {
	facts, pod := v.facts, v.Pod
	revision := p.workload.ComesBackAt(facts)
	if !v.Step.Deletes() || v.asked || p.workload.OthersDelete || revision == nil || revision.Template == nil {
		return Pull{}
	}
	isLeaving := lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingDelete && !v.Ready
	isHalfway := v.observed.progress().Reason == ReasonNextBatch && IsMarkedNotReady(pod)
	if isLeaving || isHalfway || IsBroken(pod) {
		return Pull{}
	}
	var from *Template
	if facts.From != nil {
		from = facts.From.Template
	}
	way := p.pullWays.of(from, revision.Template)
	images, isThere := way.images, func(image Image) bool { return !way.asksAgain(image) && p.has(pod, image) }
	if slices.ContainsFunc(images, isThere) {
		images = slices.DeleteFunc(slices.Clone(images), isThere)
	}
	return Pull{Node: pod.Spec.NodeName, Images: images, As: &revision.Template.account, OtherAccount: way.otherAccount}
}

// has reports whether a container of a pod has an image.
func (p *planner) has(pod *corev1.Pod, image Image) bool {
	is := func(c corev1.Container) bool { return p.pullWays.nameOf(c.Image) == p.pullWays.nameOf(image.Name) }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is)
}
