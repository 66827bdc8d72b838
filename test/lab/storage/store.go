// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/insitu-dev/insitu/test/lab/host"
)

const (
	imageFile  = "disk.img"
	recordFile = "record.json"
)

// Volume is what is recorded of a volume, in the file record.json beside its
// image.
type Volume struct {
	ID            string `json:"id"`
	CapacityBytes int64  `json:"capacityBytes"`
	// Namespace and Claim are of the claim that it was made for, if that was
	// told.
	Namespace string `json:"namespace,omitempty"`
	Claim     string `json:"claim,omitempty"`
	// Parameters are those of its StorageClass.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Attributes are those of its VolumeAttributesClass, such as iops.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Source is what it is a copy of, nil for nothing.
	Source *Source `json:"source,omitempty"`
	// Grown and Modified are when it was last given another size, and other
	// attributes.
	Grown    *time.Time `json:"grown,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	// Staged is where it is, or was when its node died.
	Staged *Staging `json:"staged,omitempty"`
}

// Source is a snapshot or a volume. One of the fields is set.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// Staging is a mount of a volume.
type Staging struct {
	Node string `json:"node"`
	Path string `json:"path"`
}

// Snapshot is what is recorded of a snapshot.
type Snapshot struct {
	ID            string    `json:"id"`
	Volume        string    `json:"volume"`
	CapacityBytes int64     `json:"capacityBytes"`
	Created       time.Time `json:"created"`
	Ready         bool      `json:"ready"`
}

// Store keeps volumes and snapshots in a folder, each in a folder of its own.
// Processes may share it.
type Store struct {
	// Dir is an absolute path without symbolic links.
	Dir string
}

func (s Store) volumes() shelf[Volume] { return shelf[Volume]{dir: filepath.Join(s.Dir, "volumes")} }

func (s Store) snapshots() shelf[Snapshot] {
	return shelf[Snapshot]{dir: filepath.Join(s.Dir, "snapshots")}
}

// shelf keeps one kind of things.
type shelf[T any] struct{ dir string }

func (s shelf[T]) folder(id string) string { return filepath.Join(s.dir, id) }

func (s shelf[T]) image(id string) string { return filepath.Join(s.dir, id, imageFile) }

func (s shelf[T]) record(id string) string { return filepath.Join(s.dir, id, recordFile) }

func (s shelf[T]) notFound(id string) error {
	return status.Errorf(codes.NotFound, "there is no %q in %s", id, s.dir)
}

// goodID is of names that are fit to be those of folders. The sidecars choose
// no others.
var goodID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$`)

// read returns the record, or an error with the code NotFound. A folder without
// a record is of something whose making was cut short.
func (s shelf[T]) read(id string) (*T, error) {
	if !goodID.MatchString(id) {
		return nil, s.notFound(id)
	}
	data, err := os.ReadFile(s.record(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.notFound(id)
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	record := new(T)
	if err := json.Unmarshal(data, record); err != nil {
		return nil, fmt.Errorf("read record %s: %w", s.record(id), err)
	}
	return record, nil
}

// write replaces the record in one step.
func (s shelf[T]) write(id string, record *T) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	temporary := s.record(id) + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.Rename(temporary, s.record(id)); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// make makes the folder, unless it is there, and locks it.
func (s shelf[T]) make(id string) (unlock func(), err error) {
	if !goodID.MatchString(id) {
		return nil, status.Errorf(codes.InvalidArgument, "name %q: up to 200 letters, digits, dots, hyphens and underscores are accepted", id)
	}
	if err := os.MkdirAll(s.folder(id), 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	return host.Lock(s.folder(id))
}

// open locks the folder and returns the record, or an error with the code
// NotFound.
func (s shelf[T]) open(id string) (record *T, unlock func(), err error) {
	if _, err := s.read(id); err != nil {
		return nil, nil, err
	}
	unlock, err = host.Lock(s.folder(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, s.notFound(id)
	}
	if err != nil {
		return nil, nil, err
	}
	// It may have changed, or gone, before it was locked.
	record, err = s.read(id)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return record, unlock, nil
}

// remove removes what is locked. The record goes first.
func (s shelf[T]) remove(id string) error {
	if err := errors.Join(os.Remove(s.record(id)), os.RemoveAll(s.folder(id))); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// list returns all records, ordered by their IDs.
func (s shelf[T]) list() ([]*T, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list: %w", err)
	}
	var all []*T
	for _, entry := range entries {
		record, err := s.read(entry.Name())
		if status.Code(err) == codes.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, nil
}
