// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package build says what a program of Insitu was made from.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// commit is set by the linker where git is not asked, as in a release:
// -ldflags "-X github.com/insitu-dev/insitu/cmd/build.commit=0123abc".
var commit string

// Build says what a program was made from. What is not known is "unknown".
type Build struct {
	Version, Commit string
}

// This returns the build of the running program. linked is the version that the linker
// was told, if it was; without it, the version is what Go knows of the module.
func This(linked string) Build {
	info, _ := debug.ReadBuildInfo()

	b := of(linked, info)
	if commit != "" {
		b.Commit = commit
	}

	return b
}

func of(linked string, info *debug.BuildInfo) Build {
	b := Build{Version: linked, Commit: "unknown"}
	if info != nil {
		if b.Version == "" {
			// Go says "(devel)"; in a user agent, parentheses are a comment.
			b.Version = strings.Trim(info.Main.Version, "()")
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Commit = setting.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "unknown"
	}

	return b
}

// Line says it of a program in one line for people.
func (b Build) Line(program string) string {
	return fmt.Sprintf("%s %s, commit %s, %s, %s/%s", program, b.Version, b.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
