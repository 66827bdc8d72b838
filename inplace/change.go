// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Revision is a named state of a workload's pods.
type Revision struct {
	// Name is what pods at the revision have in their controller-revision-hash label: the
	// name of the ControllerRevision or, where they are of a DaemonSet, the hash in it.
	Name string
	// Hash is the value of the label pod-template-hash on pods at the revision;
	// empty for kinds whose pods do not have it.
	Hash     string
	Template *Template
	// ClaimTemplates are the names of its claim templates; nil if the revision says
	// nothing about claims.
	ClaimTemplates []string
}

// Change is what separates a live pod from a target revision, and can be made
// in place. The zero Change changes nothing but the pod's revision label.
type Change struct {
	// Labels and Annotations hold the keys to set; a nil value removes the key.
	Labels      map[string]*string
	Annotations map[string]*string
	// Tolerations are all that the pod is to have; nil if it has them.
	Tolerations []corev1.Toleration
	// Images holds the containers that are changed now, in the order of
	// Template.Containers.
	Images []ImageChange
	// Later holds those that are changed when the containers before them in the
	// launch order are ready.
	Later []ImageChange
	// Resize holds the amounts that are changed together with all that. Where
	// containers are given another image, too, Grow holds those that are changed
	// before the pod is taken out of service for it, and Shrink those that are
	// together with a container of Later, or when the pod serves again.
	Grow, Resize, Shrink resize.Change
}

// ImageChange is the change of one container's image.
type ImageChange struct {
	Container string
	// Sidecar is true for a native sidecar, which is in spec.initContainers.
	Sidecar  bool
	From, To string
	// Restart is true when the container runs what it ran, and is changed to have
	// it restarted.
	Restart bool
	// StandsFor is the image that To spells otherwise; empty if To is spelled as
	// the templates do.
	StandsFor string
	// Reads is the field of the pod which the container's environment is read
	// from, and which changes, too; empty if there is none.
	Reads string
	// Requested is true when a ContainerRecreateRequest asks for the restart of the container, and
	// this restarts it.
	Requested bool
	// Asked is true when the environment is not read from that field: its change asks
	// for the restart.
	Asked bool
}

// String says the change in words.
func (c ImageChange) String() string {
	switch {
	case !c.Restart:
		return fmt.Sprintf("image of %s: %s to %s", c.Container, c.From, c.To)
	case c.Reads == "":
		return fmt.Sprintf("restart of %s as %s", c.Container, c.To)
	case c.Asked:
		return fmt.Sprintf("restart of %s as %s, as %s asks", c.Container, c.To, c.Reads)
	default:
		return fmt.Sprintf("restart of %s as %s, since it reads %s", c.Container, c.To, c.Reads)
	}
}

// isEmpty reports whether the change leaves the pod as it is, but for the label of
// its revision.
func (c Change) isEmpty() bool {
	return len(c.Images)+len(c.Labels)+len(c.Annotations)+len(c.Tolerations)+len(c.Resizes()) == 0
}

// Resizes returns all amounts that are changed, now and later.
func (c Change) Resizes() resize.Change {
	return slices.Concat(c.Grow, c.Resize, c.Shrink)
}

// Restarts reports whether the change restarts a container.
func (c Change) Restarts() bool {
	return len(c.Images) > 0 || c.Resize.Restarts()
}

// all returns the containers that are changed, now and later.
func (c Change) all() []ImageChange {
	return slices.Concat(c.Images, c.Later)
}

// RestartedContainers returns the names of the containers that the change restarts, now
// and later.
func (c Change) RestartedContainers() []string {
	return withNames(containersOf(c.all()), c.Resize.Restarted())
}

// restarted returns the names of the containers that the change restarts now.
func (c Change) restarted() []string {
	return withNames(containersOf(c.Images), c.Resize.Restarted())
}

// withNames adds to names those that are not among them.
func withNames(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func containersOf(images []ImageChange) []string {
	names := make([]string, 0, len(images))
	for _, image := range images {
		names = append(names, image.Container)
	}
	return names
}

// String says the change in words, for events and notes.
func (c Change) String() string {
	words := make([]string, 0, len(c.Images)+1)
	for _, image := range c.Images {
		words = append(words, image.String())
	}
	if len(c.Resize) > 0 {
		words = append(words, c.Resize.String())
	}
	if len(c.Labels)+len(c.Annotations) > 0 {
		words = append(words, "labels or annotations")
	}
	if len(c.Tolerations) > 0 {
		words = append(words, "tolerations")
	}
	if len(words) == 0 {
		return "revision label only"
	}
	if len(c.Later) > 0 {
		words = append(words, "then "+strings.Join(containersOf(c.Later), ", "))
	}
	if len(c.Shrink) > 0 {
		words = append(words, "then "+c.Shrink.String())
	}
	return strings.Join(words, ", ")
}

// Key names the change: the same for pods that come to the same in the same way,
// whatever they were before.
func (c Change) Key() string {
	b := &strings.Builder{}
	for _, image := range c.all() {
		fmt.Fprintf(b, "%s=%s ", image.Container, image.To)
	}
	fmt.Fprintf(b, "%d ", len(c.Images))
	for _, part := range []resize.Change{c.Grow, c.Resize, c.Shrink} {
		for _, delta := range part {
			fmt.Fprintf(b, "%s=%s ", delta.Field, delta.To)
		}
		b.WriteString("| ")
	}
	for _, keys := range []map[string]*string{c.Labels, c.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			fmt.Fprintf(b, "%s=%q ", key, ptr.Deref(keys[key], "\x00"))
		}
		b.WriteString("| ")
	}
	for _, toleration := range c.Tolerations {
		b.WriteString(toleration.String())
	}
	return b.String()
}

// Compare tells how a live pod, made from the template of one revision, becomes
// what the target template says: either by a Change or, if the Refusal is not
// nil, not in place.
//
// The user's wish is read from the two templates; a field absent from both is
// unchanged, whatever it defaults to, and an image that admission rewrote on its
// way into the pod is not a change. Keys of labels and annotations that the
// templates do not name are left alone. What the pod already is, is not changed
// again.
//
// A container whose environment is read from what changes is restarted. Where
// its image stays, it is spelled otherwise for that: see equivalentImages.
func Compare(pod *corev1.Pod, from, to *Template, now time.Time) (Change, *Refusal) {
	if r := refusal(from, to); r != nil {
		return Change{}, r
	}
	return observedOf(pod, now).compare(from, to)
}

// compare is Compare for templates without an objection.
func (o *observed) compare(from, to *Template) (Change, *Refusal) {
	if refused := refuseOtherGate(o.pod, from, to); refused != nil {
		return Change{}, refused
	}
	images, refused := o.imageChanges(from, to)
	if refused != nil {
		return Change{}, refused
	}
	change := Change{
		Labels:      keyChanges(o.pod.Labels, from.Labels(), to.Labels()),
		Annotations: keyChanges(o.pod.Annotations, from.Annotations(), to.Annotations()),
		Tolerations: tolerationsOf(o.pod.Spec.Tolerations, from.tolerations, to.tolerations),
	}
	change.Images, change.Later = o.splitBatch(images)
	if refused := o.addResizes(&change, from, to); refused != nil {
		return Change{}, refused
	}
	return change, nil
}

// ownedKeys are the labels and annotations that the operator itself gives a pod.
// What a template says of them is nothing that changes.
var ownedKeys = sets.New(
	appsv1beta1.ControllerRevisionHashLabel, appsv1beta1.PodNameLabel, appsv1beta1.PodIndexLabel,
	appsv1beta1.PodTemplateHashLabel, appsv1beta1.CloneSetInstanceIDKey,
	appsv1beta1.InPlaceUpdateStateKey, appsv1beta1.RestartCountKey, appsv1beta1.PodRestartCountKey,
	appsv1beta1.LifecycleStateKey, appsv1beta1.LifecycleTimestampKey, appsv1beta1.PendingUpdateKey,
	appsv1beta1.RecreateRequestAnnotation,
)

// keyChanges returns what to set and remove on live, so that what was added,
// changed and removed from one template to the other is so there too. It is nil
// if nothing is to be done.
func keyChanges(live, from, to map[string]string) map[string]*string {
	var changes map[string]*string
	set := func(key string, value *string) {
		if ownedKeys.Has(key) {
			return
		}
		if changes == nil {
			changes = map[string]*string{}
		}
		changes[key] = value
	}
	for key, value := range to {
		before, existed := from[key]
		current, isLive := live[key]
		if (!existed || before != value) && (!isLive || current != value) {
			set(key, &value)
		}
	}
	for key := range from {
		_, wanted := to[key]
		if _, isLive := live[key]; isLive && !wanted {
			set(key, nil)
		}
	}
	return changes
}
