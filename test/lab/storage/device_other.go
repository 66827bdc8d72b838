// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package storage

import (
	"context"
	"errors"
	"os"

	"k8s.io/mount-utils"
)

// errNotLinux is returned by everything that a Node needs.
var errNotLinux = errors.New("volumes need Linux")

func newMounter() mount.Interface { return mount.New("") }

func attach(string) (*os.File, error) { return nil, errNotLinux }

func growFileSystem(context.Context, string) error { return errNotLinux }

func freeze(string) error { return errNotLinux }

func thaw(string) error { return errNotLinux }

func thawUnmounted(string) error { return errNotLinux }

func usage(string) (bytes, files measure, err error) { return bytes, files, errNotLinux }
