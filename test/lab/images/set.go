// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// SetOptions says how BuildSet works.
type SetOptions struct {
	// CacheDir keeps images between runs. It may be shared by several labs.
	CacheDir string
	// Progress is told in words what is being built. It is not called for
	// images that are in the cache. Nil is allowed.
	Progress func(message string)
}

// BuildSet returns the images that every lab serves; the package comment lists
// them. The first call takes some seconds and needs the Debian archive and a
// Go toolchain, later calls read the cache. To get newer Debian packages,
// remove the cache.
func BuildSet(ctx context.Context, opts SetOptions) ([]Named, error) {
	if opts.CacheDir == "" {
		return nil, errors.New("build the lab's images: CacheDir is empty")
	}
	var set []Named
	for _, recipe := range recipes(opts.CacheDir) {
		named, err := recipe.named(ctx, opts)
		if err != nil {
			return nil, err
		}
		set = append(set, named)
	}
	return set, nil
}

// BuildExtra returns an image that a lab serves only when it is asked to, since
// it takes long to make: one of ExtraRefs. It is kept like those of BuildSet.
func BuildExtra(ctx context.Context, opts SetOptions, ref string) (Named, error) {
	if opts.CacheDir == "" {
		return Named{}, errors.New("build an image of the lab: CacheDir is empty")
	}
	repository, tag, err := canonical(ref)
	if err != nil {
		return Named{}, err
	}
	for _, recipe := range extraRecipes(opts.CacheDir) {
		if slices.Contains(recipe.refs, repository+":"+tag) {
			return recipe.named(ctx, opts)
		}
	}
	return Named{}, fmt.Errorf("build image %s: the lab knows no such image, only %s", ref, strings.Join(ExtraRefs(), ", "))
}

// ExtraRefs returns what BuildExtra can build.
func ExtraRefs() []string {
	var refs []string
	for _, recipe := range extraRecipes("") {
		refs = append(refs, recipe.refs...)
	}
	return refs
}

// recipe is how one image that the lab knows is made.
type recipe struct {
	refs []string
	// inputs are everything the image depends on, for the cache key.
	inputs []any
	build  func(ctx context.Context) (v1.Image, error)
}

func recipes(cacheDir string) []recipe {
	return []recipe{
		goRecipe(cacheDir, pauseSource, "pause", "", PauseRef),
		goRecipe(cacheDir, sleeperSource, "sleeper", "v1", "insitu-dev/sleeper:v1"),
		goRecipe(cacheDir, sleeperSource, "sleeper", "v2", "insitu-dev/sleeper:v2", "insitu-dev/sleeper:same-as-v2"),
		goRecipe(cacheDir, sleeperSource, "sleeper", "v3", "insitu-dev/sleeper:v3"),
		goRecipe(cacheDir, sleeperSource, "sleeper", "crash", "insitu-dev/sleeper:crash"),
		debRecipe(nginx("alpine", cacheDir), "library/nginx:alpine", "library/nginx:1.28.0-alpine"),
		debRecipe(nginx("latest", cacheDir), "library/nginx:latest", "library/nginx:stable", "library/nginx:1.29.0-alpine"),
	}
}

// extraRecipes are two images of each database server, which differ in nothing
// but their digest: for an update from one to the other.
func extraRecipes(cacheDir string) []recipe {
	return []recipe{
		debRecipe(redis("alpine", cacheDir), "library/redis:alpine"),
		debRecipe(redis("latest", cacheDir), "library/redis:latest"),
		debRecipe(postgres("alpine", cacheDir), "library/postgres:alpine", "library/postgres:17.5-bookworm"),
		debRecipe(postgres("latest", cacheDir), "library/postgres:latest", "library/postgres:17.6-bookworm"),
	}
}

// named returns the image from the cache, or makes it.
func (r recipe) named(ctx context.Context, opts SetOptions) (Named, error) {
	image, err := r.image(ctx, cache{dir: filepath.Join(opts.CacheDir, "images")}, opts.Progress)
	if err != nil {
		return Named{}, fmt.Errorf("build image %s: %w", r.refs[0], err)
	}
	return Named{Refs: r.refs, Image: image}, nil
}

func (r recipe) image(ctx context.Context, kept cache, progress func(string)) (v1.Image, error) {
	name, err := key(runtime.Version(), runtime.GOARCH, format, r.inputs)
	if err != nil {
		return nil, err
	}
	if image, ok := kept.get(name); ok {
		return image, nil
	}
	if progress != nil {
		progress("Building image " + r.refs[0])
	}
	image, err := r.build(ctx)
	if err != nil {
		return nil, err
	}
	return kept.put(name, image)
}

func debRecipe(opts DebOptions, refs ...string) recipe {
	inputs := opts
	inputs.CacheDir = "" // where things are kept does not change them
	return recipe{
		refs:   refs,
		inputs: []any{inputs},
		build:  func(ctx context.Context) (v1.Image, error) { return FromDeb(ctx, opts) },
	}
}
