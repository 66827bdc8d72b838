// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// difference is a module that go.mod files ask for in different versions.
type difference struct {
	module string
	// versions by the path of the go.mod file.
	versions map[string]string
}

// String returns, for example, "k8s.io/api: v0.37.2 in go.mod, v0.37.0 in test/lab/go.mod".
func (d difference) String() string {
	parts := make([]string, 0, len(d.versions))
	for _, path := range slices.Sorted(maps.Keys(d.versions)) {
		parts = append(parts, d.versions[path]+" in "+path)
	}

	return d.module + ": " + strings.Join(parts, ", ")
}

// newest returns the highest of the versions.
func (d difference) newest() string {
	return slices.MaxFunc(slices.Collect(maps.Values(d.versions)), semver.Compare)
}

// differences returns the modules whose versions differ, by name.
func differences(files map[string]*modfile.File) []difference {
	all := map[string]map[string]string{}
	for path, file := range files {
		for _, require := range file.Require {
			module := require.Mod.Path
			if all[module] == nil {
				all[module] = map[string]string{}
			}
			all[module][path] = require.Mod.Version
			if replaced := replacement(file, module); replaced != nil {
				all[module][path] = replaced.New.Version
			}
		}
	}
	var found []difference
	for _, module := range slices.Sorted(maps.Keys(all)) {
		one := difference{module: module, versions: all[module]}
		for _, version := range one.versions {
			if version != one.newest() {
				found = append(found, one)

				break
			}
		}
	}

	return found
}

// replacement returns the line that replaces a module in all of its versions, or nil.
func replacement(file *modfile.File, module string) *modfile.Replace {
	for _, replace := range file.Replace {
		if replace.Old.Path == module && replace.Old.Version == "" {
			return replace
		}
	}

	return nil
}

// raise makes the files ask for the newest version of what differs. A line that replaces
// the module gets it, too.
func raise(files map[string]*modfile.File, found []difference) error {
	for _, one := range found {
		for path := range one.versions {
			file := files[path]
			if err := file.AddRequire(one.module, one.newest()); err != nil {
				return fmt.Errorf("raise %s in %s: %w", one.module, path, err)
			}
			if replaced := replacement(file, one.module); replaced != nil {
				if err := file.AddReplace(one.module, "", replaced.New.Path, one.newest()); err != nil {
					return fmt.Errorf("raise %s in %s: %w", one.module, path, err)
				}
			}
		}
	}

	return nil
}

// readAll returns the go.mod files by their paths.
func readAll(root string, paths []string) (map[string]*modfile.File, error) {
	files := map[string]*modfile.File{}
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		if files[path], err = modfile.Parse(path, data, nil); err != nil {
			return nil, err
		}
	}

	return files, nil
}

func writeAll(root string, files map[string]*modfile.File) error {
	for path, file := range files {
		data, err := file.Format()
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(root, path), data, 0o644); err != nil {
			return err
		}
	}

	return nil
}
