// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

// state is how a workload of ours is when it is looked at.
type state struct {
	name string
	// bring brings it there.
	bring func(*world, client.Object)
}

func setImage(image string) func(*world, client.Object) {
	return func(w *world, object client.Object) {
		mutate(w, object, func(object client.Object) { templateOf(object).Spec.Containers[0].Image = image })
	}
}

func scale(replicas int32) func(*world, client.Object) {
	return func(w *world, object client.Object) {
		mutate(w, object, func(object client.Object) {
			switch set := object.(type) {
			case *appsv1beta1.StatefulSet:
				set.Spec.Replicas = &replicas
			case *appsv1beta1.CloneSet:
				set.Spec.Replicas = &replicas
			}
		})
	}
}

func steps(first func(*world, client.Object), n int) func(*world, client.Object) {
	return func(w *world, object client.Object) {
		first(w, object)
		for range n {
			w.step(object)
		}
	}
}

// orphan takes the owner reference off a pod, which the operator adopts again.
func orphan(w *world, object client.Object) {
	pods := &corev1.PodList{}
	Expect(w.api.List(w.ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
	mutate(w, &pods.Items[0], func(pod *corev1.Pod) { pod.OwnerReferences = nil })
}

// growClaims asks for more than the claims have.
func growClaims(w *world, object client.Object) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	mutate(w, object, func(object client.Object) {
		switch set := object.(type) {
		case *appsv1beta1.StatefulSet:
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = size
		case *appsv1beta1.CloneSet:
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = size
		}
	})
}

var states = []state{
	{"at rest", func(*world, client.Object) {}},
	{"to be updated, without a revision", setImage(newImage)},
	{"while the first pod is drained", steps(setImage(newImage), 1)},
	{"while a container restarts", steps(setImage(newImage), 3)},
	{"half updated", steps(setImage(newImage), 9)},
	{"that has lost an image", steps(setImage("nginx:no-such-tag"), 8)},
	{"to be scaled up", scale(5)},
	{"to be scaled down", scale(1)},
	{"to be scaled to nothing", scale(0)},
	{"with a pod to adopt", orphan},
	{"with claims to grow", growClaims},
}

func claimTemplate() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

var onPodRollingUpdate = appsv1beta1.VolumeClaimUpdateStrategy{Type: appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType}

var sets = map[string]func() client.Object{
	"StatefulSet": func() client.Object {
		return builders.StatefulSet("", "web", oldImage).With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate()}
			set.Spec.VolumeClaimUpdateStrategy = onPodRollingUpdate
		}).Build()
	},
	"CloneSet": func() client.Object {
		return builders.CloneSet("", "web", oldImage).Replicas(3).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate()}
		}).Build()
	},
}

// looks makes every report and plan that there is of an object, and expects that nothing
// was written.
func (w *world) looks(object client.Object) {
	GinkgoHelper()
	before := w.everything()
	w.report(object)
	_, err := w.cluster.List(w.ctx, w.namespace)
	Expect(err).NotTo(HaveOccurred())
	w.plan(object, image("nginx:perl"))
	w.plan(object, image(oldImage))
	Expect(w.audit.Writes()).To(BeEmpty())
	Expect(w.audit.DryRuns()).NotTo(BeEmpty(), "the audit sees nothing")
	Expect(w.everything()).To(Equal(before))
}

var _ = Describe("what is only looked at", func() {
	for kind, build := range sets {
		for _, state := range states {
			It("is not written: a "+kind+" "+state.name, func(ctx SpecContext) {
				w := newWorld(ctx)
				set := create(w, build())
				w.settle(set)
				state.bring(w, set)
				w.looks(set)
			})
		}

		It("is not written: a "+kind+" that the operator has not seen yet", func(ctx SpecContext) {
			w := newWorld(ctx)
			w.looks(create(w, build()))
		})
	}

	for kind, build := range natives {
		for _, name := range []string{"that has not opted in", "at rest", "that is held", "half updated"} {
			It("is not written: a "+kind+" "+name, func(ctx SpecContext) {
				w := newWorld(ctx)
				labels := optedIn()
				if name == "that has not opted in" {
					labels = nil
				}
				object := build(w, labels)
				if name == "that is held" || name == "half updated" {
					setImage(newImage)(w, object)
					Expect(object.GetLabels()).To(HaveKey("insitu.dev/held"))
				}
				if name == "half updated" {
					w.step(object)
					w.step(object)
				}
				w.looks(object)
			})
		}
	}
})

var natives = map[string]func(*world, map[string]string) client.Object{
	"Deployment":                func(w *world, l map[string]string) client.Object { return w.deployment(l) },
	"DaemonSet":                 func(w *world, l map[string]string) client.Object { return w.daemonSet(l) },
	"StatefulSet of Kubernetes": func(w *world, l map[string]string) client.Object { return w.statefulSet(l) },
}

var _ = Describe("an inspection", func() {
	for kind, build := range sets {
		It("decides what the operator does next: "+kind, func(ctx SpecContext) {
			w := newWorld(ctx)
			set := create(w, build())
			w.settle(set)
			setImage(newImage)(w, set)
			compared := 0
			for range 40 {
				Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
				w.awaitView()
				eyes := workload.Eyes{Client: workload.Withhold(shared.GetClient(), nil), Live: shared.GetAPIReader(), Clock: w.clock}
				var found workload.Inspection
				switch typed := set.(type) {
				case *appsv1beta1.StatefulSet:
					found = statefulset.Inspect(ctx, eyes, typed)
				case *appsv1beta1.CloneSet:
					found = cloneset.Inspect(ctx, eyes, typed)
				}
				Expect(found.Planned).To(BeTrue(), "%v", found.Failure)
				w.manager.Forget()
				w.reconcile(set)
				Expect(podsOf(w.manager.Writes(""))).To(Equal(moved(found.Plan)))
				compared += len(found.Plan.Moves)
				w.step(set)
			}
			Expect(compared).To(BeNumerically(">", 3))
		})
	}
})
