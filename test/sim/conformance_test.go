// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
)

// The real kubelet plays the same stories in test/e2e.
func TestPodStories(t *testing.T) {
	for _, story := range PodStories {
		t.Run(story.Name, func(t *testing.T) {
			behavior, err := story.Behavior(200)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := story.Play(FromSeed(7))
			again, _ := story.Play(FromSeed(7))
			if !slices.Equal(first, again) {
				t.Errorf("one seed shows\n%s\nand then\n%s", tell(first), tell(again))
			}
			if err := behavior.Check(first); err != nil {
				t.Error(err)
			}
			backwards := slices.Clone(first)
			slices.Reverse(backwards)
			if behavior.Check(backwards) == nil {
				t.Error("the story passes when it is told backwards")
			}
		})
	}
}
