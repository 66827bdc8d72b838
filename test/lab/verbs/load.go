// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
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
	// also are further names of the image; files are added to an image from Debian packages, each
	// as HERE:THERE.
	also, files []string
	// padding is how many bytes are added to an image from a Go program.
	padding string
}

func newLoad(opts *options) *cobra.Command {
	from := source{}
	command := &cobra.Command{
		Use:   "load IMAGE --go FOLDER | IMAGE --deb PACKAGE... | IMAGE --oci FOLDER | IMAGE --archive FILE | IMAGE...",
		Short: "Make an image and put it into the lab's registry",
		Long: "Make an image from a Go program or from Debian packages, or take one from an OCI image layout or an archive, and put it into the lab's registry.\n" +
			"Pods then use it under the same name, such as \"insitu-dev/insitu:dev\" or \"quay.io/you/app:1\":\n" +
			"the lab's registry is the mirror of every other one.\n" +
			"Without a source, images are those that the lab knows but does not serve until they are asked for:\n  " +
			strings.Join(images.ExtraRefs(), "\n  "),
		Example: "  lab load insitu-dev/insitu:dev --go ./cmd/insitu\n" +
			"  lab load memcached:1 --deb memcached --entrypoint memcached,-u,nobody\n" +
			"  lab load redis:alpine --also quay.io/you/cache:1\n" +
			"  lab load you/tool:1 --deb bash --file tool.sh:/usr/local/bin/tool --entrypoint tool\n" +
			"  lab load insitu-dev/insitu:1.2.3 --oci .out/release/image\n" +
			"  lab load insitu-dev/insitu:dev --archive .out/image.tar\n" +
			"  lab load redis:alpine redis:latest",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			return from.loadAll(command.Context(), lab.Registry(), args, narrator(command))
		},
	}
	command.Flags().StringVar(&from.goPackage, "go", "", "folder of a Go main package")
	command.Flags().StringVar(&from.padding, "padding", "", "bytes that are added to an image from a Go program, such as 300Mi: others for each name")
	command.Flags().StringSliceVar(&from.debs, "deb", nil, "Debian packages")
	command.Flags().StringSliceVar(&from.entrypoint, "entrypoint", nil, "program and arguments of an image from Debian packages; without it pods give a command")
	command.Flags().StringSliceVar(&from.files, "file", nil, "files to add to an image from Debian packages, each as HERE:THERE, with the permissions that it has here")
	command.Flags().StringSliceVar(&from.also, "also", nil, "further names of the image")
	command.Flags().StringVar(&from.layout, "oci", "", "folder of an OCI image layout, as make release makes")
	command.Flags().StringVar(&from.archive, "archive", "", "file with one image, as make image and docker save make")
	command.MarkFlagsMutuallyExclusive("go", "deb", "oci", "archive")
	return command
}

// loadAll puts the images of the arguments into a registry, and says so.
func (s *source) loadAll(ctx context.Context, registry string, args []string, say func(string)) error {
	if err := s.addPackages(args[1:]); err != nil {
		return err
	}
	if err := s.check(args); err != nil {
		return err
	}
	for _, ref := range s.refs(args) {
		digest, err := s.load(ctx, registry, ref, say)
		if err != nil {
			return err
		}
		say(fmt.Sprintf("%s is served, %s", ref, digest))
		for _, other := range s.also {
			if err := images.Alias(ctx, registry, ref, other); err != nil {
				return err
			}
			say(fmt.Sprintf("%s is served, the same", other))
		}
	}
	return nil
}

// check refuses flags that do not go together.
func (s *source) check(args []string) error {
	switch {
	case s.padding != "" && s.goPackage == "":
		return errors.New("found --padding without --go: accepted is an image from a Go program")
	case len(s.files) > 0 && len(s.debs) == 0:
		return errors.New("found --file without --deb: accepted is an image from Debian packages")
	case len(s.also) > 0 && len(s.refs(args)) > 1:
		return fmt.Errorf("found --also with the images %v: accepted is one", s.refs(args))
	default:
		return nil
	}
}

// added reads the files that are added to an image.
func (s *source) added() ([]images.File, error) {
	var added []images.File
	for _, file := range s.files {
		here, there, isPair := strings.Cut(file, ":")
		if !isPair || !path.IsAbs(there) {
			return nil, fmt.Errorf("flag --file: found %q, accepted is HERE:THERE, where THERE is a path from the root of the image", file)
		}
		content, err := os.ReadFile(here)
		if err != nil {
			return nil, fmt.Errorf("read a file for the image: %w", err)
		}
		info, err := os.Stat(here)
		if err != nil {
			return nil, fmt.Errorf("read a file for the image: %w", err)
		}
		added = append(added, images.File{Path: there, Mode: info.Mode().Perm(), Content: content})
	}
	return added, nil
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
	added, err := s.added()
	if err != nil {
		return nil, err
	}
	return images.FromDeb(ctx, images.DebOptions{
		Packages: s.debs,
		Files:    added,
		CacheDir: cache,
		Config:   images.Config{Entrypoint: s.entrypoint},
	})
}
