// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	. "github.com/onsi/gomega"
)

func program() Program {
	return Program{
		Name: "insitu", Version: "1.2.3", Platform: "linux/arm64", SHA256: strings.Repeat("ab", 32), License: "Apache-2.0",
		Created: time.Unix(1_800_000_000, 0),
		Build: &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "github.com/insitu-dev/insitu/cmd/insitu",
			Deps: []*debug.Module{
				{Path: "sigs.k8s.io/yaml", Version: "v1.6.0", Sum: "h1:G8fkbMSAFqgEFgh4b1wmtzDnioxFCUgTZhlbj5P9QYs="},
				{Path: "example.org/old", Version: "v0.1.0", Replace: &debug.Module{Path: "example.org/new", Version: "v0.2.0"}},
			},
		},
		Licenses: map[string][]string{"std": {"BSD-3-Clause"}, "sigs.k8s.io/yaml": {"Apache-2.0", "MIT"}, "example.org/new": {"ISC"}},
	}
}

func read(t *testing.T, bill []byte) *cyclonedx.BOM {
	t.Helper()
	read := &cyclonedx.BOM{}
	NewWithT(t).Expect(cyclonedx.NewBOMDecoder(bytes.NewReader(bill), cyclonedx.BOMFileFormatJSON).Decode(read)).To(Succeed())

	return read
}

func TestBillsAreTheSame(t *testing.T) {
	g := NewWithT(t)
	one, err := Write(program(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Chdir(t.TempDir())
	again := program()
	slices.Reverse(again.Build.Deps)
	two, err := Write(again, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(two)).To(Equal(string(one)))

	other := program()
	other.SHA256 = strings.Repeat("cd", 32)
	three, err := Write(other, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read(t, three).SerialNumber).NotTo(Equal(read(t, one).SerialNumber))
}

func TestBillOfAProgram(t *testing.T) {
	g := NewWithT(t)
	written, err := Write(program(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	bill := read(t, written)

	g.Expect(bill.SpecVersion).To(Equal(cyclonedx.SpecVersion1_6))
	g.Expect(bill.SerialNumber).To(MatchRegexp(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`))
	g.Expect(bill.Metadata.Timestamp).To(Equal("2027-01-15T08:00:00Z"))
	g.Expect(bill.Metadata.Component.PackageURL).To(Equal("pkg:golang/github.com/insitu-dev/insitu/cmd/insitu@v1.2.3?goarch=arm64&goos=linux"))
	var found []string
	for _, component := range *bill.Components {
		names := []string{}
		for _, choice := range *component.Licenses {
			names = append(names, choice.License.ID)
		}
		found = append(found, component.PackageURL+" "+strings.Join(names, "+"))
	}
	g.Expect(found).To(Equal([]string{
		"pkg:golang/example.org/new@v0.2.0 ISC",
		"pkg:golang/sigs.k8s.io/yaml@v1.6.0 Apache-2.0+MIT",
		"pkg:golang/std@1.26.8 BSD-3-Clause",
	}))
	// The sum of go.sum is a SHA-256, in base64 there and in hexadecimal here.
	g.Expect((*(*bill.Components)[1].Hashes)[0].Value).To(HavePrefix("1bc7e46cc48016a8"))
	g.Expect(*(*bill.Dependencies)[0].Dependencies).To(HaveLen(3))
}

func TestBillOfAnImage(t *testing.T) {
	g := NewWithT(t)
	digest := "sha256:" + strings.Repeat("01", 32)
	written, err := Write(program(), &Image{Repository: "insitu-dev/insitu", Digest: digest})
	g.Expect(err).NotTo(HaveOccurred())
	bill := read(t, written)

	g.Expect(bill.Metadata.Component.Type).To(Equal(cyclonedx.ComponentTypeContainer))
	g.Expect(bill.Metadata.Component.PackageURL).To(Equal(
		"pkg:oci/insitu@sha256%3A" + strings.Repeat("01", 32) + "?arch=arm64&repository_url=insitu-dev/insitu&tag=1.2.3"))
	g.Expect(*bill.Components).To(HaveLen(4))
	g.Expect((*bill.Components)[0].Name).To(Equal("insitu"))
}

func TestWriteRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Program)
		want  string
	}{
		"no digest":       {func(p *Program) { p.SHA256 = "" }, "want the name, version, platform, digest, build and time"},
		"no build":        {func(p *Program) { p.Build = nil }, "want the name"},
		"no time":         {func(p *Program) { p.Created = time.Time{} }, "want the name"},
		"unknown license": {func(p *Program) { delete(p.Licenses, "sigs.k8s.io/yaml") }, "module sigs.k8s.io/yaml: its license is not known"},
		"local module":    {func(p *Program) { p.Build.Deps[0].Version = "" }, "its version is not known"},
		"broken sum":      {func(p *Program) { p.Build.Deps[0].Sum = "h1:%" }, `read its sum "h1:%"`},
	} {
		t.Run(name, func(t *testing.T) {
			broken := program()
			test.spoil(&broken)
			_, err := Write(broken, nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
