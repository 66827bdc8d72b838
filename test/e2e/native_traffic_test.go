// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/builders"
)

// enoughRequests is how many requests a workload answers while it is rolled out.
const enoughRequests = 5000

// clientsOfTwins is how many pods ask each of two workloads, 50 times a second.
const clientsOfTwins = 5

// serving is a workload of four pods, or of one on each node, behind a Service that pods
// ask again and again.
type serving struct {
	builtin
	clients []func() requests
}

// serveManifest returns the manifest of a workload that serves, without a readiness gate.
func (b builtin) serveManifest(image string) string {
	manifest := strings.Replace(b.manifest(image), "  replicas: 3", "  replicas: 4", 1)
	return manifest + "        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}\n"
}

// startServing creates the workload, with changes to its manifest, and its clients.
func startServing(ctx context.Context, kind string, change func(string) string) serving {
	GinkgoHelper()
	s := serving{builtin: builtin{kind: kind, namespace: newNamespace(ctx)}}
	s.start(ctx, change(s.serveManifest(sleeperV1)))
	Expect(api.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "front"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	})).To(Succeed())
	for i := range clientsOfTwins {
		s.clients = append(s.clients, startClientNamed(ctx, s.namespace, fmt.Sprintf("client-%d", i)))
	}
	return s
}

// requests returns what became of the requests of all clients.
func (s serving) requests() requests {
	GinkgoHelper()
	all := requests{}
	for _, client := range s.clients {
		one := client()
		all.OK, all.Failed, all.Failures = all.OK+one.OK, all.Failed+one.Failed, append(all.Failures, one.Failures...)
	}
	return all
}

// since returns what became of the requests since an earlier look.
func (s serving) since(before requests) requests {
	GinkgoHelper()
	now := s.requests()
	return requests{OK: now.OK - before.OK, Failed: now.Failed - before.Failed, Failures: now.Failures}
}

var _ = Describe("Traffic of a workload of Kubernetes", Serial, func() {
	// The twin has the same manifest without the label. Both are rolled out at the same
	// time, by kubectl set image, as often as it takes for enough requests.
	DescribeTable("loses no more requests in place than its twin that Kubernetes rolls out", func(ctx context.Context, kind string) {
		inPlace := startServing(ctx, kind, func(manifest string) string { return manifest })
		twin := startServing(ctx, kind, func(manifest string) string {
			return strings.Replace(manifest, "  labels: {"+native.UpdatePolicyLabel+": InPlaceIfPossible}\n", "", 1)
		})
		before := inPlace.pods(ctx)
		for _, s := range []serving{inPlace, twin} {
			served(ctx, s.requests)
		}
		at, twinAt := inPlace.requests(), twin.requests()

		rollouts, own, other := int32(0), requests{}, requests{}
		for own.OK < enoughRequests || other.OK < enoughRequests {
			image := []string{sleeperV2, sleeperV1}[rollouts%2]
			inPlace.setImage(ctx, image)
			twin.setImage(ctx, image)
			twin.rolledOut(ctx)
			expectInPlace(before, inPlace.updated(ctx), rollouts+1)
			rollouts++
			time.Sleep(time.Second) // of traffic after the last pod is back
			own, other = inPlace.since(at), twin.since(twinAt)
		}

		AddReportEntry("requests", fmt.Sprintf("%s, %d rollouts: %d of %d failed in place, %d of %d of the twin",
			kind, rollouts, own.Failed, own.OK+own.Failed, other.Failed, other.OK+other.Failed), ReportEntryVisibilityAlways)
		Expect(own.Failed).To(BeZero(), "%v", own.Failures)
		Expect(other.Failed).To(BeNumerically(">", 0), "the clients see what is lost")
		for _, pod := range inPlace.livePods(ctx) {
			Expect(pod.Spec.ReadinessGates).To(BeEmpty())
			Expect(pod.Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
		}
	},
		Entry("of a Deployment", deployment),
		Entry("of a StatefulSet", statefulSet),
		Entry("of a DaemonSet", daemonSet),
	)

	It("of a CloneSet whose pods have no gate loses none", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		// A pod without a probe is ready before its program listens, on a busy machine.
		c := newUngatedClones(ctx, builders.CloneSet(namespace, "sample", sleeperV1).Replicas(4).GracePeriod(5).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
				PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
			}
		}))
		serve(ctx, c.set)
		result := startClient(ctx, namespace)
		before := c.pods(ctx)
		served(ctx, result)
		at := result()

		rollouts, own := int32(0), requests{}
		for own.OK < enoughRequests {
			c.setImage(ctx, []string{sleeperV2, sleeperV1}[rollouts%2])
			c.waitSettled(ctx)
			rollouts++
			time.Sleep(time.Second) // of traffic after the last pod is back
			now := result()
			own = requests{OK: now.OK - at.OK, Failed: now.Failed - at.Failed, Failures: now.Failures}
		}

		AddReportEntry("requests", fmt.Sprintf("CloneSet, %d rollouts: %d of %d failed in place", rollouts, own.Failed, own.OK+own.Failed),
			ReportEntryVisibilityAlways)
		Expect(own.Failed).To(BeZero(), "%v", own.Failures)
		expectInPlace(before, c.pods(ctx), rollouts)
	})
})

// newUngatedClones returns a CloneSet whose pods have no readiness gate, as they have none
// that were made for the policy ReCreate, or by another controller.
func newUngatedClones(ctx context.Context, b *builders.CloneSetBuilder) *clones {
	GinkgoHelper()
	c := newClones(ctx, b.Ungated().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
	c.change(ctx, func(set *appsv1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	})
	c.waitSettled(ctx)
	return c
}
