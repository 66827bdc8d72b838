// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/insitu-dev/insitu/test/lab/images"
)

// source is what an image is made from.
type source struct {
	goPackage  string
	debs       []string
	entrypoint []string
	layout     string
	archive    string
	// padding is how many bytes are added to an image from a Go program.
	padding string
}

func newLoad(opts *options) *cobra.Command {
	from := source{}
	command := &cobra.Command{
		Use:   "load IMAGE --go FOLDER | IMAGE --deb PACKAGE... | IMAGE --oci FOLDER | IMAGE --archive FILE | IMAGE...",
		Short: "Make an image and put it into the lab's registry",
		Long: "Make an image from a Go program or from Debian packages, or take one from an OCI image layout or an archive, and put it into the lab's registry.\n" +
			"Pods then use it under the same name, such as \"insitu-dev/insitu:dev\".\n" +
			"Without a source, images are those that the lab knows but does not serve until they are asked for:\n  " +
			strings.Join(images.ExtraRefs(), "\n  "),
		Example: "  lab load insitu-dev/insitu:dev --go ./cmd/insitu\n" +
			"  lab load memcached:1 --deb memcached --entrypoint memcached,-u,nobody\n" +
			"  lab load insitu-dev/insitu:1.2.3 --oci .out/release/image\n" +
			"  lab load insitu-dev/insitu:dev --archive .out/image.tar\n" +
			"  lab load redis:alpine redis:latest",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			if err := from.addPackages(args[1:]); err != nil {
				return err
			}
			if from.padding != "" && from.goPackage == "" {
				return errors.New("found --padding without --go: accepted is an image from a Go program")
			}
			say := narrator(command)
			for _, ref := range from.refs(args) {
				digest, err := from.load(command.Context(), lab.Registry(), ref, say)
				if err != nil {
					return err
				}
				say(fmt.Sprintf("%s is served, %s", ref, digest))
			}
			return nil
		},
	}
	command.Flags().StringVar(&from.goPackage, "go", "", "folder of a Go main package")
	command.Flags().StringVar(&from.padding, "padding", "", "bytes that are added to an image from a Go program, such as 300Mi: others for each name")
	command.Flags().StringSliceVar(&from.debs, "deb", nil, "Debian packages")
	command.Flags().StringSliceVar(&from.entrypoint, "entrypoint", nil, "program and arguments of an image from Debian packages; without it pods give a command")
	command.Flags().StringVar(&from.layout, "oci", "", "folder of an OCI image layout, as make release makes")
	command.Flags().StringVar(&from.archive, "archive", "", "file with one image, as make image and docker save make")
	command.MarkFlagsMutuallyExclusive("go", "deb", "oci", "archive")
	return command
}

// isKnown tells whether the lab knows itself how to make the image.
func (s *source) isKnown() bool {
	return s.goPackage == "" && s.layout == "" && s.archive == "" && len(s.debs) == 0
}

// addPackages takes further arguments as Debian packages, where there are some.
func (s *source) addPackages(names []string) error {
	if len(names) == 0 || s.isKnown() {
		return nil
	}
	if len(s.debs) == 0 {
		return fmt.Errorf("unexpected arguments %v: beside --go, --oci and --archive there is one image", names)
	}
	s.debs = append(s.debs, names...)
	return nil
}

func (s *source) paddingBytes() (int64, error) {
	if s.padding == "" {
		return 0, nil
	}
	bytes, err := resource.ParseQuantity(s.padding)
	if err != nil || bytes.Sign() < 0 {
		return 0, fmt.Errorf("flag --padding: found %q, accepted is a number of bytes such as 300Mi", s.padding)
	}
	return bytes.Value(), nil
}

// refs returns which of the arguments are images.
func (s *source) refs(args []string) []string {
	if s.isKnown() {
		return args
	}
	return args[:1]
}

// load puts an image into a registry and returns its digest.
func (s *source) load(ctx context.Context, registry, ref string, say func(string)) (string, error) {
	if s.layout != "" {
		return images.LoadLayout(ctx, registry, ref, s.layout)
	}
	image, err := s.build(ctx, ref, say)
	if err != nil {
		return "", err
	}
	if err := images.Load(ctx, registry, ref, image); err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("read digest of image: %w", err)
	}
	return digest.String(), nil
}

func (s *source) build(ctx context.Context, ref string, say func(string)) (v1.Image, error) {
	if s.goPackage != "" {
		padding, err := s.paddingBytes()
		if err != nil {
			return nil, err
		}
		return images.FromGo(ctx, images.GoOptions{Dir: s.goPackage, Package: ".", Padding: padding, PaddingSeed: ref})
	}
	if s.archive != "" {
		return images.FromArchive(s.archive)
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	if s.isKnown() {
		named, err := images.BuildExtra(ctx, images.SetOptions{CacheDir: cache, Progress: say}, ref)
		return named.Image, err
	}
	return images.FromDeb(ctx, images.DebOptions{
		Packages: s.debs,
		CacheDir: cache,
		Config:   images.Config{Entrypoint: s.entrypoint},
	})
}
