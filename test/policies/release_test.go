// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	controllers "github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// TestReleaseAll holds what an uninstall leaves behind: workloads as their users wrote
// them.
func TestReleaseAll(t *testing.T) {
	g := NewWithT(t)
	u := newUser(t)
	before := map[string]*unstructured.Unstructured{}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		base(t, u.c, kind, "leaving")
		before[kind] = u.get(reference(kind, "leaving"))
		u.kubectl(nil, "set", "image", kind+"/leaving", "main=nginx:2")
		u.expectHeld(reference(kind, "leaving"), "before the uninstall")
	}
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	must(t, u.c.Create(t.Context(), elsewhere))
	out := &bytes.Buffer{}

	g.Expect(controllers.ReleaseAll(t.Context(), u.c, []string{"elsewhere"}, out)).To(Succeed())
	g.Expect(out.String()).To(BeEmpty())
	u.expectHeld(reference("Deployment", "leaving"), "for it is in another namespace")

	g.Expect(controllers.ReleaseAll(t.Context(), u.c, nil, out)).To(Succeed())
	g.Expect(out.String()).To(Equal("Released Deployment default/leaving\nReleased StatefulSet default/leaving\nReleased DaemonSet default/leaving\n"))
	for kind, was := range before {
		is := u.get(reference(kind, "leaving"))
		g.Expect(withoutTemplate(is)).To(Equal(withoutTemplate(was)), kind)
		g.Expect(is.GetLabels()).To(Equal(was.GetLabels()), kind)
	}

	out.Reset()
	g.Expect(controllers.ReleaseAll(t.Context(), u.c, nil, out)).To(Succeed())
	g.Expect(out.String()).To(BeEmpty(), "there is nothing left to release")
}

func withoutTemplate(workload *unstructured.Unstructured) any {
	spec := workload.DeepCopy().Object["spec"].(map[string]any)
	delete(spec, "template")

	return spec
}

// TestReleaseAllDeletesPullers: no manager would, when it is gone.
func TestReleaseAllDeletesPullers(t *testing.T) {
	g, u := NewWithT(t), newUser(t)
	puller := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-pull-0", Labels: map[string]string{appsv1beta1.PullerLabel: "uid"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pull-0", Image: "nginx:2"}}},
	}
	must(t, u.c.Create(t.Context(), puller))

	g.Expect(controllers.ReleaseAll(t.Context(), u.c, nil, &strings.Builder{})).To(Succeed())

	g.Expect(apierrors.IsNotFound(u.c.Get(t.Context(), client.ObjectKeyFromObject(puller), puller))).To(BeTrue())
}

// TestReleaseAllEndsDrains: no manager would take the label off afterwards, and with the next
// installation the policy would keep the pods out of service.
func TestReleaseAllEndsDrains(t *testing.T) {
	g, u := NewWithT(t), newUser(t)
	cases, err := policies.DrainCases()
	must(t, err)
	pod := drainedPod(t, u.c, cases[0].Old)
	out := &strings.Builder{}

	g.Expect(controllers.ReleaseAll(t.Context(), u.c, nil, out)).To(Succeed())

	must(t, u.c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	g.Expect(pod.Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
	g.Expect(out.String()).To(ContainSubstring("Ended the drain of pod default/" + pod.Name + "\n"))
}

// TestReleaseAllNamesWhatItCannotRelease: what is refused does not keep the others.
func TestReleaseAllNamesWhatItCannotRelease(t *testing.T) {
	g := NewWithT(t)
	u := newUser(t)
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		base(t, u.c, kind, "torn")
		u.kubectl(nil, "set", "image", kind+"/torn", "main=nginx:2")
	}
	out := &bytes.Buffer{}

	err := controllers.ReleaseAll(t.Context(), deaf{Client: u.c, kind: "Deployment", answer: errors.New("no")}, nil, out)

	g.Expect(err).To(MatchError("release Deployment default/torn: no"))
	g.Expect(out.String()).To(Equal("Released DaemonSet default/torn\n"))
	u.expectHeld(reference("Deployment", "torn"), "which was refused")

	ctx, cancel := context.WithCancel(t.Context())
	err = controllers.ReleaseAll(ctx, deaf{Client: u.c, kind: "Deployment", patched: cancel}, nil, out)
	g.Expect(err).To(MatchError(ContainSubstring("release Deployment default/torn: it still has the label insitu.dev/held")))
}

// deaf is a client of a server that does nothing about patches of a kind.
type deaf struct {
	client.Client

	kind    string
	answer  error
	patched func()
}

func (d deaf) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind != d.kind {
		return d.Client.Patch(ctx, obj, patch, opts...)
	}
	if d.patched != nil {
		d.patched()
	}

	return d.answer
}
