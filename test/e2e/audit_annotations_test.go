// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/auditlog"
)

// annotated is a write of the operator to a pod as the audit log explains it: by the
// policy insitu-audit, see docs/admission.md.
type annotated struct {
	request, workload, revision string
}

// annotatedWrites returns the operator's writes that the policy looks at, to pods of a
// namespace, without those that failed or were only tried.
func annotatedWrites(namespace string) []annotated {
	GinkgoHelper()
	events, err := auditlog.Read(auditLog(), operatorUser)
	Expect(err).NotTo(HaveOccurred())
	var found []annotated
	for i := range events {
		event := &events[i]
		ref := event.ObjectRef
		if event.User.Username != operatorUser || ref == nil || ref.Namespace != namespace || ref.Resource != "pods" || ref.Subresource == "status" ||
			(event.Verb != "patch" && event.Verb != "delete") || auditlog.IsDryRun(event) || auditlog.Code(event) != http.StatusOK {
			continue
		}
		found = append(found, annotated{
			request:  event.Verb + " " + auditlog.Resource(event),
			workload: event.Annotations["insitu-audit/workload"], revision: event.Annotations["insitu-audit/revision"],
		})
	}
	return found
}

var _ = Describe("The audit log", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("names workload and revision of a change, a resize and a deletion", func(ctx context.Context) {
		set := create(ctx, sized(namespace, small).Replicas(1))
		workload := "apps.kruise.io/StatefulSet/" + namespace + "/sample"
		revision := func() string { return getPod(ctx, set, 0).Labels[appsv1beta1.ControllerRevisionHashLabel] }
		first := revision()

		setImage(ctx, set, sleeperV2)
		waitSettled(ctx, set)
		second := revision()
		Expect(second).NotTo(Equal(first))
		Expect(annotatedWrites(namespace)).To(Equal([]annotated{{"patch pods", workload, second}}))

		change(ctx, set, to(large))
		waitSettled(ctx, set)
		third := revision()
		Expect(annotatedWrites(namespace)[1:]).To(Equal([]annotated{
			{"patch pods/resize", workload, second}, // from there
			{"patch pods", workload, third},
		}))

		_, err := kubectl(ctx, "label", "pod", "sample-0", appsv1beta1.SpecifiedDeleteKey+"=true", "-n", namespace)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() []annotated { return annotatedWrites(namespace) }).
			Should(ContainElement(annotated{"delete pods", workload, third}))
	})

	It("names a Deployment, and not its ReplicaSet", func(ctx context.Context) {
		web := builtin{kind: "Deployment", namespace: namespace}
		web.start(ctx, web.manifest(nginxAlpine))
		web.setImage(ctx, nginxLatest)
		web.updated(ctx)
		writes := annotatedWrites(namespace)
		Expect(writes).NotTo(BeEmpty())
		var revisions []string
		for _, write := range writes {
			revisions = append(revisions, write.revision)
			Expect(write.request).To(Equal("patch pods"))
			Expect(write.workload).To(Equal("apps/Deployment/" + namespace + "/web"))
		}
		for _, pod := range web.livePods(ctx) {
			Expect(revisions).To(ContainElement(pod.Labels[appsv1beta1.ControllerRevisionHashLabel]))
		}
	})
})
