// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The programs of the lab's own images travel with the lab's binary as source,
// so that a lab can be started without a checkout. They use the standard
// library only.
var (
	//go:embed pause/main.go
	pauseSource string
	//go:embed sleeper/main.go
	sleeperSource string
)

// embeddedModule is the go.mod that an embedded program is built with.
const embeddedModule = "module insitu.dev/lab/%s\n\ngo 1.26\n"

// goRecipe builds an image from the source of a program in one file. The
// version, if any, becomes the value of the program's variable `version`.
func goRecipe(cacheDir, source, name, version string, refs ...string) recipe {
	return recipe{
		refs:   refs,
		inputs: []any{source, name, version},
		build: func(ctx context.Context) (v1.Image, error) {
			dir, err := sourceFolder(cacheDir, name, source)
			if err != nil {
				return nil, fmt.Errorf("write source of %s: %w", name, err)
			}
			opts := GoOptions{Dir: dir, Name: name}
			if version != "" {
				opts.LDFlags = "-X main.version=" + version
			}
			return FromGo(ctx, opts)
		},
	}
}

// sourceFolder returns a folder with the source of a program. It has the same
// name each time: the name gets into the program, and so into its digest. With
// -trimpath it would not, but then Go compiles the standard library again.
func sourceFolder(cacheDir, name, source string) (string, error) {
	sum, err := key(name, source, embeddedModule)
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cacheDir, "source")
	dir := filepath.Join(parent, name+"-"+sum[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(parent, ".write-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := writeModule(work, name, source); err != nil {
		return "", err
	}
	// Another process may have made the folder meanwhile: its content is the same.
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

func writeModule(dir, name, source string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil, embeddedModule, name), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644)
}
