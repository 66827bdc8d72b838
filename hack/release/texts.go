// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/hack/release/pack"
)

// notes cuts what CHANGELOG.md says of a version.
func notes(changelog, version string) (string, error) {
	heading := "## [" + version + "]"
	var lines []string
	inside := false
	for line := range strings.Lines(changelog) {
		switch {
		case strings.HasPrefix(line, heading):
			if !strings.HasPrefix(line, heading+" - 20") {
				return "", fmt.Errorf("CHANGELOG.md: found %q, accepted is %q and the day of the release", strings.TrimSpace(line), heading+" - ")
			}
			inside = true
		case strings.HasPrefix(line, "## "), strings.HasPrefix(line, "["):
			inside = false
		case inside:
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, ""))
	if text == "" {
		return "", fmt.Errorf("CHANGELOG.md says nothing of this release: want a section %q", heading+" - YYYY-MM-DD")
	}

	return text + "\n", nil
}

// krewManifest fills in .krew.yaml as krew's own release bot does: with the version and
// the digests of the archives.
func krewManifest(text, version string, archives map[string][]byte) (string, error) {
	fill := template.FuncMap{"addURIAndSha": func(uri, tag string) (string, error) {
		uri = strings.ReplaceAll(uri, "{{ .TagName }}", tag)
		archive, ok := archives[path.Base(uri)]
		if !ok {
			return "", fmt.Errorf("%s is not made", path.Base(uri))
		}

		return "uri: " + uri + "\n    sha256: " + pack.SHA256(archive), nil
	}}
	manifest, err := template.New(".krew.yaml").Funcs(fill).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("read krew manifest: %w", err)
	}
	var filled strings.Builder
	if err := manifest.Execute(&filled, map[string]string{"TagName": "v" + version}); err != nil {
		return "", fmt.Errorf("fill in krew manifest: %w", err)
	}
	var plugin struct {
		Spec struct {
			Platforms []struct {
				URI string `json:"uri"`
			} `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(filled.String()), &plugin); err != nil {
		return "", fmt.Errorf("read krew manifest: %w", err)
	}
	if len(plugin.Spec.Platforms) != len(archives) {
		return "", fmt.Errorf("read krew manifest: it has %d platforms, and %d archives are made", len(plugin.Spec.Platforms), len(archives))
	}

	return withoutComments(filled.String()), nil
}

// withoutComments drops the lines at the top that speak of the template.
func withoutComments(text string) string {
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}

	return text
}

// imageAnnotation is where a released chart names its image by digest. It is no value, for
// values outlive a chart: helm upgrade --reuse-values takes those of the release before.
const imageAnnotation = "insitu.dev/image"

// pinned adds the image to the annotations of Chart.yaml.
func pinned(chart, image string) (string, error) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(chart), &content); err != nil {
		return "", fmt.Errorf("read charts/insitu/Chart.yaml: %w", err)
	}
	annotations, ok := content["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	if found := annotations[imageAnnotation]; found != nil {
		return "", fmt.Errorf("charts/insitu/Chart.yaml: found the annotation %s: %v, which a release sets", imageAnnotation, found)
	}
	annotations[imageAnnotation] = image
	content["annotations"] = annotations
	text, err := yaml.Marshal(content)

	return string(text), err
}
