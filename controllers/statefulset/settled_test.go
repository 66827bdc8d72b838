// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// expectNoWrites reconciles again and again, also hours later.
func (w *world) expectNoWrites() {
	GinkgoHelper()
	w.manager.Forget()
	for range 3 {
		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
		w.clock.Step(time.Hour)
	}
	Expect(w.manager.Writes("")).To(BeEmpty())
}

// updated brings a set to rest after an update in place.
func updated(ctx context.Context, b *builders.StatefulSetBuilder) *world {
	GinkgoHelper()
	w := newWorld(ctx)
	w.create(b)
	w.setImage("nginx:latest")
	w.settle()
	w.expectSettled(3)
	return w
}

var _ = Describe("A settled set", func() {
	It("costs no writes", func(ctx context.Context) {
		w := updated(ctx, reference())
		w.expectNoWrites()
	})

	It("costs no writes with claims, a partition and everything set", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2).Partition(2).GracePeriod(10).With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "1Gi")}
			set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = ptr.To[int32](2)
			set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}))
		w.expectNoWrites()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{
			"sample-0": "nginx:alpine", "sample-1": "nginx:alpine", "sample-2": "nginx:latest",
		}))
		w.expectNoWrites()
	})

	It("costs no writes when no unused revision is to be kept", func(ctx context.Context) {
		w := updated(ctx, reference().With(func(set *appsv1beta1.StatefulSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](0) }))
		Expect(w.revisions()).To(HaveLen(1))
		w.expectNoWrites()
	})

	It("costs no writes after a restart of the manager", func(ctx context.Context) {
		w := updated(ctx, reference())
		w.startManager(newView())
		w.expectNoWrites()
	})

	It("costs no writes when the spec is applied again in other words", func(ctx context.Context) {
		w := updated(ctx, reference())
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Annotations = map[string]string{}
			set.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{}
		})
		w.settle()
		w.expectNoWrites()
	})

	It("is taken over from another release without a write to pods or revisions", func(ctx context.Context) {
		w := updated(ctx, reference())
		w.rewriteAsOpenKruise()
		w.startManager(newView())
		w.settle()
		Expect(w.manager.Writes("")).To(HaveEach(HavePrefix("patch StatefulSet/status")))
		w.expectSettled(3)
		w.expectNoWrites()
	})

	It("takes over a rollout that another release has begun", func(ctx context.Context) {
		w := updated(ctx, reference())
		uids := w.uids()
		w.rewriteAsOpenKruise()
		w.setImage("nginx:third")
		w.startManager(newView())
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(same("nginx:third")))
	})
})

// rewriteAsOpenKruise makes of a settled set what OpenKruise would have left:
// revisions of another hash with another serialization and without claims, pods
// with a record that names no container ID, and a status with its own words.
func (w *world) rewriteAsOpenKruise() {
	GinkgoHelper()
	revisions := w.revisions()
	renamed := map[string]string{}
	for name, revision := range revisions {
		Expect(w.api.Delete(w.ctx, &revision)).To(Succeed())
		image := "nginx:latest"
		if name != w.set.Status.UpdateRevision {
			image = "nginx:alpine"
		}
		kruise := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "sample-" + name[len(name)-3:] + "f5d", OwnerReferences: revision.OwnerReferences,
				Labels: map[string]string{"app": "sample", "controller.kubernetes.io/hash": "79b9c4f5d"},
			},
			Revision: revision.Revision,
			Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},` +
				`"spec":{"containers":[{"image":"` + image + `","name":"main","resources":{}}],"readinessGates":[{"conditionType":"InPlaceUpdateReady"}],` +
				`"terminationGracePeriodSeconds":5}}}}`)},
		}
		Expect(w.api.Create(w.ctx, kruise)).To(Succeed())
		renamed[name] = kruise.Name
	}
	for _, pod := range w.pods() {
		before := pod.DeepCopy()
		name := renamed[pod.Labels["controller-revision-hash"]]
		pod.Labels["controller-revision-hash"] = name
		pod.Labels["lifecycle.apps.kruise.io/state"] = "Normal"
		pod.Annotations["apps.kruise.io/inplace-update-state"] = `{"revision":"` + name + `","updateTimestamp":"2026-01-02T12:00:00Z",` +
			`"lastContainerStatuses":{"main":{"imageID":"` + stage.ImageID("nginx:alpine") + `"}},"updateImages":true,` +
			`"containerBatchesRecord":[{"timestamp":"2026-01-02T12:00:00Z","containers":["main"]}]}`
		Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
	}
	before := w.refresh().DeepCopy()
	w.set.Status = appsv1beta1.StatefulSetStatus{
		ObservedGeneration: w.set.Generation, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentReplicas: 3, UpdatedReplicas: 3,
		UpdatedReadyReplicas: 3, CurrentRevision: renamed[before.Status.CurrentRevision], UpdateRevision: renamed[before.Status.UpdateRevision],
		LabelSelector: "app=sample",
	}
	Expect(w.api.Status().Patch(w.ctx, w.set, client.MergeFrom(before))).To(Succeed())
}

// claimTemplate returns a claim template that asks for some storage.
func claimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}
