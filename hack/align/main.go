// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command align gives every dependency the same version in all go.mod files of this
// repository, the newest that one of them asks for, and tidies them: go run ./hack/align
//
// Go keeps what it has compiled, by the versions of a package and of all that the package
// imports. With one version everywhere, a package is compiled once for the manager, the lab,
// its sidecars and the tools. With two, it is compiled twice, with all that imports it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// toolsFile pins the tools. It cannot be tidied: that would add the product's requirements.
const toolsFile = "go.tools.mod"

// floor is the oldest supported Kubernetes, which has dependencies of its own age.
const floor = "test/lab/floor"

// rounds is how often versions are raised. A newer version may ask for newer ones itself.
const rounds = 10

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	paths, err := modFiles(root)
	if err != nil {
		return err
	}
	for range rounds {
		files, err := readAll(root, paths)
		if err != nil {
			return err
		}
		found := differences(files)
		for _, one := range found {
			fmt.Println(one)
		}
		if err := errors.Join(raise(files, found), writeAll(root, files), tidyAll(root, paths)); err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
	}

	return fmt.Errorf("versions still differ after %d rounds", rounds)
}

// modFiles returns the go.mod files that have to agree, relative to the root.
func modFiles(root string) ([]string, error) {
	command := exec.Command("hack/modules")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	paths := []string{toolsFile}
	for folder := range strings.FieldsSeq(string(output)) {
		if folder = filepath.Clean(folder); folder != floor {
			paths = append(paths, filepath.Join(folder, "go.mod"))
		}
	}
	slices.Sort(paths)

	return paths, nil
}

// tidyAll writes go.mod and go.sum files that say neither more nor less than needed.
func tidyAll(root string, paths []string) error {
	for _, path := range paths {
		args := []string{"mod", "tidy"}
		if path == toolsFile {
			args = []string{"list", "-mod=mod", "-modfile=" + toolsFile, "-deps", "tool"}
		}
		command := exec.Command("go", args...)
		command.Dir = filepath.Join(root, filepath.Dir(path))
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("tidy %s: %w: %s", path, err, output)
		}
	}

	return nil
}
