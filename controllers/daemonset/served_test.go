// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

// A manager with rights in namespaces only says that it does not serve DaemonSets, and reads and
// writes nothing else.
func TestNotServed(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	set := &appsv1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithStatusSubresource(set).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			t.Errorf("it lists %T", list)
			return nil
		},
	}).Build()
	r := NewReconciler(c, c, workload.SilentRecorder(), testingclock.NewFakePassiveClock(builders.Start), nil)
	r.NamespaceScope = true

	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)})
	g.Expect(err).To(MatchError(reconcile.TerminalError(nil)), "it is not tried again by itself")
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
	g.Expect(set.Status.Conditions).To(ContainElement(And(
		HaveField("Type", appsv1beta1.ConditionStalled), HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "NotServed"),
		HaveField("Message", "DaemonSet shop/logs is not served: this manager has rights in namespaces only (scope Namespace), and nodes belong to the cluster"),
	)))
	g.Expect(set.Status.Conditions).To(ContainElement(And(HaveField("Type", appsv1beta1.ConditionReady), HaveField("Status", metav1.ConditionFalse))))
}
