// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	_ "embed"
	"fmt"
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
func goRecipe(source, name, version string, refs ...string) recipe {
	return recipe{
		refs:   refs,
		inputs: []any{source, name, version},
		build: func(ctx context.Context) (v1.Image, error) {
			dir, err := os.MkdirTemp("", "insitu-source-")
			if err != nil {
				return nil, err
			}
			defer func() { _ = os.RemoveAll(dir) }()
			if err := writeModule(dir, name, source); err != nil {
				return nil, err
			}
			opts := GoOptions{Dir: dir, Name: name, TrimPath: true}
			if version != "" {
				opts.LDFlags = "-X main.version=" + version
			}
			return FromGo(ctx, opts)
		},
	}
}

func writeModule(dir, name, source string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil, embeddedModule, name), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644)
}
