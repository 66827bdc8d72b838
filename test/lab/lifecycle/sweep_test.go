// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/util/sets"
)

// runner is a script that holds a lab.
type runner struct {
	command *exec.Cmd
	lab     *testLab
}

// startRunner starts a script that holds the lab and brings it up.
func (l *testLab) startRunner() *runner {
	l.t.Helper()
	command := exec.CommandContext(l.t.Context(), "bash", "-euc",
		`source ../../../hack/runner.sh; hold_lab "$1"; ${INSITU_LAB_PROGRAM:-../../../hack/lab} up --dir "$1" --fresh 8>&-; echo It is up; sleep 3600 8>&-`,
		"runner", l.dir)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output := gbytes.NewBuffer()
	command.Stdout, command.Stderr = output, output
	l.g.Expect(command.Start()).To(Succeed())
	l.g.Eventually(output, 3*time.Minute).Should(gbytes.Say("It is up"))
	return &runner{command: command, lab: l}
}

// kill kills the script, and all of its process group.
func (r *runner) kill() {
	r.lab.g.Expect(syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL)).To(Succeed())
	_ = r.command.Wait()
}

func TestSweepLeavesNothingOfARunThatWasKilled(t *testing.T) {
	const shown = "and its lab runs on"
	for name, alsoGone := range map[string]func(*testLab){
		shown: func(*testLab) {},
		"and its lab's folder and processes, too": func(l *testLab) { l.killSupervisor(); _ = os.RemoveAll(l.dir) },
	} {
		if testing.Short() && name != shown {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := lookAround(g)
			lab := newUsersLab(t)
			run := lab.startRunner()
			lab.runPods()
			g.Expect(sets.List(lookAround(g).Difference(before))).To(ContainElement(HavePrefix("loop device")))
			g.Expect(lab.succeed("sweep")).NotTo(ContainSubstring(lab.dir), "its runner lives")
			lab.succeed("status")

			run.kill()
			alsoGone(lab)
			g.Expect(lab.succeed("sweep")).To(ContainSubstring(lab.dir + " is down"))
			expectNoTrace(g, before)
			g.Expect(filepath.Glob(lab.dir + "/*")).To(Or(BeEmpty(), ConsistOf(lab.dir+"/logs")))
		})
	}
}

// A user brought it up by hand. If all its processes are killed, it keeps what it holds.
func TestSweepLeavesAUsersLabAlone(t *testing.T) {
	skipIfShort(t)
	lab := newUsersLab(t)
	lab.succeed("up")
	lab.runPods()
	names := func() []string { return lab.pods(".metadata.uid") }
	before := names()
	lab.g.Expect(lab.succeed("sweep")).NotTo(ContainSubstring(lab.dir))
	lab.succeed("status")

	lab.killSupervisor()
	lab.g.Expect(lab.succeed("sweep")).To(ContainSubstring("its data stays"))
	for _, file := range glob(lab.g, "/run/insitu-lab/*/owner") {
		owner, err := os.ReadFile(file)
		lab.g.Expect(err).NotTo(HaveOccurred())
		lab.g.Expect(string(owner)).NotTo(ContainSubstring(lab.dir))
	}
	lab.g.Expect(lab.succeed("up")).To(ContainSubstring("with its data"))
	lab.g.Expect(names()).To(Equal(before))
}

// What a run left in the folder must not become part of the next.
func TestUpStartsAfreshAfterARunThatWasKilled(t *testing.T) {
	skipIfShort(t)
	lab := newUsersLab(t)
	run := lab.startRunner()
	lab.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: dirt}}`)
	run.kill()
	run = lab.startRunner()
	names, err := lab.kubectl("get", "configmaps", "-o", "name")
	lab.g.Expect(err).NotTo(HaveOccurred())
	lab.g.Expect(names).NotTo(ContainSubstring("dirt"))
	run.kill()
}
