// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/resize"
)

// LeftBehind says what a pod lacks to be as a template says, since an update in place
// ended in its middle: "image of app: app:b to app:a". It is empty if nothing is missing.
// at is the template of the revision that the pod's label names; nil if that is not known.
//
// Only what we changed counts: what differs between the two templates, what the record of
// the pod leaves for later, and the sizes that we wrote last. So nothing is missing in a pod
// that admission rewrote, whose sizes another client changed, or that a user has put right
// by hand, nor where a newer Kubernetes gives templates another default.
func LeftBehind(pod *corev1.Pod, at, wanted *Template, now time.Time) string {
	o := observedOf(pod, now)
	change := Change{Images: o.beganOnly()}
	if at != nil {
		change.Images = append(change.Images, o.otherImages(at, wanted)...)
		change.Labels = keyChanges(pod.Labels, at.Labels(), wanted.Labels())
		change.Annotations = keyChanges(pod.Annotations, at.Annotations(), wanted.Annotations())
		change.Tolerations = otherTolerations(pod.Spec.Tolerations, at.tolerations, wanted.tolerations)
	}
	change.Resize = o.otherSizes(wanted)
	if change.isEmpty() {
		return ""
	}
	return change.String()
}

// otherImages returns the images that a pod has of one template, and that are others in
// another.
func (o *observed) otherImages(at, wanted *Template) []ImageChange {
	var changes []ImageChange
	for _, c := range wanted.Containers() {
		before, live := at.image(c.Name), o.container(c.Name)
		if live.name != "" && before != "" && before != c.Image && live.image != c.Image {
			changes = append(changes, ImageChange{Container: c.Name, Sidecar: c.Sidecar, From: live.image, To: c.Image})
		}
	}
	return changes
}

// beganOnly returns the images that the pod's label speaks of, and that it was still to be
// given.
func (o *observed) beganOnly() []ImageChange {
	if o.state.Revision != RevisionOf(o.pod) {
		return nil
	}
	return slices.DeleteFunc(o.next(), func(c ImageChange) bool { return c.From == c.To })
}

// otherSizes returns the sizes that we wrote, or were still to write, and that a template
// does not say.
func (o *observed) otherSizes(wanted *Template) resize.Change {
	before := o.template
	o.template = wanted
	defer func() { o.template = before }()
	sizes, refused := o.unfinished(false, true)
	if refused == nil {
		return sizes
	}
	return asChange(wanted.amounts)
}
