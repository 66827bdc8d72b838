// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// serve makes a Service over the pods of a set.
func serve(ctx context.Context, set client.Object) {
	GinkgoHelper()
	Expect(api.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.GetNamespace(), Name: "front"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": set.GetName()}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	})).To(Succeed())
}

// requestTimeout is how long a request of the client may take.
const requestTimeout = 3 * time.Second

// requests is what became of the requests of a client.
type requests struct {
	OK, Failed int
	Failures   []string
}

// startClient starts a pod that asks the Service again and again, each time on a new
// connection, and returns what asks it how that goes.
func startClient(ctx context.Context, namespace string) func() requests {
	GinkgoHelper()
	return startClientNamed(ctx, namespace, "client")
}

func startClientNamed(ctx context.Context, namespace, name string) func() requests {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "main", Image: sleeperV1, Args: []string{"-load=http://front." + namespace + ".svc"}}},
		},
	}
	Expect(api.Create(ctx, pod)).To(Succeed())
	return func() requests {
		GinkgoHelper()
		answer := requests{}
		Eventually(ctx, func(g Gomega) {
			body, err := kube.CoreV1().Pods(namespace).ProxyGet("http", pod.Name, "8080", "/load", nil).DoRaw(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Unmarshal(body, &answer)).To(Succeed())
		}).Should(Succeed())
		return answer
	}
}

// served waits until the Service is known on the client's node, and all requests
// from before have come to their end. It returns how many of those failed.
func served(ctx context.Context, result func() requests) int {
	GinkgoHelper()
	failed := -1
	Eventually(ctx, func(g Gomega) {
		before := failed
		now := result()
		failed = now.Failed
		g.Expect(now.OK).To(BeNumerically(">", 50))
		g.Expect(failed).To(Equal(before))
	}).WithPolling(requestTimeout + time.Second).Should(Succeed())
	return failed
}

var _ = Describe("Traffic through a Service", Serial, func() {
	DescribeTable("is served without a failure during rollouts", func(ctx context.Context, with edit) {
		namespace := newNamespace(ctx)
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(6).MaxUnavailable(3).GracePeriod(5).With(with))
		serve(ctx, set)
		result := startClient(ctx, namespace)
		before, failedBefore := pods(ctx, set), served(ctx, result)

		setImage(ctx, set, sleeperV2)
		waitSettled(ctx, set)
		setImage(ctx, set, sleeperV1)
		waitSettled(ctx, set)
		time.Sleep(time.Second) // of traffic after the last pod is back

		after := result()
		Expect(after.Failed-failedBefore).To(BeZero(), "%v", after.Failures)
		Expect(after.OK).To(BeNumerically(">", 500))
		expectInPlace(before, pods(ctx, set), 2)
	},
		Entry("with the readiness gate", func(*appsv1beta1.StatefulSet) {}),
		Entry("with markPodNotReady", edit(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.ReadinessGates = nil
			s.Spec.Lifecycle = &appsv1beta1.Lifecycle{InPlaceUpdate: &appsv1beta1.LifecycleHook{MarkPodNotReady: true}}
		})),
	)

	// As OpenKruise does, Insitu gives the pods the gate that their manifest does not list.
	DescribeTable("is served by a CloneSet whose manifest lists no readiness gate", func(ctx context.Context, wanted int) {
		namespace := newNamespace(ctx)
		set := builders.CloneSet(namespace, "sample", sleeperV1).Replicas(6).MaxUnavailable(3).GracePeriod(5).Ungated()
		c := newClones(ctx, set)
		serve(ctx, c.set)
		result := startClient(ctx, namespace)
		before, failedBefore := c.pods(ctx), served(ctx, result)

		rollouts, after := int32(0), requests{}
		for after.OK < wanted || rollouts < 2 {
			c.setImage(ctx, []string{sleeperV2, sleeperV1}[rollouts%2])
			c.waitSettled(ctx)
			rollouts++
			time.Sleep(time.Second) // of traffic after the last pod is back
			after = result()
			Expect(after.Failed-failedBefore).To(BeZero(), "%v", after.Failures)
		}
		expectInPlace(before, c.pods(ctx), rollouts)
		Expect(c.set.Spec.Template.Spec.ReadinessGates).To(BeEmpty(), "the manifest stays what it is")
	},
		Entry("in two rollouts", short.Spec, 500),
		Entry("of 5,000 requests", 5000),
	)
})
