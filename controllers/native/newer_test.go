// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// dated reads and writes as a program that was built before pods had a hostname: that
// stands for a field of a newer Kubernetes. What is read without types has it.
type dated struct{ client.Client }

func (c dated) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return forgetting(obj, c.Client.Get(ctx, key, obj, opts...))
}

func (c dated) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return forgettingAll(list, c.Client.List(ctx, list, opts...))
}

func (c dated) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return forgetting(obj, c.Client.Patch(ctx, obj, patch, opts...))
}

func forgetting(obj client.Object, err error) error {
	switch typed := obj.(type) {
	case *appsv1.Deployment:
		typed.Spec.Template.Spec.Hostname = ""
	case *appsv1.ReplicaSet:
		typed.Spec.Template.Spec.Hostname = ""
	}
	return err
}

func forgettingAll(list client.ObjectList, err error) error {
	if sets, ok := list.(*appsv1.ReplicaSetList); ok {
		for i := range sets.Items {
			_ = forgetting(&sets.Items[i], nil)
		}
	}
	return err
}

// datedReader is the same of what only reads.
type datedReader struct{ client.Reader }

func (c datedReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return forgetting(obj, c.Reader.Get(ctx, key, obj, opts...))
}

func (c datedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return forgettingAll(list, c.Reader.List(ctx, list, opts...))
}

var _ = Describe("A Deployment with a field that is newer than the manager", func() {
	var w *world
	var keeper *appsv1.ReplicaSet
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	// begin makes a held Deployment with a host name, and a ReplicaSet with another.
	begin := func(before, after string) {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Hostname = after })
		t := template(oldImage)
		t.Spec.Hostname = before
		keeper = w.replicaSetWith(d, "old", 2, t)
		w.pods(keeper)
	}
	// settle reconciles with a manager that does not know host names.
	settle := func() {
		GinkgoHelper()
		for range maxRounds {
			r := native.NewReconciler(native.Deployment, dated{w.manager}, datedReader{w.live}, w.recorder, w.clock)
			r.PullAs(stage.NoPulls())
			r.WriteInOrder()
			_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: w.name}})
			Expect(err).NotTo(HaveOccurred())
			if get(w, &appsv1.Deployment{}, w.name).Labels[apinative.HeldLabel] == "" {
				return
			}
			w.play()
		}
		Fail("it is still held")
	}

	It("is updated in place, and its ReplicaSets keep the field", short.Spec, func() {
		begin("web", "web")
		settle()
		Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause "}))
		sets := &appsv1.ReplicaSetList{}
		Expect(w.live.List(w.ctx, sets, client.InNamespace(w.namespace))).To(Succeed())
		for i := range sets.Items {
			Expect(sets.Items[i].Spec.Template.Spec.Hostname).To(Equal("web"), sets.Items[i].Name)
		}
	})

	It("is released when the field changes", func() {
		begin("a", "b")
		settle()
		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Spec.Template.Spec.Hostname).To(Equal("a"))
		Expect(w.told()).To(ContainElement(And(HavePrefix("Normal ReleasedForRecreation not in place: "), ContainSubstring("spec.hostname"))))
	})
})
