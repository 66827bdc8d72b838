// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var always = corev1.ContainerRestartPolicyAlways

func TestStatusOfARunningPod(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine"))
	w.pass(time.Second)

	status := w.pod.Status
	w.Expect(status.PodIP).To(Equal("198.51.100.1"))
	w.Expect(status.PodIPs).To(Equal([]corev1.PodIP{{IP: "198.51.100.1"}}))
	w.Expect(status.HostIP).To(Equal("192.0.2.1"))
	w.Expect(status.QOSClass).To(Equal(corev1.PodQOSBestEffort))
	w.Expect(status.StartTime.UTC()).To(Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	main := w.status("main")
	w.Expect(main.ContainerID).To(MatchRegexp(`^containerd://[0-9a-f]{64}$`))
	w.Expect(main.ImageID).To(MatchRegexp(`^docker\.io/library/nginx@sha256:[0-9a-f]{64}$`))
	w.Expect(main.Image).To(Equal("docker.io/library/nginx:alpine"))
	w.Expect(*main.Started).To(BeTrue())
	for _, condition := range status.Conditions {
		w.Expect(condition.ObservedGeneration).To(Equal(int64(1)), string(condition.Type))
		w.Expect(condition.LastTransitionTime.IsZero()).To(BeFalse(), string(condition.Type))
	}
	w.Expect(w.outcome.Wake).To(BeZero(), "nothing is left to do")
}

func TestEverySpellingOfAnImageRestartsButOnlyDigestsDiffer(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine"))
	w.pass(time.Second)
	first := w.status("main")
	_, digest, _ := strings.Cut(first.ImageID, "@")

	for restarts, image := range []string{"nginx:alpine@" + digest, "nginx@" + digest, "docker.io/library/nginx:alpine"} {
		before := w.status("main")
		w.setImage("main", image)
		w.pass(time.Second)
		after := w.status("main")
		w.Expect(after.RestartCount).To(BeEquivalentTo(restarts + 1))
		w.Expect(after.ContainerID).NotTo(Equal(before.ContainerID))
		w.Expect(after.LastTerminationState.Terminated.ContainerID).To(Equal(before.ContainerID))
		w.Expect(after.ImageID).To(Equal(first.ImageID))
		w.Expect(after.Image).To(Equal("docker.io/library/nginx:alpine"))
	}

	w.setImage("main", "nginx:latest")
	w.pass(time.Second)
	w.Expect(w.status("main").ImageID).NotTo(Equal(first.ImageID))
}

func TestMetadataAndEnvironmentDoNotRestart(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine"))
	w.pass(time.Second)
	before := w.status("main")
	w.update(func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	w.annotate("app-config", "new")
	w.pass(time.Second)
	w.Expect(w.status("main")).To(Equal(before))
	w.Expect(w.pod.Status.ObservedGeneration).To(Equal(w.pod.Generation))
}

// What happens to main while the kubelet stops another container is not seen.
func TestBackAndForthWhileBusyKeepsTheContainer(t *testing.T) {
	for name, test := range map[string]struct {
		images   []string
		restarts int32
	}{
		"back":    {[]string{"nginx:latest", "nginx:alpine"}, 0},
		"forward": {[]string{"nginx:alpine", "nginx:latest"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod("busy", "insitu-dev/sleeper:v1", "main", "nginx:alpine"))
			w.annotate(StopSecondsAnnotation, "busy=10")
			w.pass(time.Second)
			before := w.status("main")

			w.setImage("busy", "insitu-dev/sleeper:v2")
			for _, image := range test.images {
				w.pass(time.Second)
				w.setImage("main", image)
				w.Expect(w.pod.Status.ObservedGeneration).To(BeEquivalentTo(2), "the sync in progress")
			}
			w.pass(20 * time.Second)
			w.Expect(w.pod.Status.ObservedGeneration).To(Equal(w.pod.Generation))
			w.Expect(w.status("main").RestartCount).To(Equal(test.restarts))
			if test.restarts == 0 {
				w.Expect(w.status("main").ContainerID).To(Equal(before.ContainerID))
			}
		})
	}
}

// A kubelet that has begun to stop a container for a change of its image
// carries on, and starts it from the image of that sync.
func TestBackWhileItIsStoppedRestartsTwice(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine"))
	w.annotate(StopSecondsAnnotation, "5")
	w.pass(time.Second)
	w.setImage("main", "nginx:latest")
	w.pass(time.Second)
	w.setImage("main", "nginx:alpine")
	w.pass(20 * time.Second)
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(2))
	w.Expect(w.status("main").Image).To(HaveSuffix(":alpine"))
}

func TestStopping(t *testing.T) {
	sleepFive := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	for name, test := range map[string]struct {
		stop      string
		grace     int64
		lifecycle *corev1.Lifecycle
		takes     time.Duration
		exitCode  int32
	}{
		"at once":             {stop: "0.2", grace: 30, takes: 200 * time.Millisecond},
		"within grace":        {stop: "main=8", grace: 30, takes: 8 * time.Second},
		"after grace":         {stop: "60", grace: 10, takes: 10 * time.Second, exitCode: 137},
		"hook":                {stop: "1", grace: 30, lifecycle: sleepFive, takes: 6 * time.Second},
		"hook takes it all":   {stop: "60", grace: 5, lifecycle: sleepFive, takes: 7 * time.Second, exitCode: 137},
		"hook and then grace": {stop: "60", grace: 15, lifecycle: sleepFive, takes: 15 * time.Second, exitCode: 137},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("main", "nginx:alpine")
			pod.Spec.TerminationGracePeriodSeconds = &test.grace
			pod.Spec.Containers[0].Lifecycle = test.lifecycle
			w := newWorld(t, pod)
			w.annotate(StopSecondsAnnotation, test.stop)
			w.pass(time.Second)
			id := w.status("main").ContainerID

			w.setImage("main", "nginx:latest")
			w.pass(test.takes + tick - time.Millisecond) // not yet started
			w.Expect(w.status("main").ContainerID).To(Equal(id))
			w.pass(time.Millisecond)
			w.Expect(w.status("main").ContainerID).NotTo(Equal(id))
			w.Expect(w.status("main").LastTerminationState.Terminated.ExitCode).To(Equal(test.exitCode))
		})
	}
}

func TestCrashLoop(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:crash-1"))
	w.pass(3500 * time.Millisecond) // two runs of a second, the second start without a wait
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(1))
	waiting := w.status("main").State.Waiting
	w.Expect(waiting).NotTo(BeNil())
	w.Expect(waiting.Reason).To(Equal("CrashLoopBackOff"))
	w.Expect(waiting.Message).To(Equal("back-off 10s restarting failed container=main pod=sample-0_default(1234)"))
	w.Expect(w.seen).To(ContainElement(ContainSubstring("main Error(1) restarts=1 last=Error(1)")))
	w.Expect(w.pod.Status.Phase).To(Equal(corev1.PodRunning))

	w.pass(10 * time.Second)
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(2))
	w.pass(20 * time.Second)
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(3))
	w.pass(20 * time.Second) // the next wait is 40 s
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(3))

	// Another image does not wait, and has no crashes to its name.
	w.setImage("main", "nginx:alpine")
	w.pass(3 * time.Second)
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(4))
	w.Expect(w.status("main").Ready).To(BeTrue())
	w.Expect(w.status("main").LastTerminationState.Terminated.ExitCode).To(BeEquivalentTo(1))
}

func TestImageThatDoesNotExist(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:missing"))
	w.pass(time.Second / 2)
	status := w.status("main")
	w.Expect(status.State.Waiting.Reason).To(Equal("ErrImagePull"))
	w.Expect(status.State.Waiting.Message).To(ContainSubstring("docker.io/library/nginx:missing: not found"))
	w.Expect(status.ContainerID + status.ImageID).To(BeEmpty())
	w.Expect(w.pod.Status.Phase).To(Equal(corev1.PodPending))
	w.pass(2 * time.Second)
	w.Expect(w.status("main").State.Waiting.Reason).To(Equal("ImagePullBackOff"))
	w.Expect(w.status("main").State.Waiting.Message).To(HavePrefix(`Back-off pulling image "nginx:missing": ErrImagePull: rpc error`))
	w.pass(9 * time.Second) // it is tried again after 10 s
	w.Expect(w.seen[len(w.seen)-2:]).To(HaveExactElements(
		ContainSubstring("main ErrImagePull"), ContainSubstring("main ImagePullBackOff")))

	w.setImage("main", "nginx:alpine")
	w.pass(time.Second)
	w.Expect(w.status("main").Ready).To(BeTrue())
	w.Expect(w.status("main").RestartCount).To(BeZero())
}

func TestReadiness(t *testing.T) {
	probe := &corev1.Probe{}
	for name, test := range map[string]struct {
		image, unready     string
		startup, readiness *corev1.Probe
		after              time.Duration // since the container started; 0 is never
	}{
		"no probe":             {image: "nginx:alpine", after: time.Nanosecond},
		"readiness probe":      {image: "nginx:alpine", readiness: probe, after: tick},
		"both probes":          {image: "nginx:alpine", readiness: probe, startup: probe, after: 2 * tick},
		"never, by tag":        {image: "nginx:unready-1"},
		"never, by annotation": {image: "nginx:alpine", unready: "main"},
		"never, all":           {image: "nginx:alpine", unready: "*"},
		"another":              {image: "nginx:alpine", unready: "proxy", after: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("main", test.image)
			pod.Spec.Containers[0].ReadinessProbe = test.readiness
			pod.Spec.Containers[0].StartupProbe = test.startup
			pod.Annotations = map[string]string{UnreadyAnnotation: test.unready}
			w := newWorld(t, pod)
			w.pass(2 * tick) // sandbox, start
			w.Expect(w.status("main").State.Running).NotTo(BeNil())
			if test.after == 0 {
				w.pass(time.Hour)
				w.Expect(w.status("main").Ready).To(BeFalse())
				w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionFalse))
				return
			}
			w.Expect(w.status("main").Ready).To(Equal(test.after < tick))
			w.pass(test.after)
			w.Expect(w.status("main").Ready).To(BeTrue())
			w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionTrue))
		})
	}
}

func TestReadyFollowsEveryGate(t *testing.T) {
	pod := newPod("main", "nginx:alpine")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "one"}, {ConditionType: "two"}}
	w := newWorld(t, pod)
	w.pass(time.Second)
	w.Expect(w.condition(corev1.ContainersReady).Status).To(Equal(corev1.ConditionTrue))
	w.Expect(w.condition(corev1.PodReady).Reason).To(Equal("ReadinessGatesNotReady"))

	set := func(kind corev1.PodConditionType, status corev1.ConditionStatus) {
		condition := corev1.PodCondition{Type: kind, Status: status}
		setCondition(&w.pod.Status, condition)
		w.pass(time.Second)
	}
	set("one", corev1.ConditionTrue)
	w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionFalse))
	set("two", corev1.ConditionTrue)
	w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionTrue))
	since := w.condition(corev1.PodReady).LastTransitionTime
	w.pass(time.Minute)
	w.Expect(w.condition(corev1.PodReady).LastTransitionTime).To(Equal(since))
	set("one", corev1.ConditionFalse)
	w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionFalse))
	w.Expect(w.condition(corev1.PodReady).LastTransitionTime.After(since.Time)).To(BeTrue())
	w.Expect(w.condition("two").Status).To(Equal(corev1.ConditionTrue), "the conditions of others stay")
}

func TestProbesGoOnWhileTheKubeletIsBusy(t *testing.T) {
	pod := newPod("busy", "insitu-dev/sleeper:v1", "main", "nginx:alpine")
	pod.Spec.Containers[1].ReadinessProbe = &corev1.Probe{}
	w := newWorld(t, pod)
	w.runtime.timing.Ready = 3 * time.Second
	w.annotate(StopSecondsAnnotation, "busy=10")
	w.pass(time.Second)
	w.Expect(w.status("main").Ready).To(BeFalse())
	w.setImage("busy", "insitu-dev/sleeper:v2")
	w.pass(3 * time.Second)
	w.Expect(w.status("main").Ready).To(BeTrue())
	w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionTrue))
	w.Expect(w.status("busy").RestartCount).To(BeZero())
}

func TestInitContainersAndSidecars(t *testing.T) {
	pod := newPod("main", "nginx:alpine")
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: "tool:1"},
		{Name: "side", Image: "proxy:1", RestartPolicy: &always},
		{Name: "second", Image: "tool:2"},
	}
	w := newWorld(t, pod)
	w.pass(10 * time.Second)
	w.Expect(w.seen).To(HaveExactElements(
		ContainSubstring("first PodInitializing | side PodInitializing | second PodInitializing | main PodInitializing | "),
		ContainSubstring("first PodInitializing | side PodInitializing | second PodInitializing | main PodInitializing | StartContainers"),
		ContainSubstring("Pending | first running 1 | side PodInitializing | second PodInitializing | main PodInitializing"),
		ContainSubstring("first Completed(0) ready 1 | side PodInitializing | second PodInitializing | main PodInitializing"),
		ContainSubstring("first Completed(0) ready 1 | side running ready 1 | second PodInitializing | main PodInitializing"),
		ContainSubstring("first Completed(0) ready 1 | side running ready 1 | second running 2 | main PodInitializing"),
		ContainSubstring("first Completed(0) ready 1 | side running ready 1 | second Completed(0) ready 2 | main PodInitializing"),
		ContainSubstring("Running | first Completed(0) ready 1 | side running ready 1 | second Completed(0) ready 2 | main running ready alpine | StartContainers Initialized Ready ContainersReady"),
	))

	// A sidecar restarts alone; a finished init container never again.
	w.setImage("side", "proxy:2")
	w.setImage("first", "tool:3")
	w.pass(10 * time.Second)
	w.Expect(w.status("side").RestartCount).To(BeEquivalentTo(1))
	w.Expect(w.status("first").RestartCount).To(BeZero())
	w.Expect(w.status("main").RestartCount).To(BeZero())
}

func TestInitContainerThatCrashes(t *testing.T) {
	for name, test := range map[string]struct {
		policy corev1.RestartPolicy
		want   string
	}{
		"is restarted": {corev1.RestartPolicyAlways, "1/1 Pending | first CrashLoopBackOff restarts=1 last=Error(1) crash | main PodInitializing | StartContainers"},
		"ends the pod": {corev1.RestartPolicyNever, "1/1 Failed | first Error(1) crash | main PodInitializing | StartContainers"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("main", "nginx:alpine")
			pod.Spec.RestartPolicy = test.policy
			pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "tool:crash"}}
			w := newWorld(t, pod)
			w.pass(5 * time.Second)
			w.Expect(w.seen[len(w.seen)-1]).To(Equal(test.want))
		})
	}
}

func TestRestartPolicyOfMainContainers(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]corev1.PodPhase{
		corev1.RestartPolicyAlways:    corev1.PodRunning,
		corev1.RestartPolicyOnFailure: corev1.PodRunning,
		corev1.RestartPolicyNever:     corev1.PodFailed,
	} {
		t.Run(string(policy), func(t *testing.T) {
			pod := newPod("main", "nginx:crash")
			pod.Spec.RestartPolicy = policy
			w := newWorld(t, pod)
			w.pass(3500 * time.Millisecond)
			w.Expect(w.pod.Status.Phase).To(Equal(want))
		})
	}
}

func TestDeletion(t *testing.T) {
	t.Run("waits for the grace period", func(t *testing.T) {
		w := newWorld(t, newPod("main", "nginx:alpine", "slow", "insitu-dev/sleeper:v1"))
		w.annotate(StopSecondsAnnotation, "slow=60")
		w.pass(time.Second)
		w.delete(20)
		w.pass(19 * time.Second)
		w.Expect(w.outcome.Finished).To(BeFalse())
		w.Expect(w.status("main").State.Running).NotTo(BeNil(), "statuses are as before until all have ended")
		w.pass(time.Second)
		w.Expect(w.outcome.Finished).To(BeTrue())
		w.Expect(w.pod.Status.Phase).To(Equal(corev1.PodFailed))
		w.Expect(w.status("main").State.Terminated.ExitCode).To(BeZero())
		w.Expect(w.status("slow").State.Terminated.ExitCode).To(BeEquivalentTo(137))
		w.Expect(w.condition(corev1.PodReady).Status).To(Equal(corev1.ConditionFalse))
		w.Expect(w.outcome.Wake).To(BeZero())
	})
	t.Run("with a shorter grace period later", func(t *testing.T) {
		w := newWorld(t, newPod("main", "nginx:alpine"))
		w.annotate(StopSecondsAnnotation, "60")
		w.pass(time.Second)
		w.delete(50)
		w.pass(10 * time.Second)
		w.delete(5)
		w.pass(5 * time.Second)
		w.Expect(w.outcome.Finished).To(BeTrue())
	})
	t.Run("before it was started", func(t *testing.T) {
		w := newWorld(t, newPod("main", "nginx:alpine"))
		w.delete(30) // while the sandbox is made
		w.pass(time.Second)
		w.Expect(w.outcome.Finished).To(BeTrue())
		w.Expect(isTerminal(w.pod.Status.Phase)).To(BeTrue())
	})
	t.Run("of a pod that cannot start", func(t *testing.T) {
		w := newWorld(t, newPod("main", "nginx:missing"))
		w.pass(5 * time.Second)
		w.delete(30)
		w.pass(time.Second)
		w.Expect(w.outcome.Finished).To(BeTrue())
		w.Expect(w.pod.Status.Phase).To(Equal(corev1.PodFailed))
		w.Expect(w.status("main").State.Terminated.Reason).To(Equal("ContainerStatusUnknown"))
	})
	t.Run("in the middle of an update", func(t *testing.T) {
		w := newWorld(t, newPod("main", "nginx:alpine"))
		w.annotate(StopSecondsAnnotation, "4")
		w.pass(time.Second)
		w.setImage("main", "nginx:latest")
		w.pass(time.Second)
		w.delete(30)
		w.pass(time.Minute)
		w.Expect(w.outcome.Finished).To(BeTrue())
		w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(1), "the sync in progress goes to its end first")
	})
	t.Run("sidecars last", func(t *testing.T) {
		pod := newPod("main", "nginx:alpine")
		pod.Spec.InitContainers = []corev1.Container{{Name: "side", Image: "proxy:1", RestartPolicy: &always}}
		w := newWorld(t, pod)
		w.annotate(StopSecondsAnnotation, "main=5,side=1")
		w.pass(time.Second)
		w.delete(30)
		w.pass(10 * time.Second)
		main, side := w.status("main").State.Terminated, w.status("side").State.Terminated
		w.Expect(side.FinishedAt.Sub(main.FinishedAt.Time)).To(Equal(time.Second))
	})
}

func TestWrongAnnotationsAreNamed(t *testing.T) {
	pod := newPod("main", "nginx:alpine")
	pod.Annotations = map[string]string{StopSecondsAnnotation: "main=soon", ResizeAnnotation: "Never"}
	w := newWorld(t, pod)
	w.Expect(w.outcome.Invalid).To(MatchError(And(
		ContainSubstring(`insitu.dev/sim-stop-seconds: "soon" is not a number of seconds`),
		ContainSubstring(`insitu.dev/sim-resize: found "Never", want Deferred, Infeasible or InProgress`))))
	w.pass(time.Second)
	w.Expect(w.status("main").Ready).To(BeTrue())
}

func TestAdoptGoesOn(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine", "other", "nginx:latest"))
	w.pass(time.Second)
	w.setImage("main", "nginx:stable")
	w.pass(time.Second)
	before := w.pod.DeepCopy()

	restart := func() {
		w.runtime = NewRuntime(w.runtime.timing, "192.0.2.1", w.pod.Status.PodIP)
		w.runtime.Adopt(w.pod, w.clock.Now())
		w.step()
	}
	restart()
	w.pass(time.Minute)
	w.Expect(w.pod.Status).To(Equal(before.Status))

	// A change that was made meanwhile is seen.
	w.pod.Spec.Containers[1].Image = "nginx:alpine"
	w.pod.Generation++
	restart()
	w.pass(time.Second)
	w.Expect(w.status("other").RestartCount).To(BeEquivalentTo(1))
}

func TestNoStepIsLostWhenTimeJumps(t *testing.T) {
	w := newWorld(t, newPod("main", "nginx:alpine"))
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.step()
	w.step()
	w.Expect(w.status("main").Ready).To(BeTrue())
}
