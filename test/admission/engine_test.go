// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// Images by digest, of which the samples and the verifier of the tests know the first two.
var (
	imageA = "registry.example.com/shop/web@sha256:" + strings.Repeat("a", 64)
	imageB = "registry.example.com/shop/web@sha256:" + strings.Repeat("b", 64)
	imageX = "registry.example.com/shop/web@sha256:" + strings.Repeat("e", 64)
)

// state is what a template says: of its container, and of the image of a native sidecar.
type state struct {
	image, cpu, sidecar string
}

func (s state) template(t *testing.T) *inplace.Template {
	t.Helper()
	parsed, err := inplace.ParseTemplate(fmt.Appendf(nil, `{"spec":{"initContainers":[{"name":"proxy","image":%q,"restartPolicy":"Always"}],"containers":[{"name":"main","image":%q,
		"resources":{"requests":{"cpu":%q,"memory":"64Mi"},"limits":{"memory":"64Mi"}}}]}}`, s.sidecar, s.image, s.cpu))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return parsed
}

// newPod makes a pod that runs, as far as the API server knows. gated pods are drained
// before their containers restart, so what is refused is found by a dry run.
func newPod(t *testing.T, namespace, name string, now state, gated bool) *corev1.Pod {
	t.Helper()
	g := NewWithT(t)
	builder := builders.Pod(name, "web-1", now.image).Sized(now.cpu, "64Mi").
		Sidecar(now.sidecar, builders.RunningContainer("proxy", "proxy-1", now.sidecar, builders.Start))
	if gated {
		builder = builder.Gated(corev1.ConditionTrue, builders.Start)
	}
	pod := builder.Build()
	pod.Namespace, pod.UID, pod.ResourceVersion, pod.Generation = namespace, "", "", 0
	pod.Spec.NodeName = "node-1"
	status := pod.Status
	admin := clientOf(t, "")
	g.Expect(admin.Create(t.Context(), pod)).To(Succeed())
	pod.Status = status
	g.Expect(admin.Status().Update(t.Context(), pod)).To(Succeed())

	return pod
}

// update has the engine of the manager change a pod, and returns what becomes of it: the
// actions that the plan has, what it reports as denied, and the pod.
func update(t *testing.T, c client.Client, pod *corev1.Pod, from, to state) ([]inplace.Action, string, *corev1.Pod) {
	t.Helper()
	g := NewWithT(t)
	engine := executor.New(c, events.NewFakeRecorder(100), clock.RealClock{})
	owner := builders.StatefulSet(pod.Namespace, "web", from.image).Build()
	owner.UID = pod.UID
	var actions []inplace.Action
	for range 2 { // what a write is refused for is in the next plan
		current := &corev1.Pod{}
		g.Expect(clientOf(t, "").Get(t.Context(), client.ObjectKeyFromObject(pod), current)).To(Succeed())
		workload := inplace.Workload{
			Target: inplace.Target{
				Revision: inplace.Revision{Name: "web-2", Template: to.template(t)}, Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
			},
			Replicas: 1, MaxUnavailable: 1, MaxConcurrentResizes: 1,
			Pods: []inplace.PodFacts{{Pod: current, From: &inplace.Revision{Name: "web-1", Template: from.template(t)}}},
		}
		plan, _ := engine.Plan(t.Context(), owner, workload, time.Now())
		for _, blocker := range plan.Blockers {
			if blocker.Reason == inplace.ReasonAdmissionDenied || blocker.Reason == inplace.ReasonResizeDenied {
				return actions, blocker.Reason + ": " + blocker.Message, current
			}
		}
		if len(actions) > 0 {
			return actions, "", current
		}
		for _, move := range plan.Moves {
			actions = append(actions, move.Step.Action)
		}
		result := engine.Run(t.Context(), owner, "web-2", plan.Moves)
		if result.Refused == 0 {
			g.Expect(result.Errors()).To(BeEmpty())
		}
	}

	return actions, "", pod
}

// mustBeDenied expects the refusal as users are told of it, and a pod that was not touched.
func mustBeDenied(t *testing.T, c client.Client, pod *corev1.Pod, from, to state, words string) {
	t.Helper()
	g := NewWithT(t)
	_, denied, after := update(t, c, pod, from, to)
	reason := inplace.ReasonAdmissionDenied
	if from.image == to.image && from.sidecar == to.sidecar {
		reason = inplace.ReasonResizeDenied // the pod keeps its size, as the policy for resizes says
	}
	g.Expect(denied).To(And(HavePrefix(reason+": "), ContainSubstring(words)))
	g.Expect(after.Spec).To(Equal(pod.Spec), "nothing was changed")
	g.Expect(after.Labels).To(Equal(pod.Labels))
	for _, condition := range after.Status.Conditions {
		g.Expect(condition.Status).To(Equal(corev1.ConditionTrue), "%s: it stays in service", condition.Type)
	}
}

// mustBeMade expects that the pod has become what the template says.
func mustBeMade(t *testing.T, c client.Client, pod *corev1.Pod, from, to state) {
	t.Helper()
	g := NewWithT(t)
	actions, denied, after := update(t, c, pod, from, to)
	g.Expect(denied).To(BeEmpty())
	g.Expect(actions).To(HaveLen(1))
	container := after.Spec.Containers[0]
	g.Expect(container.Image).To(Equal(to.image))
	g.Expect(after.Spec.InitContainers[0].Image).To(Equal(to.sidecar))
	g.Expect(container.Resources.Requests.Cpu().String()).To(Equal(to.cpu))
	g.Expect(after.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, "web-2"))
	g.Expect(after.UID).To(Equal(pod.UID))
}

// setImage is what `kubectl set image pod` sends.
func setImage(t *testing.T, c client.Client, pod *corev1.Pod, image string, options ...client.PatchOption) error {
	t.Helper()

	return setImageOf(t, c, pod, "containers", "main", image, options...)
}

// setSidecar is setImage for the native sidecar.
func setSidecar(t *testing.T, c client.Client, pod *corev1.Pod, image string) error {
	t.Helper()

	return setImageOf(t, c, pod, "initContainers", "proxy", image)
}

func setImageOf(t *testing.T, c client.Client, pod *corev1.Pod, list, name, image string, options ...client.PatchOption) error {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{list: []any{map[string]any{"name": name, "image": image}}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c.Patch(t.Context(), pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", body), options...)
}

// debug is what `kubectl debug` sends: it adds a container to a live pod.
func debug(t *testing.T, c client.Client, pod *corev1.Pod, image string) error {
	t.Helper()
	current := &corev1.Pod{}
	NewWithT(t).Expect(clientOf(t, "").Get(t.Context(), client.ObjectKeyFromObject(pod), current)).To(Succeed())
	current.Spec.EphemeralContainers = append(current.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: image, TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullAlways,
		},
	})

	return c.SubResource("ephemeralcontainers").Update(t.Context(), current)
}
