// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Named is an image and the references it is served under. All of them have
// the same digest.
type Named struct {
	Refs  []string
	Image v1.Image
}

// Load pushes an image to the registry at registryURL, for example
// "http://127.0.0.1:5000". What the registry has already is not sent again.
func Load(ctx context.Context, registryURL, ref string, image v1.Image) error {
	tag, err := address(registryURL, ref)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("push image %s to %s: %w", ref, registryURL, err)
	}
	return nil
}

// FromArchive returns the image in an archive, as docker save makes one.
func FromArchive(file string) (v1.Image, error) {
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return nil, fmt.Errorf("read image archive %s: %w", file, err)
	}
	return image, nil
}

// LoadLayout pushes what an OCI image layout holds, which is one image or one index of
// images for several platforms, and returns its digest. The digest stays what it is.
func LoadLayout(ctx context.Context, registryURL, ref, dir string) (string, error) {
	tag, err := address(registryURL, ref)
	if err != nil {
		return "", err
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", fmt.Errorf("read image layout %s: %w", dir, err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("read image layout %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("read image layout %s: found %d images, want one", dir, len(manifest.Manifests))
	}
	digest := manifest.Manifests[0].Digest
	err = push(ctx, tag, manifest.Manifests[0].MediaType,
		func() (v1.ImageIndex, error) { return outer.ImageIndex(digest) }, func() (v1.Image, error) { return outer.Image(digest) })
	if err != nil {
		return "", fmt.Errorf("push image %s to %s: %w", ref, registryURL, err)
	}
	return digest.String(), nil
}

// push pushes an index of images, or an image, by which of them something is.
func push(ctx context.Context, to name.Tag, media types.MediaType, index func() (v1.ImageIndex, error), image func() (v1.Image, error)) error {
	if media.IsIndex() {
		content, err := index()
		if err != nil {
			return err
		}
		return remote.WriteIndex(to, content, remote.WithContext(ctx))
	}
	content, err := image()
	if err != nil {
		return err
	}
	return remote.Write(to, content, remote.WithContext(ctx))
}

// LoadAll pushes every image of a set under all its references.
func LoadAll(ctx context.Context, registryURL string, set []Named) error {
	for _, named := range set {
		for _, ref := range named.Refs {
			if err := Load(ctx, registryURL, ref, named.Image); err != nil {
				return err
			}
		}
	}
	return nil
}

// Alias gives an image that the registry has a second name.
func Alias(ctx context.Context, registryURL, ref, other string) error {
	from, err := address(registryURL, ref)
	if err != nil {
		return err
	}
	to, err := address(registryURL, other)
	if err != nil {
		return err
	}
	found, err := remote.Get(from, remote.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("read image %s of %s: %w", ref, registryURL, err)
	}
	err = push(ctx, to, found.MediaType, found.ImageIndex, found.Image)
	if err != nil {
		return fmt.Errorf("push image %s as %s: %w", ref, other, err)
	}
	return nil
}

// Digest returns the digest ("sha256:...") that the registry serves ref with.
// Unlike in Load, ref may be by digest; then that image must be there.
func Digest(ctx context.Context, registryURL, ref string) (string, error) {
	found, err := lookUp(ctx, registryURL, ref)
	if err != nil {
		return "", fmt.Errorf("find image %s in %s: %w", ref, registryURL, err)
	}
	return found, nil
}

func lookUp(ctx context.Context, registryURL, ref string) (string, error) {
	registry, err := registryAt(registryURL)
	if err != nil {
		return "", err
	}
	repository, target, err := canonicalReference(ref)
	if err != nil {
		return "", err
	}
	var served name.Reference = registry.Repo(repository).Tag(target)
	if strings.HasPrefix(target, "sha256:") {
		served = registry.Repo(repository).Digest(target)
	}
	found, err := remote.Head(served, remote.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return found.Digest.String(), nil
}

// IsNotFound tells whether an error of Digest means that the registry answered,
// and has no such image.
func IsNotFound(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// address says where ref is found in the registry at registryURL.
func address(registryURL, ref string) (name.Tag, error) {
	repository, tag, err := canonical(ref)
	if err != nil {
		return name.Tag{}, err
	}
	registry, err := registryAt(registryURL)
	if err != nil {
		return name.Tag{}, err
	}
	return registry.Repo(repository).Tag(tag), nil
}

func registryAt(registryURL string) (name.Registry, error) {
	server, err := url.Parse(registryURL)
	if err != nil || server.Host == "" {
		return name.Registry{}, fmt.Errorf("read registry %q: want a URL such as http://127.0.0.1:5000", registryURL)
	}
	var opts []name.Option
	if server.Scheme == "http" {
		opts = append(opts, name.Insecure)
	}
	registry, err := name.NewRegistry(server.Host, opts...)
	if err != nil {
		return name.Registry{}, fmt.Errorf("read registry %q: %w", registryURL, err)
	}
	return registry, nil
}
