// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// Annotations of a claim template, and of a claim that was made from a snapshot.
const (
	restoreFromAnnotation    = "insitu.dev/restore-from"
	restoreMissingAnnotation = "insitu.dev/restore-missing"
	restoredFromAnnotation   = "insitu.dev/restored-from"
)

// restoringFrom lets new claims of the first template be made from snapshots.
func restoringFrom(snapshots string) edit { return annotatingClaims(restoreFromAnnotation, snapshots) }

func annotatingClaims(name, value string) edit {
	return func(s *appsv1beta1.StatefulSet) {
		metav1.SetMetaDataAnnotation(&s.Spec.VolumeClaimTemplates[0].ObjectMeta, name, value)
	}
}

// rename gives a set another name, and its pods the label of that name.
func rename(s *appsv1beta1.StatefulSet, name string) {
	s.Name = name
	s.Spec.ServiceName = name
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	s.Spec.Template.Labels = map[string]string{"app": name}
}

func asJSON(value any) string {
	GinkgoHelper()
	content, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// waitReplicas waits until so many pods of a set are available.
func waitReplicas(ctx context.Context, set *appsv1beta1.StatefulSet, count int) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		g.Expect(set.Status.AvailableReplicas).To(BeEquivalentTo(count), "blockers: %+v", set.Status.Blockers)
	})
}

func deleteSnapshot(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	snapshot := &unstructured.Unstructured{}
	snapshot.SetGroupVersionKind(snapshotKind)
	snapshot.SetNamespace(namespace)
	snapshot.SetName(name)
	Expect(api.Delete(ctx, snapshot)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot))
	}).Should(BeTrue())
}

var _ = Describe("Claims restored from snapshots, each from that of its ordinal", func() {
	var (
		namespace string
		source    *appsv1beta1.StatefulSet
		data      map[string]string
	)
	// A set with data, and snapshots nightly-data-0 and nightly-data-1 of it.
	BeforeEach(func(ctx context.Context) {
		namespace = newRecreateNamespace(ctx)
		source = create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2))
		fillVolumes(ctx, source)
		data = contents(ctx, source)
		for i := range 2 {
			takeSnapshot(ctx, namespace, fmt.Sprintf("nightly-data-%d", i), fmt.Sprintf("data-sample-%d", i))
		}
	})
	// restored is a set of another name.
	restored := func(class string, how ...edit) *builders.StatefulSetBuilder {
		return nginxWithVolume(namespace, class).Replicas(2).With(func(s *appsv1beta1.StatefulSet) { rename(s, "copy") }).With(edits(how...))
	}
	expectRestored := func(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal, from int, snapshot string) {
		GinkgoHelper()
		claim := claimNamed(ctx, namespace, fmt.Sprintf("data-%s-%d", set.Name, ordinal))
		Expect(claim.Spec.DataSource).To(And(HaveField("Kind", "VolumeSnapshot"), HaveField("Name", snapshot)))
		Expect(claim.Annotations).To(HaveKeyWithValue(restoredFromAnnotation, ContainSubstring(snapshot)))
		Expect(content(ctx, namespace, fmt.Sprintf("%s-%d", set.Name, ordinal))).To(Equal(data[fmt.Sprintf("sample-%d", from)]))
	}

	It("by a pattern, in a class that waits for the pod; a replica that has none is refused until it has", func(ctx context.Context) {
		set := create(ctx, restored(classWait, restoringFrom("nightly-$(claim)-$(ordinal)"), toSize("2Gi")))
		for i := range 2 {
			expectRestored(ctx, set, i, i, fmt.Sprintf("nightly-data-%d", i))
		}
		expectFilesystems(ctx, set, 2)

		By("scaling up")
		scale(ctx, set, 3)
		Expect(waitBlocker(ctx, set, "copy-2", "RestoreSnapshotMissing")).To(ContainSubstring("nightly-data-2"))
		Expect(claims(ctx, namespace)).NotTo(HaveKey("data-copy-2"))
		takeSnapshot(ctx, namespace, "nightly-data-2", "data-sample-1")
		waitReplicas(ctx, set, 3)
		expectRestored(ctx, set, 2, 1, "nightly-data-2")

		By("scaling up further, with what is missing empty")
		change(ctx, set, annotatingClaims(restoreMissingAnnotation, "Empty"))
		scale(ctx, set, 4)
		waitReplicas(ctx, set, 4)
		claim := claimNamed(ctx, namespace, "data-copy-3")
		Expect(claim.Spec.DataSource).To(BeNil())
		Expect(claim.Spec.DataSourceRef).To(BeNil())
		Expect(claim.Annotations).NotTo(HaveKey(restoredFromAnnotation))
		Expect(content(ctx, namespace, "copy-3")).To(BeEmpty())
	})

	It("by a map, with an ordinal that it does not name", func(ctx context.Context) {
		set := restored(classStandard, restoringFrom(asJSON(map[string]string{"0": "nightly-data-1"}))).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		waitBlocker(ctx, set, "copy-1", "RestoreSnapshotMissing")
		waitReplicas(ctx, set, 1)
		expectRestored(ctx, set, 0, 1, "nightly-data-1")
		Expect(claims(ctx, namespace)).NotTo(HaveKey("data-copy-1"))

		change(ctx, set, restoringFrom(asJSON(map[string]string{"0": "nightly-data-1", "1": "nightly-data-0"})))
		waitReplicas(ctx, set, 2)
		expectRestored(ctx, set, 1, 0, "nightly-data-0")
	})

	It("of snapshots that go before the volume is made, are not left dangling", func(ctx context.Context) {
		set := restored(classUnmade, restoringFrom("nightly-$(claim)-$(ordinal)"), annotatingClaims(restoreMissingAnnotation, "Empty")).Replicas(1).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		Eventually(ctx, claims).WithArguments(namespace).Should(HaveKey("data-copy-0"))
		Expect(claimNamed(ctx, namespace, "data-copy-0").Spec.DataSource).To(HaveField("Name", "nightly-data-0"))
		deleteSnapshot(ctx, namespace, "nightly-data-0")
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			claim := claimNamed(ctx, namespace, "data-copy-0")
			g.Expect(claim.Spec.DataSource).To(BeNil())
		}).Should(Succeed())
	})

	It("only if they are new", func(ctx context.Context) {
		before := claims(ctx, namespace)
		change(ctx, source, restoringFrom("nightly-$(claim)-$(ordinal)"))
		inPod(ctx, namespace, "sample-0", "busybox", "sh", "-c", "echo newer > /data/file; sync")
		pod := getPod(ctx, source, 0)
		Expect(api.Delete(ctx, pod)).To(Succeed())
		Eventually(ctx, podUIDs).WithArguments(source).Should(And(HaveLen(2), Not(HaveKeyWithValue(pod.Name, pod.UID))))
		waitSettled(ctx, source)
		Expect(inPod(ctx, namespace, "sample-0", "busybox", "cat", "/data/file")).To(Equal("newer"))
		Expect(claims(ctx, namespace)).To(Equal(before))
	})
})
