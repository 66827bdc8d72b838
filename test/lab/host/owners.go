// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
)

// Owners returns the folders of the labs that have a slot, by the number of the slot.
func (s Slots) Owners() ([]string, error) {
	var owners []string
	for slot := range MaxSlots {
		owner, err := s.owner(slot)
		if err != nil {
			return nil, err
		}
		if owner != "" {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// Hold returns the slot of the lab in dir, or ErrNoSlot. It waits for others that hold
// the slot, and holds it until unlock is called. A caller that destroys what is named
// after a slot holds it: otherwise another one could release it meanwhile, and a new lab
// claim it.
func (s Slots) Hold(dir string) (slot int, unlock func(), err error) {
	for {
		slot, err := s.Find(dir)
		if err != nil {
			return 0, nil, err
		}
		unlock, err := Lock(s.Folder(slot))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was released meanwhile.
		}
		if err != nil {
			return 0, nil, err
		}
		if owner, err := s.owner(slot); err == nil && owner == dir {
			return slot, unlock, nil
		}
		unlock()
	}
}
