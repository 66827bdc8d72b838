// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// mergePod returns what the API server makes of a strategic merge patch.
func mergePod(t *testing.T, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	merged := &corev1.Pod{}
	if err := json.Unmarshal(after, merged); err != nil {
		t.Fatal(err)
	}
	return merged
}

func twoContainers() *builders.PodBuilder {
	return settledPod().Label("tier", "web").Annotation("note", "old").With(func(p *corev1.Pod) {
		p.ResourceVersion = "41"
		p.Spec.Containers[0].Command = []string{"/bin/serve"}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side:1"})
	})
}

// imageStep changes an image, a label and an annotation, and removes one of each.
func imageStep(pod *corev1.Pod) Step {
	change := Change{
		Labels:      map[string]*string{"tier": nil, "zone": ptr.To("1")},
		Annotations: map[string]*string{"note": nil},
		Images:      imageTo(alpineImage, latestImage),
	}
	return Step{Action: Patch, Change: change, Record: newState(observedOf(pod, patched), change, "b", patched)}
}

func TestRevisionPatchOfAnImage(t *testing.T) {
	g := NewWithT(t)
	pod := twoContainers().Build()
	patch, err := RevisionPatch(pod, imageStep(pod))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch).To(MatchJSON(fmt.Sprintf(`{
		"metadata": {
			"uid": "uid-sample-0",
			"resourceVersion": "41",
			"labels": {"controller-revision-hash": "b", "tier": null, "zone": "1"},
			"annotations": {
				"note": null,
				"apps.kruise.io/inplace-update-state": "{\"revision\":\"b\",\"createdRevision\":\"a\",\"updateTimestamp\":\"2026-01-02T12:10:00Z\",\"lastContainerStatuses\":{\"main\":{\"imageID\":\"%s\",\"containerID\":\"containerd://main-1\",\"image\":\"nginx:alpine\"}}}",
				"apps.kruise.io/restart-count-before-last-update": "{\"main\":{\"revision\":\"b\",\"restartCount\":0}}",
				"apps.kruise.io/pod-restart-count-before-last-update": "0"
			}
		},
		"spec": {"containers": [{"name": "main", "image": "nginx:latest"}]}
	}`, builders.ImageID(alpineImage))))
}

func TestRevisionPatchMerges(t *testing.T) {
	g := NewWithT(t)
	pod := twoContainers().Build()
	patch, err := RevisionPatch(pod, imageStep(pod))
	g.Expect(err).NotTo(HaveOccurred())
	merged := mergePod(t, pod, patch)

	g.Expect(merged.Labels).To(Equal(map[string]string{"app": "sample", "zone": "1", appsv1beta1.ControllerRevisionHashLabel: "b"}))
	g.Expect(merged.Annotations).To(HaveLen(3))
	g.Expect(merged.Annotations).To(And(HaveKey(appsv1beta1.RestartCountKey), HaveKey(appsv1beta1.PodRestartCountKey)))
	state, err := readState(merged)
	g.Expect(err).NotTo(HaveOccurred())
	updated := record(entry(alpineImage))
	updated.CreatedRevision = "a"
	g.Expect(state).To(BeComparableTo(&updated))

	want := pod.DeepCopy()
	want.Spec.Containers[0].Image = latestImage
	g.Expect(merged.Spec).To(Equal(want.Spec), "only the image is changed")
	g.Expect(merged.Status).To(BeComparableTo(pod.Status))
}

// What was decided on an older pod must not be written: the label would say what
// the pod is not, and the record would forget what is under way.
func TestRevisionPatchIsRefusedWhenThePodHasChanged(t *testing.T) {
	for name, change := range map[string]Change{
		"an image":            {Images: imageTo(alpineImage, latestImage)},
		"a label":             {Labels: map[string]*string{"tier": ptr.To("web")}},
		"the revision's name": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := twoContainers().Build()
			patch, err := RevisionPatch(pod, Step{Action: Patch, Change: change, Record: newState(observedOf(pod, patched), change, "b", patched)})
			g.Expect(err).NotTo(HaveOccurred())
			sent := metav1.PartialObjectMetadata{}
			g.Expect(json.Unmarshal(patch, &sent)).To(Succeed())
			g.Expect(sent.UID).To(Equal(pod.UID))
			g.Expect(sent.ResourceVersion).To(Equal("41"))
		})
	}
}

func TestRevisionPatchOfMetadataHasNoSpec(t *testing.T) {
	g := NewWithT(t)
	pod := twoContainers().Build()
	change := Change{Labels: map[string]*string{"tier": ptr.To("db")}}
	patch, err := RevisionPatch(pod, Step{Action: Patch, Change: change, Record: newState(observedOf(pod, patched), change, "b", patched)})
	g.Expect(err).NotTo(HaveOccurred())
	fields := map[string]any{}
	g.Expect(json.Unmarshal(patch, &fields)).To(Succeed())
	g.Expect(fields).To(And(HaveLen(1), HaveKey("metadata")))

	merged := mergePod(t, pod, patch)
	g.Expect(merged.Labels).To(HaveKeyWithValue("tier", "db"))
	g.Expect(merged.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, "b"))
	g.Expect(merged.Annotations).To(HaveKeyWithValue("note", "old"))
	g.Expect(UpdatedInPlace(merged)).To(BeTrue())
	g.Expect(UpdatedInPlace(pod)).To(BeFalse())
	g.Expect(Observe(merged, after(1)).Complete).To(BeTrue())
}

// A record says at which revision its pod was created, whatever the pod has become since.
func TestRecordsSayWhereAPodWasCreated(t *testing.T) {
	state := func(revision, created string) *appsv1beta1.InPlaceUpdateState {
		return &appsv1beta1.InPlaceUpdateState{Revision: revision, CreatedRevision: created}
	}
	for name, test := range map[string]struct {
		record *appsv1beta1.InPlaceUpdateState
		to     string
		want   string
	}{
		"the first change":                       {nil, "b", "a"},
		"the first one, at its own revision":     {nil, "a", "a"},
		"the next one":                           {state("a", "z"), "b", "z"},
		"one back to where it was created":       {state("a", "b"), "b", "b"},
		"the next one of an earlier manager's":   {state("a", ""), "b", ""},
		"one with the record of a pod elsewhere": {state("z", "y"), "b", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("p", "a", alpineImage)
			if test.record != nil {
				pod.Record(*test.record)
			}
			NewWithT(t).Expect(newState(observedOf(pod.Build(), patched), Change{}, test.to, patched)).To(HaveField("CreatedRevision", test.want))
		})
	}
}

// The change of the step is used again, by the pods to come: it stays as it is.
func TestRevisionPatchLeavesTheStepAlone(t *testing.T) {
	g := NewWithT(t)
	pod := twoContainers().Build()
	step := imageStep(pod)
	_, err := RevisionPatch(pod, step)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(step).To(Equal(imageStep(pod)))
}

func TestReadinessPatch(t *testing.T) {
	now := metav1.NewTime(after(7))
	for name, tc := range map[string]struct {
		step    Step
		gate    string
		message string
	}{
		"not ready": {
			Step{Action: MarkNotReady, Message: "to be updated to b"},
			`"status": "False", "reason": "InPlaceUpdating", "message": "to be updated to b"`, "to be updated to b",
		},
		"ready, which clears the message": {
			Step{Action: MarkReady, Message: "every container runs what it should"},
			`"status": "True", "reason": "InPlaceUpdateComplete", "message": ""`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := twoContainers().Build()
			if tc.step.Action == MarkReady {
				pod = drainedPod().Build()
			}
			for i := range pod.Status.Conditions {
				pod.Status.Conditions[i].Message = "from before"
			}
			patch, err := ReadinessPatch(pod, tc.step, now)
			g.Expect(err).NotTo(HaveOccurred())
			fields := map[string]json.RawMessage{}
			g.Expect(json.Unmarshal(patch, &fields)).To(Succeed())
			g.Expect(fields["metadata"]).To(ContainSubstring(`"uid":"uid-sample-0"`))
			g.Expect(fields["status"]).To(MatchJSON(`{"conditions": [
				{"type": "InPlaceUpdateReady", ` + tc.gate + `, "lastTransitionTime": "2026-01-02T12:10:07Z"}
			]}`))
			g.Expect(fields).To(HaveLen(2))

			merged := mergePod(t, pod, patch)
			g.Expect(IsMarkedNotReady(merged)).To(Equal(tc.step.Action == MarkNotReady))
			g.Expect(merged.Status.Conditions).To(HaveLen(2))
			gate := condition(merged, appsv1beta1.InPlaceUpdateReady)
			g.Expect(gate.Message).To(Equal(tc.message))
			g.Expect(gate.LastTransitionTime.Time).To(BeTemporally("==", after(7)))
			g.Expect(condition(merged, corev1.PodReady)).To(BeComparableTo(condition(pod, corev1.PodReady)), "the kubelet's condition stays")
			g.Expect(merged.Spec).To(Equal(pod.Spec))
		})
	}
}

// A pod is put into service only as the pod that it was judged by: it may have
// been changed since, and be about to stop. Taking it out of service is never
// wrong.
func TestReadinessPatchPrecondition(t *testing.T) {
	g := NewWithT(t)
	pod := twoContainers().Build()
	for action, version := range map[Action]string{MarkReady: "41", MarkNotReady: ""} {
		patch, err := ReadinessPatch(pod, Step{Action: action}, metav1.NewTime(patched))
		g.Expect(err).NotTo(HaveOccurred())
		sent := metav1.PartialObjectMetadata{}
		g.Expect(json.Unmarshal(patch, &sent)).To(Succeed())
		g.Expect(sent.UID).To(Equal(pod.UID))
		g.Expect(sent.ResourceVersion).To(Equal(version), string(action))
	}
}
