// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// imageChanges returns the containers whose image is to be changed, or to be
// spelled otherwise so that they are restarted.
func (o *observed) imageChanges(from, to *Template) ([]ImageChange, *Refusal) {
	var changes []ImageChange
	for _, wanted := range to.Containers() {
		c := newContainerChange(o, wanted, from, to)
		image, refused := c.decide()
		if refused != nil && c.isAsked {
			c.isAsked = false // a request holds up no update
			image, refused = c.decide()
		}
		if refused != nil {
			return nil, refused
		}
		if image != nil {
			image.Requested = c.isAsked
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
	// pendingReads is the field that its environment is read from and that has
	// been changed already, while the container comes later.
	pendingReads string
	// base is the image to spell otherwise for a restart: the present one, or what
	// that stands for.
	base string
	// recorded is the image that the record names as spelled otherwise, alias is true when there is
	// one.
	recorded string
	alias    bool
	// isAsked is true when a restart is asked for whatever changes; request names the
	// ContainerRecreateRequest that asks.
	isAsked bool
	request string
}

func newContainerChange(o *observed, wanted Container, from, to *Template) containerChange {
	c := containerChange{
		live:     o.container(wanted.Name),
		wanted:   wanted,
		before:   from.image(wanted.Name),
		stale:    staleEnv(wanted.Name, from, to),
		evidence: o.evidenceOf(wanted.Name),
	}
	_, c.pending = o.state.NextContainerImages[wanted.Name]
	c.pendingReads = o.state.NextContainerReads[wanted.Name]
	if o.isRequested(wanted.Name) && !o.requestWaits && (!o.request.Ordered || wanted.Image != c.before) {
		c.isAsked, c.request = true, o.requestName()
	}
	c.recorded, c.alias = o.state.EquivalentImages[wanted.Name]
	c.base = c.recorded
	if !c.alias || c.wanted.Image != c.before || !c.pending && !spells(c.live.image, c.base) {
		c.base = c.live.image
	}
	return c
}

// decide returns the change of the container; nil if there is none.
func (c containerChange) decide() (*ImageChange, *Refusal) {
	change := ImageChange{Container: c.wanted.Name, Sidecar: c.wanted.Sidecar, From: c.live.image}
	change.Reads = c.pendingReads
	if c.stale != nil {
		change.Reads, change.Asked = c.stale.field, c.stale.env == ""
	}
	if c.isAsked && change.Reads == "" {
		change.Reads, change.Asked = c.request, true
	}
	// A restart that was to come for an earlier change of its environment is not
	// forgotten, whatever overtakes it.
	restart := c.isAsked || change.Reads != "" || c.pending && c.alias
	differs := c.wanted.Image != c.live.image && (c.wanted.Image != c.before || c.pending && !c.alias)
	switch {
	case differs && !c.wouldKeepEnv():
		change.To = c.wanted.Image
		return &change, nil
	case differs:
		change.StandsFor = c.wanted.Image
	case restart:
		change.Restart, change.StandsFor = true, c.base
	default:
		return nil, nil
	}
	if change.To = c.otherName(change.StandsFor); change.To == "" {
		return nil, c.cannotRestart()
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
	return c.evidence.isOpen() && c.evidence.mayRun().Has(c.wanted.Image) && (c.isAsked || c.stale != nil || c.pendingReads != "" || c.evidence.entry.EnvChanged)
}

// otherName returns a reference for the content of an image that the container
// does not run from; empty if there is none.
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

// imageIDOf returns the image ID of an image, if the container is known to run
// that image; else empty. While an earlier change of its image is under way, what
// the status shows may belong to the image from before: under the name of the new
// one, its digest would bring back the old content for good.
func (c containerChange) imageIDOf(image string) string {
	e := c.evidence
	switch {
	case e == nil:
		return c.live.status.ImageID
	case e.entry.SameContent && c.hadContentOf(image), e.entry.Image == image && e.isOpen():
		return e.entry.ImageID
	case e.isOpen() || e.imageFailed:
		return ""
	default:
		return c.live.status.ImageID
	}
}

// hadContentOf reports whether an image is the one that the container was only restarted with, and
// not one that another client has given it since.
func (c containerChange) hadContentOf(image string) bool {
	if c.recorded != "" {
		return spells(image, c.recorded)
	}
	ran := append(slices.Clone(c.evidence.entry.EarlierImages), c.evidence.entry.Image)
	return slices.ContainsFunc(ran, func(other string) bool { return spells(image, other) || spells(other, image) })
}

// cannotRestart says why the container cannot be restarted in place, or not yet.
func (c containerChange) cannotRestart() *Refusal {
	if c.evidence.isOpen() {
		return &Refusal{
			Reason: ReasonSettling, Until: c.evidence.settlement,
			Message: fmt.Sprintf("container %s is to be restarted, when it is certain what it runs", c.wanted.Name),
		}
	}
	why := fmt.Sprintf("it can be restarted by spelling its image otherwise only, and of %s no other spelling is known", c.base)
	refused := &Refusal{Reason: ReasonEnvFromMetadata, Message: fmt.Sprintf("container %s: %s", c.wanted.Name, why)}
	switch {
	case c.stale == nil:
	case c.stale.env == "":
		refused.Field = c.stale.field
	default:
		refused.Field = c.stale.env
		refused.Message = fmt.Sprintf("%s reads %s, which was changed, and a running container keeps the old value; %s",
			c.stale.env, c.stale.field, why)
	}
	return refused
}
