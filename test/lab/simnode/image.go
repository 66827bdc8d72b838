// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"k8s.io/utils/clock"

	"github.com/insitu-dev/insitu/test/lab/images"
)

// resolveAgain is how old an answer of the registry may be.
const resolveAgain = 2 * time.Second

// Image is what a container runtime says of an image: the name it prefers, and
// the image by digest.
type Image struct {
	Name string // docker.io/library/nginx:alpine
	ID   string // docker.io/library/nginx@sha256:...
}

// imageStore is the image store of all simulated nodes. As in containerd, what
// an image is called depends on all the references it was pulled by: the name
// and the repository that sort first win.
type imageStore struct {
	digestOf func(ctx context.Context, named reference.Named) (string, error)
	clock    clock.PassiveClock

	mu       sync.Mutex
	pulled   map[string]*pulledImage // by digest
	resolved map[string]resolvedRef  // by reference as in the spec
}

type pulledImage struct {
	tags, repositories map[string]bool
}

type resolvedRef struct {
	digest string
	err    error
	at     time.Time
}

func newImageStore(opts Options) *imageStore {
	store := &imageStore{
		digestOf: nameDigest(opts.SameDigest),
		clock:    opts.Clock,
		pulled:   map[string]*pulledImage{},
		resolved: map[string]resolvedRef{},
	}
	if opts.Registry != "" {
		store.digestOf = func(ctx context.Context, named reference.Named) (string, error) {
			return images.Digest(ctx, opts.Registry, named.String())
		}
	}
	return store
}

// pull finds out what ref is, so that image can answer.
func (s *imageStore) pull(ctx context.Context, ref string) {
	s.mu.Lock()
	known, ok := s.resolved[ref]
	s.mu.Unlock()
	if ok && s.clock.Since(known.at) < resolveAgain {
		return
	}
	digest, err := s.resolve(ctx, ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved[ref] = resolvedRef{digest: digest, err: err, at: s.clock.Now()}
}

// resolve returns the digest of ref. Errors are in the words of containerd.
func (s *imageStore) resolve(ctx context.Context, ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("failed to parse reference %q: %w", ref, err)
	}
	if !strings.HasPrefix(tagOf(ref), missingTag) {
		digest, err := s.digestOf(ctx, named)
		if err == nil {
			return digest, nil
		}
		if !images.IsNotFound(err) {
			return "", fmt.Errorf("rpc error: code = Unknown desc = failed to pull and unpack image %q: %w", named, err)
		}
	}
	return "", fmt.Errorf("rpc error: code = NotFound desc = failed to pull and unpack image %q: "+
		"failed to resolve reference %q: %s: not found", named, named, named)
}

// image returns what a container that is started from ref now runs. The
// reference must have been pulled.
func (s *imageStore) image(ref string) (Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.resolved[ref]
	if !ok {
		return Image{}, fmt.Errorf("image %q was not pulled", ref)
	}
	if found.err != nil {
		return Image{}, found.err
	}
	known := s.pulled[found.digest]
	if known == nil {
		known = &pulledImage{tags: map[string]bool{}, repositories: map[string]bool{}}
		s.pulled[found.digest] = known
	}
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return Image{}, err
	}
	known.repositories[named.Name()] = true
	if _, byDigest := named.(reference.Digested); !byDigest {
		known.tags[named.String()] = true
	}
	image := Image{ID: slices.Min(slices.Collect(maps.Keys(known.repositories))) + "@" + found.digest}
	image.Name = "sha256:" + hexHash(found.digest) // an image without a tag is called by its ID
	if len(known.tags) > 0 {
		image.Name = slices.Min(slices.Collect(maps.Keys(known.tags)))
	}
	return image, nil
}

// nameDigest makes digests out of names: the same name has the same digest, and
// so have names that the map says are the same.
func nameDigest(same map[string]string) func(context.Context, reference.Named) (string, error) {
	aliases := map[string]string{}
	for from, to := range same {
		aliases[normalName(from)] = normalName(to)
	}
	return func(_ context.Context, named reference.Named) (string, error) {
		if digested, ok := named.(reference.Digested); ok {
			return digested.Digest().String(), nil
		}
		name := named.String()
		if alias, ok := aliases[name]; ok {
			name = alias
		}
		return "sha256:" + hexHash(name), nil
	}
}

// normalName returns docker.io/library/nginx:latest for nginx, and what it
// cannot read as it is.
func normalName(ref string) string {
	if named, err := reference.ParseDockerRef(ref); err == nil {
		return named.String()
	}
	return ref
}

// tagOf returns the tag of a reference, also of one that has a digest as well.
func tagOf(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	if tagged, ok := named.(reference.Tagged); ok {
		return tagged.Tag()
	}
	return ""
}

func hexHash(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}
