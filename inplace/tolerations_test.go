// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/test/builders"
)

func tolerating(t *testing.T, tolerations string) *Template {
	t.Helper()
	return parse(t, `{"spec":{"tolerations":[`+tolerations+`],"containers":[{"name":"main","image":"nginx:alpine"}]}}`)
}

func TestTolerationsOfALivePod(t *testing.T) {
	const (
		spot    = `{"key":"spot","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}`
		longer  = `{"key":"spot","operator":"Exists","effect":"NoExecute","tolerationSeconds":600}`
		forever = `{"key":"spot","operator":"Exists","effect":"NoExecute"}`
		gpu     = `{"key":"gpu","value":"a"}`
		written = `{"key":"gpu","operator":"Equal","value":"a"}`
	)
	var (
		spotFor = func(seconds *int64) corev1.Toleration {
			return corev1.Toleration{Key: "spot", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds}
		}
		ofGPU    = corev1.Toleration{Key: "gpu", Value: "a"}
		admitted = corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)}

		unreachable = corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)}
	)
	for name, of := range map[string]struct {
		from, to string
		live     []corev1.Toleration
		want     []corev1.Toleration
		refused  string
	}{
		"one more, before what admission gave": {
			from: spot, to: spot + "," + gpu, live: []corev1.Toleration{spotFor(ptr.To[int64](60)), admitted},
			want: []corev1.Toleration{spotFor(ptr.To[int64](60)), ofGPU, admitted},
		},
		"the first":                      {to: gpu, live: []corev1.Toleration{admitted}, want: []corev1.Toleration{ofGPU, admitted}},
		"the first of a pod without any": {to: gpu, want: []corev1.Toleration{ofGPU}},
		"everything: the first one that matches counts": {
			to: `{"operator":"Exists"}`, live: []corev1.Toleration{admitted}, want: []corev1.Toleration{{Operator: "Exists"}, admitted},
		},
		"what admission gave, for longer": {
			to:   `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":900}`,
			live: []corev1.Toleration{admitted, unreachable},
			want: []corev1.Toleration{{Key: admitted.Key, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](900)}, unreachable},
		},
		"what the controller of DaemonSets gave, with an end": {
			to:   `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}`,
			live: []corev1.Toleration{{Key: admitted.Key, Operator: "Exists", Effect: "NoExecute"}},
		},
		"for longer":         {from: spot, to: longer, live: []corev1.Toleration{spotFor(ptr.To[int64](60)), admitted}, want: []corev1.Toleration{spotFor(ptr.To[int64](600)), admitted}},
		"for ever":           {from: spot, to: forever, live: []corev1.Toleration{spotFor(ptr.To[int64](60))}, want: []corev1.Toleration{spotFor(nil)}},
		"no longer for ever": {from: forever, to: spot, live: []corev1.Toleration{spotFor(nil)}, want: []corev1.Toleration{spotFor(ptr.To[int64](60))}},
		"in another order": {
			from: spot + "," + gpu, to: gpu + "," + spot, live: []corev1.Toleration{spotFor(ptr.To[int64](60)), ofGPU},
			want: []corev1.Toleration{ofGPU, spotFor(ptr.To[int64](60))},
		},
		"the same taint twice, and once": {
			from: spot + "," + longer, to: longer, live: []corev1.Toleration{spotFor(ptr.To[int64](60)), spotFor(ptr.To[int64](600))},
			want: []corev1.Toleration{spotFor(ptr.To[int64](600))},
		},
		"written out with its operator":   {from: gpu, to: written, live: []corev1.Toleration{ofGPU}},
		"what admission has added before": {to: gpu, live: []corev1.Toleration{ofGPU}},
		"what another hand has changed":   {from: spot, to: spot, live: []corev1.Toleration{spotFor(ptr.To[int64](5))}},
		"one less":                        {from: spot + "," + gpu, to: spot, live: []corev1.Toleration{spotFor(ptr.To[int64](60)), ofGPU}, refused: "spec.tolerations[1]"},
		"another value":                   {from: gpu, to: `{"key":"gpu","value":"b"}`, live: []corev1.Toleration{ofGPU}, refused: "spec.tolerations[0]"},
		"what this release does not know": {to: `{"key":"gpu","since":"1.99"}`, live: []corev1.Toleration{admitted}, refused: "spec.tolerations"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := builders.Pod("web-0", "a", "nginx:alpine").Build()
			pod.Spec.Tolerations = of.live
			before := pod.DeepCopy()

			change, refused := Compare(pod, tolerating(t, of.from), tolerating(t, of.to), after(0))

			g.Expect(pod).To(Equal(before), "it is of the cache")
			if of.refused != "" {
				g.Expect(refused).To(And(HaveField("Reason", ReasonFieldImmutable), HaveField("Field", of.refused)))
				return
			}
			g.Expect(refused).To(BeNil())
			g.Expect(change.Tolerations).To(Equal(of.want))
			g.Expect(change.isEmpty()).To(Equal(len(of.want) == 0))
			g.Expect(change.Restarts()).To(BeFalse())
		})
	}
}

// One patch has all tolerations, beside what else changes: the API server replaces the list.
func TestThePatchOfTolerations(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("web-0", "a", "nginx:alpine").Build()
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "kept", Operator: "Exists"}}
	to := parse(t, `{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"}],"containers":[{"name":"main","image":"nginx:latest"}]}}`)
	step := Next(PodFacts{Pod: pod, From: &Revision{Name: "a", Template: tolerating(t, "")}}, Target{Revision: Revision{Name: "b", Template: to}, Policy: "InPlaceIfPossible"}, after(0))

	body, err := TrialPatch(pod, step, "b", after(0))
	g.Expect(err).NotTo(HaveOccurred())
	patch := objectPatch{}
	g.Expect(json.Unmarshal(body, &patch)).To(Succeed())

	g.Expect(patch.Spec.Tolerations).To(Equal([]corev1.Toleration{{Key: "gpu", Operator: "Exists"}, {Key: "kept", Operator: "Exists"}}))
	g.Expect(patch.Spec.Containers).To(Equal([]containerPatch{{Name: "main", Image: "nginx:latest"}}))
	g.Expect(step.Change.String()).To(Equal("image of main: nginx:alpine to nginx:latest, tolerations"))
}

// What the API server says of one list of tolerations is not what it says of another.
func TestTolerationsAreInTheKeyOfAChange(t *testing.T) {
	g := NewWithT(t)
	a, b := Change{Tolerations: []corev1.Toleration{{Key: "a"}}}, Change{Tolerations: []corev1.Toleration{{Key: "b"}}}

	g.Expect(a.Key()).NotTo(Equal(b.Key()))
	g.Expect(a.Key()).NotTo(Equal(Change{}.Key()))
}

// A pod that got a toleration in an update that ended in its middle is not as the template before.
func TestTolerationsThatAreLeftBehind(t *testing.T) {
	const gpu = `{"key":"gpu","operator":"Exists"}`
	for name, of := range map[string]struct {
		at, wanted string
		live       []corev1.Toleration
		want       string
	}{
		"one too many":           {at: gpu, live: []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}, want: "tolerations"},
		"one that is missing":    {wanted: gpu, want: "tolerations"},
		"of the template":        {at: gpu, wanted: gpu, live: []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}},
		"of admission":           {live: []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}},
		"one that it never had":  {at: gpu},
		"one that it has anyway": {wanted: gpu, live: []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("web-0", "b", "nginx:alpine").Build()
			pod.Spec.Tolerations = of.live

			NewWithT(t).Expect(LeftBehind(pod, tolerating(t, of.at), tolerating(t, of.wanted), after(0))).To(Equal(of.want))
		})
	}
}

// A hook that is asked reads all tolerations that the pod will have.
func TestAHookReadsTolerations(t *testing.T) {
	pod := builders.Pod("web-0", "a", "nginx:alpine").Build()
	pending := newPendingUpdate(observedOf(pod, after(0)), Change{Tolerations: []corev1.Toleration{{Key: "gpu"}}}, "b")

	NewWithT(t).Expect(json.Marshal(pending)).To(MatchJSON(`{"revision":"b","tolerations":[{"key":"gpu"}]}`))
}
