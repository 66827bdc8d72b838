// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// EnsureNoPaths returns an error if content names one of the folders: then it would be
// different where they are others, and would tell of the machine that it was made on.
// Folders that every machine may have, such as / and /tmp, are not looked for. Of a folder at
// the root, such as /insitu, only what is in it is: /insitu is the program in the image, too.
func EnsureNoPaths(what string, content []byte, folders []string) error {
	for _, folder := range folders {
		folder = filepath.Clean(folder)
		if len(folder) <= len("/root") {
			continue
		}
		if filepath.Dir(folder) == "/" {
			folder += "/"
		}
		if at := indexPath(content, []byte(folder)); at >= 0 {
			end := min(at+len(folder)+60, len(content))

			return fmt.Errorf("%s names a folder of this machine at byte %d: %q", what, at, content[at:end])
		}
	}

	return nil
}

// indexPath returns where a path is in content that is not the end of a longer one, as
// /cache/ is in k8s.io/client-go/tools/cache/; -1 if nowhere.
func indexPath(content, path []byte) int {
	for from := 0; ; {
		at := bytes.Index(content[from:], path)
		if at < 0 {
			return -1
		}
		at += from
		if at == 0 || !isOfPath(content[at-1]) {
			return at
		}
		from = at + 1
	}
}

// isOfPath tells whether a byte before a / is of the same path, by the names that folders of
// code have.
func isOfPath(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("._-~@)}", b) >= 0
}
