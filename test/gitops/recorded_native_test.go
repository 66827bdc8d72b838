// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The objects of testdata are those of a Kubernetes 1.37 with its own controllers, of
// workloads that are held: paused by annotation, in the middle of an update, and stuck
// on an image that does not exist, with a deadline. This is the table of docs/gitops.md.
func TestRecordedHeldWorkloads(t *testing.T) {
	for file, test := range map[string]struct {
		flux status.Status
		argo HealthStatus
	}{
		"deployment-settled":   {Current, Healthy},
		"deployment-held":      {InProgress, Progressing},
		"deployment-updating":  {InProgress, Progressing},
		"deployment-stuck":     {InProgress, Progressing},
		"statefulset-settled":  {Current, Healthy},
		"statefulset-held":     {InProgress, Progressing},
		"statefulset-updating": {InProgress, Progressing},
		"statefulset-stuck":    {InProgress, Progressing},
		"daemonset-settled":    {Current, Healthy},
		"daemonset-held":       {InProgress, Progressing},
		"daemonset-updating":   {InProgress, Progressing},
		"daemonset-stuck":      {InProgress, Progressing},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			obj := &unstructured.Unstructured{}
			read(t, filepath.Join("testdata", file+".yaml"), &obj.Object)
			g.Expect(Kstatus(obj)).To(Equal(test.flux))
			g.Expect(BuiltinHealth(obj)).To(Equal(test.argo))
		})
	}
}
