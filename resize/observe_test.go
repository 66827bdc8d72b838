// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Conditions, as real kubelets wrote them.
const (
	noRoom   = "Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 2000"
	deferred = `{type: PodResizePending, status: "True", reason: Deferred, observedGeneration: 2, message: "` + noRoom + `"}`
	never    = `{type: PodResizePending, status: "True", reason: Infeasible, message: "Node didn't have enough capacity: cpu, requested: 99000, capacity: 2000"}`
	inUse    = `cannot decrease memory limits: attempting to set container main memory limit (33554432) below current usage (53854208)`
	running  = `{type: PodResizeInProgress, status: "True", observedGeneration: 2}`
	failing  = `{type: PodResizeInProgress, status: "True", reason: Error, message: "` + inUse + `"}`
)

// The pods of these tests have been resized to the sizes in their spec; with
// generation 2.
const (
	grownCPU      = `containers: [{name: main, resources: {requests: {cpu: 500m}}}]`
	shrunkMemory  = `containers: [{name: main, resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}}]`
	grownLimit    = `containers: [{name: main, resources: {requests: {cpu: 100m}, limits: {cpu: 500m}}}]`
	grownSidecar  = "initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 500m}}}]\ncontainers: [{name: main}]"
	grownPod      = "resources: {requests: {cpu: 500m}, limits: {memory: 96Mi}}\ncontainers: [{name: main}]"
	unlimitedPod  = `limits: {memory: 9007199254740988Ki}` // as kubelets report no limit with cgroup v1
	roundedCPU    = `containers: [{name: main, resources: {requests: {cpu: 3m}, limits: {cpu: 503m}}}]`
	firstRequests = `containers: [{name: main, resources: {requests: {cpu: 500m}}}]`
)

func TestObserve(t *testing.T) {
	for name, test := range map[string]struct {
		spec   string
		own    []Field
		status string
		after  time.Duration // since the write
		want   State
		says   string // a part of the message
		since  time.Duration
		settle bool
	}{
		// What a resize goes through.
		"the kubelet has not seen it": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 1, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   NotObserved, says: "kubelet on node-1",
		},
		"it is not seen for an hour": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 1, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   NotObserved, says: "kubelet on node-1",
		},
		"allocated, and being made": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, conditions: [` + running + `], containerStatuses: [{name: main, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "the kubelet is changing the sizes", since: 2 * time.Second,
		},
		"made": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 500m}}}]}`,
			want:   Done,
		},
		"made, in another spelling": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: "0.5"}, resources: {requests: {cpu: "0.5"}}}]}`,
			want:   Done,
		},
		"seen, neither allocated nor refused": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "not allocated the new cpu request of main",
		},
		"a kubelet that reports no generation": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 0, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "not allocated",
		},
		"requests where there were none": {
			spec: firstRequests, own: []Field{cpuRequest},
			status: `{observedGeneration: 1, containerStatuses: [{name: main, resources: {}}]}`,
			want:   NotObserved,
		},
		"a second request where there was one": {
			spec: `containers: [{name: main, resources: {requests: {cpu: 500m, memory: 32Mi}}}]`, own: []Field{memoryRequest}, after: time.Hour,
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 500m}}}]}`,
			want:   InProgress, says: "not allocated the new memory request of main",
		},

		// No room.
		"deferred": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Deferred, says: noRoom, since: 2 * time.Second,
		},
		"deferred, and changed otherwise since": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 3, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Deferred, says: noRoom, since: 2 * time.Second,
		},
		"deferred before the last write, which the kubelet has not seen": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 1, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   NotObserved,
		},
		"taken back while it was deferred": {
			spec: `containers: [{name: main, resources: {requests: {cpu: 100m}}}]`, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Done,
		},
		"room was found": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + running + `], containerStatuses: [{name: main, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, since: 2 * time.Second,
		},
		"infeasible": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Infeasible, says: "enough capacity", since: 2 * time.Second,
		},
		"a condition that is False says nothing": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, conditions: [{type: PodResizePending, status: "False", reason: Deferred}], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "not allocated",
		},
		"pending outweighs in progress": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, conditions: [` + running + `, ` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Deferred, says: noRoom, since: 2 * time.Second,
		},

		// Memory that is in use.
		"memory below its use": {
			spec: shrunkMemory, own: []Field{memoryRequest, memoryLimit}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + failing + `], containerStatuses: [{name: main, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 96Mi}, limits: {memory: 96Mi}}}]}`,
			want:   Failed, says: inUse, since: 2 * time.Second,
		},
		"memory below its use, said at once": {
			spec: shrunkMemory, own: []Field{memoryRequest, memoryLimit},
			status: `{observedGeneration: 2, conditions: [` + failing + `], containerStatuses: [{name: main, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 96Mi}, limits: {memory: 96Mi}}}]}`,
			want:   Failed, says: inUse, since: 2 * time.Second,
		},
		"memory below its use, with the requests in force": {
			spec: shrunkMemory, own: []Field{memoryRequest, memoryLimit}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + failing + `], containerStatuses: [{name: main, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 32Mi}, limits: {memory: 96Mi}}}]}`,
			want:   Failed, says: inUse, since: 2 * time.Second,
		},
		"memory below its use, before the kubelet says so": {
			spec: shrunkMemory, own: []Field{memoryRequest, memoryLimit}, after: 14 * time.Second,
			status: `{observedGeneration: 2, conditions: [` + running + `], containerStatuses: [{name: main, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 96Mi}, limits: {memory: 96Mi}}}]}`,
			want:   InProgress, since: 2 * time.Second,
		},

		// Running with sizes that only limits tell apart.
		"a limit that is not in force": {
			spec: grownLimit, own: []Field{cpuLimit},
			status: `{observedGeneration: 2, conditions: [` + running + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}]}`,
			want:   InProgress, says: "the kubelet is changing the sizes", since: 2 * time.Second,
		},
		"a limit that is not seen": {
			spec: grownLimit, own: []Field{cpuLimit},
			status: `{observedGeneration: 1, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}]}`,
			want:   NotObserved,
		},
		"a limit where there was none": {
			spec: grownLimit, own: []Field{cpuLimit},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "new cpu limit of main is not in force", settle: true,
		},
		"a limit in force": {
			spec: grownLimit, own: []Field{cpuLimit},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}, limits: {cpu: 500m}}}]}`,
			want:   Done,
		},

		// Sizes that kernels and runtimes make their own of.
		"rounded": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 510m}}}]}`,
			want:   Done,
		},
		"rounded, while another client's resize waits for room": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit},
			status: `{observedGeneration: 2, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 510m}}}]}`,
			want:   Done,
		},
		"of a plugin of the runtime, at once": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 400m}}}]}`,
			want:   InProgress, says: "new cpu limit of main is not in force", settle: true,
		},
		"of a plugin of the runtime, a moment before it counts as settled": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit}, after: 15*time.Second - 1,
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 400m}}}]}`,
			want:   InProgress, says: "not in force", settle: true,
		},
		"of a plugin of the runtime, and settled": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit}, after: 15 * time.Second,
			status: `{observedGeneration: 2, containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 400m}}}]}`,
			want:   Done,
		},
		"time settles nothing that the kubelet is at": {
			spec: roundedCPU, own: []Field{cpuRequest, cpuLimit}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + running + `], containerStatuses: [{name: main, allocatedResources: {cpu: 3m}, resources: {requests: {cpu: 2m}, limits: {cpu: 400m}}}]}`,
			want:   InProgress, says: "the kubelet is changing the sizes", since: 2 * time.Second,
		},

		// Containers that do not run.
		"in a crash loop": {
			spec: shrunkMemory, own: []Field{memoryRequest, memoryLimit},
			status: `{observedGeneration: 2, containerStatuses: [{name: main, containerID: "containerd://1", state: {waiting: {reason: CrashLoopBackOff}}, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}}]}`,
			want:   Done,
		},
		"not scheduled": {
			spec: grownCPU, own: []Field{cpuRequest}, status: `{observedGeneration: 0, phase: Pending}`,
			want: Done,
		},
		"never started, not seen": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 1, containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff}}}]}`,
			want:   NotObserved, says: "kubelet on node-1",
		},
		"never started": {
			spec: grownCPU, own: []Field{cpuRequest},
			status: `{observedGeneration: 2, allocatedResources: {cpu: 500m}, containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff}}}]}`,
			want:   Done,
		},
		"never started, and deferred": {
			spec: grownCPU, own: []Field{cpuRequest}, after: time.Hour,
			status: `{observedGeneration: 3, allocatedResources: {cpu: 100m}, conditions: [` + deferred + `], containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff}}}]}`,
			want:   Deferred, says: noRoom, since: 2 * time.Second,
		},
		"of two containers one never started": {
			spec:   `containers: [{name: main, resources: {requests: {cpu: 500m}}}, {name: b, resources: {requests: {cpu: 500m}}}]`,
			own:    []Field{cpuRequest, {Container: "b", Resource: corev1.ResourceCPU}},
			status: `{observedGeneration: 2, containerStatuses: [{name: b}, {name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "not allocated the new cpu request of main",
		},

		// The pod itself.
		"the pod's own sizes, not seen": {
			spec: grownPod, own: []Field{podRequest, podLimit},
			status: `{observedGeneration: 1, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}, containerStatuses: [{name: main, resources: {}}]}`,
			want:   NotObserved,
		},
		"the pod's own sizes, allocated": {
			spec: grownPod, own: []Field{podRequest, podLimit},
			status: `{observedGeneration: 2, conditions: [` + running + `], allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}`,
			want:   InProgress, since: 2 * time.Second,
		},
		"the pod's own sizes, made; others are not asked for": {
			spec: grownPod, own: []Field{podRequest, podLimit},
			status: `{observedGeneration: 2, allocatedResources: {cpu: 500m, memory: 1Mi}, resources: {requests: {cpu: 500m}, limits: {cpu: "2", memory: 96Mi}}}`,
			want:   Done,
		},
		"the pod's own limit, made late": {
			spec: grownPod, own: []Field{podLimit},
			status: `{observedGeneration: 2, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 500m}, ` + unlimitedPod + `}}`,
			want:   InProgress, says: "new memory limit of the pod is not in force", settle: true,
		},
		"what is reported of a pod that names no sizes itself is not looked at": {
			spec: grownCPU, own: []Field{cpuRequest, podRequest, podLimit},
			status: `{observedGeneration: 2, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}, ` + unlimitedPod + `}, containerStatuses: [{name: main, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 500m}, limits: {cpu: 300m}}}]}`,
			want:   Done,
		},

		// Native sidecars.
		"a sidecar, being made": {
			spec: grownSidecar, own: []Field{sideRequest},
			status: `{observedGeneration: 2, conditions: [` + running + `], initContainerStatuses: [{name: side, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, since: 2 * time.Second,
		},
		"a sidecar, not allocated": {
			spec: grownSidecar, own: []Field{sideRequest}, after: time.Hour,
			status: `{observedGeneration: 2, initContainerStatuses: [{name: side, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   InProgress, says: "not allocated the new cpu request of side",
		},
		"a sidecar, made": {
			spec: grownSidecar, own: []Field{sideRequest},
			status: `{observedGeneration: 2, initContainerStatuses: [{name: side, allocatedResources: {cpu: 500m}, resources: {requests: {cpu: 500m}}}]}`,
			want:   Done,
		},

		// What is not ours.
		"nothing of ours": {
			spec: grownCPU, after: time.Hour,
			status: `{observedGeneration: 1, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}]}`,
			want:   Done,
		},
		"ours is made, what others wrote is deferred": {
			spec: `containers: [{name: main, resources: {requests: {cpu: 500m, memory: 32Mi}}}]`, own: []Field{memoryRequest}, after: time.Hour,
			status: `{observedGeneration: 2, conditions: [` + deferred + `], containerStatuses: [{name: main, allocatedResources: {cpu: 100m, memory: 32Mi}, resources: {requests: {cpu: 100m, memory: 32Mi}}}]}`,
			want:   Done,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := seen(t, podOf(t, test.spec), test.status)
			pod.Generation = max(2, pod.Status.ObservedGeneration)
			progress := Observe(pod, sets.New(test.own...), moment, moment.Add(test.after))

			want := Progress{State: test.want, Message: progress.Message}
			if test.want != Done {
				g.Expect(progress.Message).To(ContainSubstring(test.says))
				g.Expect(progress.Message).NotTo(BeEmpty())
				want.Since = moment.Add(test.since)
			} else {
				g.Expect(progress.Message).To(BeEmpty())
			}
			if test.settle {
				want.Recheck = moment.Add(15 * time.Second)
			}
			g.Expect(progress).To(Equal(want))
		})
	}
}

// The kubelet's words change with every try; what is read off them must not.
func TestObserveTakesAnErrorOfAnyWords(t *testing.T) {
	g := NewWithT(t)
	pod := seen(t, podOf(t, shrunkMemory),
		`{conditions: [`+failing+`], containerStatuses: [{name: main, allocatedResources: {memory: 32Mi}, resources: {requests: {memory: 32Mi}, limits: {memory: 96Mi}}}]}`)
	first := Observe(pod, sets.New(memoryLimit), moment, moment.Add(time.Minute))
	pod.Status.Conditions[0].Message = "cannot decrease memory limits: [attempting to set pod memory limit (33554432) below current usage (1)]"
	second := Observe(pod, sets.New(memoryLimit), moment, moment.Add(2*time.Minute))

	g.Expect(second.Message).NotTo(Equal(first.Message))
	second.Message = first.Message
	g.Expect(second).To(Equal(first))
}

func TestIsUnderWay(t *testing.T) {
	g := NewWithT(t)
	for state, want := range map[State]bool{
		Done: false, NotObserved: true, InProgress: true, Deferred: false, Infeasible: false, Failed: false,
	} {
		g.Expect(Progress{State: state}.IsUnderWay()).To(Equal(want), "%q", state)
	}
}

// It was asked for more, said that it has no room, and has not seen yet that this was
// taken back: it may find room until then.
func TestASizeThatWasTakenBackIsDoneWhenTheKubeletHasSeenIt(t *testing.T) {
	g := NewWithT(t)
	pod := podOf(t, onlyMain(`{requests: {cpu: 100m}}`))
	pod.Generation, pod.Status.ObservedGeneration = 3, 2
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", AllocatedResources: pod.Spec.Containers[0].Resources.Requests, Resources: &pod.Spec.Containers[0].Resources,
	}}
	own := sets.New(Field{Container: "main", Resource: "cpu"})
	g.Expect(Observe(pod, own, moment, moment.Add(time.Second)).State).To(Equal(NotObserved), "just written")
	g.Expect(Observe(pod, own, moment, moment.Add(time.Hour)).State).To(Equal(Done), "the generation is another client's")
	g.Expect(Observe(pod, nil, moment, moment).State).To(Equal(Done), "nothing is ours")

	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}}
	g.Expect(Observe(pod, own, moment, moment.Add(time.Hour)).State).To(Equal(NotObserved))
	pod.Status.ObservedGeneration = 3
	pod.Status.Conditions = nil
	g.Expect(Observe(pod, own, moment, moment.Add(time.Second)).State).To(Equal(Done))
}

// What is rounded is the new size of a container that went on running. One that restarts
// for its size has the old one until then, however near that is.
func TestASmallChangeThatRestartsItsContainerIsAwaited(t *testing.T) {
	for name, resources := range map[string][2]string{
		"less cpu":    {`{cpu: 495m}`, `{cpu: 500m}`},
		"more cpu":    {`{cpu: 505m}`, `{cpu: 500m}`},
		"more memory": {`{memory: 65600Ki}`, `{memory: 64Mi}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wanted, actual := resources[0], resources[1]
			pod := podOf(t, `containers: [{name: main, resources: {requests: `+wanted+`}, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}, {resourceName: memory, restartPolicy: RestartContainer}]}]`)
			own := sets.New(cpuRequest, memoryRequest)
			pod = seen(t, pod, `{containerStatuses: [{name: main, allocatedResources: `+wanted+`, resources: {requests: `+actual+`}}]}`)
			progress := Observe(pod, own, moment, moment.Add(time.Second))
			g.Expect(progress).To(And(HaveField("State", InProgress), HaveField("Restarts", true)))

			pod.Status.ContainerStatuses[0].Resources = &pod.Spec.Containers[0].Resources
			g.Expect(Observe(pod, own, moment, moment.Add(time.Second))).To(Equal(Progress{}), "it has restarted")
		})
	}
}
