// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// size is what a container requests. Its limits are twice the CPU and the same
// memory, so that both can be read from its cgroup, and the pod is Burstable.
type size struct{ cpu, memory string }

var (
	small = size{cpu: "50m", memory: "64Mi"}
	large = size{cpu: "75m", memory: "96Mi"}
)

func (s size) resources() corev1.ResourceRequirements {
	limit := resource.MustParse(s.cpu)
	limit.Add(limit)
	memory := resource.MustParse(s.memory)
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s.cpu), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: limit, corev1.ResourceMemory: memory},
	}
}

// sized starts a set of three pods of a size.
func sized(namespace string, s size) *builders.StatefulSetBuilder {
	return builders.StatefulSet(namespace, "sample", sleeperV1).With(to(s))
}

// to is an edit that gives the container a size.
func to(s size) edit {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Resources = s.resources() }
}

// resizing is an edit that sets what is done about resizes.
func resizing(policy appsv1beta1.ResizePolicy) edit {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{Resize: &policy}
	}
}

// restartsFor makes the container restart when a resource changes.
func restartsFor(name corev1.ResourceName) edit {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: corev1.RestartContainer}}
	}
}

// identity is what a resize without restart leaves as it is.
type identity struct {
	uid      types.UID
	ip, node string
	// containers are the IDs of all containers that run.
	containers string
}

// identities returns what the pods of a workload are, by their names.
func identities(ctx context.Context, namespace string) map[string]identity {
	GinkgoHelper()
	found := map[string]identity{}
	for _, pod := range podsIn(ctx, namespace) {
		one := identity{uid: pod.UID, ip: pod.Status.PodIP, node: pod.Spec.NodeName}
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			one.containers += fmt.Sprintf("%s %s %d\n", status.Name, status.ContainerID, status.RestartCount)
		}
		found[pod.Name] = one
	}
	return found
}

// podsIn returns the pods of the workload of a namespace.
func podsIn(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "sample"})).To(Succeed())
	return list.Items
}

// expectSize checks that a pod has a size: in its spec, for the node, and in the
// cgroup of its container; and that no resize is under way.
func expectSize(pod *corev1.Pod, s size) {
	GinkgoHelper()
	wanted := s.resources()
	status := pod.Status.ContainerStatuses[0]
	Expect(pod.Spec.Containers[0].Resources).To(BeComparableTo(wanted), pod.Name)
	Expect(status.AllocatedResources).To(BeComparableTo(wanted.Requests), pod.Name)
	Expect(status.Resources).To(HaveValue(BeComparableTo(wanted)), pod.Name)
	Expect(pod.Status.Conditions).NotTo(ContainElement(HaveField("Type", Or(Equal(corev1.PodResizePending), Equal(corev1.PodResizeInProgress)))))
	Expect(limitsInForce(status.ContainerID)).To(Equal(
		fmt.Sprintf("cpu %d us of 100000, memory %d", wanted.Limits.Cpu().MilliValue()*100, wanted.Limits.Memory().Value())), pod.Name)
}

// limitsInForce reads the limits of a container from its cgroup, of version 1 or
// 2: the lab's nodes are on this machine.
func limitsInForce(containerID string) string {
	GinkgoHelper()
	groups := controlGroups(containerID)
	read := func(controller, file string) string {
		content, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", controller, groups[controller], file))
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(string(content))
	}
	if groups["memory"] == "" {
		quota, period, _ := strings.Cut(read("", "cpu.max"), " ")
		return fmt.Sprintf("cpu %s us of %s, memory %s", quota, period, read("", "memory.max"))
	}
	return fmt.Sprintf("cpu %s us of %s, memory %s",
		read("cpu", "cpu.cfs_quota_us"), read("cpu", "cpu.cfs_period_us"), read("memory", "memory.limit_in_bytes"))
}

// controlGroups returns the cgroups of a process of a container by the controller,
// which is empty in version 2.
func controlGroups(containerID string) map[string]string {
	GinkgoHelper()
	_, id, _ := strings.Cut(containerID, "://")
	Expect(id).NotTo(BeEmpty())
	paths, err := filepath.Glob("/proc/[0-9]*/cgroup")
	Expect(err).NotTo(HaveOccurred())
	groups := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), id) {
			continue // it ended meanwhile, or is none of ours
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 {
				groups[fields[1]] = fields[2]
			}
		}
		return groups
	}
	Fail("no process of container " + id + " was found")
	return nil
}

// watchPods is watchPodsOf for "sample".
func watchPods(ctx context.Context, namespace string) (seen func() []*corev1.Pod) {
	GinkgoHelper()
	return watchPodsOf(ctx, namespace, "sample")
}

// watchPodsOf watches the pods of a workload from now on. The function that it
// returns ends that, and returns every state of theirs that was seen.
func watchPodsOf(ctx context.Context, namespace, app string) (seen func() []*corev1.Pod) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	// The watch outlives this node of the spec's context.
	events, err := kube.CoreV1().Pods(namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		LabelSelector: "app=" + app, ResourceVersion: list.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	end := sync.OnceFunc(events.Stop)
	DeferCleanup(end)
	var all []*corev1.Pod
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Modified {
				all = append(all, pod)
			}
		}
	}()
	return func() []*corev1.Pod {
		end()
		<-done
		return all
	}
}

// resizeBy changes a live pod as another client does.
func resizeBy(ctx context.Context, manager string, pod *corev1.Pod, s size) {
	GinkgoHelper()
	body, err := json.Marshal(corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: s.resources()}}}})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{FieldManager: manager}, resize.Subresource)
	Expect(err).NotTo(HaveOccurred())
}

// stopOperator ends all replicas of the operator, and returns what starts them
// again. The spec's end does so, too.
func stopOperator(ctx context.Context) (start func(context.Context)) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "insitu-manager"}, deployment)).To(Succeed())
	replicas := *deployment.Spec.Replicas
	scale := func(ctx context.Context, to int32) {
		base := deployment.DeepCopy()
		deployment.Spec.Replicas = &to
		Expect(api.Patch(ctx, deployment, client.MergeFrom(base))).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			list := &corev1.PodList{}
			g.Expect(api.List(ctx, list, client.InNamespace(operatorNamespace))).To(Succeed())
			g.Expect(list.Items).To(HaveLen(int(to)))
			for i := range list.Items {
				g.Expect(podutils.IsPodReady(&list.Items[i])).To(BeTrue())
			}
		}).Should(Succeed())
	}
	start = func(ctx context.Context) { scale(ctx, replicas) }
	DeferCleanup(start)
	scale(ctx, 0)
	return start
}

func cpuOf(pod *corev1.Pod) string { return pod.Spec.Containers[0].Resources.Requests.Cpu().String() }

// expectInService checks that pods were ready in every state that was seen.
func expectInService(seen []*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range seen {
		Expect(podutils.IsPodReady(pod)).To(BeTrue(), "%s: %+v", pod.Name, pod.Status.Conditions)
	}
}

// expectStalled checks the condition by which a workload asks for help.
func expectStalled(g Gomega, set *appsv1beta1.StatefulSet, reason, message string) {
	GinkgoHelper()
	g.Expect(meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)).To(HaveValue(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
}

var _ = Describe("A resize", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("of a StatefulSet restarts nothing, keeps pods in service and takes two writes for each", short.Spec, func(ctx context.Context) {
		set := create(ctx, sized(namespace, small))
		before, seen, written := identities(ctx, namespace), watchPods(ctx, namespace), len(operatorWrites(namespace))
		change(ctx, set, to(large))
		waitSettled(ctx, set)

		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
		writes := operatorWrites(namespace)[written:]
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, large)
			Expect(podWrites(writes, pod.Name)).To(Equal([]string{"patch pods/resize", "patch pods/"}))
		}
		Expect(set.Status.Resize).To(BeNil())
		Expect(set.Status.InPlaceUpdated).To(BeEquivalentTo(3))
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonResizingPodInPlace, "memory limit of main: 64Mi to 96Mi")
		for name := range before {
			Eventually(ctx, func(ctx context.Context) []eventsv1.Event { return eventsOf(ctx, namespace) }).Should(ContainElement(And(
				HaveField("Regarding.Name", name), HaveField("Reason", appsv1beta1.ReasonResizingPodInPlace),
				HaveField("Note", ContainSubstring("cpu request of main: 50m to 75m")))))
		}
		expectEvent(ctx, namespace, "Pod", "ResizeCompleted", "96Mi") // the kubelet's

		change(ctx, set, to(small))
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, small)
		}
	})

	It("of a CloneSet restarts nothing either", func(ctx context.Context) {
		clones := newClones(ctx, builders.CloneSet(namespace, "sample", sleeperV1).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Resources = small.resources()
		}))
		before, seen := identities(ctx, namespace), watchPods(ctx, namespace)
		clones.change(ctx, func(set *appsv1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Resources = large.resources() })
		clones.waitSettled(ctx)
		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range clones.live(ctx) {
			expectSize(pod, large)
		}
		expectEvent(ctx, namespace, "CloneSet", appsv1beta1.ReasonResizingPodInPlace, "memory limit of main: 64Mi to 96Mi")
	})

	It("that restarts the container drains the pod before, one pod at a time", func(ctx context.Context) {
		set := create(ctx, sized(namespace, small).With(restartsFor(corev1.ResourceMemory)))
		before, seen, written := pods(ctx, set), watchPods(ctx, namespace), len(operatorWrites(namespace))
		change(ctx, set, to(large))
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 1)
		for _, pod := range seen() {
			if pod.Spec.Containers[0].Resources.Limits.Memory().String() == large.memory && pod.Status.ContainerStatuses[0].RestartCount == 0 {
				Expect(gateStatus(pod)).To(Equal(corev1.ConditionFalse), "%s is in service before its restart", pod.Name)
			}
		}
		writes := operatorWrites(namespace)[written:]
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, large)
			Expect(podWrites(writes, pod.Name)).To(Equal([]string{"patch pods/status", "patch pods/resize", "patch pods/", "patch pods/status"}))
		}
	})

	// It is the CPU that goes down: a kubelet lowers no memory limit of a container
	// that was restarted, since it misses the memory usage of the one before.
	It("up and down beside another image takes one restart, up before it and down after it", func(ctx context.Context) {
		from, target := size{cpu: large.cpu, memory: small.memory}, size{cpu: small.cpu, memory: large.memory}
		set := create(ctx, sized(namespace, from))
		before, seen, written := pods(ctx, set), watchPods(ctx, namespace), len(operatorWrites(namespace))
		change(ctx, set, edits(image(sleeperV2), to(target)))
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 1)
		for _, pod := range seen() {
			live := pod.Spec.Containers[0]
			if live.Image == sleeperV2 {
				Expect(live.Resources.Limits.Memory().String()).To(Equal(target.memory), "grown before the image changes")
			}
			if cpuOf(pod) == target.cpu {
				Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1), "shrunk after the restart")
			}
		}
		writes := operatorWrites(namespace)[written:]
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, target)
			Expect(podWrites(writes, pod.Name)).To(Equal([]string{
				"patch pods/resize", "patch pods/status", "patch pods/", "patch pods/status", "patch pods/resize", "patch pods/",
			}))
		}
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonResizingPodInPlace, "memory limit of main: 64Mi to 96Mi")
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "sleeper:v1 to insitu-dev/sleeper:v2")
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonResizingPodInPlace, "cpu request of main: 75m to 50m")
	})

	// Each of the two changes restarts the container by itself: a kubelet acts on
	// the first write before it sees the second, in whatever order they come.
	It("that restarts the container beside another image keeps the pod out of service for both", func(ctx context.Context) {
		set := create(ctx, sized(namespace, small).Replicas(2).With(restartsFor(corev1.ResourceMemory)))
		before, seen := pods(ctx, set), watchPods(ctx, namespace)
		change(ctx, set, edits(image(sleeperV2), to(large)))
		waitSettled(ctx, set)

		for i, pod := range getPods(ctx, set) {
			Expect(pod.UID).To(Equal(before[i].UID))
			expectSize(pod, large)
			restarts := pod.Status.ContainerStatuses[0].RestartCount
			Expect(restarts).To(BeNumerically("<=", 2))
			for _, then := range seen() {
				if then.Name == pod.Name && gateStatus(then) == corev1.ConditionTrue {
					Expect(then.Status.ContainerStatuses[0].RestartCount).To(Or(BeZero(), Equal(restarts)), "back in service too early")
				}
			}
		}
	})

	It("that is taken back while the pod is out of service leaves it as it was", func(ctx context.Context) {
		set := create(ctx, sized(namespace, small).With(endless))
		before := identities(ctx, namespace)
		change(ctx, set, edits(image(sleeperV2), to(large)))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pod := getPod(ctx, set, 2)
			g.Expect(gateStatus(pod)).To(Equal(corev1.ConditionFalse))
			g.Expect(cpuOf(pod)).To(Equal(large.cpu), "grown first")
		}).Should(Succeed())
		change(ctx, set, edits(image(sleeperV1), to(small)))
		// It goes back into service first, and counts as updated in between.
		Eventually(ctx, func(ctx context.Context) *corev1.ResourceRequirements {
			return getPod(ctx, set, 2).Status.ContainerStatuses[0].Resources
		}).Should(HaveValue(BeComparableTo(small.resources())))
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, small)
			Expect(podutils.IsPodReady(pod)).To(BeTrue())
		}
	})

	// What a manager leaves behind that is killed between its two writes to a pod.
	It("of which the label was not written is finished, not made again", Serial, func(ctx context.Context) {
		set := create(ctx, sized(namespace, small))
		before := identities(ctx, namespace)
		startOperator := stopOperator(ctx)
		change(ctx, set, to(large))
		resizeBy(ctx, resize.FieldManager, getPod(ctx, set, 2), large)
		written := len(operatorWrites(namespace))
		startOperator(ctx)
		waitSettled(ctx, set)
		Expect(podWrites(operatorWrites(namespace)[written:], "sample-2")).To(Equal([]string{"patch pods/"}))
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, large)
		}
	})

	It("of a native sidecar restarts nothing", func(ctx context.Context) {
		sidecar := func(s size) edit {
			return func(set *appsv1beta1.StatefulSet) {
				set.Spec.Template.Spec.InitContainers[proxyContainer].Resources = s.resources()
			}
		}
		set := create(ctx, sidecarSet(namespace).With(sidecar(small)))
		before := identities(ctx, namespace)
		change(ctx, set, sidecar(large))
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			Expect(pod.Status.InitContainerStatuses[proxyContainer].Resources).To(HaveValue(BeComparableTo(large.resources())))
			Expect(limitsInForce(pod.Status.InitContainerStatuses[proxyContainer].ContainerID)).To(HaveSuffix("memory 100663296"))
		}
	})

	It("of the pod as a whole restarts nothing", func(ctx context.Context) {
		whole := func(s size) edit {
			return func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Resources = ptr.To(s.resources()) }
		}
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(whole(small)))
		before := identities(ctx, namespace)
		change(ctx, set, whole(large))
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			Expect(pod.Spec.Resources).To(HaveValue(BeComparableTo(large.resources())))
			Expect(pod.Status.Resources).To(HaveValue(BeComparableTo(large.resources())))
		}
	})

	It("saves a container that runs out of memory again and again", func(ctx context.Context) {
		set := sized(namespace, size{cpu: "50m", memory: "24Mi"}).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = nginxAlpine
			s.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "busybox dd if=/dev/zero of=/dev/null bs=40M count=1 || exit 1; exec sleep 10000"}
		}).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			g.Expect(found).To(And(HaveLen(2), HaveEach(HaveField("Restarts", BeNumerically(">=", 2)))))
		}).Should(Succeed())
		before := pods(ctx, set)
		change(ctx, set, to(large))
		waitSettled(ctx, set)
		// A run that has begun below the old limit may still end by it.
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			for _, pod := range getPods(ctx, set) {
				running := pod.Status.ContainerStatuses[0].State.Running
				g.Expect(running).NotTo(BeNil())
				g.Expect(time.Since(running.StartedAt.Time)).To(BeNumerically(">", 10*time.Second))
			}
		}).Should(Succeed())
		for i, pod := range getPods(ctx, set) {
			Expect(pod.UID).To(Equal(before[i].UID))
			expectSize(pod, large)
		}
	})

	It("below the memory in use is told in the kubelet's words and can be taken back", func(ctx context.Context) {
		set := create(ctx, sized(namespace, large).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = nginxAlpine
			s.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "busybox dd if=/dev/zero of=/dev/shm/use bs=1M count=50; exec sleep 10000"}
		}))
		for _, pod := range getPods(ctx, set) {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				return kubectl(ctx, "exec", pod.Name, "-n", namespace, "--", "ls", "-l", "/dev/shm/use")
			}).Should(ContainSubstring("52428800"))
		}
		before, seen := identities(ctx, namespace), watchPods(ctx, namespace)
		change(ctx, set, to(size{cpu: large.cpu, memory: "32Mi"}))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(
				HaveField("Reason", inplace.ReasonResizeError), HaveField("Message", ContainSubstring("below current usage")))))
			g.Expect(set.Status.Resize).To(HaveValue(HaveField("Kept", BeNumerically(">=", 1))))
			expectStalled(g, set, inplace.ReasonResizeError, "below current usage")
		})
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonResizeError, "below current usage")

		change(ctx, set, to(large))
		waitSettled(ctx, set)
		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, large)
		}
	})
})
