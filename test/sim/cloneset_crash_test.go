// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

// cloneRollouts are the reference rollouts of CloneSets. What their pods are named
// is left out of what is compared.
var cloneRollouts = []rollout{
	{"clones, in place", 9, asClones(nil), to("b")},
	{"clones, by recreation with one beyond replicas", 9, asClones(surging), to("env")},
	{"clones, scale-down, each pod held by a hook", 6, asClones(func(s *settings) {
		hookedBy(hooks{preDelete: true, marksDelete: true})(s)
		s.claims = true
	}), scaleTo(1)},
}
