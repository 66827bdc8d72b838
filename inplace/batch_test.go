// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// ranked is a pod of containers with images, each with its place in the launch
// order ("" for none), and a kubelet.
type ranked struct {
	t         *testing.T
	pod       *corev1.Pod
	revisions map[string]*Template
	ids       int
}

var rankedNames = []string{"db", "app", "log"}

func newRanked(t *testing.T, priorities ...string) *ranked {
	t.Helper()
	r := &ranked{t: t, revisions: map[string]*Template{}}
	r.pod = builders.Pod("sample-0", "1", "db:1").Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).With(func(p *corev1.Pod) {
		p.Spec.Containers, p.Status.ContainerStatuses = nil, nil
		for i, name := range rankedNames {
			container := corev1.Container{Name: name, Image: name + ":1"}
			if priorities[i] != "" {
				container.Env = []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: priorities[i]}}
			}
			p.Spec.Containers = append(p.Spec.Containers, container)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, builders.RunningContainer(name, name+"-1", name+":1", builders.Start))
		}
	}).Build()
	return r
}

// template has an image version for each container: "1", "2", "1".
func (r *ranked) template(revision string) *Template {
	r.t.Helper()
	if r.revisions[revision] == nil {
		containers := make([]string, len(rankedNames))
		for i, name := range rankedNames {
			version := revision
			if parts := strings.Split(revision, ","); len(parts) > 1 {
				version = parts[i]
			}
			containers[i] = fmt.Sprintf(`{"name":%q,"image":"%s:%s"}`, name, name, version)
		}
		r.revisions[revision] = parse(r.t, `{"spec":{"containers":[`+strings.Join(containers, ",")+`]}}`)
	}
	return r.revisions[revision]
}

// step carries out the next step towards a revision, and returns it.
func (r *ranked) step(revision string) Step {
	r.t.Helper()
	from := RevisionOf(r.pod)
	step := Next(PodFacts{Pod: r.pod, From: &Revision{Name: from, Template: r.template(from)}},
		Target{Revision: Revision{Name: revision, Template: r.template(revision)}, Policy: "InPlaceOnly", CannotDrain: unheeded}, patched)
	if step.Action == Resize {
		body, err := ResizePatch(r.pod, step)
		NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
		r.pod = mergePod(r.t, r.pod, body)
		r.pod.Generation++
	}
	if step.Action == Patch || step.Action == Resize && step.Record != nil {
		body, err := RevisionPatch(r.pod, step)
		NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
		r.pod = mergePod(r.t, r.pod, body)
		r.pod.Generation++
	}
	return step
}

// changes says in short what a step changes now, and what later.
func changes(step Step) string {
	return fmt.Sprintf("%s %v then %v", step.Action, containersOf(step.Change.Images), containersOf(step.Change.Later))
}

// act lets the kubelet restart what does not run its image.
func (r *ranked) act(ready bool) {
	r.pod.Status.ObservedGeneration = r.pod.Generation
	for i := range r.pod.Spec.Containers {
		c, status := &r.pod.Spec.Containers[i], &r.pod.Status.ContainerStatuses[i]
		if status.Image != c.Image {
			r.ids++
			*status = builders.RunningContainer(c.Name, fmt.Sprintf("%s-new-%d", c.Name, r.ids), c.Image, patched.Add(1))
			status.RestartCount++
		}
		status.Ready = ready
	}
	r.reportSizes()
}

// reportSizes lets the kubelet make the containers as large as the spec says.
func (r *ranked) reportSizes() {
	for i := range r.pod.Spec.Containers {
		r.pod.Status.ContainerStatuses[i].Resources = r.pod.Spec.Containers[i].Resources.DeepCopy()
	}
}

func (r *ranked) runs() string {
	images := make([]string, len(rankedNames))
	for i, status := range r.pod.Status.ContainerStatuses {
		_, images[i], _ = strings.Cut(status.Image, ":")
	}
	return strings.Join(images, ",")
}

func TestContainersAreChangedInTheirOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		priorities []string
		batches    []string
	}{
		"no order":                 {[]string{"", "", ""}, []string{"[db app log] then []"}},
		"one after the other":      {[]string{"3", "2", "1"}, []string{"[db] then [app log]", "[app] then [log]", "[log] then []"}},
		"backwards, and negative":  {[]string{"-2", "-1", "0"}, []string{"[log] then [db app]", "[app] then [db]", "[db] then []"}},
		"two together":             {[]string{"5", "1", "5"}, []string{"[db log] then [app]", "[app] then []"}},
		"without a priority, 0":    {[]string{"5", "1", ""}, []string{"[db] then [app log]", "[app] then [log]", "[log] then []"}},
		"0 is before the negative": {[]string{"", "-1", "5"}, []string{"[log] then [db app]", "[db] then [app]", "[app] then []"}},
		"not a number":             {[]string{"5", "1", "high"}, []string{"[db] then [app log]", "[app] then [log]", "[log] then []"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newRanked(t, tc.priorities...)
			for _, batch := range tc.batches {
				g.Expect(changes(r.step("2"))).To(Equal("Patch " + batch))
				g.Expect(RevisionOf(r.pod)).To(Equal("2"))
				if !strings.HasSuffix(batch, "[]") {
					g.Expect(Observe(r.pod, patched)).To(HaveField("Proved", false))
					g.Expect(MakePlan(Workload{Target: Target{Revision: Revision{Name: "2", Template: r.template("2")}}, Replicas: 1, MaxUnavailable: 1,
						Pods: []PodFacts{{Pod: r.pod}}}, patched).Pods[0].Updated).To(BeFalse(), "it is of neither revision")
				}
				g.Expect(r.step("2").Reason).To(Equal(ReasonNotObserved), "each batch is awaited")
				r.act(false)
				if !strings.HasSuffix(batch, "[]") {
					g.Expect(r.step("2")).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonNextBatch)), "and has to be ready")
				}
				r.act(true)
			}
			g.Expect(r.step("2").Action).To(Equal(MarkReady))
			g.Expect(r.runs()).To(Equal("2,2,2"))
			g.Expect(r.ids).To(Equal(3), "each was restarted once")
			state := observedOf(r.pod, patched).state
			g.Expect(state.NextContainerImages).To(BeEmpty())
			if len(tc.batches) > 1 {
				g.Expect(state.ContainerBatchesRecord).To(HaveLen(len(tc.batches)))
			} else {
				g.Expect(state.ContainerBatchesRecord).To(BeEmpty())
			}
		})
	}
}

// TestAContainerOfAnEarlierBatchFails: a container that was ready once keeps the last
// batch away, too, if it fails while the one after it starts.
func TestAContainerOfAnEarlierBatchFails(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "3", "2", "1")
	g.Expect(changes(r.step("2"))).To(Equal("Patch [db] then [app log]"))
	r.act(true)
	g.Expect(changes(r.step("2"))).To(Equal("Patch [app] then [log]"))
	r.act(true)
	r.pod.Status.ContainerStatuses[0].Ready = false

	step := r.step("2")
	g.Expect(step).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonNextBatch)))
	g.Expect(step.Message).To(HavePrefix("container db is not ready"))

	r.act(true)
	g.Expect(changes(r.step("2"))).To(Equal("Patch [log] then []"))
}

// A merge gives the containers the order of the patch, and the API server lets no pod
// change that.
func TestPatchesKeepTheOrderOfTheContainers(t *testing.T) {
	for _, priorities := range [][]string{{"1", "2", "3"}, {"2", "3", "1"}, {"", "1", ""}} {
		t.Run(fmt.Sprint(priorities), func(t *testing.T) {
			g := NewWithT(t)
			r := newRanked(t, priorities...)
			step := Next(PodFacts{Pod: r.pod, From: &Revision{Name: RevisionOf(r.pod), Template: r.template("1")}},
				Target{Revision: Revision{Name: "2", Template: r.template("2")}, Policy: "InPlaceOnly", CannotDrain: unheeded}, patched)
			trial, err := TrialPatch(r.pod, step, "2", patched)
			g.Expect(err).NotTo(HaveOccurred())

			var names, images []string
			for _, container := range mergePod(t, r.pod, trial).Spec.Containers {
				names, images = append(names, container.Name), append(images, container.Image)
			}
			g.Expect(names).To(Equal(rankedNames))
			g.Expect(images).To(Equal([]string{"db:2", "app:2", "log:2"}))
		})
	}
}

// The resize that closes an update leaves what is noted of its batches, and another
// revision does not.
func TestAResizeKeepsTheRecordOfTheBatches(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "2", "1", "")
	for range 3 {
		r.step("2")
		r.act(true)
	}
	o := observedOf(r.pod, patched)
	g.Expect(o.state.ContainerBatchesRecord).To(HaveLen(3))
	g.Expect(newState(o, Change{}, "2", patched).ContainerBatchesRecord).To(Equal(o.state.ContainerBatchesRecord))
	g.Expect(newState(o, Change{}, "3", patched).ContainerBatchesRecord).To(BeEmpty())
}

// sized gives every container of the pod, and of the templates, memory and CPU.
func (r *ranked) sized(old, updated string) {
	for revision, memory := range map[string]string{"1": old, "2": updated} {
		containers := make([]string, len(rankedNames))
		for i, name := range rankedNames {
			containers[i] = fmt.Sprintf(`{"name":%q,"image":"%s:%s","resources":{"requests":{"memory":%q},"limits":{"memory":%q}}}`, name, name, revision, memory, memory)
		}
		r.revisions[revision] = parse(r.t, `{"spec":{"containers":[`+strings.Join(containers, ",")+`]}}`)
	}
	for i := range r.pod.Spec.Containers {
		amount := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(old)}
		r.pod.Spec.Containers[i].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	}
	r.reportSizes()
}

func (r *ranked) memory() string {
	var limits []string
	for i := range r.pod.Spec.Containers {
		limits = append(limits, r.pod.Spec.Containers[i].Resources.Limits.Memory().String())
	}
	return strings.Join(limits, ",")
}

// A container keeps its memory while it runs its old image: it waits for those before it,
// for ever if they fail.
func TestMemoryIsLoweredWithTheBatchOfItsContainer(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "3", "2", "1")
	r.sized("64Mi", "32Mi")

	for _, memory := range []string{"32Mi,64Mi,64Mi", "32Mi,32Mi,64Mi", "32Mi,32Mi,32Mi"} {
		g.Expect(r.step("2").Change.Images).To(HaveLen(1))
		g.Expect(r.memory()).To(Equal(memory))
		r.act(false)
		r.step("2")
		g.Expect(r.memory()).To(Equal(memory), "the container is not ready")
		r.act(true)
	}
	g.Expect(r.step("2").Action).To(Equal(MarkReady))
	g.Expect(r.runs()).To(Equal("2,2,2"))
	g.Expect(r.ids).To(Equal(3), "each was restarted once")
	g.Expect(observedOf(r.pod, patched).state.NextContainerResources).To(BeEmpty())
}

// A pod that serves between two batches goes on within the budget, also where the next one
// comes with other sizes.
func TestABatchWithSizesTakesItsTurn(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "3", "2", "1")
	r.sized("64Mi", "32Mi")
	r.pod.Spec.ReadinessGates = nil
	r.step("2")
	r.act(true)
	r.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	down := builders.Pod("sample-1", "2", "db:2").Ready(false, builders.Start).Build()
	w := Workload{
		Target: Target{Revision: Revision{Name: "2", Template: r.template("2")}, Policy: inPlaceOnly, CannotDrain: unheeded}, Replicas: 2, MaxUnavailable: 1, MaxConcurrentResizes: 1,
		Pods: []PodFacts{
			{Pod: r.pod, From: &Revision{Name: "2", Template: r.template("2")}}, {Pod: down, From: &Revision{Name: "2", Template: r.template("2")}},
		},
	}

	plan := MakePlan(w, patched)
	g.Expect(plan.Moves).NotTo(ContainElement(HaveField("Pod.Name", "sample-0")))
	g.Expect(plan.Blockers).To(ContainElement(And(HaveField("Pod.Name", "sample-0"), HaveField("Reason", ReasonBudget))))

	w.MaxUnavailable = 2
	g.Expect(MakePlan(w, patched).Moves).To(ContainElement(And(HaveField("Pod.Name", "sample-0"), HaveField("Step.Action", Resize))))
}

// The manager dies after the sizes were written, and before the image.
func TestMemoryOfABatchWithoutItsImage(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "3", "2", "1")
	r.sized("64Mi", "32Mi")
	r.step("2")
	r.act(true)
	r.pod.Spec.Containers[1].Resources = r.pod.Spec.Containers[0].Resources

	g.Expect(changes(r.step("2"))).To(Equal("Patch [app] then [log]"))
	g.Expect(r.memory()).To(Equal("32Mi,32Mi,64Mi"))
}

func TestABatchOfSizesIsTakenBack(t *testing.T) {
	g := NewWithT(t)
	r := newRanked(t, "3", "2", "1")
	r.sized("64Mi", "32Mi")
	r.step("2")
	r.act(false)

	for range 10 {
		r.step("1")
		r.act(true)
	}

	g.Expect(r.memory()).To(Equal("64Mi,64Mi,64Mi"))
	g.Expect(r.runs()).To(Equal("1,1,1"))
	g.Expect(r.ids).To(Equal(2), "only the first was restarted")
	g.Expect(observedOf(r.pod, patched).state.NextContainerResources).To(BeEmpty())
}

func TestTheAnnotationGivesTheOrderOfTheTemplate(t *testing.T) {
	r := newRanked(t, "", "", "")
	r.pod.Annotations = map[string]string{appsv1beta1.ContainerLaunchPriorityKey: appsv1beta1.ContainerLaunchOrdered}
	NewWithT(t).Expect(changes(r.step("2"))).To(Equal("Patch [db] then [app log]"))
}

// Whatever overtakes an update in the middle, and wherever, the pod ends with what
// was asked for last, and no container is restarted in vain.
func TestABatchIsOvertaken(t *testing.T) {
	for name, tc := range map[string]struct {
		// batches are how many of the first update are complete, begun is true when
		// the next was written, too.
		batches  int
		begun    bool
		next     string
		restarts int
	}{
		"by the next revision, after the first": {1, false, "3", 1 + 3},
		// The kubelet has been told already, and does it.
		"by the next, in the middle of the second":    {1, true, "3", 1 + 4},
		"by the previous, after the first":            {1, false, "1", 1 + 1},
		"by the previous, after the second":           {2, false, "1", 2 + 2},
		"by one that leaves the rest as it was":       {1, false, "2,1,1", 1},
		"by one that changes the rest otherwise":      {1, false, "2,3,3", 1 + 2},
		"by one that wants what is there and to come": {1, false, "2,2,1", 1 + 1},
		"by one that takes the first back":            {1, false, "1,2,2", 1 + 3},
		"by itself":                                   {1, false, "2", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newRanked(t, "3", "2", "1")
			for range tc.batches {
				g.Expect(r.step("2").Action).To(Equal(Patch))
				r.act(true)
			}
			if tc.begun {
				g.Expect(r.step("2").Action).To(Equal(Patch))
			}
			for range 20 {
				if step := r.step(tc.next); step.Action == MarkReady {
					break
				}
				r.act(true)
			}
			want := tc.next
			if len(want) == 1 {
				want = strings.Join([]string{want, want, want}, ",")
			}
			g.Expect(r.step(tc.next).Action).To(Equal(MarkReady))
			g.Expect(r.runs()).To(Equal(want))
			g.Expect(r.ids).To(Equal(tc.restarts), "restarts")
		})
	}
}

// The annotation is written with the first batch, so nothing but the record tells
// that the environment of the second is out of date.
func TestAnEnvironmentThatIsToComeIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	const raw = `{"metadata":{"annotations":{"level":"1"}},"spec":{"containers":[{"name":"db","image":"db:1"},{"name":"app","image":"app:1","env":[` +
		`{"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]},{"name":"log","image":"log:1"}]}}`
	r := newRanked(t, "3", "2", "1")
	r.pod.Annotations = map[string]string{"level": "1"}
	r.revisions["1"] = parse(t, raw)
	r.revisions["2"] = parse(t, strings.NewReplacer("db:1", "db:2", "app:1", "app:2", `"level":"1"`, `"level":"2"`).Replace(raw))
	r.revisions["back"] = parse(t, strings.NewReplacer("db:1", "db:2", `"level":"1"`, `"level":"2"`).Replace(raw))
	g.Expect(changes(r.step("2"))).To(Equal("Patch [db] then [app]"))

	change, refused := Compare(r.pod, r.template("2"), r.template("back"), patched)

	g.Expect(refused).To(BeNil())
	g.Expect(change.Images).To(ConsistOf(And(HaveField("Container", "app"), HaveField("Restart", true), HaveField("Reads", "metadata.annotations['level']"))))
}
