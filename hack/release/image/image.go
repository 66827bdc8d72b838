// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package image makes container images that hold one program, for several
// platforms, without a container runtime and without a base image. The digests
// depend on the contents and the description only.
package image

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/insitu-dev/insitu/hack/release/pack"
)

// User is the user and group that the program runs as: nonroot by convention.
const User = "65532:65532"

// Description says what an image is. All of it is in its labels and annotations.
type Description struct {
	// Title is the name of the program, which is the file /<Title>.
	Title, Text string
	// Version without a "v", Revision a commit.
	Version, Revision string
	// Source is the URL of the repository.
	Source string
	// License is an SPDX expression.
	License string
	Created time.Time
}

// Platform is the program of one platform of Linux, with the files beside it.
type Platform struct {
	Architecture string
	Program      []byte
	// Beside are files such as LICENSE.
	Beside []pack.File
}

// annotations are the predefined ones.
// Source: https://github.com/opencontainers/image-spec/blob/main/annotations.md
func (d Description) annotations() map[string]string {
	const prefix = "org.opencontainers.image."

	return map[string]string{
		prefix + "title":       d.Title,
		prefix + "description": d.Text,
		prefix + "version":     d.Version,
		prefix + "revision":    d.Revision,
		prefix + "source":      d.Source,
		prefix + "url":         d.Source,
		prefix + "licenses":    d.License,
		prefix + "created":     d.Created.UTC().Format(time.RFC3339),
	}
}

func (d Description) validate() error {
	for name, value := range d.annotations() {
		if value == "" {
			return fmt.Errorf("describe image: %s is empty", name)
		}
	}
	if d.Created.IsZero() {
		return errors.New("describe image: the time of its creation is unknown")
	}

	return nil
}

// Index returns the images of all platforms under one digest.
func Index(description Description, platforms ...Platform) (v1.ImageIndex, error) {
	if err := description.validate(); err != nil {
		return nil, err
	}
	if len(platforms) == 0 {
		return nil, errors.New("make image: there are no platforms")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		image, err := Single(description, platform)
		if err != nil {
			return nil, fmt.Errorf("make image for linux/%s: %w", platform.Architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1,
			Platform:  &v1.Platform{OS: "linux", Architecture: platform.Architecture},
		}})
	}
	annotated, ok := mutate.Annotations(index, description.annotations()).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("make image: the index takes no annotations")
	}

	return annotated, nil
}

// Single returns the image of one platform.
func Single(description Description, platform Platform) (v1.Image, error) {
	if err := description.validate(); err != nil {
		return nil, err
	}
	if platform.Architecture == "" || len(platform.Program) == 0 {
		return nil, errors.New("want an architecture and a program")
	}
	layer, err := layerOf(description, platform)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: description.Created.UTC()}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: platform.Architecture,
		OS:           "linux",
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/" + description.Title},
			User:       User,
			WorkingDir: "/",
			Labels:     maps.Clone(description.annotations()),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configure: %w", err)
	}
	image, err = mutate.Append(
		mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "hack/release"}})
	if err != nil {
		return nil, fmt.Errorf("add layer: %w", err)
	}
	annotated, ok := mutate.Annotations(image, description.annotations()).(v1.Image)
	if !ok {
		return nil, errors.New("the image takes no annotations")
	}

	return annotated, nil
}

func layerOf(description Description, platform Platform) (v1.Layer, error) {
	files := append([]pack.File{{Name: description.Title, Executable: true, Content: platform.Program}}, platform.Beside...)
	content, err := pack.Tar(files, description.Created)
	if err != nil {
		return nil, err
	}

	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}
