// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/insitu-dev/insitu/config/argocd"
)

// The objects of testdata are those of a Kubernetes 1.37 with its own controllers, of
// workloads that are held: paused by annotation, in the middle of an update, and stuck
// on an image that does not exist, with a deadline. This is the table of docs/gitops.md.
func TestRecordedHeldWorkloads(t *testing.T) {
	exprs := fluxExprs(t)
	for file, test := range map[string]struct {
		flux, fluxWithOurs status.Status
		argo, argoWithOurs HealthStatus
	}{
		"deployment-settled":   {Current, "", Healthy, ""},
		"deployment-held":      {InProgress, "", Progressing, ""},
		"deployment-updating":  {InProgress, "", Progressing, ""},
		"deployment-stuck":     {InProgress, "", Progressing, ""},
		"statefulset-settled":  {Current, Current, Healthy, Healthy},
		"statefulset-held":     {Current, InProgress, Healthy, Suspended},
		"statefulset-updating": {Current, InProgress, Progressing, Progressing},
		"statefulset-stuck":    {Current, Failed, Progressing, Degraded},
		"daemonset-settled":    {Current, "", Healthy, Healthy},
		"daemonset-held":       {InProgress, "", Healthy, Suspended},
		"daemonset-updating":   {InProgress, "", Healthy, Progressing},
		"daemonset-stuck":      {InProgress, "", Healthy, Degraded},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			obj := &unstructured.Unstructured{}
			read(t, filepath.Join("testdata", file+".yaml"), &obj.Object)
			g.Expect(Kstatus(obj)).To(Equal(test.flux))
			g.Expect(BuiltinHealth(obj)).To(Equal(test.argo))
			if test.fluxWithOurs != "" {
				g.Expect(exprs.Status(t.Context(), obj)).To(Equal(test.fluxWithOurs))
			}
			if test.argoWithOurs != "" {
				health, err := RunHealth(t.Context(), argocd.Held, true, obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(health.Status).To(Equal(test.argoWithOurs), health.Message)
				if health.Status == Degraded {
					g.Expect(health.Message).To(And(HavePrefix("Insitu: pod "), ContainSubstring("longer than 5s: container nginx")))
				}
			}
		})
	}
}
