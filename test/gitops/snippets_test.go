// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/config/argocd"
	"github.com/insitu-dev/insitu/config/flux"
)

// What users paste is what is tested.
func TestPatchesOfArgoCDHoldTheScripts(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"argocd-cm.yaml": {
			"resource.customizations.health.apps.kruise.io_CloneSet":    argocd.Health,
			"resource.customizations.health.apps.kruise.io_StatefulSet": argocd.Health,
		},
		"argocd-cm-held.yaml": {
			"resource.customizations.health.apps_DaemonSet":        argocd.Held,
			"resource.customizations.health.apps_StatefulSet":      argocd.Held,
			"resource.customizations.useOpenLibs.apps_DaemonSet":   "true",
			"resource.customizations.useOpenLibs.apps_StatefulSet": "true",
		},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			data, err := os.ReadFile(filepath.Join("..", "..", "config", "argocd", file))
			g.Expect(err).NotTo(HaveOccurred())
			patch := corev1.ConfigMap{}
			g.Expect(yaml.UnmarshalStrict(data, &patch)).To(Succeed())
			g.Expect(patch.Data).To(Equal(want))
		})
	}
}

func TestTheDocumentHasTheSnippetForFlux(t *testing.T) {
	g := NewWithT(t)
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "gitops.md"))
	g.Expect(err).NotTo(HaveOccurred())
	comments := regexp.MustCompile("(?m)^#.*\n")
	g.Expect(string(document)).To(ContainSubstring("```yaml\n" + comments.ReplaceAllString(flux.StatefulSet, "") + "```\n"))
}
