// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// imageChanges returns the containers whose image is to be changed, or to be
// spelled otherwise so that they are restarted.
func imageChanges(pod *corev1.Pod, from, to *Template, now time.Time) ([]ImageChange, *Refusal) {
	before := pastOf(pod, now)
	var changes []ImageChange
	for _, wanted := range to.Containers() {
		c := newContainerChange(pod, before, wanted, from, to)
		image, refused := c.decide()
		if refused != nil {
			return nil, refused
		}
		if image != nil {
			changes = append(changes, *image)
		}
	}
	return changes, nil
}

// containerChange is what decides about one container.
type containerChange struct {
	live   liveContainer
	wanted Container
	// before is its image in the template that the pod was made from.
	before string
	// stale is the first variable of its environment that is read from what
	// changes; nil if there is none.
	stale *fieldRef
	// evidence is that of its earlier change; nil if there was none.
	evidence *evidence
	// pending is true when the pod's own revision would change it later.
	pending bool
	// base is the image to spell otherwise for a restart: the present one, or what
	// that stands for.
	base string
	// alias is true when the image that the record names is spelled otherwise.
	alias bool
}

func newContainerChange(pod *corev1.Pod, before past, wanted Container, from, to *Template) containerChange {
	c := containerChange{
		live:     findContainer(pod, wanted.Name),
		wanted:   wanted,
		before:   from.image(wanted.Name),
		stale:    staleEnv(wanted.Name, from, to),
		evidence: before.evidence[wanted.Name],
	}
	_, c.pending = before.state.NextContainerImages[wanted.Name]
	if c.base, c.alias = before.state.EquivalentImages[wanted.Name]; !c.alias || c.wanted.Image != c.before {
		c.base = c.live.image
	}
	return c
}

// decide returns the change of the container; nil if there is none.
func (c containerChange) decide() (*ImageChange, *Refusal) {
	change := ImageChange{Container: c.wanted.Name, Sidecar: c.wanted.Sidecar, From: c.live.image}
	if c.stale != nil {
		change.Reads = c.stale.field
	}
	// A restart that was to come for an earlier change of its environment is not
	// forgotten, whatever overtakes it.
	restart := c.stale != nil || c.pending && c.alias
	differs := c.wanted.Image != c.live.image && (c.wanted.Image != c.before || c.pending && !c.alias)
	switch {
	case differs && !c.wouldKeepEnv():
		change.To = c.wanted.Image
		return &change, nil
	case differs:
		change.To, change.StandsFor = c.otherName(c.wanted.Image), c.wanted.Image
	case restart:
		change.Restart = true
		change.To, change.StandsFor = c.otherName(c.base), c.base
	default:
		return nil, nil
	}
	if change.To == "" {
		return nil, c.refuse()
	}
	if change.StandsFor == change.To {
		change.StandsFor = ""
	}
	return &change, nil
}

// wouldKeepEnv reports whether a container may run from the very reference that
// is wanted, with an environment that is out of date: given that reference, the
// kubelet would leave it alone.
func (c containerChange) wouldKeepEnv() bool {
	return c.evidence.isOpen() && c.evidence.mayRun().Has(c.wanted.Image) && (c.stale != nil || c.evidence.entry.EnvChanged)
}

// otherName returns a reference for the content of image that the container does
// not run from; empty if there is none.
func (c containerChange) otherName(image string) string {
	avoid := sets.New(c.live.image)
	if c.evidence != nil {
		avoid = c.evidence.mayRun()
	}
	names := append([]string{image}, equivalentImages(image, c.imageIDOf(image), c.live.pullPolicy)...)
	if i := slices.IndexFunc(names, func(name string) bool { return !avoid.Has(name) }); i >= 0 {
		return names[i]
	}
	return ""
}

// imageIDOf returns the ID that image is known to have in the node; empty if that
// cannot be told: between a change and its restart, the status shows the ID of
// what ran before.
func (c containerChange) imageIDOf(image string) string {
	runsPresent := c.evidence == nil || c.evidence.proved() && !c.evidence.imageFailed
	switch {
	case runsPresent && image == c.base:
		return c.live.status.ImageID
	case c.evidence != nil && c.evidence.entry.Image == image:
		return c.evidence.entry.ImageID
	default:
		return ""
	}
}

// refuse says that the container cannot be restarted in place.
func (c containerChange) refuse() *Refusal {
	const why = "it can be restarted by spelling its image otherwise only, and of %s no other spelling is known: " +
		"that takes a digest of its repository in the container's status, or with imagePullPolicy Always an image of Docker Hub"
	refused := &Refusal{Reason: ReasonEnvFromMetadata, Message: fmt.Sprintf("container %s: "+why, c.wanted.Name, c.base)}
	if c.stale != nil {
		refused.Field = c.stale.env
		refused.Message = fmt.Sprintf("%s reads %s, which was changed, and a running container keeps the old value; "+why,
			c.stale.env, c.stale.field, c.base)
	}
	return refused
}
