// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"text/template"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// krewPlugin is what krew requires of a manifest.
// Source: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// The template of the krew manifest becomes a manifest when the release fills it in.
func TestKrewManifest(t *testing.T) {
	g := NewWithT(t)
	raw, err := os.ReadFile("../../.krew.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	release := map[string]string{"TagName": "v1.2.3"}
	addURIAndSha := func(uri, tag string) string {
		return "uri: " + strings.ReplaceAll(uri, "{{ .TagName }}", tag) + "\n    sha256: " + strings.Repeat("ab", 32)
	}
	manifest, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": addURIAndSha}).Parse(string(raw))
	g.Expect(err).NotTo(HaveOccurred())
	filled := strings.Builder{}
	g.Expect(manifest.Execute(&filled, release)).To(Succeed())

	plugin := krewPlugin{}
	g.Expect(yaml.UnmarshalStrict([]byte(filled.String()), &plugin)).To(Succeed())

	g.Expect(plugin.APIVersion + " " + plugin.Kind).To(Equal("krew.googlecontainertools.github.com/v1alpha2 Plugin"))
	g.Expect(plugin.Metadata.Name).To(Equal("insitu"))
	g.Expect(plugin.Spec.Version).To(Equal("v1.2.3"))
	g.Expect(plugin.Spec.Homepage + plugin.Spec.Description + plugin.Spec.Caveats).NotTo(BeEmpty())
	g.Expect(len(plugin.Spec.ShortDescription)).To(And(BeNumerically(">", 0), BeNumerically("<=", 50)), "krew cuts longer ones")
	g.Expect(plugin.Spec.Platforms).To(HaveLen(5))
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		g.Expect(platform.URI).To(HaveSuffix("/v1.2.3/kubectl-insitu_" + labels["os"] + "_" + labels["arch"] + ".tar.gz"))
		g.Expect(platform.SHA256).To(HaveLen(64))
		g.Expect(platform.Bin).To(HavePrefix("kubectl-insitu"))
	}
}
