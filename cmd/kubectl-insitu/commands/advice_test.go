// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/insitu-dev/insitu/cmd/build"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// The commands of the plugin that advice names are there, with the flags that it names.
func TestAdviceNamesCommandsThatExist(t *testing.T) {
	reasons := report.Reasons()
	for _, known := range report.KubeletReasons() {
		reasons = append(reasons, known.Reason)
	}
	root := NewCommand(genericiooptions.NewTestIOStreamsDiscard(), build.Build{})
	said := regexp.MustCompile("`kubectl insitu ([^`]+)`")
	named := 0
	for _, reason := range reasons {
		for _, found := range said.FindAllStringSubmatch(report.Advice(reason), -1) {
			g := NewWithT(t)
			named++
			command, args, err := root.Find(strings.Fields(found[1]))
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s", reason, found[0])
			g.Expect(command.Parent()).NotTo(BeNil(), "%s: %s", reason, found[0])
			g.Expect(command.HasSubCommands()).To(BeFalse(), "%s: %s", reason, found[0])
			g.Expect(command.ParseFlags(args)).To(Succeed(), "%s: %s", reason, found[0])
		}
	}
	g := NewWithT(t)
	g.Expect(named).To(BeNumerically(">", 20))
}
