// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Archive writes an image to a file, under a tag, as docker save does.
func Archive(file, tag string, image v1.Image) error {
	target, err := readTag(tag)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	if err := tarball.WriteToFile(file, target, image); err != nil {
		return fmt.Errorf("write image archive %s: %w", file, err)
	}

	return nil
}

// PushSingle uploads the image of one platform under a tag, which is moved if the registry has it.
func PushSingle(ctx context.Context, image v1.Image, tag string, options ...remote.Option) (v1.Hash, error) {
	target, err := readTag(tag)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.Write(target, image, append(options, remote.WithContext(ctx))...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", tag, err)
	}

	return image.Digest()
}
