// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// as returns a client of a user who may delete pods.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func TestDeletionGuard(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	helm := newHelm(t)
	helm("install", "guarded", "charts/insitu", "--create-namespace", "--set=holdPolicies.install=false,deletionGuard.enabled=true,crds.install=false",
		"--set=rbac.create=false", "--set=fullnameOverride=guarded")
	defer helm("uninstall", "guarded", "--no-hooks")
	everybody := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everybody-deletes"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	g.Expect(c.Create(t.Context(), everybody)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), everybody) })

	newPod := func(name string, labels map[string]string, finalizers ...string) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels, Finalizers: finalizers},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
		}
		g.Expect(c.Create(t.Context(), pod)).To(Succeed())

		return pod
	}
	hooked := map[string]string{appsv1beta1.LifecycleStateKey: string(appsv1beta1.LifecycleStateNormal)}
	held := newPod("held", hooked, "example.io/drain")
	user := as(t, "jane")

	g.Eventually(func() error { return user.Delete(t.Context(), held, client.DryRunAll) }, "1m").Should(MatchError(And(
		ContainSubstring("pod held belongs to a workload with lifecycle hooks"),
		ContainSubstring("kubectl label pod held -n default apps.kruise.io/specified-delete=true"))))
	labeled := newPod("labeled", map[string]string{appsv1beta1.LifecycleStateKey: "Normal", "insitu.dev/hold-deletion": ""})
	g.Expect(user.Delete(t.Context(), labeled, client.DryRunAll)).To(MatchError(ContainSubstring("belongs to a workload with lifecycle hooks")))

	for name, deleter := range map[string]client.Client{
		"the operator":          as(t, "system:serviceaccount:"+namespace+":guarded-manager"),
		"a kubelet":             as(t, "system:node:worker-1"),
		"the garbage collector": as(t, "system:serviceaccount:kube-system:generic-garbage-collector"),
	} {
		g.Expect(deleter.Delete(t.Context(), held, client.DryRunAll)).To(Succeed(), name)
	}
	g.Expect(user.Delete(t.Context(), newPod("free", hooked))).To(Succeed(), "no finalizer")
	g.Expect(user.Delete(t.Context(), newPod("other", nil, "example.io/drain"))).To(Succeed(), "of a workload without hooks")
	g.Expect(as(t, "system:node:worker-1").Delete(t.Context(), held)).To(Succeed())
	g.Expect(user.Delete(t.Context(), held)).To(Succeed(), "it is being deleted already")
}
