// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// GoOptions describes an image that holds one Go program.
type GoOptions struct {
	// Dir is where `go build` runs: the folder of any module.
	Dir string
	// Package is the program's package as `go build` takes it, relative to
	// Dir: "./cmd/insitu". Empty means ".".
	Package string
	// Name is the program's name in the image, where it is /<Name>. Empty
	// means the last element of the package's folder.
	Name string
	// LDFlags are passed on to the linker after "-s -w".
	LDFlags string
	// Padding is how many bytes, which no compression makes less, are added in a layer of their
	// own. PaddingSeed is what they depend on.
	Padding     int64
	PaddingSeed string
	// Config applies but for Entrypoint, which is always the program; User
	// defaults to Nonroot.
	Config Config
}

// FromGo builds a static Linux program with the Go toolchain of this machine
// and packs it into an image that holds nothing else. An error of the compiler
// is returned in the compiler's words.
func FromGo(ctx context.Context, opts GoOptions) (v1.Image, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	program, err := compile(ctx, opts)
	if err != nil {
		return nil, err
	}
	base, err := layerOf(baseFiles(nil)...)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(File{Path: "/" + opts.Name, Mode: 0o755, Content: program})
	if err != nil {
		return nil, err
	}
	layers := []v1.Layer{base, layer}
	if opts.Padding > 0 {
		padding, err := layerOf(File{Path: "/padding", Content: randomBytes(opts.PaddingSeed, opts.Padding)})
		if err != nil {
			return nil, err
		}
		layers = append(layers, padding)
	}
	opts.Config.Entrypoint = []string{"/" + opts.Name}
	return assemble(opts.Config, layers...)
}

// randomBytes returns bytes that look random, and are the same for the same seed.
func randomBytes(seed string, number int64) []byte {
	content := make([]byte, number)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(content) // it never fails
	return content
}

func (o GoOptions) withDefaults() (GoOptions, error) {
	if o.Package == "" {
		o.Package = "."
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("find folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Name == "" {
		o.Name = path.Base(path.Join(filepath.ToSlash(dir), o.Package))
	}
	if o.Config.User == "" {
		o.Config.User = fmt.Sprintf("%d:%d", Nonroot, Nonroot)
	}
	return o, nil
}

// compile returns the program as bytes. -buildvcs=false keeps the state of the
// checkout out of it.
func compile(ctx context.Context, opts GoOptions) ([]byte, error) {
	out, err := os.MkdirTemp("", "insitu-image-")
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", opts.Package, err)
	}
	defer func() { _ = os.RemoveAll(out) }()

	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w "+opts.LDFlags), "-o", out+"/", opts.Package)
	build.Dir = opts.Dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	var stderr bytes.Buffer
	build.Stderr = &stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build %s in %s: %w", opts.Package, opts.Dir, withOutput(err, stderr.String()))
	}
	// Into a folder `go build` writes programs only, one per main package.
	programs, err := os.ReadDir(out)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", opts.Package, err)
	}
	if len(programs) != 1 {
		return nil, fmt.Errorf("build %s in %s: found %d main packages, want one", opts.Package, opts.Dir, len(programs))
	}
	return os.ReadFile(filepath.Join(out, programs[0].Name()))
}

// withOutput adds what a command printed to the error it ended with.
func withOutput(err error, output string) error {
	if output = strings.TrimSpace(output); output == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, output)
}
