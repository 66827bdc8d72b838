// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

const nativeMain = `{"metadata":{"labels":{"app":"web"%s},"annotations":{"kubectl.kubernetes.io/restartedAt":"%s"}},"spec":{` +
	`"initContainers":[{"name":"setup","image":"setup:1"}%c],` +
	`"containers":[{"name":"main","image":"nginx:alpine"}]}}`

func native(t *testing.T, label, restartedAt string) *Template {
	t.Helper()
	text := strings.Replace(nativeMain, "%c", "", 1)
	return parse(t, strings.Replace(strings.Replace(text, "%s", label, 1), "%s", restartedAt, 1)).Native()
}

func TestNativeLeavesOutTheLabelOfReplicaSets(t *testing.T) {
	g := NewWithT(t)

	g.Expect(native(t, `,"pod-template-hash":"abc"`, "1").Equal(native(t, "", "1"))).To(BeTrue())
	g.Expect(native(t, `,"tier":"abc"`, "1").Equal(native(t, "", "1"))).To(BeFalse())
}

func TestNativeRestartsWhatRunsWhenAskedTo(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("web-0", "a", alpineImage).Build()

	change, refused := Compare(pod, native(t, "", "1"), native(t, "", "2"), after(0))

	g.Expect(refused).To(BeNil(), "an init container that has ended need not run again")
	g.Expect(change.Images).To(HaveLen(1))
	g.Expect(change.Images[0].Restart).To(BeTrue())
	g.Expect(change.String()).To(HavePrefix("restart of main as "))
	g.Expect(change.String()).To(ContainSubstring(", as metadata.annotations['kubectl.kubernetes.io/restartedAt'] asks"))
}

func TestNativeRestartsSidecars(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("web-0", "a", alpineImage).
		Sidecar(alpineImage, builders.RunningContainer("proxy", "proxy-1", alpineImage, builders.Start)).Build()
	text := strings.Replace(nativeMain, "%c", `,{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}`, 1)
	from := parse(t, strings.Replace(strings.Replace(text, "%s", "", 1), "%s", "1", 1)).Native()
	to := parse(t, strings.Replace(strings.Replace(text, "%s", "", 1), "%s", "2", 1)).Native()

	change, refused := Compare(pod, from, to, after(0))

	g.Expect(refused).To(BeNil())
	g.Expect(change.restarted()).To(Equal([]string{"main", "proxy"}))
}

func TestNativeSaysWhyItCannotRestart(t *testing.T) {
	g := NewWithT(t)
	text := `{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"%"}},"spec":{"containers":[{"name":"main","image":"registry:5000/nginx:1"}]}}`
	pod := builders.Pod("web-0", "a", "registry:5000/nginx:1").Build()
	pod.Spec.Containers[0].ImagePullPolicy = "Always"

	_, refused := Compare(pod, parse(t, strings.Replace(text, "%", "1", 1)).Native(), parse(t, strings.Replace(text, "%", "2", 1)).Native(), after(0))

	g.Expect(refused).To(HaveField("Field", "metadata.annotations['kubectl.kubernetes.io/restartedAt']"))
	g.Expect(refused.Message).To(HavePrefix("container main: it can be restarted by spelling its image otherwise only"))
}

func TestNativeRestartsForAChecksum(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("web-0", "a", alpineImage).Build()
	template := func(sum string) *Template {
		return parse(t, `{"metadata":{"annotations":{"checksum/config":"`+sum+`"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`).Native()
	}

	change, refused := Compare(pod, template("1"), template("2"), after(0))

	g.Expect(refused).To(BeNil())
	g.Expect(change.restarted()).To(Equal([]string{"main"}))
}

func TestNativeRestartsNothingForAnotherAnnotation(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("web-0", "a", alpineImage).Build()
	to := parse(t, `{"metadata":{"annotations":{"note":"b"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`).Native()

	change, refused := Compare(pod, parse(t, `{"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`).Native(), to, after(0))

	g.Expect(refused).To(BeNil())
	g.Expect(change.Restarts()).To(BeFalse())
	g.Expect(change.Annotations).To(HaveKey("note"))
}

// digest is one of no image in particular.
var digest = "sha256:" + strings.Repeat("0", 64)

// TestRestartWithinTheSecondOfItsWrite checks that kubectl rollout restart does not
// wait for the settle time of each pod when the kubelet is quick: times are exact to
// the second.
func TestRestartWithinTheSecondOfItsWrite(t *testing.T) {
	g := NewWithT(t)
	r := newReader(t)
	step := r.want("2")
	g.Expect(step.Action).To(Equal(Patch))
	state, err := readState(r.pod)
	g.Expect(err).NotTo(HaveOccurred())
	r.pod.Status.ObservedGeneration = r.pod.Generation
	r.pod.Status.ContainerStatuses[0].ContainerID = "containerd://again"
	r.pod.Status.ContainerStatuses[0].State.Running.StartedAt = state.UpdateTimestamp

	g.Expect(Observe(r.pod, state.UpdateTimestamp.Add(0)).Proved).To(BeTrue())
	g.Expect(r.pod.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, "2"))
}
