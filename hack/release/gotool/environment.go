// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotool has the go command compile the same on every machine.
package gotool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
)

// passed are the settings that say where code and tools come from and where they are kept.
// They differ between machines, and what is compiled does not depend on them: go.sum says what
// code is.
var passed = []string{
	"GOAUTH", "GOCACHE", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB",
	"GOTMPDIR", "GOTOOLCHAIN", "GOVCS",
}

// Environment returns the variables for a go command that compiles for a platform, which go
// beside those of this process. An empty variable is none for go: it then takes what
// `go env -w` has written for the user. So that file is not read, and what it says of
// places is passed on.
func Environment(ctx context.Context, system, arch string) (map[string]string, error) {
	output, err := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, passed...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("run go env: %w", err)
	}
	variables := map[string]string{}
	if err := json.Unmarshal(output, &variables); err != nil {
		return nil, fmt.Errorf("read go env: %w", err)
	}
	maps.Copy(variables, map[string]string{
		"GOENV": "off", "GOFLAGS": "", "GOWORK": "off", "GOEXPERIMENT": "", "GOFIPS140": "off", "GODEBUG": "",
		"CGO_ENABLED": "0", "GOOS": system, "GOARCH": arch, "GOAMD64": "v1", "GOARM64": "v8.0",
	})

	return variables, nil
}
