// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// released copies the chart as a release has it: with its image by digest in an annotation.
func released(t *testing.T, image string) string {
	t.Helper()
	g := NewWithT(t)
	chart := filepath.Join(t.TempDir(), "insitu")
	g.Expect(os.CopyFS(chart, os.DirFS("insitu"))).To(Succeed())
	text := readFile(t, "insitu/Chart.yaml")
	text, tail, hasAnnotations := strings.Cut(text, "\nannotations:\n")
	g.Expect(hasAnnotations).To(BeTrue())
	text += "\nannotations:\n  insitu.dev/image: " + image + "\n" + tail
	g.Expect(os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte(text), 0o600)).To(Succeed())

	return chart
}

// TestUpgradeOfReleasedChart upgrades to a released chart with the values of the release
// before, as helm upgrade --reuse-values does: with the new definitions comes the new manager.
func TestUpgradeOfReleasedChart(t *testing.T) {
	image, other := "insitu-dev/insitu@sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	chart := released(t, image)
	// What helm takes from the release before: all of its values.
	reused := readFile(t, "insitu/values.yaml")
	var definition struct {
		AppVersion string `json:"appVersion"`
	}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(readFile(t, "insitu/Chart.yaml")), &definition)).To(Succeed())
	for name, test := range map[string]struct{ values, set, want string }{
		"as it was":             {values: reused, want: image},
		"of a release long ago": {values: readFile(t, "testdata/releases/0.1.0.values.yaml"), want: image},
		"with a digest of one's own": {
			values: strings.Replace(reused, "  digest: \"\"\n", "  digest: "+other+"\n", 1), want: "insitu-dev/insitu@" + other,
		},
		"with a mirror": {
			values: strings.Replace(reused, "repository: insitu-dev/", "repository: mirror.example.com/", 1), set: "image.tag=dev", want: "mirror.example.com/insitu:dev",
		},
		"with a mirror of its version": {
			values: strings.Replace(reused, "repository: insitu-dev/", "repository: mirror.example.com/", 1), want: "mirror.example.com/insitu:" + definition.AppVersion,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(test.values), 0o600)).To(Succeed())
			output, err := runTool(t, helm, "template", "insitu", chart, withoutCRDs, "--set="+test.set)
			g.Expect(err).NotTo(HaveOccurred(), output)
			var manager appsv1.Deployment
			decode(t, output).find(t, "Deployment", "insitu-manager", &manager)
			g.Expect(manager.Spec.Template.Spec.Containers[0].Image).To(Equal(test.want))
		})
	}
}
