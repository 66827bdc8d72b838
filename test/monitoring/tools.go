// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// assets is the variable that names the folder of the programs.
const assets = "PROMETHEUS_ASSETS"

// tool returns the path of a program of Debian's package prometheus.
func tool(name string) (string, error) {
	folder := os.Getenv(assets)
	if folder == "" {
		return "", errors.New(assets + " is not set: run make test-monitoring, or set it to what hack/prometheus prints")
	}
	path, err := exec.LookPath(filepath.Join(folder, name))
	if err != nil {
		return "", fmt.Errorf("find %s: %w: run hack/prometheus", name, err)
	}
	return path, nil
}
