// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// What is piped gets a line for each change, or a document for each report that differs.
func TestShowToPrograms(t *testing.T) {
	ref := report.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	progressing := report.Workload{Ref: ref, Phase: report.Progressing, Replicas: 1}
	healthy := report.Workload{Ref: ref, Phase: report.Healthy, Replicas: 1, Updated: 1, Available: 1}
	for format, want := range map[output]string{
		forPeople: `(?s)^\S+Z  deployment.apps/web  Progressing\n.*0 of 1 pod updated, 0 available\n\S+Z  deployment.apps/web  Progressing -> Healthy\n.*1 of 1 pod updated, 1 available\n$`,
		asYAML:    `(?s)^apiVersion.*phase: Progressing.*\n---\napiVersion[^-]*phase: Healthy[^-]*$`,
		asJSON:    `(?s)^{.*"phase": "Progressing".*}\n{.*"phase": "Healthy".*}\n$`,
	} {
		t.Run("as "+string(format), func(t *testing.T) {
			g := NewWithT(t)
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &statusOptions{environment: &environment{IOStreams: streams}, output: format}
			reports := make(chan report.Workload, 3)
			for _, told := range []report.Workload{progressing, progressing, healthy} {
				reports <- told
			}
			close(reports)

			g.Expect(o.show(t.Context(), reports)).To(Succeed())
			g.Expect(out.String()).To(MatchRegexp(want))
			g.Expect(bytes.Count(out.Bytes(), []byte("Healthy"))).To(Equal(1))
		})
	}
}
