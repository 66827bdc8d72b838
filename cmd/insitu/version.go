// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/insitu-dev/insitu/cmd/build"
	"github.com/insitu-dev/insitu/controllers/metrics"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// thisBuild returns the build of this binary.
func thisBuild() build.Build {
	return build.This(version)
}

// measuredBuild returns what the metrics tell of the build.
func measuredBuild() metrics.Build {
	b := thisBuild()
	return metrics.Build{Version: b.Version, Commit: b.Commit}
}

// userAgent is how the manager names itself to the API server, in audit logs and
// managedFields.
func userAgent() string {
	return fieldOwner + "/" + thisBuild().Version
}
