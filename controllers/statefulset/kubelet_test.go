// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet does to the pods of a namespace what scheduler and kubelet do, one
// write per pod and call of sync.
type kubelet struct {
	// api writes, and makes the shared cache wait for what it wrote; live reads
	// from the API server.
	api   client.Client
	live  client.Reader
	clock clock.PassiveClock

	namespace string
	// running holds the containers that it runs, by pod.
	running map[types.UID]map[string]container
	starts  int

	// away holds the names of pods whose node does not answer.
	away map[string]bool
	// unready holds the names of pods whose containers run and are not ready.
	unready map[string]bool
}

// container is a container that was started.
type container struct {
	id, image string
	started   metav1.Time
	restarts  int32
}

// missingImage is the tag of images that cannot be pulled.
const missingImage = "no-such-tag"

// digests holds what tags point to, where that is not their own content: two
// tags with one digest.
var digests = map[string]string{"nginx:stable": "nginx:latest"}

func imageID(image string) string {
	if same, ok := digests[image]; ok {
		image = same
	}
	return "docker.io/library/" + strings.ReplaceAll(image, ":", "@sha256:")
}

// sync takes one step with every pod, and reports whether there was one to take.
func (k *kubelet) sync(ctx context.Context) bool {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(k.live.List(ctx, list, client.InNamespace(k.namespace))).To(Succeed())
	moved := false
	for i := range list.Items {
		pod := &list.Items[i]
		if !k.away[pod.Name] && k.syncPod(ctx, pod) {
			moved = true
		}
	}
	return moved
}

func (k *kubelet) syncPod(ctx context.Context, pod *corev1.Pod) bool {
	GinkgoHelper()
	if pod.DeletionTimestamp != nil {
		return k.remove(ctx, pod)
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	if pod.Spec.NodeName == "" {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}}
		Expect(k.api.SubResource("binding").Create(ctx, pod.DeepCopy(), binding)).To(Succeed())
	}
	before := pod.DeepCopy()
	k.advance(pod)
	k.judge(pod)
	if apiequality.Semantic.DeepEqual(before.Status, pod.Status) {
		return false
	}
	Expect(k.api.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
	return true
}

// remove ends a pod that is being deleted. One with finalizers stays.
func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) bool {
	GinkgoHelper()
	if len(pod.Finalizers) > 0 && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return false
	}
	err := k.api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return true
}

// advance brings the containers of a pod one step nearer to its spec. As the real
// kubelet, it first says that it has seen a new spec, with the statuses from
// before it acts on it.
func (k *kubelet) advance(pod *corev1.Pod) {
	status := &pod.Status
	now := metav1.NewTime(k.clock.Now())
	seenNow := status.ObservedGeneration != pod.Generation
	status.ObservedGeneration = pod.Generation
	isNew := k.running[pod.UID] == nil
	if isNew {
		k.running[pod.UID] = map[string]container{}
		status.StartTime = &now
		setPodCondition(pod, corev1.PodScheduled, true, now)
		setPodCondition(pod, corev1.PodInitialized, true, now)
	}
	if seenNow && !isNew {
		return
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, k.runContainer(pod, c))
	}
}

func (k *kubelet) runContainer(pod *corev1.Pod, c corev1.Container) corev1.ContainerStatus {
	current, runs := k.running[pod.UID][c.Name]
	if strings.HasSuffix(c.Image, missingImage) {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, RestartCount: current.restarts, ContainerID: current.id}
		if runs {
			status.Image, status.ImageID = current.image, imageID(current.image)
		}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image " + c.Image}
		return status
	}
	if !runs || current.image != c.Image {
		k.starts++
		next := container{
			id: fmt.Sprintf("containerd://%d", k.starts), image: c.Image,
			started: metav1.NewTime(k.clock.Now()).Rfc3339Copy(), restarts: current.restarts,
		}
		if runs {
			next.restarts++
		}
		current = next
		k.running[pod.UID][c.Name] = current
	}
	return corev1.ContainerStatus{
		Name: c.Name, Image: current.image, ImageID: imageID(current.image), ContainerID: current.id,
		RestartCount: current.restarts, Started: ptr.To(true), Ready: !k.unready[pod.Name],
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: current.started}},
	}
}

// judge sets phase and readiness, which depend on containers and gates.
func (k *kubelet) judge(pod *corev1.Pod) {
	now := metav1.NewTime(k.clock.Now())
	ready, phase := true, corev1.PodRunning
	for _, status := range pod.Status.ContainerStatuses {
		ready = ready && status.Ready
		if status.State.Running == nil && status.ContainerID == "" {
			phase = corev1.PodPending
		}
	}
	pod.Status.Phase = phase
	setPodCondition(pod, corev1.ContainersReady, ready, now)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && podConditionStatus(pod, gate.ConditionType) == corev1.ConditionTrue
	}
	setPodCondition(pod, corev1.PodReady, ready, now)
}

func podConditionStatus(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func setPodCondition(pod *corev1.Pod, t corev1.PodConditionType, isTrue bool, now metav1.Time) {
	status := corev1.ConditionFalse
	if isTrue {
		status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != t {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, now.Rfc3339Copy()
		}
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: t, Status: status, LastTransitionTime: now.Rfc3339Copy()})
}

// evict ends a pod as the kubelet does when its node has no room.
func (k *kubelet) evict(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	before := pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	setPodCondition(pod, corev1.PodReady, false, metav1.NewTime(k.clock.Now()))
	Expect(k.api.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
}
