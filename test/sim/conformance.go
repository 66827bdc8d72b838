// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// PodStory is what an operator does to one pod that has no owner, told such that
// the simulated kubelet and a real one can be given the same to do. The pod has the
// readiness gate of in-place updates, and its story begins when it is ready.
type PodStory struct {
	Name string
	// Sidecar is the name of a native sidecar; empty if there is none.
	Sidecar string
	// Containers are the names of the containers.
	Containers []string
	// Sized: the containers have resources, and restart when Restarts changes.
	Sized    bool
	Restarts corev1.ResourceName
	Acts     []Act
}

// Act is one write of the operator: of an image, of the gate, or of a size.
type Act struct {
	Container string
	Image     Image
	// Gate is what the gate becomes; empty if an image changes.
	Gate corev1.ConditionStatus
	// Resource is what gets a Size; empty if something else changes.
	Resource corev1.ResourceName
	Size     string
	// Until is what is waited for before the next act; nil to go on at once.
	Until func(Observation) bool
}

func (a Act) String() string {
	if a.Gate != "" {
		return fmt.Sprintf("gate becomes %s", a.Gate)
	}
	if a.Resource != "" {
		return fmt.Sprintf("%s gets %s %s", a.Container, a.Size, a.Resource)
	}
	return fmt.Sprintf("%s gets image %s", a.Container, a.Image)
}

// Subresource is what the act writes to; empty for the pod itself.
func (a Act) Subresource() string {
	switch {
	case a.Gate != "":
		return statusSubresource
	case a.Resource != "":
		return resizeSubresource
	default:
		return ""
	}
}

// Image is an image by what is special about it.
type Image string

// The images of stories. Every container starts from the first.
const (
	ImageA Image = "a"
	ImageB Image = "b"
	// ImageBAgain is another tag of the digest of ImageB.
	ImageBAgain  Image = "b again"
	ImageMissing Image = "missing"
	// ImageCrash ends with an error within seconds, and is never ready.
	ImageCrash Image = "crash"
)

// PodStories are the stories on which the model and the real kubelet must agree.
var PodStories = []PodStory{
	{Name: "an image changes and changes back", Containers: []string{"app"}, Acts: []Act{
		{Container: "app", Image: ImageB, Until: runs("app", 2, 2)},
		{Container: "app", Image: ImageA, Until: runs("app", 3, 1)},
	}},
	{Name: "one of two containers changes out of service", Containers: []string{"app", "log"}, Acts: []Act{
		{Gate: corev1.ConditionFalse, Until: isReady(false)},
		{Container: "log", Image: ImageB, Until: runs("log", 2, 2)},
		{Gate: corev1.ConditionTrue, Until: isReady(true)},
	}},
	{Name: "a change is taken back at once", Containers: []string{"app"}, Acts: []Act{
		{Container: "app", Image: ImageB},
		{Container: "app", Image: ImageA, Until: runs("app", 1, 1)},
	}},
	{Name: "an image is missing", Containers: []string{"app"}, Acts: []Act{
		{Container: "app", Image: ImageMissing, Until: isIn("app", StateImageFailure)},
		{Container: "app", Image: ImageA, Until: runs("app", 2, 1)},
	}},
	{Name: "an image crashes", Containers: []string{"app"}, Acts: []Act{
		{Container: "app", Image: ImageCrash, Until: crashed("app", 3)},
		{Container: "app", Image: ImageA, Until: runs("app", 4, 1)},
	}},
	{Name: "another tag has the same digest", Containers: []string{"app"}, Acts: []Act{
		{Container: "app", Image: ImageB, Until: runs("app", 2, 2)},
		{Container: "app", Image: ImageBAgain, Until: runs("app", 3, 2)},
	}},
	{Name: "a native sidecar changes, to a missing image too", Sidecar: "proxy", Containers: []string{"app"}, Acts: []Act{
		{Container: "proxy", Image: ImageB, Until: runs("proxy", 2, 2)},
		{Container: "proxy", Image: ImageMissing, Until: isIn("proxy", StateEnded)},
		{Container: "proxy", Image: ImageA, Until: runs("proxy", 3, 1)},
	}},
	{Name: "a container grows and shrinks", Containers: []string{"app"}, Sized: true, Acts: []Act{
		{Container: "app", Resource: corev1.ResourceCPU, Size: "50m", Until: isSized(1)},
		{Container: "app", Resource: corev1.ResourceMemory, Size: "96Mi", Until: isSized(1)},
		{Container: "app", Resource: corev1.ResourceCPU, Size: "20m", Until: isSized(1)},
	}},
	{Name: "a container restarts for its memory", Containers: []string{"app"}, Sized: true, Restarts: corev1.ResourceMemory, Acts: []Act{
		{Container: "app", Resource: corev1.ResourceMemory, Size: "96Mi", Until: isSized(2)},
		{Container: "app", Resource: corev1.ResourceCPU, Size: "50m", Until: isSized(2)},
	}},
	{Name: "a size is taken back at once", Containers: []string{"app"}, Sized: true, Acts: []Act{
		{Container: "app", Resource: corev1.ResourceCPU, Size: "50m"},
		{Container: "app", Resource: corev1.ResourceCPU, Size: "20m", Until: isSized(1)},
	}},
}

// isSized waits until all containers have what they are to have, "app" as at
// least the n-th of its name.
func isSized(n int) func(Observation) bool {
	return func(o Observation) bool {
		return runs("app", n, 1)(o) && o.Sized && o.Resize == ""
	}
}

// runs waits until a container runs an image as at least the n-th container of
// its name, and the pod is as ready as its gate lets it be.
func runs(container string, n, image int) func(Observation) bool {
	return func(o Observation) bool {
		c := o.container(container)
		return o.Current && o.Ready == o.Gate && c.State == StateRunning && c.ID >= n && c.Image == image
	}
}

func isIn(container string, state State) func(Observation) bool {
	return func(o Observation) bool { return o.Current && o.container(container).State == state }
}

// crashed waits until the n-th container of a name has ended. That it is in a
// crash loop may show for a moment only, when it is tried again.
func crashed(container string, n int) func(Observation) bool {
	return func(o Observation) bool {
		c := o.container(container)
		return o.Current && c.ID >= n && (c.State == StateEnded || c.State == StateCrashLoop)
	}
}

func isReady(ready bool) func(Observation) bool {
	return func(o Observation) bool { return o.Ready == ready && o.Gate == ready }
}

// Pod returns the pod of a story, with the images that a cluster has.
func (s PodStory) Pod(images map[Image]string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "story"},
		Spec: corev1.PodSpec{
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
			TerminationGracePeriodSeconds: ptr.To[int64](5),
		},
	}
	if s.Sidecar != "" {
		pod.Spec.InitContainers = []corev1.Container{{
			Name: s.Sidecar, Image: images[ImageA], RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		}}
	}
	for _, name := range s.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: images[ImageA]})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if s.Sized {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		}
		if s.Restarts != "" {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: s.Restarts, RestartPolicy: corev1.RestartContainer}}
		}
	}
	return pod
}

// Do changes a pod as the act says.
func (a Act) Do(pod *corev1.Pod, images map[Image]string) {
	if a.Gate != "" {
		SetGate(pod, a.Gate, metav1.Now())
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			switch {
			case containers[i].Name != a.Container:
			case a.Resource != "":
				setSize(&containers[i], a.Resource, a.Size)
			default:
				containers[i].Image = images[a.Image]
			}
		}
	}
}

// SetGate sets the readiness gate of in-place updates.
func SetGate(pod *corev1.Pod, status corev1.ConditionStatus, now metav1.Time) {
	setPodCondition(pod, appsv1beta1.InPlaceUpdateReady, status == corev1.ConditionTrue, now.Time)
}

// State is the state of a container, as far as an operator cares.
type State string

// The states of containers.
const (
	StateRunning      State = "running"
	StateEnded        State = "ended"
	StateImageFailure State = "without image"
	StateCrashLoop    State = "in a crash loop"
	StateCreating     State = "being created"
)

// Observation is what one version of a pod shows, without names and times.
type Observation struct {
	// Current: the kubelet has seen this generation.
	Current     bool
	Ready, Gate bool
	// Resize is what the kubelet says of a change of sizes: empty, InProgress, or
	// why it is pending or fails. Sized: the containers have what they are to have.
	Resize     string
	Sized      bool
	Containers [2]ContainerObservation
}

// ContainerObservation counts the IDs of a container and of its images in the
// order in which they appear, beginning with 1; 0 is none.
type ContainerObservation struct {
	Name      string
	ID, Image int
	State     State
}

func (o Observation) container(name string) ContainerObservation {
	i := slices.IndexFunc(o.Containers[:], func(c ContainerObservation) bool { return c.Name == name })
	return o.Containers[i]
}

func (o Observation) String() string {
	word := func(is bool, word string) string { return map[bool]string{true: word, false: "not " + word}[is] }
	words := []string{word(o.Current, "current") + ", " + word(o.Ready, "ready") + ", " + word(o.Gate, "gate") + ", " + word(o.Sized, "sized") + " " + o.Resize}
	for _, c := range o.Containers {
		if c.Name != "" {
			words = append(words, fmt.Sprintf("%s %d of image %d %s", c.Name, c.ID, c.Image, c.State))
		}
	}
	return strings.Join(words, "; ")
}

// Observer turns the versions of a pod into observations, from when the pod is
// ready for the first time. The zero value is ready for use.
type Observer struct {
	seen []Observation
	ids  map[string][]string
}

// See looks at the next version of the pod.
func (o *Observer) See(pod *corev1.Pod) {
	now := Observation{
		Current: pod.Status.ObservedGeneration == pod.Generation,
		Ready:   conditionIs(pod, corev1.PodReady, corev1.ConditionTrue),
		Gate:    conditionIs(pod, appsv1beta1.InPlaceUpdateReady, corev1.ConditionTrue),
		Resize:  resizeIn(pod),
		Sized:   hasSizes(pod),
	}
	if len(o.seen) == 0 && (!now.Current || !now.Ready) {
		return
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i, c := range statuses {
		now.Containers[i] = ContainerObservation{
			Name: c.Name, ID: o.ordinal("container "+c.Name, c.ContainerID), Image: o.ordinal("image "+c.Name, c.ImageID), State: stateOf(c.State),
		}
	}
	if len(o.seen) == 0 || o.seen[len(o.seen)-1] != now {
		o.seen = append(o.seen, now)
	}
}

// resizeIn returns what the kubelet says of a change of sizes.
func resizeIn(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.PodResizePending, c.Type == corev1.PodResizeInProgress && c.Reason != "":
			return c.Reason
		case c.Type == corev1.PodResizeInProgress:
			return "InProgress"
		}
	}
	return ""
}

// hasSizes reports whether the containers of a pod have what they are to have, as the
// kubelet reports it.
func hasSizes(pod *corev1.Pod) bool {
	wanted := sizesOf(&pod.Spec)
	for _, status := range pod.Status.ContainerStatuses {
		size := wanted[status.Name]
		if len(size.Requests) == 0 {
			continue
		}
		allocated := corev1.ResourceRequirements{Requests: status.AllocatedResources, Limits: size.Limits}
		actual := ptr.Deref(status.Resources, corev1.ResourceRequirements{})
		for _, has := range []corev1.ResourceRequirements{allocated, actual} {
			if !(sizes{status.Name: size}).equal(sizes{status.Name: has}) {
				return false
			}
		}
	}
	return true
}

// Seen returns what was seen; equal observations that follow each other are one.
func (o *Observer) Seen() []Observation { return o.seen }

// Shows reports whether the last observation is as wanted.
func (o *Observer) Shows(wanted func(Observation) bool) bool {
	return len(o.seen) > 0 && (wanted == nil || wanted(o.seen[len(o.seen)-1]))
}

func (o *Observer) ordinal(of, id string) int {
	if id == "" {
		return 0
	}
	if o.ids == nil {
		o.ids = map[string][]string{}
	}
	if !slices.Contains(o.ids[of], id) {
		o.ids[of] = append(o.ids[of], id)
	}
	return slices.Index(o.ids[of], id) + 1
}

func stateOf(state corev1.ContainerState) State {
	switch {
	case state.Running != nil:
		return StateRunning
	case state.Terminated != nil:
		return StateEnded
	case state.Waiting == nil:
		return StateCreating
	}
	switch state.Waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff":
		return StateImageFailure
	case "CrashLoopBackOff":
		return StateCrashLoop
	default:
		return StateCreating
	}
}

// modelImages are the images of stories in the simulation.
var modelImages = map[Image]string{
	ImageA: "app:a", ImageB: bImage, ImageBAgain: sameImage, ImageMissing: missingImage, ImageCrash: crashImage,
}

// storyLimit is longer than any story takes.
const storyLimit = 10 * time.Minute

// Play plays a story on the simulated kubelet, and returns what was seen.
func (s PodStory) Play(choices *Choices) ([]Observation, error) {
	w := newPodWorld(choices)
	pod := s.Pod(modelImages)
	pod.Spec.NodeName = w.nodes[0].node
	if err := w.server.create(pod); err != nil {
		return nil, err
	}
	mutate(w.server, pod.Name, func(pod *corev1.Pod) { SetGate(pod, corev1.ConditionTrue, metav1.NewTime(start)) })
	observer, next, until := &Observer{}, 0, isReady(true)
	for read := 0; w.clock.Now().Sub(start) < storyLimit; {
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		w.nodes[0].step()
		for ; read < len(w.server.log["Pod"]); read++ {
			observer.See(w.server.log["Pod"][read].object.(*corev1.Pod)) //nolint:forcetypeassert // nothing is removed
		}
		// An operator may be slow.
		for observer.Shows(until) && !choices.oneIn(2) {
			if next == len(s.Acts) {
				return observer.Seen(), nil
			}
			mutate(w.server, pod.Name, func(pod *corev1.Pod) { s.Acts[next].Do(pod, modelImages) })
			until = s.Acts[next].Until
			next++
			if until != nil {
				break
			}
		}
	}
	return observer.Seen(), fmt.Errorf("the story does not end: %s", tell(observer.Seen()))
}

// newPodWorld returns a world of one kubelet. No manager drains its pods: that the
// law calls this a violation is of no interest.
func newPodWorld(choices *Choices) *World {
	s := settings{maxStopTime: choices.intN(4), readyTime: choices.seconds(3), resizes: resizes{on: true, delay: 3}}
	w := &World{settings: s, choices: choices, clock: clocktesting.NewFakePassiveClock(start), story: newStory()}
	w.server, w.slices = newServer(w.clock), newEndpoints(w)
	w.nodes = []*kubelet{newKubelet(w, "node-0", false)}
	return w
}

// Behavior is all that the model can show in a story.
type Behavior struct {
	story PodStory
	steps map[[2]Observation]bool
	ends  map[Observation]bool
}

// Behavior plays a story with so many seeds, and returns what was seen in all.
func (s PodStory) Behavior(seeds int) (*Behavior, error) {
	b := &Behavior{story: s, steps: map[[2]Observation]bool{}, ends: map[Observation]bool{}}
	for seed := range seeds {
		seen, err := s.Play(FromSeed(uint64(seed))) //nolint:gosec // never negative
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		for i := 1; i < len(seen); i++ {
			b.steps[[2]Observation{seen[i-1], seen[i]}] = true
		}
		b.ends[seen[len(seen)-1]] = true
	}
	return b, nil
}

// Check returns an error that names all that was seen and the model cannot show;
// nil if there is nothing.
func (b *Behavior) Check(seen []Observation) error {
	var strange []string
	for i := 1; i < len(seen); i++ {
		if !b.steps[[2]Observation{seen[i-1], seen[i]}] && !b.skips(seen[i-1], seen[i]) {
			strange = append(strange, fmt.Sprintf("the model never goes\n  from %s\n  to   %s", seen[i-1], seen[i]))
		}
	}
	if len(seen) == 0 || !b.ends[seen[len(seen)-1]] {
		strange = append(strange, "the model never ends like this")
	}
	if len(strange) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %v\nwas seen as\n%s\n%s", b.story.Name, b.story.Acts, tell(seen), strings.Join(strange, "\n"))
}

// skips reports whether the model goes from one observation to another by way of a
// container that has ended: a kubelet that looks late finds the next one running already.
func (b *Behavior) skips(from, to Observation) bool {
	for step := range b.steps {
		hasEnded := slices.ContainsFunc(step[1].Containers[:], func(c ContainerObservation) bool { return c.State == StateEnded })
		if step[0] == from && hasEnded && b.steps[[2]Observation{step[1], to}] {
			return true
		}
	}
	return false
}

func tell(seen []Observation) string {
	lines := make([]string, 0, len(seen))
	for i, o := range seen {
		lines = append(lines, fmt.Sprintf("%3d %s", i, o))
	}
	return strings.Join(lines, "\n")
}
