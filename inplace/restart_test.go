// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// reader is a pod whose container reads an annotation, and a kubelet that acts on
// changes of its image when it is told to.
type reader struct {
	t   *testing.T
	pod *corev1.Pod
	// env is what the running container was started with.
	env string
	now time.Time
	// from names the annotation of the revision that the label of the pod names.
	revisions map[string]*Template
	starts    int
	// image is the reference that the container was started from.
	image  string
	policy appsv1beta1.PodUpdateStrategyType
}

const readingMain = `{"metadata":{"annotations":{"level":"%"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine","env":[` +
	`{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]}]}}`

func newReader(t *testing.T) *reader {
	t.Helper()
	return &reader{
		t: t, env: "1", now: after(0), image: alpineImage, policy: inPlaceOnly,
		pod:       builders.Pod("sample-0", "1", alpineImage).Annotation("level", "1").Build(),
		revisions: map[string]*Template{"1": parse(t, strings.Replace(readingMain, "%", "1", 1))},
	}
}

// want gives the pod the revision whose annotation has a value, if the next step
// allows it.
func (r *reader) want(level string) Step {
	r.t.Helper()
	if r.revisions[level] == nil {
		r.revisions[level] = parse(r.t, strings.Replace(readingMain, "%", level, 1))
	}
	from := RevisionOf(r.pod)
	step := Next(PodFacts{Pod: r.pod, From: &Revision{Name: from, Template: r.revisions[from]}},
		Target{Revision: Revision{Name: level, Template: r.revisions[level]}, Policy: r.policy, CannotDrain: unheeded}, r.now)
	if step.Action == Patch {
		patch, err := RevisionPatch(r.pod, step)
		NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
		r.pod = mergePod(r.t, r.pod, patch)
		r.pod.Generation++
	}
	r.now = r.now.Add(time.Second)
	return step
}

// act lets the kubelet do what it does: it restarts the container if its image is
// spelled otherwise than that which it runs.
func (r *reader) act() {
	r.pod.Status.ObservedGeneration = r.pod.Generation
	if r.pod.Spec.Containers[0].Image == r.image {
		return
	}
	r.start()
}

func (r *reader) start() {
	r.starts++
	r.image, r.env = r.pod.Spec.Containers[0].Image, r.pod.Annotations["level"]
	status := builders.RunningContainer("main", "main-"+strings.Repeat("i", r.starts+1), alpineImage, r.now)
	status.RestartCount = int32(r.starts)
	r.pod.Status.ContainerStatuses[0] = status
	r.now = r.now.Add(time.Second)
}

func (r *reader) expectDone() {
	r.t.Helper()
	g := NewWithT(r.t)
	g.Expect(Observe(r.pod, r.now.Add(time.Hour))).To(HaveField("Complete", true))
	g.Expect(r.env).To(Equal(r.pod.Annotations["level"]), "the process has the value of the annotation")
}

func TestARestartForAnAnnotation(t *testing.T) {
	r := newReader(t)
	g := NewWithT(t)
	for _, level := range []string{"2", "3", "2", "1"} {
		before := r.starts
		step := r.want(level)
		g.Expect(step.Action).To(Equal(Patch))
		r.act()
		g.Expect(r.starts).To(Equal(before+1), "one restart")
		r.expectDone()
		g.Expect(observedOf(r.pod, r.now).state.EquivalentImages).To(Or(BeEmpty(), HaveKeyWithValue("main", alpineImage)))
		r.now = r.now.Add(time.Hour)
	}
	g.Expect(r.pod.Spec.Containers[0].Image).To(Equal(alpineImage), "the spelling goes to and fro")
}

// Admission gives the container the image again that it had: the kubelet never restarts it.
// No pod stays out of service for that.
func TestARestartThatAdmissionUndoes(t *testing.T) {
	undone := func(policy appsv1beta1.PodUpdateStrategyType) *reader {
		r := newReader(t)
		r.policy = policy
		NewWithT(t).Expect(r.want("2").Action).To(Equal(Patch))
		r.pod.Spec.Containers[0].Image = alpineImage
		r.act()
		NewWithT(t).Expect(r.want("2")).To(And(HaveField("Action", Wait), HaveField("State", Restarting)), "the kubelet has its time")
		r.now = r.now.Add(time.Hour)
		return r
	}
	g := NewWithT(t)

	g.Expect(undone(inPlaceIfPossible).want("2")).To(And(HaveField("Action", Recreate), HaveField("Reason", ReasonNotRestarted)))

	kept := undone(inPlaceOnly)
	kept.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	g.Expect(kept.want("2")).To(And(HaveField("Action", MarkReady), HaveField("Message", ContainSubstring("it serves with its old environment"))))
	kept.pod.Spec.ReadinessGates = nil
	g.Expect(kept.want("2")).To(And(HaveField("Action", Wait), HaveField("State", Stuck), HaveField("Reason", ReasonNotRestarted)))

	slow := newReader(t)
	slow.policy = inPlaceIfPossible
	slow.want("2")
	slow.pod.Status.ObservedGeneration = slow.pod.Generation
	slow.now = slow.now.Add(time.Hour)
	g.Expect(slow.want("2").Action).To(Equal(Wait), "a kubelet that has not restarted it yet is waited for")
}

// The kubelet compares what it runs with what it is told, and does not know what
// it was told in between.
func TestARestartThatIsOvertakenBeforeTheKubeletActs(t *testing.T) {
	for name, way := range map[string]string{
		"by another value":                      "23!",
		"by the value from before":              "21!",
		"twice":                                 "234!",
		"there and back and on":                 "212!",
		"after a restart that was not seen yet": "2!3!",
		"in the middle of the second":           "2!34!",
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t)
			for _, what := range way {
				if what == '!' {
					r.act()
				} else {
					NewWithT(t).Expect(r.want(string(what)).Action).To(Equal(Patch))
				}
			}
			r.expectDone()
		})
	}
}

// A container that crashed just before, with its old image and its old
// environment, must not be taken for the restarted one, nor be left alone.
func TestARestartOfAContainerThatCrashedMeanwhile(t *testing.T) {
	r := newReader(t)
	r.want("2")
	patched := r.pod.Spec.Containers[0].Image
	r.pod.Spec.Containers[0].Image = alpineImage // what the kubelet knows
	old := r.pod.Annotations["level"]
	r.pod.Annotations["level"] = "1"
	r.start()
	r.pod.Spec.Containers[0].Image, r.pod.Annotations["level"] = patched, old
	r.want("1") // rolled back at once: the container runs with "1", from the old spelling
	r.want("3")
	r.act()
	r.expectDone()
}

func TestARestartThatIsToComeIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	const raw = `{"metadata":{"annotations":{"level":"1","note":"a"}},"spec":{"containers":[` +
		`{"name":"main","image":"nginx:alpine","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"5"},{"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]},` +
		`{"name":"side","image":"side:1","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"},{"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]}]}}`
	one, two := parse(t, raw), parse(t, strings.Replace(raw, `"level":"1"`, `"level":"2"`, 1))
	three := parse(t, strings.NewReplacer(`"level":"1"`, `"level":"2"`, `"note":"a"`, `"note":"b"`).Replace(raw))
	pod := readingPod().Annotation("note", "a").With(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: "5"}}
		p.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: "1"}}
	}).Build()
	step := Next(PodFacts{Pod: pod, From: &Revision{Name: "a", Template: one}}, Target{Revision: Revision{Name: "b", Template: two}, Policy: "InPlaceOnly", CannotDrain: unheeded}, patched)
	g.Expect(step.Change.String()).To(HaveSuffix("labels or annotations, then side"))
	patch, err := RevisionPatch(pod, step)
	g.Expect(err).NotTo(HaveOccurred())
	pod = mergePod(t, pod, patch)

	change, refused := Compare(pod, two, three, after(20))

	g.Expect(refused).To(BeNil())
	g.Expect(change.Annotations).To(HaveKey("note"))
	g.Expect(change.Images).To(ConsistOf(And(HaveField("Container", "side"), HaveField("Restart", true), HaveField("To", pinned("side:1")))))
}
