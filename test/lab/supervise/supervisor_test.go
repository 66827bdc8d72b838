// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// timeout is how long anything may take on a loaded machine; nothing waits for it to pass.
const timeout = time.Minute

// shell is a process that runs a script.
func shell(t *testing.T, name, script string) Process {
	t.Helper()
	return Process{Name: name, Path: "/bin/sh", Args: []string{"sh", "-c", script}, Log: filepath.Join(t.TempDir(), name+".log")}
}

// run starts a supervisor that ends with the test, and a client for it.
func run(t *testing.T, processes ...Process) Client {
	t.Helper()
	g := NewWithT(t)
	supervisor, err := New(processes)
	g.Expect(err).NotTo(HaveOccurred())
	folder, err := os.MkdirTemp("", "supervise") //nolint:usetesting // With the test's name in it, the path may be too long for a socket.
	g.Expect(err).NotTo(HaveOccurred())
	client := Client{Socket: filepath.Join(folder, "control")}

	ctx, cancel := context.WithCancel(t.Context())
	ended, served := make(chan error, 1), make(chan error, 1)
	go func() { ended <- supervisor.Run(ctx) }()
	go func() { served <- supervisor.Serve(ctx, client.Socket) }()
	t.Cleanup(func() {
		cancel()
		g.Eventually(ended, timeout).Should(Receive(BeNil()))
		g.Eventually(served, timeout).Should(Receive(BeNil()))
		g.Expect(os.RemoveAll(folder)).To(Succeed())
	})
	return client
}

// status returns a function that asks for the status of one process.
func status(t *testing.T, client Client, name string) func(Gomega) Status {
	t.Helper()
	return func(g Gomega) Status {
		all, err := client.Status(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for _, each := range all {
			if each.Name == name {
				return each
			}
		}
		return Status{}
	}
}

func inState(state State) func(Status) bool {
	return func(status Status) bool { return status.State == state }
}

func TestProcessThatDiesIsStartedAgain(t *testing.T) {
	g := NewWithT(t)
	process := shell(t, "dies", "echo started; exit 3")
	client := run(t, process)
	g.Eventually(status(t, client, "dies"), timeout).Should(And(
		HaveField("Restarts", BeNumerically(">=", 2)), HaveField("LastExit", "exit status 3")))
	// What was started last may not have said so yet.
	g.Eventually(func() (int, error) {
		log, err := os.ReadFile(process.Log)
		return strings.Count(string(log), "started"), err
	}, timeout).Should(BeNumerically(">=", 3))
}

func TestProcessThatCannotBeStartedSaysWhy(t *testing.T) {
	process := shell(t, "missing", "")
	process.Path = "/not/there"
	client := run(t, process)
	NewWithT(t).Eventually(status(t, client, "missing"), timeout).Should(And(
		Satisfy(inState(StateBackOff)), HaveField("LastExit", ContainSubstring("no such file"))))
}

func TestProcessWaitsForWhatItNeeds(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "s")
	first := shell(t, "first", "exec sleep 3600")
	first.Ready = &Probe{Unix: socket}
	second := shell(t, "second", "exec sleep 3600")
	second.After = []string{"first"}
	client := run(t, second, first)
	g.Eventually(status(t, client, "first"), timeout).Should(Satisfy(inState(StateRunning)))
	g.Consistently(status(t, client, "second"), 500*time.Millisecond).Should(Satisfy(inState(StateWaiting)))

	other, err := New(nil)
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = other.Serve(t.Context(), socket) }() // Anything that accepts connections.
	g.Eventually(status(t, client, "second"), timeout).Should(Satisfy(inState(StateReady)))
	g.Expect(status(t, client, "first")(g)).To(Satisfy(inState(StateReady)))
}

func TestStopKillsAndStartBringsBack(t *testing.T) {
	g := NewWithT(t)
	client := run(t, shell(t, "stubborn", "trap '' TERM; exec sleep 3600"))
	g.Eventually(status(t, client, "stubborn"), timeout).Should(Satisfy(inState(StateReady)))
	pid := status(t, client, "stubborn")(g).PID

	g.Expect(client.Stop(t.Context(), "stubborn")).To(Succeed())
	g.Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
	g.Expect(client.Stop(t.Context(), "stubborn")).To(Succeed(), "a second time")
	g.Consistently(status(t, client, "stubborn"), time.Second).Should(Satisfy(inState(StateStopped)))

	g.Expect(client.Start(t.Context(), "stubborn")).To(Succeed())
	g.Eventually(status(t, client, "stubborn"), timeout).Should(Satisfy(inState(StateReady)))
}

func TestClientNamesTheProcessesThatAreThere(t *testing.T) {
	g := NewWithT(t)
	client := run(t, shell(t, "one", "exec sleep 3600"), shell(t, "two", "exec sleep 3600"))
	g.Eventually(status(t, client, "one"), timeout).Should(Satisfy(inState(StateReady)))
	g.Expect(client.Stop(t.Context(), "three")).To(MatchError(`no process "three", there are [one two]`))
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	g := NewWithT(t)
	_, err := New([]Process{{Name: "a"}, {Name: "a"}})
	g.Expect(err).To(MatchError(`process "a" is given twice`))
	_, err = New([]Process{{Name: "a", After: []string{"b"}}})
	g.Expect(err).To(MatchError(`process "a" starts after "b", which is not there`))
}

func TestProcessesEndWithTheSupervisor(t *testing.T) {
	g := NewWithT(t)
	var pid int
	t.Run("lives", func(t *testing.T) {
		client := run(t, shell(t, "child", "exec sleep 3600"))
		NewWithT(t).Eventually(status(t, client, "child"), timeout).Should(Satisfy(inState(StateReady)))
		pid = status(t, client, "child")(NewWithT(t)).PID
	})
	g.Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
}
