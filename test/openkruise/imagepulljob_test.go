// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package openkruise_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openkruise/kruise-api/apps/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestImagePullJob is what a tool does with a job that pulls an image.
func TestImagePullJob(t *testing.T) {
	g := NewWithT(t)
	theirs, ours := clients(t)
	jobs := theirs.AppsV1alpha1().ImagePullJobs(namespace)
	job := &v1alpha1.ImagePullJob{ObjectMeta: objectMeta(t, jobs.Delete), Spec: v1alpha1.ImagePullJobSpec{
		Image: "nginx:alpine",
		ImagePullJobTemplate: v1alpha1.ImagePullJobTemplate{
			PullSecrets:      []string{"mirror"},
			Selector:         &v1alpha1.ImagePullJobNodeSelector{LabelSelector: *selector()},
			CompletionPolicy: v1alpha1.CompletionPolicy{Type: v1alpha1.Always, TTLSecondsAfterFinished: ptr.To[int32](300)},
			SandboxConfig:    &v1alpha1.SandboxConfig{Labels: map[string]string{"team": "web"}},
		},
	}}

	_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	job, err = jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(job.Spec.Parallelism.IntValue()).To(Equal(1))
	g.Expect(*job.Spec.PullPolicy.TimeoutSeconds).To(Equal(int32(600)))
	g.Expect(*job.Spec.PullPolicy.BackoffLimit).To(Equal(int32(3)))
	g.Expect(job.Spec.Selector.MatchLabels).To(Equal(selector().MatchLabels))

	stored := &appsv1beta1.ImagePullJob{}
	g.Expect(ours.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: job.Name}, stored)).To(Succeed())
	now := metav1.Now().Rfc3339Copy()
	stored.Status = appsv1beta1.ImagePullJobStatus{
		ObservedGeneration: 1, StartTime: &now, Desired: 3, Active: 1, Succeeded: 1, Failed: 1, FailedNodes: []string{"node-1"}, Message: "job is running, progress 66.7%",
	}
	g.Expect(ours.Status().Update(t.Context(), stored)).To(Succeed())
	job, err = jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(job.Status).To(Equal(v1alpha1.ImagePullJobStatus{
		StartTime: job.Status.StartTime, Desired: 3, Active: 1, Succeeded: 1, Failed: 1, FailedNodes: []string{"node-1"}, Message: "job is running, progress 66.7%",
	}))
	g.Expect(job.Status.StartTime.Equal(&now)).To(BeTrue())

	job.Spec.Image = "nginx:latest"
	_, err = jobs.Update(t.Context(), job, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestImageListPullJob is what a tool does with a list of images.
func TestImageListPullJob(t *testing.T) {
	g := NewWithT(t)
	theirs, _ := clients(t)
	jobs := theirs.AppsV1alpha1().ImageListPullJobs(namespace)
	job := &v1alpha1.ImageListPullJob{ObjectMeta: objectMeta(t, jobs.Delete), Spec: v1alpha1.ImageListPullJobSpec{
		Images: []string{"nginx:alpine", "nginx:latest"},
		ImagePullJobTemplate: v1alpha1.ImagePullJobTemplate{
			PodSelector:      &v1alpha1.ImagePullJobPodSelector{LabelSelector: *selector()},
			CompletionPolicy: v1alpha1.CompletionPolicy{Type: v1alpha1.Never},
		},
	}}
	_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	job, err = jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	job.Spec.Images = job.Spec.Images[:1]
	_, err = jobs.Update(t.Context(), job, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
}
