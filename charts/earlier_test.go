// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestValuesOfEarlierReleases renders the chart as helm upgrade --reuse-values does:
// with the values of the release that is installed, and none that came later. The
// values of each release are kept; a default that changes on purpose is an exception to
// be made here.
func TestValuesOfEarlierReleases(t *testing.T) {
	files, err := filepath.Glob("testdata/releases/*.values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find values of earlier releases: %d files, %v", len(files), err)
	}
	for _, flags := range [][]string{{withoutCRDs}, {withoutCRDs, "--set=replicas=1,crds.install=false,rbac.aggregateToDefaultRoles=false"}} {
		present, err := template(t, flags...)
		if err != nil {
			t.Fatalf("render chart: %v\n%s", err, present)
		}
		for _, file := range files {
			t.Run(filepath.Base(file)+" "+strings.Join(flags, " "), func(t *testing.T) {
				chart := filepath.Join(t.TempDir(), "insitu")
				g := NewWithT(t)
				g.Expect(os.CopyFS(chart, os.DirFS("insitu"))).To(Succeed())
				g.Expect(os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(readFile(t, file)), 0o600)).To(Succeed())
				output, err := runTool(t, helm, append([]string{"template", "insitu", chart, "--namespace=insitu-system"}, flags...)...)
				g.Expect(err).NotTo(HaveOccurred(), output)
				g.Expect(output).To(Equal(present))
			})
		}
	}
}

// TestDefaultsThatAreTakenOutStayOut holds that what a user removes with null is not
// filled in again: only values that came with a later release are.
func TestDefaultsThatAreTakenOutStayOut(t *testing.T) {
	g := NewWithT(t)
	output, err := template(t, withoutCRDs, "--set=resources.limits=null")
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(ContainSubstring("memory: 64Mi"))
	g.Expect(output).NotTo(ContainSubstring("memory: 512Mi"))
}
