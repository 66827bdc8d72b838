// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// newRecreatingYard is a yard whose pods are recreated at revision b.
func newRecreatingYard(t *testing.T, nodes int) *yard {
	t.Helper()
	y := newYard(t, nodes)
	y.workload.Target.Policy = appsv1beta1.RecreatePodUpdateStrategyType
	return y
}

// deleted returns the pods that a plan deletes which is made a second later.
func (y *yard) deleted() []string {
	var names []string
	for _, move := range y.decide().Moves {
		y.Expect(move.Step.Action).To(Equal(inplace.Recreate))
		names = append(names, move.Pod.Name)
	}
	return names
}

// whyKept returns what a plan says of a pod that it does not delete.
func (y *yard) whyKept(pod string) string {
	for _, b := range y.decide().Blockers {
		if b.Pod.Name == pod {
			return string(b.State) + " " + b.Reason + ": " + b.Message
		}
	}
	return ""
}

func TestNoPodIsDeletedBeforeTheImageOfTheNextOneIsThere(t *testing.T) {
	y := newRecreatingYard(t, 3)
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-1", "node-2"}))
	y.Expect(y.whyKept("sample-2")).To(Equal("Waiting ImagePull: node-2 pulls nginx:latest before the pod is updated"))
	y.says("node-2", begun)
	y.clock.Step(time.Hour)
	y.Expect(y.deleted()).To(BeEmpty(), "however long the pull takes")
	y.says("node-2", pulled)
	y.Expect(y.deleted()).To(Equal([]string{"sample-2"}))
}

func TestImageThatCannotBePulledDeletesNoPod(t *testing.T) {
	y := newRecreatingYard(t, 3)
	y.workload.MaxUnavailable = 3
	y.deleted()
	y.says("node-2", failed)
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.whyKept("sample-2")).To(Equal("Stuck ImageNotPullable: the kubelet on node-2 cannot pull nginx:latest: ErrImagePull: nginx:latest: not found"))
	y.says("node-1", failed)
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.whyKept("sample-0")).To(HavePrefix("Stuck ImageNotPullable: 2 nodes cannot pull the images"))
	for range 10 {
		y.clock.Step(10 * time.Minute)
		y.Expect(y.deleted()).To(BeEmpty(), "for ever")
	}
	y.deleted()
	y.says("node-2", pulled)
	y.says("node-1", pulled)
	y.Expect(y.deleted()).To(ContainElements("sample-2", "sample-1"), "it goes on by itself")
}

// A user who asks for a pod to be deleted has it deleted, as has one that does not serve anyway.
func TestPodsThatAreDeletedWithoutAPull(t *testing.T) {
	for name, change := range map[string]func(*yard){
		"a user asks for it":               func(y *yard) { y.workload.Pods[0].Pod.Labels[appsv1beta1.SpecifiedDeleteKey] = "true" },
		"the workload asks for it":         func(y *yard) { y.workload.Pods[0].Asked = true },
		"the image stays, and not the pod": func(y *yard) { y.workload.Target.Template = templateWith(y, `"hostname":"x",`, "nginx:alpine") },
		"the pod had a name for it":        func(y *yard) { y.workload.Target.Template = templateWith(y, "", "docker.io/library/nginx:alpine") },
		"it is broken": func(y *yard) {
			y.workload.Pods[0].Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			}}}
		},
		"it has no node":                      func(y *yard) { y.workload.Pods[0].Pod.Spec.NodeName = "" },
		"nothing is pulled before":            func(y *yard) { y.workload.Target.Pull.Policy = appsv1beta1.NoImagePull },
		"others than the manager would do so": func(y *yard) { y.workload.OthersDelete = true },
	} {
		t.Run(name, func(t *testing.T) {
			y := newRecreatingYard(t, 1)
			change(y)
			y.Expect(y.deleted()).To(Equal([]string{"sample-0"}))
			y.Expect(y.pullingNodes()).To(BeEmpty())
		})
	}
}

func templateWith(y *yard, fields, image string) *inplace.Template {
	parsed, err := inplace.ParseTemplate([]byte(`{"spec":{` + fields + `"containers":[{"name":"main","image":"` + image + `"}]}}`))
	y.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// The revision may bring the secret that its image needs.
func TestImagesAreTriedAsTheNextPodPullsThem(t *testing.T) {
	y := newRecreatingYard(t, 1)
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.workload.Target.Template = templateWith(y, `"serviceAccountName":"api","imagePullSecrets":[{"name":"wrong"}],`, "nginx:latest")
	y.Expect(y.deleted()).To(BeEmpty(), "an image on the node may be one that the next pod may not use")
	spec := y.pullers()["node-0"].Spec
	y.Expect(spec.ServiceAccountName).To(Equal("api"))
	y.Expect(spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "wrong"}}))
	y.Expect(spec.Tolerations).To(Equal(y.workload.Pods[0].Pod.Spec.Tolerations), "those that the node needs")
	y.says("node-0", failed)
	y.Expect(y.deleted()).To(BeEmpty())

	y.workload.Target.Template = templateWith(y, `"serviceAccountName":"api","imagePullSecrets":[{"name":"right"}],`, "nginx:latest")
	y.workload.Target.Name = "c"
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.pullers()["node-0"].Spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "right"}}))
	y.says("node-0", pulled)
	y.Expect(y.deleted()).To(Equal([]string{"sample-0"}))
}

// A live pod has the secrets that its service account had when it was created.
func TestImagesAreTriedWithTheSecretsThatTheAccountHasNow(t *testing.T) {
	y := newRecreatingYard(t, 1)
	y.givesSecret("expired")
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.Expect(y.deleted()).To(BeEmpty(), "the registry is asked")
	y.Expect(y.pullers()["node-0"].Spec.ImagePullSecrets).To(BeEmpty(), "the API server fills in those of the account")
}

// What keeps pods in place longest keeps them from being deleted as long.
func TestDeletionGoesOnWithoutAPullInTime(t *testing.T) {
	for name, test := range map[string]func(*yard){
		"with Prefer": func(y *yard) {
			y.workload.Target.Pull.Policy = appsv1beta1.PreferImagePull
			y.deleted()
			y.says("node-0", failed)
		},
		"without an answer": func(y *yard) { y.deleted() },
	} {
		t.Run(name, func(t *testing.T) {
			y := newRecreatingYard(t, 1)
			test(y)
			y.Expect(y.deleted()).To(BeEmpty())
			y.clock.Step(5 * time.Minute)
			y.Expect(y.deleted()).To(Equal([]string{"sample-0"}))
		})
	}
}

// Where no new pod would be accepted, none is deleted, whatever can be pulled.
func TestNothingIsPulledForPodsThatWouldNotBeAccepted(t *testing.T) {
	y := newRecreatingYard(t, 1)
	y.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("not for you"))
	y.Expect(y.deleted()).To(BeEmpty())
	y.Expect(y.whyKept("sample-0")).To(HavePrefix("Stuck RecreationDenied: "))
	y.Expect(y.pullingNodes()).To(BeEmpty())
}
