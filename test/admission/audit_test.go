// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/auditlog"
)

// written is a write to a pod, and what the policy of config/audit says of it.
type written struct {
	request, pod, workload, revision string
}

// writtenBy returns the writes of a user to pods of a namespace, without dry runs, refusals
// and conditions.
func writtenBy(t *testing.T, user, namespace string) []written {
	t.Helper()
	g := NewWithT(t)
	events, err := auditlog.Read(auditLog, user)
	g.Expect(err).NotTo(HaveOccurred())
	var found []written
	for i := range events {
		event := &events[i]
		// Impersonation is how these tests become the manager.
		if auditlog.User(event) != user || event.ObjectRef.Namespace != namespace || event.ObjectRef.Subresource == "status" || !auditlog.IsWrite(event) {
			continue
		}
		found = append(found, written{
			event.Verb + " " + auditlog.Resource(event), event.ObjectRef.Name,
			event.Annotations["insitu-audit/workload"], event.Annotations["insitu-audit/revision"],
		})
	}

	return found
}

// What the manager does to pods is in the audit log with the workload and the revision; what
// others do is not, and neither are pods without a workload a problem.
func TestAuditAnnotations(t *testing.T) {
	g := NewWithT(t)
	const namespace = "audited"
	admin, insitu := clientOf(t, ""), operator(t)
	ensureNode(t)
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	for _, obj := range read(t, "audit/policy.yaml") {
		g.Expect(admin.Create(t.Context(), obj)).To(Succeed())
	}
	owned := func(name string, owner metav1.OwnerReference) *corev1.Pod {
		pod := newPod(t, namespace, name, state{imageA, "100m", imageB}, false)
		owner.UID, owner.Controller = "1", ptr.To(true)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "2"}, owner}
		g.Expect(admin.Update(t.Context(), pod)).To(Succeed())

		return pod
	}
	touch := func(c client.Client, pod *corev1.Pod) {
		labeled := pod.DeepCopy()
		labeled.Labels["touched"] = utilrand.String(10)
		g.Expect(c.Patch(t.Context(), labeled, client.MergeFrom(pod))).To(Succeed())
		labeled.DeepCopyInto(pod)
	}
	set := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "db"}
	pod := owned("db-0", set)
	// The policy acts when the watch of the API server has shown it.
	g.Eventually(func() []written {
		touch(insitu, pod)

		return writtenBy(t, operatorUser, namespace)
	}, "1m").Should(ContainElement(written{"patch pods", "db-0", "apps.kruise.io/StatefulSet/audited/db", "web-1"}))

	mustBeMade(t, insitu, owned("db-1", set), state{imageA, "100m", imageB}, state{imageB, "100m", imageB})
	mustBeMade(t, insitu, owned("db-2", set), state{imageA, "100m", imageB}, state{imageA, "200m", imageB})
	g.Expect(insitu.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	native := owned("web-6bd469df5c-x2x4z", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6bd469df5c"})
	native.Labels = map[string]string{"pod-template-hash": "6bd469df5c"}
	g.Expect(admin.Update(t.Context(), native)).To(Succeed())
	touch(insitu, native)
	touch(insitu, owned("plain-x", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "plain"}))
	orphan := newPod(t, namespace, "orphan", state{imageA, "100m", imageB}, false)
	touch(insitu, orphan)
	touch(clientOf(t, "jane", "system:masters"), orphan)

	const db = "apps.kruise.io/StatefulSet/audited/db"
	later := func() []written {
		return slices.DeleteFunc(writtenBy(t, operatorUser, namespace), func(one written) bool {
			return one.request == "patch pods" && one.pod == "db-0"
		})
	}
	// The server may answer a request before it has written it to its log.
	g.Eventually(later, "1m").Should(ConsistOf(
		written{"patch pods", "db-1", db, "web-2"},
		written{"patch pods/resize", "db-2", db, "web-1"},
		written{"patch pods", "db-2", db, "web-2"},
		written{"delete pods", "db-0", db, "web-1"},
		written{"patch pods", "web-6bd469df5c-x2x4z", "apps/Deployment/audited/web", "6bd469df5c"},
		written{"patch pods", "plain-x", "apps/ReplicaSet/audited/plain", "web-1"},
		written{"patch pods", "orphan", "", "web-1"},
	))
	g.Eventually(func() []written { return writtenBy(t, "jane", namespace) }, "1m").Should(Equal([]written{{"patch pods", "orphan", "", ""}}))
}
