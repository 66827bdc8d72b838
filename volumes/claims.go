// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"
	"strings"
	"time"
)

// Claims are the steps of the claims of one pod. The zero Claims asks nothing of
// it.
type Claims []Step

// In returns the steps that are in a state.
func (c Claims) In(state State) Claims {
	var found Claims
	for _, step := range c {
		if step.State == state {
			found = append(found, step)
		}
	}
	return found
}

// Has reports whether a step is in a state.
func (c Claims) Has(state State) bool {
	return slices.ContainsFunc(c, func(step Step) bool { return step.State == state })
}

// AwaitedByPod returns the steps that come before the pod: what is to be changed and
// what is under way, without what was refused before and what others have asked for.
func (c Claims) AwaitedByPod() Claims {
	return slices.DeleteFunc(slices.Concat(c.In(Changing), c.In(UnderWay)), func(step Step) bool { return step.Refused != "" || step.Foreign })
}

// IsChanging reports whether the volume of a claim is being changed.
func (c Claims) IsChanging() bool {
	return slices.ContainsFunc(c, func(step Step) bool { return step.State == UnderWay && !step.Foreign || step.InFlight })
}

// KeepPod reports whether the pod must not be deleted now, see [Step.KeepsPod].
func (c Claims) KeepPod() bool {
	return slices.ContainsFunc(c, func(step Step) bool { return step.KeepsPod })
}

// Message joins the messages of the steps.
func (c Claims) Message() string {
	messages := make([]string, 0, len(c))
	for _, step := range c {
		messages = append(messages, step.Message)
	}
	return strings.Join(messages, "; ")
}

// Since returns the earliest moment since which a step is where it is; zero if none
// tells.
func (c Claims) Since() time.Time {
	return earliest(c, func(step Step) time.Time { return step.Since })
}

// Until returns the earliest moment at which time alone changes a step; zero if it
// changes none.
func (c Claims) Until() time.Time {
	return earliest(c, func(step Step) time.Time { return step.Until })
}

func earliest(c Claims, of func(Step) time.Time) time.Time {
	first := time.Time{}
	for _, step := range c {
		if at := of(step); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
