// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/insitu-dev/insitu/controllers/metrics"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3". Without it,
// the version is what Go knows of the module.
var version string

// build says what this binary was made from.
type build struct {
	version, commit string
}

// thisBuild returns the build of this binary. What is not known is "unknown".
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()

	return buildOf(version, info)
}

func buildOf(version string, info *debug.BuildInfo) build {
	b := build{version: version, commit: "unknown"}
	if info != nil {
		if b.version == "" {
			// Go says "(devel)"; in a user agent, parentheses are a comment.
			b.version = strings.Trim(info.Main.Version, "()")
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.commit = setting.Value
			}
		}
	}
	if b.version == "" {
		b.version = "unknown"
	}

	return b
}

// String returns one line for people.
func (b build) String() string {
	return fmt.Sprintf("insitu %s, commit %s, %s, %s/%s", b.version, b.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// measured returns what the metrics tell of the build.
func (b build) measured() metrics.Build {
	return metrics.Build{Version: b.version, Commit: b.commit}
}

// userAgent is how the manager names itself to the API server, in audit logs and
// managedFields.
func (b build) userAgent() string {
	return fieldOwner + "/" + b.version
}
