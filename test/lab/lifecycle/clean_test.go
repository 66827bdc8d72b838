// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

// That of a lab that works leaves nothing either: TestLabWorks has a second one.
func TestDownLeavesNothing(t *testing.T) {
	breakages := map[string]func(*testLab){
		"after a node and the supervisor were killed": func(l *testLab) {
			l.succeed("node", "kill", "node-2")
			l.killSupervisor()
		},
		// Not all of it goes: programs that run make files again.
		"after the folder was removed":     func(l *testLab) { _ = os.RemoveAll(l.dir) },
		"after the record was overwritten": func(l *testLab) { l.g.Expect(os.WriteFile(l.dir+"/lab.json", []byte("x"), 0o644)).To(Succeed()) },
	}
	for name, breakIt := range breakages {
		if testing.Short() && name != "after a node and the supervisor were killed" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := lookAround(g)
			lab := newLab(t)
			lab.succeed("up")
			lab.runPods()
			g.Expect(sets.List(lookAround(g).Difference(before))).To(ContainElement(HavePrefix("loop device")),
				"a lab that is up must be seen, or this test sees nothing")

			breakIt(lab)
			g.Expect(lab.succeed("down")).To(ContainSubstring("is down"))
			expectNoTrace(g, before)
			g.Expect(lab.succeed("down")).To(ContainSubstring("There is no lab"))
		})
	}
}

// momentsOfUp are words that are said one after the other while a lab comes
// up. The first are no words: nothing has been said yet.
var momentsOfUp = []string{"", "Starting a lab", shownMoment, "kube-apiserver is ready"}

// shownMoment is the one that go test -short tries.
const shownMoment = "registry is ready"

func TestUpThatIsKilledLeavesNothingAfterDown(t *testing.T) {
	for _, moment := range momentsOfUp {
		if testing.Short() && moment != shownMoment {
			continue
		}
		t.Run(moment, func(t *testing.T) {
			g := NewWithT(t)
			before := lookAround(g)
			lab := newLab(t)
			lab.signalUp(os.Kill, moment)
			lab.succeed("down")
			expectNoTrace(g, before)
		})
	}
}

func TestUpThatIsInterruptedLeavesNothing(t *testing.T) {
	skipIfShort(t)
	for _, moment := range momentsOfUp {
		t.Run(moment, func(t *testing.T) {
			g := NewWithT(t)
			before := lookAround(g)
			lab := newLab(t)
			lab.signalUp(os.Interrupt, moment)
			expectNoTrace(g, before)
			g.Expect(lab.dir + "/lab.json").NotTo(BeAnExistingFile())
		})
	}
}

func TestUpAfterUpWasKilledStartsOver(t *testing.T) {
	skipIfShort(t)
	lab := newLab(t)
	lab.signalUp(os.Kill, "registry is ready")
	lab.g.Expect(lab.succeed("up")).To(ContainSubstring("starting over"))
}

func TestUpRefusesAFolderThatIsNotALabs(t *testing.T) {
	lab := newLab(t)
	lab.g.Expect(os.MkdirAll(lab.dir+"/state", 0o755)).To(Succeed())
	output, err := lab.run("up")
	lab.g.Expect(err).To(HaveOccurred())
	lab.g.Expect(output).To(ContainSubstring("holds state and no lab"))
	lab.succeed("down")
	lab.g.Expect(lab.dir + "/state").To(BeADirectory())
}
