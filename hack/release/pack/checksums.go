// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SHA256 returns the digest of content as sha256sum prints it.
func SHA256(content []byte) string {
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}

// Checksums returns the digests of all regular files of a folder, not of those in
// folders below it, in the format and order of `sha256sum *`.
func Checksums(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("list files to sum up: %w", err)
	}
	var lines strings.Builder
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("sum up: %w", err)
		}
		if len(content) == 0 {
			return "", fmt.Errorf("sum up %s: the file is empty", entry.Name())
		}
		fmt.Fprintf(&lines, "%s  %s\n", SHA256(content), entry.Name())
	}
	if lines.Len() == 0 {
		return "", fmt.Errorf("sum up %s: there are no files", dir)
	}

	return lines.String(), nil
}
