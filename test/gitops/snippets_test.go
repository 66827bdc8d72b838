// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/config/argocd"
)

// What users paste is what is tested.
func TestPatchesOfArgoCDHoldTheScripts(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"argocd-cm.yaml": {
			"resource.customizations.health.apps.kruise.io_CloneSet":    argocd.Health,
			"resource.customizations.health.apps.kruise.io_DaemonSet":   argocd.Health,
			"resource.customizations.health.apps.kruise.io_StatefulSet": argocd.Health,
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
