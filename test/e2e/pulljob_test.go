// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

// pullersIn returns the pods of a namespace that pull images.
func pullersIn(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	return list.Items
}

// statusOf returns how far a job is.
func statusOf(ctx context.Context, job *appsv1beta1.ImagePullJob) appsv1beta1.ImagePullJobStatus {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
	return job.Status
}

var _ = Describe("A job that pulls images", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("pulls each image onto the nodes, says which cannot be pulled, and leaves nothing", short.Spec, func(ctx context.Context) {
		list := &appsv1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "release"}}
		list.Spec.Images = []string{nginxLatest, nginxMissing}
		list.Spec.Selector = &appsv1beta1.ImagePullJobNodeSelector{Names: []string{"node-1", "node-2"}}
		list.Spec.PullPolicy.BackoffLimit = ptr.To[int32](2)
		list.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](10)
		Expect(api.Create(ctx, list)).To(Succeed())

		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(list), list)).To(Succeed())
			g.Expect(list.Status).To(And(
				HaveField("CompletionTime", Not(BeNil())), HaveField("Desired", int32(2)), HaveField("Completed", int32(2)), HaveField("Succeeded", int32(1))))
		}).Should(Succeed())
		Expect(list.Status.FailedImageStatuses).To(HaveExactElements(And(
			HaveField("Name", nginxMissing), HaveField("Message", And(HavePrefix("2 of 2 nodes cannot pull it, node-"), ContainSubstring("ErrImagePull"))))))
		expectEvent(ctx, namespace, "ImagePullJob", inplace.ReasonImageNotPullable, "cannot pull "+nginxMissing)
		Eventually(ctx, pullersIn).WithArguments(namespace).Should(BeEmpty())
		pulled := map[string]bool{}
		for _, event := range eventsOf(ctx, namespace) {
			Expect(event.Reason).NotTo(Equal("Started"), "nothing of an image runs")
			if event.Reason == "Pulled" && strings.Contains(event.Note, nginxLatest) {
				pulled[event.ReportingInstance] = true
			}
		}
		Expect(pulled).To(HaveLen(2), "each of the kubelets says so")

		By("the time of the list is over")
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(list), list))).To(BeTrue())
			jobs := &appsv1beta1.ImagePullJobList{}
			g.Expect(api.List(ctx, jobs, client.InNamespace(namespace))).To(Succeed())
			g.Expect(jobs.Items).To(BeEmpty())
		}).Should(Succeed())
	})

	It("goes on for nodes that come later, and can be deleted whoever has made it", func(ctx context.Context) {
		label := labelOf(namespace)
		job := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "endless"}}
		job.Spec.Image = nginxAlpine
		job.Spec.Selector = &appsv1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}}
		job.Spec.CompletionPolicy.Type = appsv1beta1.NeverCompletion
		// What OpenKruise would have left.
		job.Finalizers = []string{appsv1beta1.ImagePullJobFinalizer}
		Expect(api.Create(ctx, job)).To(Succeed())
		Eventually(ctx, statusOf).WithArguments(job).Should(HaveField("Message", "job is running, no progress"))

		for i, node := range []string{"node-1", "node-2"} {
			labelNode(ctx, node, label)
			Eventually(ctx, statusOf).WithArguments(job).Should(And(HaveField("Desired", int32(i+1)), HaveField("Succeeded", int32(i+1))))
		}
		Expect(job.Status.CompletionTime).To(BeNil())
		Eventually(ctx, pullersIn).WithArguments(namespace).Should(BeEmpty(), "the status has what they have done")
		unlabelNode(ctx, "node-1", label)
		Eventually(ctx, statusOf).WithArguments(job).Should(And(HaveField("Desired", int32(1)), HaveField("SucceededNodes", HaveExactElements("node-2"))))

		Expect(api.Delete(ctx, job)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(job), job))
		}).Should(BeTrue(), "the finalizer does not keep it")
		Eventually(ctx, pullersIn).WithArguments(namespace).Should(BeEmpty())
	})

	It("is deleted when its time is over", func(ctx context.Context) {
		job := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "short"}}
		job.Spec.Image = nginxAlpine
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](0)
		Expect(api.Create(ctx, job)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(job), job))
		}).Should(BeTrue())
		Eventually(ctx, pullersIn).WithArguments(namespace).Should(BeEmpty())
	})
})
