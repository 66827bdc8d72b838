// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MaxSlots is the number of labs with real nodes that fit on a machine: as
// many as the address ranges of package cluster can hold.
const MaxSlots = 32

// ErrNoSlot is returned by Slots.Find if the lab has no slot.
var ErrNoSlot = errors.New("no slot")

// ownerFile names, inside a slot's folder, the folder of the lab that has it.
const ownerFile = "owner"

// madeFile names, beside the slots, the folders that MakeFolders made.
const madeFile = "made"

// Slots is the folder in which the slots of a machine are kept.
type Slots string

// DefaultSlots is where every lab of a machine looks. It is short because
// paths of Unix sockets, which lie below it, are limited to 108 bytes.
const DefaultSlots Slots = "/run/insitu-lab"

// Folder returns the folder of a slot, for sockets and the like.
func (s Slots) Folder(slot int) string {
	return filepath.Join(string(s), strconv.Itoa(slot))
}

// Find returns the slot of the lab in dir, an absolute path, or ErrNoSlot.
func (s Slots) Find(dir string) (int, error) {
	for slot := range MaxSlots {
		owner, err := s.owner(slot)
		if err != nil {
			return 0, err
		}
		if owner == dir {
			return slot, nil
		}
	}
	return 0, ErrNoSlot
}

// Claim returns the slot of the lab in dir. If it has none, the lowest free
// slot becomes its slot.
func (s Slots) Claim(dir string) (int, error) {
	unlock, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	slot, err := s.Find(dir)
	if !errors.Is(err, ErrNoSlot) {
		return slot, err
	}
	var owners []string
	for slot := range MaxSlots {
		owner, err := s.owner(slot)
		if err != nil {
			return 0, err
		}
		if owner == "" {
			return slot, s.take(slot, dir)
		}
		owners = append(owners, owner)
	}
	return 0, fmt.Errorf("all %d slots are taken, by %s: take one of these labs down", MaxSlots, strings.Join(owners, ", "))
}

// ClaimExactly makes the given slot the slot of the lab in dir, or returns an
// error that names its owner.
func (s Slots) ClaimExactly(slot int, dir string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	owner, err := s.owner(slot)
	if err != nil {
		return err
	}
	if owner != "" && owner != dir {
		return fmt.Errorf("slot %d, which the lab in %s had, is now used by the lab in %s: take one of them down", slot, dir, owner)
	}
	return s.take(slot, dir)
}

// MakeFolders makes folders that labs mount something over. Those that were
// missing are removed with the last lab of the machine, and not before:
// removing a folder takes away what is mounted over it in any namespace.
func (s Slots) MakeFolders(paths ...string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			continue
		}
		// Recorded first: better a record too many than a folder.
		if err := s.record(path); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o755); err != nil {
			return fmt.Errorf("make folder to mount over: %w", err)
		}
	}
	return nil
}

func (s Slots) record(path string) error {
	file, err := os.OpenFile(filepath.Join(string(s), madeFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("record folder to remove later: %w", err)
	}
	_, err = fmt.Fprintln(file, path)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("record folder to remove later: %w", err)
	}
	return nil
}

// Release gives the slot back and removes its folder, and with the last one
// all that is left.
func (s Slots) Release(slot int) error {
	unlock, err := Lock(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(s.Folder(slot)); err != nil {
		return fmt.Errorf("release slot %d: %w", slot, err)
	}
	for other := range MaxSlots {
		if owner, err := s.owner(other); err != nil || owner != "" {
			return err
		}
	}
	made, err := os.ReadFile(filepath.Join(string(s), madeFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove folders made for labs: %w", err)
	}
	for path := range strings.Lines(string(made)) {
		// Fails, as it should, if another process put something into it.
		_ = os.Remove(strings.TrimSpace(path))
	}
	if err := os.RemoveAll(string(s)); err != nil {
		return fmt.Errorf("remove folder of slots: %w", err)
	}
	return nil
}

// lock takes the lock of all slots, making their folder.
func (s Slots) lock() (unlock func(), err error) {
	for {
		if err := os.MkdirAll(string(s), 0o755); err != nil {
			return nil, fmt.Errorf("make folder of slots: %w", err)
		}
		unlock, err := Lock(string(s))
		if !errors.Is(err, fs.ErrNotExist) {
			return unlock, err
		}
		// The last lab went meanwhile, and the folder with it.
	}
}

func (s Slots) take(slot int, dir string) error {
	if err := os.MkdirAll(s.Folder(slot), 0o755); err != nil {
		return fmt.Errorf("take slot %d: %w", slot, err)
	}
	if err := os.WriteFile(filepath.Join(s.Folder(slot), ownerFile), []byte(dir+"\n"), 0o644); err != nil {
		return fmt.Errorf("take slot %d: %w", slot, err)
	}
	return nil
}

// owner returns the folder of the lab that has the slot, "" if it is free.
func (s Slots) owner(slot int) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.Folder(slot), ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read owner of slot %d: %w", slot, err)
	}
	return strings.TrimSpace(string(data)), nil
}
