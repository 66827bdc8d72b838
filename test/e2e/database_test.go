// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/labtools"
)

// database is a server that acknowledges a write when it is on disk. The lab
// serves each from two images, which differ in nothing but their digest.
type database struct {
	image, newImage string
	// dir is where the volume belongs, and user the group that it belongs to.
	dir  string
	user int64
	// port is where the server listens.
	port int
	// session is a program that takes statements from its input, and answers
	// each that was acknowledged with a line that is a number.
	session []string
	// prepare is the first statement of a session, which has no answer.
	prepare string
	// write is the statement that writes a number.
	write string
	// read is a command that prints all numbers that were written, one a line.
	read []string
}

var (
	redis = database{
		image: "redis:alpine", newImage: "redis:latest",
		dir: "/data", user: 999,
		port:    6379,
		session: []string{"redis-cli"},
		write:   "RPUSH log %d\n",
		read:    []string{"redis-cli", "LRANGE", "log", "0", "-1"},
	}
	postgres = database{
		image: "postgres:alpine", newImage: "postgres:latest",
		dir: "/var/lib/postgresql/data", user: 999,
		port:    5432,
		session: []string{"psql", "-qAt", "-v", "ON_ERROR_STOP=1"},
		prepare: "create table if not exists log (n bigint);\n",
		write:   "insert into log values (%d) returning n;\n",
		read:    []string{"psql", "-qAt", "-c", "select n from log"},
	}
)

// set is a StatefulSet of three servers, each with a claim "data" of 1Gi in a
// class, which follows its template.
func (d database) set(namespace, class string) *builders.StatefulSetBuilder {
	return withVolume(builders.StatefulSet(namespace, "sample", d.image), class, d.dir).With(func(s *appsv1beta1.StatefulSet) {
		spec := &s.Spec.Template.Spec
		spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(d.user)}
		spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
		// A command each second in each pod would take a core.
		spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(d.port)}},
			PeriodSeconds:  1,
			TimeoutSeconds: 5,
		}
	})
}

// writer writes one number after the other to the server in a pod, whatever
// becomes of the pod meanwhile, and remembers what was acknowledged.
type writer struct {
	database       database
	namespace, pod string

	mu           sync.Mutex
	acknowledged []int
}

// startWriters starts a writer for every pod of a set. They write until the
// spec ends, or until they are asked what became of it all.
func startWriters(ctx context.Context, d database, set *appsv1beta1.StatefulSet) *writers {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	started := &writers{stop: stop}
	for _, pod := range pods(ctx, set) {
		w := &writer{database: d, namespace: set.Namespace, pod: pod.Name}
		started.all = append(started.all, w)
		started.done.Go(func() { w.run(ctx) })
	}
	DeferCleanup(started.end)
	started.expectGoOn(ctx)
	return started
}

// run writes until the context ends. A number is never written twice: whether a
// write arrived that was not acknowledged is not known.
func (w *writer) run(ctx context.Context) {
	for number := 1; ctx.Err() == nil; {
		number = w.session(ctx, number)
		select { // the container is being restarted, or the pod made again
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// session writes numbers over one connection until it breaks, and returns the
// number to go on with.
func (w *writer) session(ctx context.Context, number int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args := append([]string{"exec", "-i", "-n", w.namespace, w.pod, "--"}, w.database.session...)
	command := exec.CommandContext(ctx, labtools.KubectlPath(), args...)
	statements, errIn := command.StdinPipe()
	output, errOut := command.StdoutPipe()
	if errIn != nil || errOut != nil || command.Start() != nil {
		return number
	}
	defer func() { cancel(); _ = command.Wait() }()
	if _, err := io.WriteString(statements, w.database.prepare); err != nil {
		return number
	}
	// An answer that does not come is that of a server that was cut off.
	silence := time.AfterFunc(answerTimeout, cancel)
	answers := bufio.NewScanner(output)
	for ; ; number++ {
		silence.Reset(answerTimeout)
		if _, err := fmt.Fprintf(statements, w.database.write, number); err != nil || !answers.Scan() {
			return number + 1
		}
		if _, err := strconv.Atoi(answers.Text()); err != nil {
			return number + 1 // an error, such as that the server is still reading its files
		}
		w.mu.Lock()
		w.acknowledged = append(w.acknowledged, number)
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(writePause):
		}
	}
}

// writePause is the time between two writes of a writer. Without it, a dozen of them take
// all cores.
const writePause = 20 * time.Millisecond

// answerTimeout is how long a write may take on a slow machine.
const answerTimeout = 20 * time.Second

func (w *writer) written() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.acknowledged)
}

// stored returns the numbers that the server has.
func (w *writer) stored(ctx context.Context) (map[int]bool, error) {
	args := append([]string{"exec", "-n", w.namespace, w.pod, "--"}, w.database.read...)
	output, err := kubectl(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	stored := map[int]bool{}
	for field := range strings.FieldsSeq(output) {
		number, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("read what %s has: %w", w.pod, err)
		}
		stored[number] = true
	}
	return stored, nil
}

// writers are those of all pods of a set.
type writers struct {
	all  []*writer
	done sync.WaitGroup
	stop context.CancelFunc
}

func (ws *writers) end() {
	ws.stop()
	ws.done.Wait()
}

// expectGoOn waits until every server has acknowledged some more writes.
func (ws *writers) expectGoOn(ctx context.Context) {
	GinkgoHelper()
	for _, w := range ws.all {
		before := len(w.written())
		Eventually(ctx, w.written).Should(WithTransform(func(n []int) int { return len(n) }, BeNumerically(">=", before+20)),
			"pod %s acknowledges nothing", w.pod)
	}
}

// expectAllStored ends the writing, and checks that every server has every
// number that it acknowledged.
func (ws *writers) expectAllStored(ctx context.Context) {
	GinkgoHelper()
	ws.expectGoOn(ctx)
	ws.end()
	for _, w := range ws.all {
		var stored map[int]bool
		Eventually(ctx, func(ctx context.Context) (err error) { stored, err = w.stored(ctx); return err }).Should(Succeed())
		var lost []int
		for _, number := range w.written() {
			if !stored[number] {
				lost = append(lost, number)
			}
		}
		Expect(lost).To(BeEmpty(), "pod %s acknowledged %d writes", w.pod, len(w.written()))
		AddReportEntry("Writes", fmt.Sprintf("%s acknowledged %d, and has them all", w.pod, len(w.written())))
	}
}
