// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/volumes"
)

// mounting gives each pod a claim from each of some templates, and mounts them.
func mounting(names ...string) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = nil
		container := &set.Spec.Template.Spec.Containers[0]
		container.VolumeMounts = nil
		for _, name := range names {
			template := claimTemplate()
			template.Name = name
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, template)
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
	}
}

// silence leaves revisions that say nothing about claims, as OpenKruise makes them.
func (w *world) silence() {
	GinkgoHelper()
	for _, revision := range w.revisions() {
		Expect(w.api.Delete(w.ctx, &revision)).To(Succeed())
		data := map[string]map[string]any{}
		Expect(json.Unmarshal(revision.Data.Raw, &data)).To(Succeed())
		Expect(data["spec"]).To(HaveKey("volumeClaimTemplates"))
		delete(data["spec"], "volumeClaimTemplates")
		raw, err := json.Marshal(data)
		Expect(err).NotTo(HaveOccurred())
		revision.Data, revision.ResourceVersion, revision.UID = runtime.RawExtension{Raw: raw}, "", ""
		Expect(w.api.Create(w.ctx, &revision)).To(Succeed())
	}
}

// claimsOfPods returns the names of the templates of the claims that pods have, by image.
func (w *world) claimsOfPods() map[string][]string {
	GinkgoHelper()
	found, claims := map[string][]string{}, w.claims()
	for name, pod := range w.active() {
		var templates []string
		for _, volume := range pod.Spec.Volumes {
			if source := volume.PersistentVolumeClaim; source != nil {
				Expect(claims).To(HaveKey(source.ClaimName))
				Expect(source.ClaimName).To(Equal(volumes.ClaimName(volume.Name, name)))
				templates = append(templates, volume.Name)
			}
		}
		slices.Sort(templates)
		image := pod.Spec.Containers[0].Image
		if known := found[image]; known != nil {
			Expect(templates).To(Equal(known), "pod %s", name)
		}
		found[image] = templates
	}
	return found
}

var _ = Describe("A claim template that is removed with its mount behind a partition", func() {
	DescribeTable("is that of pods at the old revision, which come with its claims",
		func(ctx context.Context, isSilent, reuse bool) {
			w := newWorld(ctx)
			w.apply(reference().Replicas(2).With(claiming(reuse)).With(mounting("data", "scratch")))
			w.settleWith(func() { w.grow(false) })
			w.expectSettled(2)
			if isSilent {
				w.silence()
			}
			before := w.uids()

			w.change(func(set *appsv1beta1.CloneSet) {
				mounting("data")(set)
				newImage("nginx:latest")(set)
				partitioned("100%")(set)
				*set.Spec.Replicas = 3
			})
			w.settleWith(func() { w.grow(false) })
			Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 3}))
			Expect(w.claimsOfPods()).To(Equal(map[string][]string{"nginx:alpine": {"data", "scratch"}}))
			for name, uid := range before {
				Expect(w.uids()).To(HaveKeyWithValue(name, uid), "no pod was recreated")
			}

			w.deletePod(w.podNames()[0])
			w.settleWith(func() { w.grow(false) })
			Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 3}))
			Expect(w.claimsOfPods()).To(Equal(map[string][]string{"nginx:alpine": {"data", "scratch"}}))
			w.expectNoWrites()

			w.change(partitioned("0"))
			w.settleWith(func() { w.grow(false) })
			w.expectSettled(3)
			Expect(w.claimsOfPods()).To(Equal(map[string][]string{"nginx:latest": {"data"}}))
			w.expectNoWrites()
		},
		Entry("which its revision says", short.Spec, false, false),
		Entry("which are kept for the next pods", false, true),
		Entry("also where its revision is silent about claims", short.Spec, true, false),
		Entry("also where claims of such a revision are kept for the next pods", true, true),
	)

	It("which has another size since is made of that, as all new claims", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Replicas(1).With(claiming(false)).With(mounting("data", "scratch")))
		w.settleWith(func() { w.grow(false) })
		w.change(sized("2Gi"))
		w.settleWith(func() { w.grow(false) })
		w.change(func(set *appsv1beta1.CloneSet) {
			mounting("data")(set)
			sized("2Gi")(set)
			newImage("nginx:latest")(set)
			partitioned("100%")(set)
			*set.Spec.Replicas = 2
		})
		w.settleWith(func() { w.grow(false) })
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 2}))
		Expect(w.sizes()).To(Equal(map[string]int{"1Gi/1Gi": 3, "2Gi/2Gi": 1}))
	})

	It("is not made for old pods if it was added", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Replicas(1).With(claiming(false)).With(mounting("data")))
		w.settleWith(func() { w.grow(false) })
		w.change(func(set *appsv1beta1.CloneSet) {
			mounting("data", "scratch")(set)
			newImage("nginx:latest")(set)
			partitioned("100%")(set)
			*set.Spec.Replicas = 2
		})
		w.settleWith(func() { w.grow(false) })
		Expect(w.claimsOfPods()).To(Equal(map[string][]string{"nginx:alpine": {"data"}}))
		w.expectClaims()
	})
})
