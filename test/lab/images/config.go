// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"io/fs"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Nonroot is the user and group of images built by FromGo.
const Nonroot = 65532

// Config says how containers of an image run. It corresponds to the
// instructions of the same names in a Dockerfile.
type Config struct {
	// Entrypoint is the program and its fixed arguments, Cmd the arguments
	// that a pod may replace with `args`.
	Entrypoint []string
	Cmd        []string
	// Env holds NAME=value pairs.
	Env []string
	// Ports are TCP ports that the program listens on. Informative only.
	Ports []int
	// User is "uid", "uid:gid" or empty for root.
	User       string
	WorkingDir string
	// StopSignal is sent to end a container, SIGTERM if empty.
	StopSignal string
}

// File is one file, directory or symbolic link of an image. Its time is
// zero.
type File struct {
	// Path is absolute.
	Path string
	// Mode holds type and permissions. Zero is a regular file with 0644.
	Mode fs.FileMode
	// Content is what a regular file holds, and where a link points to.
	Content []byte
	// Owner is both user and group ID.
	Owner int
}

// assemble makes an image out of layers, lowest first.
func assemble(config Config, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint:   config.Entrypoint,
			Cmd:          config.Cmd,
			Env:          config.Env,
			ExposedPorts: exposed(config.Ports),
			User:         config.User,
			WorkingDir:   config.WorkingDir,
			StopSignal:   config.StopSignal,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	image, err = mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("add layers: %w", err)
	}
	return image, nil
}

func exposed(ports []int) map[string]struct{} {
	if len(ports) == 0 {
		return nil
	}
	set := make(map[string]struct{}, len(ports))
	for _, port := range ports {
		set[fmt.Sprintf("%d/tcp", port)] = struct{}{}
	}
	return set
}
