// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/policies"
)

// TestDrain has a kubelet write what the table says, and compares the whole status and the
// label with what is stored.
func TestDrain(t *testing.T) {
	c, node := newClient(t), newNode(t)
	cases, err := policies.DrainCases()
	must(t, err)
	for _, one := range cases {
		t.Run(one.Name, func(t *testing.T) {
			pod := drainedPod(t, c, one.Old)
			before := pod.DeepCopy()
			pod.Labels, pod.Status = one.Write.Pod().Labels, statusOf(one.Write)

			must(t, node.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before)))

			expectStored(t, pod, one.Wanted())
		})
	}
}

// TestDrainEndsWithoutPolicy has what the kubelet says stored as it is when the switch is
// gone, when the binding is, and when they are back kept out of service again.
func TestDrainEndsWithoutPolicy(t *testing.T) {
	c, node := newClient(t), newNode(t)
	cases, err := policies.DrainCases()
	must(t, err)
	one := cases[0]
	for name, gone := range map[string]client.Object{"the switch": policies.Switch(), "the binding": policies.DrainBinding()} {
		t.Run(name, func(t *testing.T) {
			pod := drainedPod(t, c, one.Old)
			giveBack, err := policies.TakeAway(t.Context(), c, gone)
			must(t, err)
			t.Cleanup(func() { must(t, giveBack(context.WithoutCancel(t.Context()))) })
			before := pod.DeepCopy()
			pod.Labels, pod.Status = one.Write.Pod().Labels, statusOf(one.Write)

			must(t, node.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before)))

			expectStored(t, pod, one.Write)
		})
	}
}

// newNode returns a client of a kubelet.
func newNode(t *testing.T) client.Client {
	t.Helper()
	const name = "system:node:node-1"
	c := newClient(t)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet-of-a-test"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	for _, obj := range []client.Object{role, binding} {
		must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), obj)))
	}
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:nodes", "system:authenticated"}}
	node, err := client.New(config, client.Options{})
	must(t, err)

	return node
}

// drainedPod creates a pod with the label and the status of a side.
func drainedPod(t *testing.T, c client.Client, side policies.DrainSide) *corev1.Pod {
	t.Helper()
	pod := side.Pod()
	pod.Namespace, pod.GenerateName = metav1.NamespaceDefault, "drained-"
	must(t, c.Create(t.Context(), pod))
	ctx := context.WithoutCancel(t.Context()) // that of the test ends before its cleanup
	t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0)))) })
	pod.Status = statusOf(side)
	must(t, c.Status().Update(t.Context(), pod))
	expectStored(t, pod, side)

	return pod
}

func statusOf(side policies.DrainSide) corev1.PodStatus { return side.Pod().Status }

// expectStored compares a pod as it is stored, the order of its conditions left out.
func expectStored(t *testing.T, pod *corev1.Pod, side policies.DrainSide) {
	t.Helper()
	g, want := NewWithT(t), side.Pod()
	got := pod.Status.DeepCopy()
	conditions := got.Conditions
	got.Conditions, got.QOSClass = nil, ""
	wanted := want.Status.Conditions
	want.Status.Conditions = nil
	want.Status.PodIPs = got.PodIPs // the API server fills in the list
	g.Expect(*got).To(Equal(want.Status))
	g.Expect(inUTC(conditions)).To(ConsistOf(inUTC(wanted)))
	g.Expect(pod.Labels).To(Equal(want.Labels))
}

func inUTC(conditions []corev1.PodCondition) []corev1.PodCondition {
	all := make([]corev1.PodCondition, len(conditions))
	for i, c := range conditions {
		c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.UTC())
		all[i] = c
	}

	return all
}
