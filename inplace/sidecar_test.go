// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

const (
	proxyV1 = "proxy:1"
	proxyV2 = "proxy:2"
	setupV1 = "setup:1"
)

// sidecarTemplate has an init container that runs once, between two sidecars.
// The replacements are pairs of old and new.
func sidecarTemplate(t testing.TB, replacements ...string) *Template {
	t.Helper()
	const raw = `{"metadata":{"annotations":{"level":"info"}},"spec":{"initContainers":[` +
		`{"name":"log","image":"log:1","restartPolicy":"Always"},` +
		`{"name":"setup","image":"setup:1"},` +
		`{"name":"proxy","image":"proxy:1","restartPolicy":"Always","env":[{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]}` +
		`],"containers":[{"name":"main","image":"nginx:alpine"}]}}`
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(raw, replacements[i]) {
			t.Fatalf("the template has no %s", replacements[i])
		}
	}
	return parse(t, strings.NewReplacer(replacements...).Replace(raw))
}

// sidecarPod runs sidecarTemplate, with another image of its proxy and what that
// container shows.
func sidecarPod(revision, image string, proxy corev1.ContainerStatus) *builders.PodBuilder {
	return builders.Pod("sample-0", revision, alpineImage).Annotation("level", "info").
		Gated(corev1.ConditionTrue, builders.Start).
		Sidecar("log:1", builders.RunningContainer("log", "log-1", "log:1", builders.Start)).
		RanOnce("setup", setupV1).Sidecar(image, proxy)
}

func oldProxy() corev1.ContainerStatus {
	return builders.RunningContainer("proxy", "proxy-1", proxyV1, builders.Start)
}

// newProxy was started from the new image at a second after the change.
func newProxy(second int) corev1.ContainerStatus {
	return builders.RunningContainer("proxy", "proxy-2", proxyV2, after(second))
}

// proxyOf is a running proxy of the old image ID: of another tag of one digest.
func proxyOf(id string, started time.Time) corev1.ContainerStatus {
	status := builders.RunningContainer("proxy", id, proxyV2, started)
	status.ImageID = builders.ImageID(proxyV1)
	return status
}

// endedProxy was stopped for another image. This is all that the kubelet shows
// while it cannot get that image.
func endedProxy() corev1.ContainerStatus {
	status := oldProxy()
	status.Ready, status.Started = false, ptr.To(false)
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", ContainerID: status.ContainerID, StartedAt: metav1.NewTime(builders.Start), FinishedAt: metav1.NewTime(after(2)),
	}}
	return status
}

func proxyTo(from, to string) ImageChange {
	return ImageChange{Container: "proxy", Sidecar: true, From: from, To: to}
}

func proxyRecord(image string) appsv1beta1.InPlaceUpdateState {
	return appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(patched),
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
			"proxy": {ImageID: builders.ImageID(proxyV1), ContainerID: "containerd://proxy-1", Image: image},
		},
	}
}

func TestCompareOfSidecars(t *testing.T) {
	g := NewWithT(t)
	pod := sidecarPod("a", proxyV1, oldProxy()).Build()

	change, refused := Compare(pod, sidecarTemplate(t), sidecarTemplate(t, "proxy:1", proxyV2), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change).To(Equal(Change{Images: []ImageChange{proxyTo(proxyV1, proxyV2)}}))
	g.Expect(change.Restarts()).To(BeTrue())
	g.Expect(change.String()).To(Equal("image of proxy: proxy:1 to proxy:2"))

	change, refused = Compare(pod, sidecarTemplate(t), sidecarTemplate(t, "proxy:1", proxyV2, "log:1", "log:2", alpineImage, latestImage), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change.Images).To(Equal([]ImageChange{
		{Container: "main", From: alpineImage, To: latestImage},
		{Container: "log", Sidecar: true, From: "log:1", To: "log:2"},
		proxyTo(proxyV1, proxyV2),
	}))

	change, refused = Compare(pod, sidecarTemplate(t, "proxy:1", "proxy:0"), sidecarTemplate(t), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change.Restarts()).To(BeFalse(), "the pod is that already")

	// The sidecar reads the annotation, and restarts.
	_, refused = Compare(pod, sidecarTemplate(t), sidecarTemplate(t, `"level":"info"`, `"level":"debug"`, "proxy:1", proxyV2), patched)
	g.Expect(refused).To(BeNil())
}

func TestCompareRefusesOfInitContainers(t *testing.T) {
	const log = `{"name":"log","image":"log:1","restartPolicy":"Always"}`
	for name, tc := range map[string]struct {
		to                   []string
		reason, field, words string
	}{
		"the image of one that runs once": {
			[]string{setupV1, "setup:2"}, ReasonRunsOnce, "spec.initContainers[setup].image", "runs once, before the containers",
		},
		"one more": {
			[]string{log, log + `,{"name":"other","image":"a"}`}, ReasonContainersChanged, "spec.initContainers[other]", "was added",
		},
		"one more sidecar": {
			[]string{log, log + `,{"name":"other","restartPolicy":"Always"}`}, ReasonContainersChanged, "spec.initContainers[other]", "was added",
		},
		"one less": {[]string{log + ",", ""}, ReasonContainersChanged, "spec.initContainers[log]", "was removed"},
		"another order": {
			[]string{`"name":"log"`, `"name":"setup"`, `"name":"setup"`, `"name":"log"`, "log:1", setupV1, setupV1, "log:1"},
			ReasonContainersChanged, "spec.initContainers", "another order",
		},
		"a sidecar that becomes an init container, with another image": {
			[]string{log, `{"name":"log","image":"log:2"}`}, ReasonFieldImmutable, "spec.initContainers[log].restartPolicy", "was removed",
		},
		"an init container that becomes a sidecar, with another image": {
			[]string{`"image":"setup:1"`, `"image":"setup:2","restartPolicy":"Always"`},
			ReasonFieldImmutable, "spec.initContainers[setup].restartPolicy", "was added",
		},
		"another field of a sidecar": {
			[]string{log, `{"name":"log","image":"log:2","restartPolicy":"Always","args":["-v"]}`},
			ReasonFieldImmutable, "spec.initContainers[log].args", "was added",
		},
		"an annotation that one has read which runs once": {
			[]string{`"level":"info"`, `"level":"debug"`, `"image":"setup:1"`,
				`"image":"setup:1","env":[{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]`},
			ReasonFieldImmutable, "spec.initContainers[setup].env", "was added",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, refused := Compare(sidecarPod("a", proxyV1, oldProxy()).Build(), sidecarTemplate(t), sidecarTemplate(t, tc.to...), patched)
			g.Expect(refused).NotTo(BeNil())
			g.Expect(refused.Reason).To(Equal(tc.reason))
			g.Expect(refused.Field).To(Equal(tc.field))
			g.Expect(refused.Message).To(And(ContainSubstring(tc.field), ContainSubstring(tc.words)))
		})
	}
}

// Containers gives the sidecars after the containers, so that the first one is
// what it was before there were sidecars. A container may have a restartPolicy
// of its own, and is none.
func TestContainersOfATemplateWithSidecars(t *testing.T) {
	template := sidecarTemplate(t, `{"name":"main",`, `{"name":"main","restartPolicy":"Always",`)
	NewWithT(t).Expect(template.Containers()).To(Equal([]Container{
		{Name: "main", Image: alpineImage}, {Name: "log", Image: "log:1", Sidecar: true}, {Name: "proxy", Image: proxyV1, Sidecar: true},
	}))
}

func TestObserveOfSidecars(t *testing.T) {
	starting := func(status corev1.ContainerStatus) corev1.ContainerStatus {
		status.Started = ptr.To(false)
		return status
	}
	started := func(status corev1.ContainerStatus) corev1.ContainerStatus {
		status.Started = ptr.To(true)
		return status
	}
	crashing := corev1.ContainerStatus{
		Name: "proxy", ContainerID: "containerd://proxy-7", ImageID: builders.ImageID(proxyV2),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}
	// The pod is to run proxy:2; the settle time is 45 s.
	for name, tc := range map[string]struct {
		before   string
		status   corev1.ContainerStatus
		observed int64
		now      int
		// containersReady is since when the condition ContainersReady holds.
		containersReady int
		complete        bool
		reason          string
		recheck         time.Time
	}{
		"not seen by the kubelet":           {before: proxyV1, status: oldProxy(), observed: 2, now: 9, reason: ReasonNotObserved},
		"seen, and still the old container": {before: proxyV1, status: oldProxy(), observed: 3, now: 999, reason: ReasonContainerRestarting},
		"restarted":                         {before: proxyV1, status: newProxy(2), observed: 3, now: 3, complete: true},
		"restarted, and starting":           {before: proxyV1, status: starting(newProxy(2)), observed: 3, now: 3, complete: true},
		"another tag of the same digest":    {before: proxyV1, status: proxyOf("proxy-2", after(2)), observed: 3, now: 3, complete: true},
		"rolled back before the kubelet acted": {
			before: proxyV2, status: proxyOf("proxy-1", builders.Start), observed: 3, now: 1, complete: true,
		},
		"rolled back, not seen by the kubelet": {
			before: proxyV2, status: proxyOf("proxy-1", builders.Start), observed: 2, now: 1, reason: ReasonNotObserved,
		},
		"ended, and not started again":   {before: proxyV1, status: endedProxy(), observed: 3, now: 99, reason: ReasonContainerRestarting},
		"rolled back from such a one":    {before: proxyV2, status: endedProxy(), observed: 3, now: 99, reason: ReasonContainerRestarting},
		"ended before that was observed": {before: proxyV1, status: endedProxy(), observed: 2, now: 99, reason: ReasonNotObserved},
		"keeps crashing":                 {before: proxyV1, status: crashing, observed: 3, now: 3, reason: "CrashLoopBackOff"},
		"crashed just before the change": {
			before: proxyV1, status: started(proxyOf("proxy-2", after(-1))), observed: 3, now: 3, reason: ReasonSettling, recheck: after(45),
		},
		"crashed just before the change, and stays": {
			before: proxyV1, status: started(proxyOf("proxy-2", after(-1))), observed: 3, now: 45, complete: true,
		},
		// The kubelet does nothing to a sidecar that is still starting.
		"crashed just before the change, and is starting for long": {
			before: proxyV1, status: starting(proxyOf("proxy-2", after(-1))), observed: 3, now: 999, reason: ReasonContainerRestarting,
		},
		"crashed just before the change, and has started late": {
			before: proxyV1, status: started(proxyOf("proxy-2", after(-1))), observed: 3, now: 999, containersReady: 990,
			reason: ReasonSettling, recheck: after(1035),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := sidecarPod("b", proxyV2, tc.status).Record(proxyRecord(tc.before)).Generation(3, tc.observed).
				Condition(corev1.ContainersReady, corev1.ConditionTrue, after(tc.containersReady)).Build()
			progress := Observe(pod, after(tc.now))
			g.Expect(progress.Complete).To(Equal(tc.complete), progress.Message)
			g.Expect(progress.Reason).To(Equal(tc.reason), progress.Message)
			g.Expect(progress.Recheck).To(BeTemporally("==", tc.recheck))
			if !tc.complete {
				g.Expect(progress.Message).To(ContainSubstring("proxy"))
			}
		})
	}
}

// One that does not run is not starting: what is started next is what is wanted,
// and time tells that nothing else was about to be.
func TestTimeDecidesOnASidecarThatKeepsCrashing(t *testing.T) {
	g := NewWithT(t)
	status := proxyOf("proxy-7", after(-1))
	status.Started = ptr.To(false)
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	pod := sidecarPod("b", proxyV2, status).Record(proxyRecord(proxyV1)).Generation(3, 3).Build()
	g.Expect(Observe(pod, after(44)).Proved).To(BeFalse())
	g.Expect(Observe(pod, after(45))).To(And(HaveField("Proved", true), HaveField("Complete", false)))
}

// What has run once is neither incomplete nor broken, whatever happens to the
// others; its name in a record, where another release put it, changes nothing.
func TestWhatRanOnceHoldsUpNothing(t *testing.T) {
	g := NewWithT(t)
	state := proxyRecord(proxyV1)
	state.LastContainerStatuses["setup"] = appsv1beta1.InPlaceUpdateContainerStatus{ContainerID: "containerd://setup-1", Image: "setup:0"}
	pod := sidecarPod("b", proxyV2, newProxy(2)).Record(state).Generation(3, 3).Build()
	g.Expect(finishOf(observedOf(pod, patched), Target{}, after(3))).To(Equal(Step{State: Settled}))

	pod = sidecarPod("b", proxyV2, newProxy(2)).Record(state).Generation(3, 3).Ready(false, after(2)).Build()
	g.Expect(IsBroken(pod)).To(BeFalse())
	running := pod.Status.ContainerStatuses[0].State
	pod.Status.ContainerStatuses[0].State = endedProxy().State
	g.Expect(IsBroken(pod)).To(BeFalse(), "of a container more is said soon")
	pod.Status.ContainerStatuses[0].State = running
	pod.Status.InitContainerStatuses[2].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	g.Expect(IsBroken(pod)).To(BeTrue(), "a sidecar that keeps crashing breaks the pod")
	pod.Status.InitContainerStatuses[2] = endedProxy()
	g.Expect(IsBroken(pod)).To(BeTrue(), "so does one that ended, and of which no more is said")
}

func TestAvailabilityCountsFromTheRestartOfASidecar(t *testing.T) {
	g := NewWithT(t)
	pod := sidecarPod("b", proxyV2, newProxy(2)).Build()
	g.Expect(isAvailable(pod, 10, after(11))).To(BeFalse())
	g.Expect(isAvailable(pod, 10, after(13))).To(BeTrue())
}

func TestRevisionPatchOfASidecar(t *testing.T) {
	g := NewWithT(t)
	pod := sidecarPod("a", proxyV1, oldProxy()).Build()
	for name, tc := range map[string]struct {
		images []ImageChange
		spec   string
	}{
		"the sidecar": {
			[]ImageChange{proxyTo(proxyV1, proxyV2)},
			`{"initContainers": [{"name": "proxy", "image": "proxy:2"}]}`,
		},
		"both kinds": {
			append(imageTo(alpineImage, latestImage), proxyTo(proxyV1, proxyV2)),
			`{"containers": [{"name": "main", "image": "nginx:latest"}], "initContainers": [{"name": "proxy", "image": "proxy:2"}]}`,
		},
	} {
		change := Change{Images: tc.images}
		patch, err := RevisionPatch(pod, Step{Action: Patch, Change: change, Record: newState(observedOf(pod, patched), change, "b", patched)})
		g.Expect(err).NotTo(HaveOccurred())
		sent := map[string]json.RawMessage{}
		g.Expect(json.Unmarshal(patch, &sent)).To(Succeed())
		g.Expect(sent["spec"]).To(MatchJSON(tc.spec), name)

		// Order means something to init containers, and a list that is not
		// named must not be taken for one to be removed.
		want := pod.DeepCopy()
		want.Spec.InitContainers[2].Image = proxyV2
		if len(tc.images) == 2 {
			want.Spec.Containers[0].Image = latestImage
		}
		merged := mergePod(t, pod, patch)
		g.Expect(merged.Spec).To(Equal(want.Spec), name)
		state, err := readState(merged)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.LastContainerStatuses).To(HaveLen(len(tc.images)))
		g.Expect(state.LastContainerStatuses).To(HaveKeyWithValue("proxy", proxyRecord(proxyV1).LastContainerStatuses["proxy"]))
	}
}

// Forth and back while the kubelet has done nothing yet: the record says so, and
// the container that is kept completes the way back.
func TestNextOfASidecarForthAndBack(t *testing.T) {
	g := NewWithT(t)
	revisions := map[string]*Revision{
		"a": {Name: "a", Template: sidecarTemplate(t)},
		"b": {Name: "b", Template: sidecarTemplate(t, "proxy:1", proxyV2)},
	}
	next := func(pod *corev1.Pod, to string, now time.Time) Step {
		return Next(PodFacts{Pod: pod, From: revisions[RevisionOf(pod)]}, Target{Revision: *revisions[to], Policy: inPlaceIfPossible}, now)
	}
	write := func(pod *corev1.Pod, step Step, revision string) *corev1.Pod {
		g.Expect(step.Action).To(Equal(Patch), step.Message)
		patch, err := RevisionPatch(pod, step)
		g.Expect(err).NotTo(HaveOccurred())
		merged := mergePod(t, pod, patch)
		merged.Generation++
		return merged
	}
	pod := sidecarPod("a", proxyV1, oldProxy()).Build()
	g.Expect(next(pod, "b", patched)).To(And(HaveField("Action", MarkNotReady), HaveField("Change.Images", ConsistOf(proxyTo(proxyV1, proxyV2)))))

	drained := sidecarPod("a", proxyV1, oldProxy()).Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(-5)).Ready(false, after(-4)).Build()
	forth := write(drained, next(drained, "b", patched), "b")
	g.Expect(next(forth, "b", after(1)).Reason).To(Equal(ReasonNotObserved))
	forth.Status.ObservedGeneration = forth.Generation
	g.Expect(next(forth, "b", after(1))).To(And(HaveField("State", Restarting), HaveField("Reason", ReasonContainerRestarting)))

	back := write(forth, next(forth, "a", after(2)), "a")
	g.Expect(back.Spec.InitContainers[2].Image).To(Equal(proxyV1))
	state, err := readState(back)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.LastContainerStatuses["proxy"]).To(And(HaveField("Superseding", true), HaveField("Image", proxyV1)))
	g.Expect(next(back, "a", after(3)).Reason).To(Equal(ReasonNotObserved))
	back.Status.ObservedGeneration = back.Generation
	g.Expect(next(back, "a", after(3)).Action).To(Equal(MarkReady))

	// The kubelet was faster: what runs is the overtaken image, and will stop.
	back.Status.InitContainerStatuses[2] = newProxy(2)
	g.Expect(next(back, "a", after(4)).Reason).To(Equal(ReasonSettling))
}

func TestNextRefusesAnInitContainerThatRunsOnce(t *testing.T) {
	g := NewWithT(t)
	target := Target{Revision: Revision{Name: "b", Template: sidecarTemplate(t, setupV1, "setup:2")}, Policy: inPlaceIfPossible}
	facts := PodFacts{Pod: sidecarPod("a", proxyV1, oldProxy()).Build(), From: &Revision{Name: "a", Template: sidecarTemplate(t)}}
	g.Expect(Next(facts, target, patched)).To(And(HaveField("Action", Recreate), HaveField("Message", ContainSubstring("spec.initContainers[setup].image"))))
	target.Policy = inPlaceOnly
	g.Expect(Next(facts, target, patched)).To(And(HaveField("State", Stuck), HaveField("Reason", ReasonRunsOnce)))
}
