// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/test/builders"
)

// readerNode runs one pod whose container reads an annotation. Its kubelet works on the
// pod as it last saw it: on an image and an annotation that may be old.
type readerNode struct {
	pod *corev1.Pod
	now time.Time
	// image and level are what the kubelet has seen, at a generation.
	image, level string
	seen         int64
	// runsFrom, runs and env are the reference, the content and the environment of
	// the running container.
	runsFrom, runs, env string
	starts, recreated   int
}

const repository = "registry.example.com/team/app:"

// content is what a reference names: the digest that it has, or that of its tag.
func content(image string) string {
	_, digest, _ := strings.Cut(builders.ImageID(image), "@")
	return "@" + digest
}

func (n *readerNode) create(image, level string) {
	n.recreated++
	n.pod = builders.Pod("sample-0", image+level, image).Annotation("level", level).With(func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = new(int64)
	}).Build()
	n.sees()
	n.start()
}

func (n *readerNode) sees() {
	n.image, n.level, n.seen = n.pod.Spec.Containers[0].Image, n.pod.Annotations["level"], n.pod.Generation
}

// start starts the container from what the kubelet has seen.
func (n *readerNode) start() {
	n.starts++
	n.runsFrom, n.runs, n.env = n.image, content(n.image), n.level
	status := builders.RunningContainer("main", fmt.Sprintf("main-%d", n.starts), n.image, n.now)
	status.ImageID = strings.TrimSuffix(repository, ":") + n.runs
	n.pod.Status.ContainerStatuses[0] = status
	n.pod.Status.ObservedGeneration = n.seen
}

// syncs does what the kubelet does with what it has seen.
func (n *readerNode) syncs() {
	n.pod.Status.ObservedGeneration = n.seen
	if n.image != n.runsFrom {
		n.start()
	}
}

// wants takes the next step towards an image and a level, if there is one to take.
func (n *readerNode) wants(t *testing.T, templates map[string]*Template, image, level string) {
	t.Helper()
	g := NewWithT(t)
	template := func(name string) *Template {
		if templates[name] == nil {
			templates[name] = parse(t, strings.NewReplacer("%", name[len(name)-1:], "nginx:alpine", name[:len(name)-1]).Replace(readingMain))
		}
		return templates[name]
	}
	from := RevisionOf(n.pod)
	step := Next(PodFacts{Pod: n.pod, From: &Revision{Name: from, Template: template(from)}},
		Target{Revision: Revision{Name: image + level, Template: template(image + level)}, Policy: "InPlaceIfPossible", CannotDrain: unheeded}, n.now)
	switch step.Action {
	case Patch:
		body, err := RevisionPatch(n.pod, step)
		g.Expect(err).NotTo(HaveOccurred())
		before := n.pod.Spec.Containers[0].Image
		n.pod = mergePod(t, n.pod, body)
		if n.pod.Spec.Containers[0].Image != before {
			n.pod.Generation++
		}
	case Recreate:
		n.create(image, level)
	case Wait, MarkReady, MarkNotReady, SetLifecycle, Resize, ChangeClaims:
		g.Expect(step.Action).To(Equal(Wait))
	}
}

// However images and annotations overtake each other, and whatever the kubelet has
// seen of that and when, the container ends with the content and the environment
// that were asked for last.
func TestRestartsEndWithWhatWasAskedForLast(t *testing.T) {
	templates := map[string]*Template{}
	recreated := 0
	for seed := range uint64(4000) {
		choose := rand.New(rand.NewPCG(seed, 1))
		n := &readerNode{now: after(0)}
		n.create(repository+"1", "1")
		image, level := repository+"1", "1"
		var story []string
		for range 5 + choose.IntN(20) {
			n.now = n.now.Add(time.Duration(1+choose.IntN(4)) * time.Second)
			switch choose.IntN(6) {
			case 0:
				image, level = fmt.Sprint(repository, 1+choose.IntN(3)), fmt.Sprint(1+choose.IntN(2))
				story = append(story, "want "+image+" "+level)
			case 1:
				n.sees()
			case 2:
				n.syncs()
			case 3:
				if choose.IntN(4) == 0 {
					n.start() // it crashed
					story = append(story, "crash")
				}
			case 4, 5:
				n.wants(t, templates, image, level)
				story = append(story, "then "+n.pod.Spec.Containers[0].Image)
			}
		}
		for range 20 {
			n.sees()
			n.syncs()
			n.now = n.now.Add(20 * time.Second)
			n.wants(t, templates, image, level)
		}
		got := fmt.Sprintf("%s with %s, %+v", n.runs, n.env, Observe(n.pod, n.now).Complete)
		want := fmt.Sprintf("%s with %s, true", content(image), level)
		if got != want {
			t.Fatalf("seed %d ends with %s instead of %s:\n%s", seed, got, want, strings.Join(story, "\n"))
		}
		recreated += n.recreated - 1
	}
	t.Logf("%d of 4000 runs needed a new pod", recreated)
	NewWithT(t).Expect(recreated).To(BeNumerically("<", 40))
}
