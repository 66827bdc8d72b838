// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// parse reads --output from a command line.
func parse(args ...string) (*Output, error) {
	output, flags := &Output{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	output.AddFlag(flags)
	return output, flags.Parse(args)
}

func TestOutput(t *testing.T) {
	w := badImage()
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			output, err := parse("-o", format)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(output.ForPrograms()).To(BeTrue())

			out := &bytes.Buffer{}
			g.Expect(output.Print(out, w, w.Ref)).To(Succeed())
			golden(t, "output/"+format, out.Bytes())
			got := report.Workload{}
			g.Expect(yaml.UnmarshalStrict(out.Bytes(), &got)).To(Succeed(), "JSON is YAML, too")
			g.Expect(got.Pods).To(HaveLen(len(w.Pods)))
		})
	}
}

func TestOutputOfNames(t *testing.T) {
	g := NewWithT(t)
	output, err := parse("--output=name")
	g.Expect(err).NotTo(HaveOccurred())

	out := &bytes.Buffer{}
	g.Expect(output.Print(out, nil, set(3).Ref, nativeHeld().Ref)).To(Succeed())
	g.Expect(out.String()).To(Equal("statefulset.apps.kruise.io/db\ndeployment.apps/web\n"))
}

func TestOutputThatIsNotAccepted(t *testing.T) {
	g := NewWithT(t)
	_, err := parse("-o", "jsn")
	g.Expect(err).To(MatchError(ContainSubstring(`found "jsn": accepted are json, yaml, name`)))

	output, err := parse()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(output.ForPrograms()).To(BeFalse())
}
