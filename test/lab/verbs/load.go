// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/images"
)

// source is what an image is made from.
type source struct {
	goPackage  string
	debs       []string
	entrypoint []string
}

func newLoad(opts *options) *cobra.Command {
	from := source{}
	command := &cobra.Command{
		Use:   "load IMAGE --go FOLDER | --deb PACKAGE...",
		Short: "Make an image and put it into the lab's registry",
		Long: "Make an image from a Go program or from Debian packages and put it into the lab's registry.\n" +
			"Pods then use it under the same name, such as \"insitu-dev/insitu:dev\".",
		Example: "  lab load insitu-dev/insitu:dev --go ./cmd/insitu\n" +
			"  lab load redis:7 --deb redis-server --entrypoint redis-server,--protected-mode,no",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			if err := from.addPackages(args[1:]); err != nil {
				return err
			}
			say := narrator(command)
			image, err := from.build(command.Context())
			if err != nil {
				return err
			}
			if err := images.Load(command.Context(), lab.Registry(), args[0], image); err != nil {
				return err
			}
			digest, err := image.Digest()
			if err != nil {
				return fmt.Errorf("read digest of image: %w", err)
			}
			say(fmt.Sprintf("%s is served, %s", args[0], digest))
			return nil
		},
	}
	command.Flags().StringVar(&from.goPackage, "go", "", "folder of a Go main package")
	command.Flags().StringSliceVar(&from.debs, "deb", nil, "Debian packages")
	command.Flags().StringSliceVar(&from.entrypoint, "entrypoint", nil, "program and arguments of an image from Debian packages; without it pods give a command")
	command.MarkFlagsOneRequired("go", "deb")
	command.MarkFlagsMutuallyExclusive("go", "deb")
	return command
}

// addPackages takes further arguments as Debian packages.
func (s *source) addPackages(names []string) error {
	if len(names) > 0 && len(s.debs) == 0 {
		return fmt.Errorf("unexpected arguments %v: only --deb takes more than one", names)
	}
	s.debs = append(s.debs, names...)
	return nil
}

func (s *source) build(ctx context.Context) (v1.Image, error) {
	if s.goPackage != "" {
		return images.FromGo(ctx, images.GoOptions{Dir: s.goPackage, Package: "."})
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return images.FromDeb(ctx, images.DebOptions{
		Packages: s.debs,
		CacheDir: cache,
		Config:   images.Config{Entrypoint: s.entrypoint},
	})
}
