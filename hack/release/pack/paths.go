// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// EnsureNoPaths returns an error if content names one of the folders: then it would be
// different where they are others, and would tell of the machine that it was made on.
// Folders that every machine may have, such as / and /tmp, are not looked for.
func EnsureNoPaths(what string, content []byte, folders []string) error {
	for _, folder := range folders {
		if folder == "" || len(filepath.Clean(folder)) <= len("/root") {
			continue
		}
		if at := bytes.Index(content, []byte(filepath.Clean(folder))); at >= 0 {
			end := min(at+len(folder)+60, len(content))

			return fmt.Errorf("%s names a folder of this machine at byte %d: %q", what, at, content[at:end])
		}
	}

	return nil
}
