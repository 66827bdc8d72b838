// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// DebOptions describes an image that holds programs of Debian packages.
type DebOptions struct {
	// Packages are the names of binary packages, such as "redis-server".
	// What they depend on is added; what they only recommend is not.
	Packages []string
	// CacheDir keeps downloaded packages and unpacked layers. It may be shared
	// by all images.
	CacheDir string
	// Users are added to /etc/passwd besides root, "nobody" and nonroot. The
	// scripts with which packages create users are not run.
	Users []User
	// Files lie above those of the packages and replace them.
	Files []File
	// Config applies as it is.
	Config Config
}

// FromDeb packs the files of Debian packages, of everything they depend on and
// of opts.Files into an image. Nothing is installed on this machine and no
// script of a package is run; apt-get must be there and know the packages.
//
// Manual pages, documentation but for copyright, and translations are left
// out. There is no cache of the dynamic linker in the image: Debian's looks
// into /lib/<triplet> and /usr/lib/<triplet> without one.
func FromDeb(ctx context.Context, opts DebOptions) (v1.Image, error) {
	if len(opts.Packages) == 0 {
		return nil, errors.New("build image from Debian packages: Packages is empty, want at least one name")
	}
	apt := aptCache{dir: filepath.Join(opts.CacheDir, "deb")}
	archives, err := apt.fetch(ctx, opts.Packages)
	if err != nil {
		return nil, fmt.Errorf("fetch Debian packages: %w", err)
	}
	base, err := layerOf(append(baseFiles(opts.Users), debianFolders()...)...)
	if err != nil {
		return nil, err
	}
	packed, err := debLayer(ctx, filepath.Join(opts.CacheDir, "layers"), archives)
	if err != nil {
		return nil, fmt.Errorf("unpack Debian packages: %w", err)
	}
	layers := []v1.Layer{base, packed}
	if len(opts.Files) > 0 {
		own, err := layerOf(opts.Files...)
		if err != nil {
			return nil, err
		}
		layers = append(layers, own)
	}
	return assemble(opts.Config, layers...)
}

// debianFolders returns the links that make /bin another name of /usr/bin, and
// so on, which Debian requires since its version 12; and /var/run likewise.
func debianFolders() []File {
	files := []File{
		{Path: "/usr", Mode: fs.ModeDir | 0o755},
		{Path: "/var", Mode: fs.ModeDir | 0o755},
		{Path: "/var/run", Mode: fs.ModeSymlink, Content: []byte("/run")},
	}
	for _, folder := range mergedFolders {
		files = append(files,
			File{Path: "/usr/" + folder, Mode: fs.ModeDir | 0o755},
			File{Path: "/" + folder, Mode: fs.ModeSymlink, Content: []byte("usr/" + folder)})
	}
	return files
}
