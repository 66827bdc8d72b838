// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func newSlots(t *testing.T) Slots {
	t.Helper()
	return Slots(filepath.Join(t.TempDir(), "slots"))
}

func TestClaimGivesTheLowestFreeSlot(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	g.Expect(slots.Claim("/a")).To(Equal(0))
	g.Expect(slots.Claim("/b")).To(Equal(1))
	g.Expect(slots.Claim("/a")).To(Equal(0), "its own again")
	g.Expect(slots.Release(0)).To(Succeed())
	g.Expect(slots.Claim("/c")).To(Equal(0))
	g.Expect(slots.Find("/b")).To(Equal(1))
	_, err := slots.Find("/a")
	g.Expect(err).To(MatchError(ErrNoSlot))
}

func TestClaimNamesTheOwnersWhenAllSlotsAreTaken(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	for slot := range MaxSlots {
		g.Expect(slots.ClaimExactly(slot, "/lab"+string(rune('A'+slot)))).To(Succeed())
	}
	_, err := slots.Claim("/new")
	g.Expect(err).To(MatchError(And(ContainSubstring("all 32 slots"), ContainSubstring("/labB"))))
}

func TestClaimExactlyRefusesTheSlotOfAnother(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	g.Expect(slots.ClaimExactly(3, "/a")).To(Succeed())
	g.Expect(slots.ClaimExactly(3, "/a")).To(Succeed(), "its own again")
	g.Expect(slots.ClaimExactly(3, "/b")).To(MatchError(ContainSubstring("used by the lab in /a")))
}

func TestFoldersGoWithTheLastLab(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	folder := t.TempDir()
	there, missing, used := filepath.Join(folder, "there"), filepath.Join(folder, "missing"), filepath.Join(folder, "used")
	g.Expect(os.Mkdir(there, 0o755)).To(Succeed())
	for _, lab := range []string{"/a", "/b"} {
		_, err := slots.Claim(lab)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slots.MakeFolders(there, missing, used)).To(Succeed())
	}
	g.Expect(os.WriteFile(filepath.Join(used, "file"), nil, 0o644)).To(Succeed())

	g.Expect(slots.Release(0)).To(Succeed())
	g.Expect(missing).To(BeADirectory(), "another lab is there")
	g.Expect(slots.Release(1)).To(Succeed())
	g.Expect(missing).NotTo(BeADirectory())
	g.Expect(there).To(BeADirectory(), "it was there before")
	g.Expect(used).To(BeADirectory(), "it is not empty")
	g.Expect(string(slots)).NotTo(BeADirectory())
	g.Expect(slots.Release(1)).To(Succeed(), "a second time")
}

func TestLockOfAFolderThatIsRemovedAndMadeAgain(t *testing.T) {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "folder")
	g.Expect(os.Mkdir(folder, 0o755)).To(Succeed())
	unlock, err := Lock(folder)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = TryLock(folder)
	g.Expect(err).To(MatchError(ErrLocked))

	second := make(chan error)
	go func() {
		_, err := Lock(folder)
		second <- err
	}()
	g.Consistently(second, 100*time.Millisecond).ShouldNot(Receive())
	g.Expect(os.Remove(folder)).To(Succeed())
	g.Expect(os.Mkdir(folder, 0o755)).To(Succeed())
	unlock()
	g.Eventually(second).Should(Receive(BeNil()))
	_, err = TryLock(folder)
	g.Expect(err).To(MatchError(ErrLocked), "the second has the lock of the new folder")
}

func TestOwners(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	g.Expect(slots.Owners()).To(BeEmpty(), "there is not even a folder")
	g.Expect(slots.ClaimExactly(7, "/b")).To(Succeed())
	g.Expect(slots.ClaimExactly(2, "/a")).To(Succeed())
	// What an "up" leaves that was killed before it wrote the owner.
	g.Expect(os.Mkdir(slots.Folder(5), 0o755)).To(Succeed())
	g.Expect(slots.Owners()).To(Equal([]string{"/a", "/b"}))
}

// Two that take down one lab must not both release its slot: between them, a new lab may
// have claimed it.
func TestASlotIsHeldByOneAtATime(t *testing.T) {
	g := NewWithT(t)
	slots := newSlots(t)
	_, _, err := slots.Hold("/a")
	g.Expect(err).To(MatchError(ErrNoSlot))
	g.Expect(slots.Claim("/a")).To(Equal(0))
	slot, unlock, err := slots.Hold("/a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slot).To(Equal(0))

	second := make(chan error)
	go func() {
		_, _, err := slots.Hold("/a")
		second <- err
	}()
	g.Consistently(second, 100*time.Millisecond).ShouldNot(Receive())
	g.Expect(slots.Release(0)).To(Succeed())
	g.Expect(slots.Claim("/b")).To(Equal(0))
	unlock()
	g.Eventually(second).Should(Receive(MatchError(ErrNoSlot)), "the slot is another lab's by now")
}
