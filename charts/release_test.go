// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestReleaseBeforeUninstall looks at the Job that releases what is held: it runs as
// the manager does, and is not taken for one.
func TestReleaseBeforeUninstall(t *testing.T) {
	for name, flags := range map[string][]string{
		"default": {withPolicies, withoutCRDs},
		"rich":    {withPolicies, rich, "--set=holdPolicies.install=true"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rendered := render(t, flags...)
			release := map[string]string{"default": "insitu", "rich": "changer"}[name]
			var job batchv1.Job
			rendered.find(t, "Job", release+"-release-held", &job)
			var manager appsv1.Deployment
			rendered.find(t, "Deployment", release+"-manager", &manager)

			g.Expect(job.Annotations).To(HaveKeyWithValue("helm.sh/hook", "pre-delete"))
			g.Expect(job.Namespace).To(Equal(manager.Namespace))
			is, runs := job.Spec.Template.Spec, manager.Spec.Template.Spec
			g.Expect(is.ServiceAccountName).To(Equal(runs.ServiceAccountName))
			g.Expect(is.ImagePullSecrets).To(Equal(runs.ImagePullSecrets))
			g.Expect(is.NodeSelector).To(Equal(runs.NodeSelector))
			g.Expect(is.Tolerations).To(Equal(runs.Tolerations))
			runs.SecurityContext.FSGroup = nil // for a certificate of metrics
			g.Expect(is.SecurityContext).To(Equal(runs.SecurityContext))
			g.Expect(is.Volumes).To(Equal(runs.Volumes[:1]))
			container, of := is.Containers[0], runs.Containers[0]
			g.Expect(container.Image).To(Equal(of.Image))
			g.Expect(container.SecurityContext).To(Equal(of.SecurityContext))
			g.Expect(container.Args).To(Equal(append(of.Args, "--release-held")))

			selector, err := metav1.LabelSelectorAsSelector(manager.Spec.Selector)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(selector.Matches(labels.Set(job.Spec.Template.Labels))).To(BeFalse())
		})
	}
}

// TestNoReleaseWithoutPolicies: a Job would only stand in the way of the uninstall.
func TestNoReleaseWithoutPolicies(t *testing.T) {
	g := NewWithT(t)

	g.Expect(render(t, withoutCRDs, withoutPolicies).ofKind("Job")).To(BeEmpty(), "the server does not know their kind")
	g.Expect(render(t, withoutCRDs, withPolicies, "--set=holdPolicies.install=false,drainPolicy.install=false").ofKind("Job")).To(BeEmpty())
	g.Expect(render(t, withoutCRDs, withPolicies, "--set=holdPolicies.install=false").ofKind("Job")).To(HaveLen(1), "drains are ended")
}

// TestCheckStays: Helm 3 reads the logs of a test after it has done what the delete policy
// says (https://github.com/helm/helm/issues/9098).
func TestCheckStays(t *testing.T) {
	g := NewWithT(t)
	for name, flags := range modes {
		for _, pod := range render(t, flags...).ofKind("Pod") {
			g.Expect(pod.GetAnnotations()).To(HaveKeyWithValue("helm.sh/hook-delete-policy", "before-hook-creation"), name)
		}
	}
	g.Expect(render(t, withoutCRDs).ofKind("Pod")).To(HaveLen(1))
}
