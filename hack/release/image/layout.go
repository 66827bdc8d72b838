// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Write makes a folder an OCI image layout that holds the index under a tag, and
// nothing else. What was in the folder is removed.
func Write(dir, tag string, index v1.ImageIndex) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
	if err := target.AppendIndex(index, named); err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}

	return nil
}

// Read returns the index that Write wrote.
func Read(dir string) (v1.ImageIndex, error) {
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read image layout %s: %w", dir, err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read image layout %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("read image layout %s: want one image of several platforms", dir)
	}

	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

// Push uploads an index under a tag, such as insitu-dev/insitu:1.2.3. A tag that
// the registry has already for something else is not moved.
func Push(ctx context.Context, index v1.ImageIndex, tag string, options ...remote.Option) (v1.Hash, error) {
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("compute digest: %w", err)
	}
	target, err := readTag(tag)
	if err != nil {
		return v1.Hash{}, err
	}
	options = append(options, remote.WithContext(ctx))
	found, err := remote.Head(target, options...)
	switch {
	case err == nil && found.Digest != digest:
		return v1.Hash{}, fmt.Errorf("push %s: the registry has %s under this tag, and this is %s: a release is never replaced", tag, found.Digest, digest)
	case err == nil:
		return digest, nil
	case !isNotFound(err):
		return v1.Hash{}, fmt.Errorf("look for %s: %w", tag, err)
	}
	if err := remote.WriteIndex(target, index, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", tag, err)
	}

	return digest, nil
}

// readTag reads a name as container runtimes do: one without a registry, as the chart has
// it, is of docker.io. What they fill in beside that, the tag latest, no release has.
func readTag(tag string) (name.Tag, error) {
	target, err := name.NewTag(tag)
	if err != nil {
		return name.Tag{}, fmt.Errorf("read %q: %w", tag, err)
	}
	if target.TagStr() == "" || !strings.HasSuffix(tag, ":"+target.TagStr()) {
		return name.Tag{}, fmt.Errorf("read %q: it has no tag, accepted is NAME:TAG", tag)
	}

	return target, nil
}

func isNotFound(err error) bool {
	var answer *transport.Error

	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
