// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBuild(t *testing.T) {
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.3.0"},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "0123abc"}},
	}
	tests := map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   Build
	}{
		"from the linker": {linked: "v1.2.3", info: info, want: Build{Version: "v1.2.3", Commit: "0123abc"}},
		"from the module": {info: info, want: Build{Version: "v0.3.0", Commit: "0123abc"}},
		"from a folder":   {info: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: Build{Version: "devel", Commit: "unknown"}},
		"from nowhere":    {want: Build{Version: "unknown", Commit: "unknown"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			got := of(test.linked, test.info)

			g.Expect(got).To(Equal(test.want))
			g.Expect(got.Line("insitu")).To(HavePrefix("insitu " + test.want.Version + ", commit " + test.want.Commit + ", go1."))
		})
	}
}

// A release is built without git, so the linker tells the commit.
func TestCommitFromTheLinker(t *testing.T) {
	g := NewWithT(t)
	g.Expect(This("v1.2.3").Commit).To(Equal("unknown"))
	commit = "4567def"
	defer func() { commit = "" }()
	g.Expect(This("v1.2.3")).To(Equal(Build{Version: "v1.2.3", Commit: "4567def"}))
}
