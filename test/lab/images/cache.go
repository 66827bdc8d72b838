// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// cache is a folder with one OCI image layout per key.
type cache struct {
	dir string
}

// key makes a key from everything an image is built from. Parts must encode as
// JSON.
func key(parts ...any) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		return "", fmt.Errorf("compute cache key: %w", err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// get returns the image that was kept under key, or false.
func (c cache) get(key string) (v1.Image, bool) {
	path, err := layout.FromPath(filepath.Join(c.dir, key))
	if err != nil {
		return nil, false
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, false
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		return nil, false
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	return image, err == nil
}

// put keeps an image and returns it as read from the cache. A crash in the
// middle leaves nothing under key.
func (c cache) put(key string, image v1.Image) (v1.Image, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	work, err := os.MkdirTemp(c.dir, ".write-")
	if err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	path, err := layout.Write(filepath.Join(work, "image"), empty.Index)
	if err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	if err := path.AppendImage(image); err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	target := filepath.Join(c.dir, key)
	// What lies there cannot be read, or get would have found it, or it was
	// put there by another process just now and is the same.
	if err := os.RemoveAll(target); err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	if err := os.Rename(filepath.Join(work, "image"), target); err != nil {
		return nil, fmt.Errorf("keep image: %w", err)
	}
	kept, ok := c.get(key)
	if !ok {
		return nil, fmt.Errorf("keep image: cannot read %s back", target)
	}
	return kept, nil
}
