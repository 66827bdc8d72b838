// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

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
	kept := cache{dir: filepath.Join(opts.CacheDir, "images")}
	var set []Named
	for _, recipe := range recipes(opts.CacheDir) {
		image, err := recipe.image(ctx, kept, opts.Progress)
		if err != nil {
			return nil, fmt.Errorf("build image %s: %w", recipe.refs[0], err)
		}
		set = append(set, Named{Refs: recipe.refs, Image: image})
	}
	return set, nil
}

// recipe is how one image of the default set is made.
type recipe struct {
	refs []string
	// inputs are everything the image depends on, for the cache key.
	inputs []any
	build  func(ctx context.Context) (v1.Image, error)
}

func recipes(cacheDir string) []recipe {
	return []recipe{
		goRecipe(pauseSource, "pause", "", PauseRef),
		goRecipe(sleeperSource, "sleeper", "v1", "insitu-dev/sleeper:v1"),
		goRecipe(sleeperSource, "sleeper", "v2", "insitu-dev/sleeper:v2", "insitu-dev/sleeper:same-as-v2"),
		goRecipe(sleeperSource, "sleeper", "v3", "insitu-dev/sleeper:v3"),
		goRecipe(sleeperSource, "sleeper", "crash", "insitu-dev/sleeper:crash"),
		debRecipe(nginx("alpine", cacheDir), "library/nginx:alpine"),
		debRecipe(nginx("latest", cacheDir), "library/nginx:latest", "library/nginx:stable"),
	}
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
