// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// testLab is a lab in a folder of its own.
type testLab struct {
	t   *testing.T
	g   Gomega
	dir string
}

// folders are the labs of the tests that run.
var folders sync.Map

// Temporary files are in a folder of their own, so that tests which run at the same time
// are not taken for traces of a lab. Ctrl-C ends a test without its cleanup: its lab is
// taken down here.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "lab")
	if err == nil {
		err = os.Setenv("TMPDIR", folder)
	}
	if err != nil {
		fmt.Println("make a folder for temporary files:", err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		folders.Range(func(dir, _ any) bool {
			lab := &testLab{dir: fmt.Sprint(dir)}
			output, err := lab.command(context.Background(), "down").CombinedOutput()
			fmt.Printf("%s%v\n", output, err)
			return true
		})
		_ = os.RemoveAll(folder)
		os.Exit(130)
	}()
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// skipIfShort leaves a test to make test-all.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
}

// newLab returns a lab that is not up, and is taken down when the test ends: if that is
// killed, by the next sweep.
func newLab(t *testing.T) *testLab {
	t.Helper()
	lab := newUsersLab(t)
	lab.hold()
	return lab
}

// newUsersLab returns a lab that belongs to a user, and not to a runner.
func newUsersLab(t *testing.T) *testLab {
	t.Helper()
	lab := &testLab{t: t, g: NewWithT(t), dir: filepath.Join(t.TempDir(), "lab")}
	folders.Store(lab.dir, nil)
	t.Cleanup(func() {
		lab.succeed("down")
		folders.Delete(lab.dir)
	})
	return lab
}

// hold makes the lab one of this process, as hack/runner.sh does. Programs that this process
// starts do not inherit the lock.
func (l *testLab) hold() {
	l.t.Helper()
	l.g.Expect(os.MkdirAll(l.dir, 0o755)).To(Succeed())
	file, err := os.Create(filepath.Join(l.dir, "runner.lock"))
	l.g.Expect(err).NotTo(HaveOccurred())
	l.g.Expect(syscall.Flock(int(file.Fd()), syscall.LOCK_EX)).To(Succeed())
	l.t.Cleanup(func() { _ = file.Close() })
}

func (l *testLab) command(ctx context.Context, args ...string) *exec.Cmd {
	program := os.Getenv("INSITU_LAB_PROGRAM")
	if program == "" {
		program = "../../../hack/lab"
	}
	return exec.CommandContext(ctx, program, append([]string{"--dir", l.dir}, args...)...)
}

// run returns all that the command prints.
func (l *testLab) run(args ...string) (string, error) {
	l.t.Helper()
	output, err := l.command(l.t.Context(), args...).CombinedOutput()
	return string(output), err
}

// succeed is run for a command that must succeed, also while the test ends.
func (l *testLab) succeed(args ...string) string {
	l.t.Helper()
	output, err := l.command(context.WithoutCancel(l.t.Context()), args...).CombinedOutput()
	l.g.Expect(err).NotTo(HaveOccurred(), "lab %v: %s", args, output)
	return string(output)
}

// kubectl returns what the command prints on standard output.
func (l *testLab) kubectl(args ...string) (string, error) {
	command := l.command(l.t.Context(), append([]string{"kubectl"}, args...)...)
	output, err := command.Output()
	return strings.TrimSpace(string(output)), err
}

// apply applies a manifest.
func (l *testLab) apply(manifest string) {
	l.t.Helper()
	command := l.command(l.t.Context(), "kubectl", "apply", "-f", "-")
	command.Stdin = strings.NewReader(manifest)
	output, err := command.CombinedOutput()
	l.g.Expect(err).NotTo(HaveOccurred(), string(output))
}

// signalUp begins to bring the lab up, and ends that by the signal once it has
// said the words.
func (l *testLab) signalUp(signal os.Signal, words string) {
	l.t.Helper()
	command := l.command(l.t.Context(), "up")
	output := gbytes.NewBuffer()
	command.Stdout, command.Stderr = output, output
	l.g.Expect(command.Start()).To(Succeed())
	l.g.Eventually(output, time.Minute, 10*time.Millisecond).Should(gbytes.Say(words))
	l.g.Expect(command.Process.Signal(signal)).To(Succeed())
	l.g.Expect(command.Wait()).NotTo(Succeed(), "signaled too late: %s", output.Contents())
}

// supervisor returns the lab's first process, as seen from outside.
func (l *testLab) supervisor() int {
	l.t.Helper()
	for pid, commandLine := range processes(l.g) {
		if commandLine == "lab --dir "+l.dir+" supervise" {
			return pid
		}
	}
	l.t.Fatalf("the lab in %s has no supervisor", l.dir)
	return 0
}

// killProcess kills the process whose command line begins so, and is not longer
// but for its flags.
func (l *testLab) killProcess(beginning string) {
	l.t.Helper()
	for pid, commandLine := range processes(l.g) {
		rest, found := strings.CutPrefix(commandLine, beginning)
		if found && (strings.HasSuffix(beginning, "/") || rest == "") {
			l.g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			return
		}
	}
	l.t.Fatalf("no process of the lab is %s", beginning)
}

func (l *testLab) killSupervisor() {
	l.t.Helper()
	pid := l.supervisor()
	l.g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	l.g.Eventually(func() error { return syscall.Kill(pid, 0) }, podTimeout).Should(MatchError(syscall.ESRCH))
}

// twoNodes is a pod on each node with a volume, and two Services for both: one
// headless.
const twoNodes = `
apiVersion: v1
kind: Service
metadata: {name: fake-service}
spec: {clusterIP: None, selector: {app: sample}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: sample}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sample}
spec:
  replicas: 2
  serviceName: fake-service
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: sample}}
      containers: [{name: main, image: "nginx:alpine", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`

// runPods applies twoNodes and waits until both pods are ready.
func (l *testLab) runPods() {
	l.t.Helper()
	l.apply(twoNodes)
	_, err := l.kubectl("rollout", "status", "statefulset/sample", "--timeout="+podTimeout.String())
	l.g.Expect(err).NotTo(HaveOccurred())
}

// pods returns something of every pod, by JSONPath below the pod.
func (l *testLab) pods(path string) []string {
	output, err := l.kubectl("get", "pods", "-o", "jsonpath={range .items[*]}{"+path+"}{\"\\n\"}{end}")
	l.g.Expect(err).NotTo(HaveOccurred())
	return strings.Split(output, "\n")
}
