// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// patched is when the pods of these tests were changed, seconds after start.
var patched = builders.Start.Add(10 * time.Minute)

func after(seconds int) time.Time {
	return patched.Add(time.Duration(seconds) * time.Second)
}

// entry is what ran before the change: main-1, from image.
func entry(image string) appsv1beta1.InPlaceUpdateContainerStatus {
	return appsv1beta1.InPlaceUpdateContainerStatus{
		ImageID: builders.ImageID(alpineImage), ContainerID: "containerd://main-1", Image: image,
	}
}

func record(e appsv1beta1.InPlaceUpdateContainerStatus) appsv1beta1.InPlaceUpdateState {
	return appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(patched),
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": e},
	}
}

func waitingContainer(id, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: "main", ContainerID: id, ImageID: builders.ImageID(alpineImage),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "told by the kubelet"}},
	}
}

// sameDigest is a running container whose image ID is that of before.
func sameDigest(id string, started time.Time) corev1.ContainerStatus {
	status := builders.RunningContainer("main", id, latestImage, started)
	status.ImageID = builders.ImageID(alpineImage)
	return status
}

func TestObserve(t *testing.T) {
	superseding := entry("")
	superseding.Superseding = true
	supersedingKnown := entry(latestImage)
	supersedingKnown.Superseding = true
	restarting := entry(alpineImage)
	restarting.Restarting = true
	foreign := appsv1beta1.InPlaceUpdateContainerStatus{ImageID: builders.ImageID(alpineImage)}

	// The pods run image nginx:latest by their spec; the settle time is 30 s of
	// grace and 15 s of margin.
	for name, tc := range map[string]struct {
		entry          appsv1beta1.InPlaceUpdateContainerStatus
		status         corev1.ContainerStatus
		live, observed int64
		now            time.Time
		complete       bool
		reason         string
		recheck        time.Time
	}{
		"of the same content, started by the kubelet that was about to": {
			entry: restarting, status: sameDigest("main-2", after(2)),
			live: 3, observed: 3, now: after(10), reason: ReasonSettling, recheck: after(47),
		},
		"of other content, started by the kubelet that was about to": {
			entry: restarting, status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 3, now: after(10), complete: true,
		},
		"started before the change, and said so after it": {
			entry: appsv1beta1.InPlaceUpdateContainerStatus{Image: alpineImage}, status: builders.RunningContainer("main", "main-1", alpineImage, after(-1)),
			live: 3, observed: 3, now: after(10), reason: ReasonSettling, recheck: after(45),
		},
		"started for the first time after the change": {
			entry: appsv1beta1.InPlaceUpdateContainerStatus{Image: alpineImage}, status: builders.RunningContainer("main", "main-1", latestImage, after(1)),
			live: 3, observed: 3, now: after(10), complete: true,
		},
		"not seen by the kubelet": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 2, now: after(100), reason: ReasonNotObserved,
		},
		"seen, and still the old container": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-1", alpineImage, builders.Start),
			live: 3, observed: 3, now: after(1000), reason: ReasonContainerRestarting,
		},
		"restarted with another image": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 3, now: after(3), complete: true,
		},
		"restarted with another image on a node whose clock is behind": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-2", latestImage, after(-60)),
			live: 3, observed: 3, now: after(3), complete: true,
		},
		"another tag of the same digest, started after the change": {
			entry: entry(alpineImage), status: sameDigest("main-2", after(2)),
			live: 3, observed: 3, now: after(3), complete: true,
		},
		"crashed just before the change, about to be restarted": {
			entry: entry(alpineImage), status: sameDigest("main-2", after(-1)),
			live: 3, observed: 3, now: after(3), reason: ReasonSettling, recheck: after(45),
		},
		"started in the second of the change, settled": {
			entry: entry(alpineImage), status: sameDigest("main-2", after(0)),
			live: 3, observed: 3, now: after(45), complete: true,
		},
		"rolled back before the kubelet acted": {
			entry: entry(latestImage), status: sameDigest("main-1", builders.Start),
			live: 3, observed: 3, now: after(1), complete: true,
		},
		"rolled back, the kubelet has not seen it": {
			entry: entry(latestImage), status: sameDigest("main-1", builders.Start),
			live: 3, observed: 2, now: after(1), reason: ReasonNotObserved,
		},
		"rolled back, the overtaken image was started and will be replaced": {
			entry: supersedingKnown, status: builders.RunningContainer("main", "main-2", alpineImage, after(5)),
			live: 3, observed: 3, now: after(6), reason: ReasonSettling, recheck: after(50),
		},
		"an overtaken change, the new container stays": {
			entry: superseding, status: builders.RunningContainer("main", "main-2", latestImage, after(5)),
			live: 3, observed: 3, now: after(50), complete: true,
		},
		"an overtaken change, what runs is of unknown origin and stays": {
			entry: superseding, status: sameDigest("main-1", after(-5)),
			live: 3, observed: 3, now: after(45), complete: true,
		},
		"an overtaken change, what runs is of unknown origin": {
			entry: superseding, status: sameDigest("main-1", after(-5)),
			live: 3, observed: 3, now: after(44), reason: ReasonSettling, recheck: after(45),
		},
		"the image cannot be pulled": {
			entry: entry(alpineImage), status: waitingContainer("", "ImagePullBackOff"),
			live: 3, observed: 3, now: after(100), reason: "ImagePullBackOff",
		},
		"the new image keeps crashing": {
			entry: entry(alpineImage), status: waitingContainer("containerd://main-7", "CrashLoopBackOff"),
			live: 3, observed: 3, now: after(100), reason: "CrashLoopBackOff",
		},
		"it had never started, and runs now": {
			entry:  appsv1beta1.InPlaceUpdateContainerStatus{Image: alpineImage},
			status: builders.RunningContainer("main", "main-1", latestImage, after(2)),
			live:   3, observed: 3, now: after(3), complete: true,
		},
		"a record of OpenKruise, which has no container IDs": {
			entry: foreign, status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 3, now: after(3), complete: true,
		},
		"an old kubelet, restarted": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 0, now: after(3), reason: ReasonSettling, recheck: after(47),
		},
		"an old kubelet, restarted and settled": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-2", latestImage, after(2)),
			live: 3, observed: 0, now: after(47), complete: true,
		},
		"an old kubelet, not restarted": {
			entry: entry(alpineImage), status: builders.RunningContainer("main", "main-1", alpineImage, builders.Start),
			live: 3, observed: 0, now: after(1000), reason: ReasonContainerRestarting,
		},
		"an old kubelet, rolled back": {
			entry: entry(latestImage), status: sameDigest("main-1", builders.Start),
			live: 3, observed: 0, now: after(44), reason: ReasonSettling, recheck: after(45),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := builders.Pod("sample-0", "b", latestImage).Record(record(tc.entry)).
				Generation(tc.live, tc.observed).Status(tc.status).Build()
			progress := Observe(pod, tc.now)
			g.Expect(progress.Complete).To(Equal(tc.complete), progress.Message)
			g.Expect(progress.Reason).To(Equal(tc.reason), progress.Message)
			g.Expect(progress.Recheck).To(BeTemporally("==", tc.recheck))
			g.Expect(progress.Since).To(BeTemporally("==", patched))
			if !tc.complete {
				g.Expect(progress.Message).To(ContainSubstring("main"))
			}
		})
	}
}

func TestObserveWaitsForTheGracePeriodOfThePod(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(3, 3).
		Status(sameDigest("main-2", after(-1))).
		With(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300) }).Build()
	g.Expect(Observe(pod, after(314)).Complete).To(BeFalse())
	g.Expect(Observe(pod, after(315)).Complete).To(BeTrue())
}

func TestObserveOfAPodThatWasNeverUpdated(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Observe(builders.Pod("sample-0", "a", alpineImage).Build(), after(0))).To(Equal(Progress{Complete: true, Proved: true}))
	broken := builders.Pod("sample-0", "a", alpineImage).Annotation(appsv1beta1.InPlaceUpdateStateKey, "{").Build()
	g.Expect(Observe(broken, after(0)).Complete).To(BeTrue())
}

func TestNewStateOfASettledPod(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).Build()
	state := newState(observedOf(pod, patched), Change{Images: []ImageChange{{Container: "main", To: latestImage}}}, "b", patched)
	want := record(entry(alpineImage))
	want.CreatedRevision = "a"
	g.Expect(*state).To(Equal(want))
}

// The kubelet was told nginx:latest and has not acted; now it is told another.
func TestNewStateRemembersWhatAnOvertakenContainerWasStartedFrom(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(3, 2).
		Status(builders.RunningContainer("main", "main-1", alpineImage, builders.Start)).Build()
	state := newState(observedOf(pod, after(5)), Change{Images: []ImageChange{{Container: "main", To: alpineImage}}}, "a", after(5))
	g.Expect(state.LastContainerStatuses["main"]).To(Equal(appsv1beta1.InPlaceUpdateContainerStatus{
		ImageID: builders.ImageID(alpineImage), ContainerID: "containerd://main-1", Image: alpineImage, Superseding: true,
		EarlierImages: []string{latestImage},
	}))
}

// The container has a new ID, but that may be the crash of the one before.
func TestNewStateAdmitsWhatItDoesNotKnow(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(3, 3).
		Status(sameDigest("main-2", after(-1))).Build()
	state := newState(observedOf(pod, after(5)), Change{Images: []ImageChange{{Container: "main", To: "nginx:third"}}}, "c", after(5))
	g.Expect(state.LastContainerStatuses["main"]).To(Equal(appsv1beta1.InPlaceUpdateContainerStatus{
		ImageID: builders.ImageID(alpineImage), ContainerID: "containerd://main-2", Superseding: true,
		EarlierImages: []string{alpineImage, latestImage},
	}))
}

// A missing image does not make the way back slow: nothing is about to start.
// A new container with the image ID from before may be the old image, restarted
// by itself before the kubelet saw the change: if the kubelet is then told to go
// back, it never restarts it, and only time tells.
func TestARestartThatLeftTheImageIDIsNoCertainty(t *testing.T) {
	g := NewWithT(t)
	pod := changedPod(builders.RunningContainer("main", "main-2", alpineImage, after(3))).Build()
	g.Expect(Observe(pod, after(20)).Complete).To(BeTrue())

	state := newState(observedOf(pod, after(20)), Change{Images: imageTo(latestImage, alpineImage)}, "a", after(20))
	g.Expect(state.LastContainerStatuses).To(HaveKeyWithValue("main", And(
		HaveField("ContainerID", "containerd://main-2"), HaveField("Image", BeEmpty()), HaveField("Superseding", BeFalse()))))

	back := builders.Pod("sample-0", "a", alpineImage).Record(*state).Generation(3, 3).
		Status(builders.RunningContainer("main", "main-2", alpineImage, after(3))).Build()
	g.Expect(Observe(back, after(21))).To(And(HaveField("Complete", BeFalse()), HaveField("Reason", ReasonSettling)))
	g.Expect(Observe(back, after(20+45)).Complete).To(BeTrue())
}

func TestNewStateAfterAFailedPull(t *testing.T) {
	g := NewWithT(t)
	status := waitingContainer("", "ErrImagePull")
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://main-1"}
	pod := builders.Pod("sample-0", "b", "nginx:missing").Record(record(entry(alpineImage))).Generation(3, 3).Status(status).Build()
	state := newState(observedOf(pod, after(60)), Change{Images: []ImageChange{{Container: "main", To: alpineImage}}}, "a", after(60))
	g.Expect(state.LastContainerStatuses["main"]).To(Equal(entry(alpineImage)))
}

// The kubelet is about to start a container that has ended, and may do so once more from the image that
// it had; but not one whose image it cannot get, or one that runs.
func TestNewStateOfAContainerThatIsAboutToStart(t *testing.T) {
	ended := waitingContainer("containerd://main-1", crashLoopBackOff)
	lacking := waitingContainer("containerd://main-1", "ImagePullBackOff")
	creating := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		is     bool
	}{
		"it has ended":         {ended, true},
		"its image is missing": {lacking, false},
		"it is created":        {creating, false},
		"it runs":              {builders.RunningContainer("main", "main-1", alpineImage, builders.Start), false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("sample-0", "a", alpineImage).Status(test.status).Build()
			state := newState(observedOf(pod, after(5)), Change{Images: []ImageChange{{Container: "main", To: latestImage}}}, "b", after(5))
			NewWithT(t).Expect(state.LastContainerStatuses["main"].Restarting).To(Equal(test.is))
		})
	}
}

// beEarlier matches an entry of a container that was changed before the last update.
func beEarlier(e appsv1beta1.InPlaceUpdateContainerStatus) types.GomegaMatcher {
	withoutTime := func(found appsv1beta1.InPlaceUpdateContainerStatus) appsv1beta1.InPlaceUpdateContainerStatus {
		found.Changed = nil
		return found
	}
	return And(HaveField("Changed.Time", BeTemporally("==", record(e).UpdateTimestamp.Time)), WithTransform(withoutTime, Equal(e)))
}

// A revision that changes one container does not forget another that is still
// under way.
func TestNewStateKeepsOtherContainersThatAreNotDone(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(3, 2).
		Status(builders.RunningContainer("main", "main-1", alpineImage, builders.Start)).
		With(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side:1"})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, builders.RunningContainer("side", "side-1", "side:1", builders.Start))
		}).Build()
	state := newState(observedOf(pod, after(5)), Change{Images: []ImageChange{{Container: "side", To: "side:2"}}}, "c", after(5))
	g.Expect(state.LastContainerStatuses).To(HaveLen(2))
	g.Expect(state.LastContainerStatuses["main"]).To(beEarlier(entry(alpineImage)))
	g.Expect(state.LastContainerStatuses["side"]).To(HaveField("Image", "side:1"))
}

// A crash long after the update does not make the pod less updated.
func TestACrashAfterTheUpdateTakesNothingBack(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(3, 3).Ready(false, after(5000)).
		Status(func() corev1.ContainerStatus {
			status := waitingContainer("containerd://main-9", "CrashLoopBackOff")
			status.ImageID = builders.ImageID(latestImage)
			return status
		}()).Build()
	g.Expect(Observe(pod, after(5000))).To(And(HaveField("Proved", true), HaveField("Complete", false)))

	plan := MakePlan(Workload{
		Target: Target{Revision: Revision{Name: "b", Template: simple(t, latestImage)}}, Replicas: 1, MaxUnavailable: 1,
		Pods: []PodFacts{{Pod: pod}},
	}, after(5000))
	g.Expect(plan.Pods[0]).To(And(HaveField("Updated", true), HaveField("Available", false)))
	g.Expect(plan.Blockers).To(HaveLen(1))
	g.Expect(plan.Blockers[0].Reason).To(Equal("CrashLoopBackOff"))
}

// A new minor version of the kubelet restarts every container. That is no
// progress of an update, and takes none back.
func TestAKubeletThatRestartsEverythingChangesNothing(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Gated(corev1.ConditionTrue, patched).Record(record(entry(alpineImage))).
		Generation(3, 3).Status(builders.RunningContainer("main", "main-7", latestImage, after(100000))).Build()
	g.Expect(finishOf(observedOf(pod, patched), Target{}, after(100001))).To(Equal(Step{State: Settled}))

	behind := builders.Pod("sample-1", "a", alpineImage).Gated(corev1.ConditionTrue, builders.Start).
		Status(builders.RunningContainer("main", "main-7", alpineImage, after(100000))).Build()
	plan := MakePlan(Workload{
		Target:   Target{Revision: Revision{Name: "b", Template: simple(t, latestImage)}, Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType},
		Replicas: 2, MaxUnavailable: 1,
		Pods: []PodFacts{{Pod: pod}, {Pod: behind, From: &Revision{Name: "a", Template: simple(t, alpineImage)}}},
	}, after(100001))
	g.Expect(plan.Pods[1].Updated).To(BeFalse())
	g.Expect(plan.Moves).To(HaveLen(1))
	g.Expect(plan.Moves[0]).To(And(HaveField("Pod.Name", "sample-1"), HaveField("Step.Action", MarkNotReady)))
}

// A container that is changed often waits in the kubelet's back-off. What it waits for is not that
// it fails.
func TestObserveTellsOfTheBackOffAfterSeveralChanges(t *testing.T) {
	g := NewWithT(t)
	waiting := waitingContainer("containerd://main-1", "CrashLoopBackOff")
	g.Expect(Observe(changedPod(waiting).Build(), after(5))).To(And(
		HaveField("Reason", "CrashLoopBackOff"), HaveField("Proved", false),
		HaveField("Message", "container main: the kubelet has started it several times within minutes, and waits before it does so again: told by the kubelet"),
	))
}
