// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of Insitu, pushes its image, makes an image that is no release,
// and checks the licenses of what is linked:
//
//	go run -C hack/release . make [--version 1.2.3] [--out DIR] [--allow-dirty]
//	go run -C hack/release . push --from DIR
//	go run -C hack/release . image [--name NAME:TAG] [--arch ARCH] [--archive FILE | --push]
//	go run -C hack/release . licenses [--allow LICENSE,...] [PACKAGE...]
//
// Everything that make makes depends on the commit and the version of Go only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/insitu-dev/insitu/hack/release/image"
	"github.com/insitu-dev/insitu/hack/release/licenses"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run does one of the verbs. Folders in args are relative to the root of the
// repository.
func run(ctx context.Context, args []string, output io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer) error{
		"make": runMake, "push": runPush, "image": runImage, "licenses": runLicenses,
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New("want one of the verbs make, push, image, licenses")
	}

	return verbs[args[0]](ctx, args[1:], output)
}

// enter changes to the root of the repository and returns it.
func enter(root string) (string, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
		return "", err
	}

	return absolute, os.Chdir(absolute)
}

func runMake(ctx context.Context, args []string, output io.Writer) error {
	flags := flag.NewFlagSet("make", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the repository")
	version := flags.String("version", "", "what the release is to be; must be the version of the chart, which is the default")
	out := flags.String("out", ".out/release", "folder of the release")
	allowDirty := flags.Bool("allow-dirty", false, "make it although the checkout differs from its commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := enter(*root)
	if err != nil {
		return err
	}
	made, err := readSource(ctx, folder, sourceOptions{
		version: *version, epoch: os.Getenv("SOURCE_DATE_EPOCH"), allowDirty: *allowDirty,
	})
	if err != nil {
		return err
	}
	target, err := filepath.Abs(*out)
	if err != nil {
		return err
	}

	return (&release{source: made, dir: target, say: output}).make(ctx)
}

// runPush pushes the image under the name that is in image.txt. REGISTRY_USERNAME and
// REGISTRY_PASSWORD are the credentials, or those of docker login.
func runPush(ctx context.Context, args []string, output io.Writer) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the repository")
	from := flags.String("from", ".out/release", "folder of the release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := enter(*root); err != nil {
		return err
	}
	line, err := os.ReadFile(filepath.Join(*from, "image.txt"))
	if err != nil {
		return err
	}
	tag, digest, ok := strings.Cut(strings.TrimSpace(string(line)), "@")
	if !ok {
		return fmt.Errorf("read image.txt: found %q, want NAME:TAG@DIGEST", line)
	}
	index, err := image.Read(filepath.Join(*from, layoutDir))
	if err != nil {
		return err
	}
	if found, err := index.Digest(); err != nil || found.String() != digest {
		return fmt.Errorf("the image in %s is %s, and image.txt names %s: %w", *from, found, digest, errors.Join(err))
	}
	if _, err := image.Push(ctx, index, tag, credentials()); err != nil {
		return err
	}
	fmt.Fprintf(output, "%s@%s\n", tag, digest)

	return nil
}

func credentials() remote.Option {
	if user := os.Getenv("REGISTRY_USERNAME"); user != "" {
		return remote.WithAuth(&authn.Basic{Username: user, Password: os.Getenv("REGISTRY_PASSWORD")})
	}

	return remote.WithAuthFromKeychain(authn.DefaultKeychain)
}

func runLicenses(ctx context.Context, args []string, output io.Writer) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the module")
	allow := flags.String("allow", strings.Join(licenses.Allowed, ","), "SPDX identifiers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := enter(*root); err != nil {
		return err
	}
	packages := flags.Args()
	if len(packages) == 0 {
		packages = []string{"./cmd/..."}
	}
	scanner, err := licenses.NewScanner()
	if err != nil {
		return err
	}
	found, err := scanner.Scan(ctx, licenses.Systems, packages...)
	if err != nil {
		return err
	}
	if err := licenses.Check(found, strings.Split(*allow, ",")); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, library := range found {
		for _, name := range library.Names {
			counts[name]++
		}
	}
	fmt.Fprintf(output, "%d libraries, all under licenses that are allowed:", len(found))
	for name := range strings.SplitSeq(*allow, ",") {
		fmt.Fprintf(output, " %s %d", name, counts[name])
	}
	fmt.Fprintln(output)

	return nil
}
