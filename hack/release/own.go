// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/insitu-dev/insitu/hack/release/image"
	"github.com/insitu-dev/insitu/hack/release/pack"
)

// runImage makes the image of the manager from the checkout as it is, for one architecture: as an
// archive that docker, podman, kind and minikube load, or straight into a registry. It is no
// release: its version says so, and its tag may be moved.
func runImage(ctx context.Context, args []string, output io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the repository")
	name := flags.String("name", "insitu-dev/insitu:dev", "name and tag of the image")
	arch := flags.String("arch", runtime.GOARCH, "architecture of the nodes that are to run it: amd64 or arm64")
	archive := flags.String("archive", ".out/image.tar", "the archive that is written")
	push := flags.Bool("push", false, "push the image instead, with REGISTRY_USERNAME and REGISTRY_PASSWORD, or the credentials of docker login")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *arch != "amd64" && *arch != "arm64" {
		return fmt.Errorf("flag --arch: found %q, accepted are amd64 and arm64", *arch)
	}
	folder, err := enter(*root)
	if err != nil {
		return err
	}
	made, err := readSource(ctx, folder, sourceOptions{epoch: os.Getenv("SOURCE_DATE_EPOCH"), allowDirty: true})
	if err != nil {
		return err
	}
	made.version += "-dev"
	own, err := os.ReadFile(filepath.Join(folder, "LICENSE"))
	if err != nil {
		return err
	}
	built, err := made.compile(ctx, target{manager, "linux", *arch}, output)
	if err != nil {
		return err
	}
	one, err := image.Single(made.describe(), image.Platform{
		Architecture: *arch, Program: built.content, Beside: []pack.File{{Name: "LICENSE", Content: own}},
	})
	if err != nil {
		return err
	}
	if *push {
		return pushOwn(ctx, one, *name, output)
	}
	if err := image.Archive(*archive, *name, one); err != nil {
		return err
	}
	fmt.Fprintf(output, "%s is in %s, for linux/%s\n", *name, *archive, *arch)

	return nil
}

func pushOwn(ctx context.Context, one v1.Image, name string, output io.Writer) error {
	digest, err := image.PushSingle(ctx, one, name, credentials())
	if err != nil {
		return err
	}
	fmt.Fprintf(output, "Pushed %s@%s\n", name, digest)

	return nil
}

// describe says what the image of the manager is.
func (s *source) describe() image.Description {
	return image.Description{
		Title: manager, Text: s.description, Version: s.version, Revision: s.commit,
		Source: s.url, License: license, Created: s.time,
	}
}
