// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sbom writes bills of materials in the format CycloneDX: which modules a
// program was linked from. They are made from what the linker wrote into the program,
// and not from go.mod, which says more than that.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// Program is what a bill is about.
type Program struct {
	// Name is insitu or kubectl-insitu, Version is without a "v".
	Name, Version string
	// Platform is such as linux/amd64.
	Platform string
	// SHA256 is the digest of the file in hexadecimal.
	SHA256  string
	License string
	// Build is what the linker wrote into the file.
	Build *debug.BuildInfo
	// Created is the time that the bill gives: when the source was committed.
	Created time.Time
	// Licenses holds SPDX identifiers by the path of a module; "std" is Go itself.
	Licenses map[string][]string
}

// Image is the image that holds a program, if one does.
type Image struct {
	// Repository is such as insitu-dev/insitu, Digest is sha256:... of the platform's
	// manifest.
	Repository, Digest string
}

// Write returns the bill of a program or, with an image, of the image.
func Write(program Program, image *Image) ([]byte, error) {
	main, err := program.component()
	if err != nil {
		return nil, err
	}
	modules, err := program.modules()
	if err != nil {
		return nil, err
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: program.Created.UTC().Format(time.RFC3339),
		Component: &main,
	}
	references := make([]string, len(modules))
	for i, module := range modules {
		references[i] = module.BOMRef
	}
	dependencies := []cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &references}}
	if image != nil {
		container := image.component(program)
		bill.Metadata.Component = &container
		modules = append([]cyclonedx.Component{main}, modules...)
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: container.BOMRef, Dependencies: &[]string{main.BOMRef}})
	}
	bill.Components, bill.Dependencies = &modules, &dependencies
	bill.SerialNumber = serial(bill.Metadata.Component.BOMRef + program.SHA256)

	return encode(bill)
}

func encode(bill *cyclonedx.BOM) ([]byte, error) {
	var content bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&content, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	encoder.SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bill, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode bill of materials: %w", err)
	}

	return content.Bytes(), nil
}

// serial returns a UUID of version 8 made from what the bill is about, instead of a
// random one.
func serial(about string) string {
	id := sha256.Sum256([]byte(about))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80

	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

func (p Program) component() (cyclonedx.Component, error) {
	system, arch, ok := strings.Cut(p.Platform, "/")
	if !ok || p.Name == "" || p.Version == "" || len(p.SHA256) != 2*sha256.Size || p.Build == nil || p.Created.IsZero() {
		return cyclonedx.Component{}, errors.New("write bill of materials: want the name, version, platform, digest, build and time of a program")
	}
	url := fmt.Sprintf("pkg:golang/%s@v%s?goarch=%s&goos=%s", p.Build.Path, p.Version, arch, system)

	return cyclonedx.Component{
		BOMRef:     url,
		Type:       cyclonedx.ComponentTypeApplication,
		Name:       p.Name,
		Version:    p.Version,
		PackageURL: url,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: p.SHA256}},
		Licenses:   licensesOf([]string{p.License}),
	}, nil
}

func (i Image) component(program Program) cyclonedx.Component {
	_, arch, _ := strings.Cut(program.Platform, "/")
	url := fmt.Sprintf("pkg:oci/%s@%s?arch=%s&repository_url=%s&tag=%s",
		i.Repository[strings.LastIndex(i.Repository, "/")+1:], strings.Replace(i.Digest, ":", "%3A", 1), arch, i.Repository, program.Version)

	return cyclonedx.Component{
		BOMRef:     url,
		Type:       cyclonedx.ComponentTypeContainer,
		Name:       i.Repository,
		Version:    program.Version,
		PackageURL: url,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: strings.TrimPrefix(i.Digest, "sha256:")}},
		Licenses:   licensesOf([]string{program.License}),
	}
}

// modules returns the libraries of a program, sorted by name, and Go's own.
func (p Program) modules() ([]cyclonedx.Component, error) {
	found := []debug.Module{{Path: "std", Version: strings.TrimPrefix(p.Build.GoVersion, "go")}}
	for _, module := range p.Build.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		found = append(found, *module)
	}
	slices.SortFunc(found, func(a, b debug.Module) int { return strings.Compare(a.Path, b.Path) })
	components := make([]cyclonedx.Component, 0, len(found))
	for _, module := range found {
		component, err := p.module(module)
		if err != nil {
			return nil, fmt.Errorf("write bill of materials of %s: module %s: %w", p.Name, module.Path, err)
		}
		components = append(components, component)
	}

	return components, nil
}

func (p Program) module(module debug.Module) (cyclonedx.Component, error) {
	names := p.Licenses[module.Path]
	if len(names) == 0 {
		return cyclonedx.Component{}, errors.New("its license is not known")
	}
	if module.Version == "" {
		return cyclonedx.Component{}, errors.New("its version is not known")
	}
	url := "pkg:golang/" + module.Path + "@" + module.Version
	component := cyclonedx.Component{
		BOMRef:     url,
		Type:       cyclonedx.ComponentTypeLibrary,
		Name:       module.Path,
		Version:    module.Version,
		PackageURL: url,
		Licenses:   licensesOf(names),
	}
	if encoded, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return component, fmt.Errorf("read its sum %q: %w", module.Sum, err)
		}
		component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}

	return component, nil
}

func licensesOf(names []string) *cyclonedx.Licenses {
	choices := cyclonedx.Licenses{}
	for _, name := range names {
		choices = append(choices, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
	}

	return &choices
}
