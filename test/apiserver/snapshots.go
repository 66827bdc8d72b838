// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// SnapshotDefinitions returns the files with the definitions of VolumeSnapshots, as the
// module that they are read with has them.
func SnapshotDefinitions() ([]string, error) {
	const module = "github.com/kubernetes-csi/external-snapshotter/client/v8"

	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output() //nolint:noctx // it ends by itself
	if err != nil {
		return nil, fmt.Errorf("find module %s: %w", module, err)
	}

	return filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "config", "crd", "snapshot.storage.k8s.io_*.yaml"))
}
