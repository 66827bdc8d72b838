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

// TestAnEndThatIsNotSeen: a kubelet that looks late finds the next container running
// already. No other state may be missing.
func TestAnEndThatIsNotSeen(t *testing.T) {
	story := PodStories[slices.IndexFunc(PodStories, func(s PodStory) bool { return s.Name == "an image crashes" })]
	behavior, err := story.Behavior(200)
	if err != nil {
		t.Fatal(err)
	}
	unseen := 0
	for seed := range uint64(20) {
		seen, err := story.Play(FromSeed(seed))
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i+1 < len(seen); i++ {
			missing := slices.Delete(slices.Clone(seen), i, i+1)
			before, after := seen[i-1].container("app"), seen[i+1].container("app")
			if seen[i].container("app").State != StateEnded || before.ID == after.ID || after.State != StateRunning {
				continue
			}
			unseen++
			if err := behavior.Check(missing); err != nil {
				t.Error(err)
			}
		}
		if behavior.Check(slices.Delete(slices.Clone(seen), 1, len(seen)-1)) == nil {
			t.Errorf("the story passes without its middle:\n%s", tell(seen))
		}
	}
	if unseen == 0 {
		t.Error("no container was started again at once")
	}
}
