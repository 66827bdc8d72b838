// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package licenses tells what licenses the code has that programs are linked from.
package licenses

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-licenses/v2/licenses"
	"golang.org/x/mod/module"
	"k8s.io/klog/v2"

	"github.com/insitu-dev/insitu/hack/release/gotool"
)

// Library is code under one license file: a module, or a folder of one.
type Library struct {
	// Module and Version as in go.mod. Of packages without a license, Module is the
	// path of the package.
	Module, Version string
	// File is the path of the license file in the module.
	File string
	// Names are the SPDX identifiers that were recognized in the file.
	Names []string
	// Text is what is in the file, Notice what is in the file NOTICE beside it.
	Text, Notice string
}

// Systems are the operating systems that programs are released for: what is linked
// differs.
var Systems = []string{"linux", "darwin", "windows"}

// Scanner knows the texts of all usual licenses.
type Scanner struct {
	known *cached
}

// NewScanner takes some seconds: it reads those texts.
func NewScanner() (*Scanner, error) {
	// go-licenses warns of assembler files. What it could not read has no license here.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	classifier, err := licenses.NewClassifier()
	if err != nil {
		return nil, fmt.Errorf("read the texts of known licenses: %w", err)
	}

	return &Scanner{known: &cached{classifier: classifier}}, nil
}

// Scan returns the libraries that packages of the module in the present folder are
// linked from, on any of the systems, and the standard library. They are sorted.
// The module itself is left out.
func (s *Scanner) Scan(ctx context.Context, systems []string, packages ...string) ([]Library, error) {
	own, err := goList(ctx, "-m")
	if err != nil {
		return nil, err
	}
	found := map[string]Library{}
	for _, system := range systems {
		libraries, err := scanSystem(ctx, s.known, system, packages)
		if err != nil {
			return nil, fmt.Errorf("scan for %s: %w", system, err)
		}
		for _, library := range libraries {
			if library.Module != own && !strings.HasPrefix(library.Module, own+"/") {
				found[library.Module+"@"+library.Version+"/"+library.File] = library
			}
		}
	}
	standard, err := standardLibrary(ctx, s.known)
	if err != nil {
		return nil, err
	}
	found[standard.Module] = standard
	sorted := make([]Library, 0, len(found))
	for _, library := range found {
		sorted = append(sorted, library)
	}
	slices.SortFunc(sorted, func(a, b Library) int {
		return strings.Compare(a.Module+" "+a.Version+" "+a.File, b.Module+" "+b.Version+" "+b.File)
	})

	return sorted, nil
}

func scanSystem(ctx context.Context, classifier licenses.Classifier, system string, packages []string) ([]Library, error) {
	// What the programs are compiled with, whatever the machine is.
	variables, err := gotool.Environment(ctx, system, "amd64")
	if err != nil {
		return nil, err
	}
	restore, err := setenv(variables)
	defer restore()
	if err != nil {
		return nil, err
	}
	found, err := licenses.Libraries(ctx, classifier, false, nil, packages...)
	if err != nil {
		return nil, err
	}
	cache, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	libraries := make([]Library, 0, len(found))
	for _, one := range found {
		library, err := read(one, cache)
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, library)
	}

	return libraries, nil
}

// read turns what was found into values that name no folder of this machine.
func read(found *licenses.Library, cache string) (library Library, err error) {
	library = Library{Module: found.Name(), Version: found.Version()}
	if found.LicenseFile == "" {
		return library, nil
	}
	if relative, ok := strings.CutPrefix(found.LicenseFile, cache+string(filepath.Separator)); ok {
		escaped, rest, ok := strings.Cut(filepath.ToSlash(relative), "@")
		if !ok {
			return library, fmt.Errorf("read %s: want PATH@VERSION in the module cache", found.LicenseFile)
		}
		path, err := module.UnescapePath(escaped)
		if err != nil {
			return library, fmt.Errorf("read %s: %w", found.LicenseFile, err)
		}
		_, file, _ := strings.Cut(rest, "/")
		library.Module, library.File = path, file
	} else {
		library.File = filepath.Base(found.LicenseFile)
	}
	for _, one := range found.Licenses {
		library.Names = append(library.Names, one.Name)
	}
	slices.Sort(library.Names)

	library.Text, library.Notice, err = readTexts(found.LicenseFile)

	return library, err
}

// readTexts reads a license, and the notice beside it that the Apache License asks to pass
// on.
func readTexts(path string) (license, notice string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("read license: %w", err)
	}
	for _, name := range []string{"NOTICE", "NOTICE.txt", "NOTICE.md"} {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err == nil && filepath.Base(path) != name {
			return string(text), string(content), nil
		}
	}

	return string(text), "", nil
}

func standardLibrary(ctx context.Context, classifier licenses.Classifier) (Library, error) {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return Library{}, err
	}
	version, err := goEnv(ctx, "GOVERSION")
	if err != nil {
		return Library{}, err
	}
	path := filepath.Join(root, "LICENSE")
	names, err := classifier.Identify(path)
	if err != nil {
		return Library{}, fmt.Errorf("read license of Go: %w", err)
	}
	library := Library{Module: "std", Version: version, File: "LICENSE"}
	for _, name := range names {
		library.Names = append(library.Names, name.Name)
	}

	library.Text, library.Notice, err = readTexts(path)

	return library, err
}

func goEnv(ctx context.Context, name string) (string, error) { return goRun(ctx, "env", name) }

func goList(ctx context.Context, args ...string) (string, error) {
	return goRun(ctx, append([]string{"list"}, args...)...)
}

func goRun(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run go %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(output)), nil
}

// setenv sets variables of this process, and returns what sets them back.
func setenv(values map[string]string) (restore func(), err error) {
	before := os.Environ()
	for name, value := range values {
		err = errors.Join(err, os.Setenv(name, value))
	}

	return func() {
		for name := range values {
			_ = os.Unsetenv(name)
		}
		for _, variable := range before {
			if name, value, _ := strings.Cut(variable, "="); name != "" {
				_ = os.Setenv(name, value)
			}
		}
	}, err
}
