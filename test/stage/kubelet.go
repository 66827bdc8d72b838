// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package stage

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

// Kubelet does to the pods of a namespace what scheduler and kubelet do, one
// write per pod and call of Sync.
type Kubelet struct {
	// API writes, and makes the shared cache wait for what it wrote; Live reads
	// from the API server.
	API   client.Client
	Live  client.Reader
	Clock clock.PassiveClock

	// Namespace is where its pods are.
	Namespace string
	// running holds the containers that it runs, by pod.
	running map[types.UID]map[string]container
	starts  int

	// Away holds the names of pods whose node does not answer.
	Away map[string]bool
	// Unready holds the names of pods whose containers run and are not ready.
	Unready map[string]bool
}

// NewKubelet returns the kubelet of a namespace. Whoever writes sets API and Live.
func NewKubelet(namespace string, clock clock.PassiveClock) *Kubelet {
	return &Kubelet{
		Clock: clock, Namespace: namespace,
		running: map[types.UID]map[string]container{}, Away: map[string]bool{}, Unready: map[string]bool{},
	}
}

// container is a container that was started.
type container struct {
	id, image, imageID string
	started            metav1.Time
	restarts           int32
}

// MissingImage is the tag of images that cannot be pulled.
const MissingImage = "no-such-tag"

// digests holds what tags point to, where that is not their own content: two
// tags with one digest.
var digests = map[string]string{"nginx:stable": "nginx:latest"}

// ImageID returns what a status says of a container that runs an image.
func ImageID(image string) string {
	if same, ok := digests[image]; ok {
		image = same
	}
	return "docker.io/library/" + strings.ReplaceAll(image, ":", "@sha256:")
}

// Sync takes one step with every pod, and reports whether there was one to take.
func (k *Kubelet) Sync(ctx context.Context) bool {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(k.Live.List(ctx, list, client.InNamespace(k.Namespace))).To(Succeed())
	moved := false
	for i := range list.Items {
		pod := &list.Items[i]
		if !k.Away[pod.Name] && k.syncPod(ctx, pod) {
			moved = true
		}
	}
	return moved
}

func (k *Kubelet) syncPod(ctx context.Context, pod *corev1.Pod) bool {
	GinkgoHelper()
	if pod.DeletionTimestamp != nil {
		return k.remove(ctx, pod)
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	if pod.Spec.NodeName == "" {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeFor(pod)}}
		Expect(k.API.SubResource("binding").Create(ctx, pod.DeepCopy(), binding)).To(Succeed())
	}
	before := pod.DeepCopy()
	k.advance(pod)
	k.judge(pod)
	if apiequality.Semantic.DeepEqual(before.Status, pod.Status) {
		return false
	}
	Expect(k.API.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
	return true
}

// nodeFor returns the node on which a pod is to run: the one that it names in its affinity, as
// pods of DaemonSets do.
func nodeFor(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "node-1"
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			return field.Values[0]
		}
	}
	return "node-1"
}

// recall takes the containers that a pod shows for its own: another kubelet has started them.
// It reports whether there are any.
func (k *Kubelet) recall(pod *corev1.Pod) bool {
	shown := map[string]container{}
	for _, status := range pod.Status.ContainerStatuses {
		if running := status.State.Running; running != nil {
			shown[status.Name] = container{
				id: status.ContainerID, image: status.Image, imageID: status.ImageID, started: running.StartedAt, restarts: status.RestartCount,
			}
		}
	}
	if len(shown) > 0 {
		k.running[pod.UID] = shown
	}
	return len(shown) > 0
}

// remove ends a pod that is being deleted. One with finalizers stays.
func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) bool {
	GinkgoHelper()
	if len(pod.Finalizers) > 0 && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return false
	}
	err := k.API.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return true
}

// advance brings the containers of a pod one step nearer to its spec. As the real
// kubelet, it first says that it has seen a new spec, with the statuses from
// before it acts on it.
func (k *Kubelet) advance(pod *corev1.Pod) {
	status := &pod.Status
	now := metav1.NewTime(k.Clock.Now())
	seenNow := status.ObservedGeneration != pod.Generation
	status.ObservedGeneration = pod.Generation
	isNew := k.running[pod.UID] == nil && !k.recall(pod)
	if isNew {
		k.running[pod.UID] = map[string]container{}
		status.StartTime = &now
		SetPodCondition(pod, corev1.PodScheduled, true, now)
		SetPodCondition(pod, corev1.PodInitialized, true, now)
	}
	if seenNow && !isNew {
		return
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, k.runContainer(pod, c))
	}
}

func (k *Kubelet) runContainer(pod *corev1.Pod, c corev1.Container) corev1.ContainerStatus {
	current, runs := k.running[pod.UID][c.Name]
	if strings.HasSuffix(c.Image, MissingImage) {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, RestartCount: current.restarts, ContainerID: current.id}
		if runs {
			status.Image, status.ImageID = current.image, current.imageID
		}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image " + c.Image}
		return status
	}
	if !runs || current.image != c.Image {
		k.starts++
		next := container{
			id: fmt.Sprintf("containerd://%d", k.starts), image: c.Image, imageID: ImageID(c.Image),
			started: metav1.NewTime(k.Clock.Now()).Rfc3339Copy(), restarts: current.restarts,
		}
		if runs {
			next.restarts++
		}
		current = next
		k.running[pod.UID][c.Name] = current
	}
	return corev1.ContainerStatus{
		Name: c.Name, Image: current.image, ImageID: current.imageID, ContainerID: current.id,
		RestartCount: current.restarts, Started: ptr.To(true), Ready: !k.Unready[pod.Name],
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: current.started}},
	}
}

// judge sets phase and readiness, which depend on containers and gates.
func (k *Kubelet) judge(pod *corev1.Pod) {
	now := metav1.NewTime(k.Clock.Now())
	ready, phase := true, corev1.PodRunning
	for _, status := range pod.Status.ContainerStatuses {
		ready = ready && status.Ready
		if status.State.Running == nil && status.ContainerID == "" {
			phase = corev1.PodPending
		}
	}
	pod.Status.Phase = phase
	SetPodCondition(pod, corev1.ContainersReady, ready, now)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && PodConditionStatus(pod, gate.ConditionType) == corev1.ConditionTrue
	}
	SetPodCondition(pod, corev1.PodReady, ready, now)
}

// PodConditionStatus returns the status of a condition of a pod; Unknown if it is
// not there.
func PodConditionStatus(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// SetPodCondition sets a condition of a pod.
func SetPodCondition(pod *corev1.Pod, t corev1.PodConditionType, isTrue bool, now metav1.Time) {
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

// Evict ends a pod as the kubelet does when its node has no room.
func (k *Kubelet) Evict(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	before := pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	SetPodCondition(pod, corev1.PodReady, false, metav1.NewTime(k.Clock.Now()))
	Expect(k.API.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
}
