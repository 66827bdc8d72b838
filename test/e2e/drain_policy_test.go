// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/stage"
)

// turnOff takes the policy out of force that keeps drained pods out of service, until the
// spec turns it on again or ends.
func turnOff(ctx context.Context) (turnOn func(context.Context)) {
	GinkgoHelper()
	return takeAway(ctx, policies.DrainBinding())
}

// takeAway deletes an object without which drained pods are not kept out of service, until
// the spec gives it back or ends.
func takeAway(ctx context.Context, object client.Object) (giveBack func(context.Context)) {
	GinkgoHelper()
	again, err := policies.TakeAway(ctx, api, object)
	giveBack = func(ctx context.Context) {
		GinkgoHelper()
		Expect(again(ctx)).To(Succeed())
	}
	if again != nil {
		DeferCleanup(giveBack)
	}
	Expect(err).NotTo(HaveOccurred())
	return giveBack
}

var _ = Describe("Drained pods", Serial, func() {
	DescribeTable("cannot be without the policy, so their rollout is left to Kubernetes", func(ctx context.Context, kind string) {
		web := builtin{kind: kind, namespace: newNamespace(ctx)}
		before := web.start(ctx, web.manifest(nginxAlpine))
		turnOn := turnOff(ctx)

		web.setImage(ctx, nginxLatest)
		expectRecreated(before, web.updated(ctx), nginxLatest)
		expectEvent(ctx, web.namespace, web.kind, inplace.ReasonCannotDrain, "policy insitu-drain")

		By("keeping pods that must not be recreated")
		web.kubectl(ctx, "label", "--overwrite", web.resource(), native.UpdatePolicyLabel+"=InPlaceOnly")
		before = web.pods(ctx)
		web.setImage(ctx, nginxAlpine)
		Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(And(
			ContainSubstring(`"state":"`+string(native.Stalled)+`"`), ContainSubstring(inplace.ReasonCannotDrain), ContainSubstring("keepReady")))
		turnOn(ctx)
		expectInPlace(before, web.updated(ctx), 1)
	},
		Entry("of a Deployment", deployment), Entry("of a StatefulSet", statefulSet), Entry("of a DaemonSet", daemonSet),
	)

	// Each time the kubelet says that the pod is ready: when the container runs again, and
	// when it has started itself.
	It("stay out of service when a container ends, and when the kubelet does", func(ctx context.Context) {
		web := builtin{kind: statefulSet, namespace: newNamespace(ctx)}
		web.start(ctx, web.waiting(sleeperV1, 3600))
		web.setImage(ctx, sleeperV2)
		var victim corev1.Pod
		Eventually(ctx, func(ctx context.Context) []corev1.Pod {
			drained := slices.DeleteFunc(web.livePods(ctx), func(pod corev1.Pod) bool { return pod.Labels[appsv1beta1.DrainedLabel] == "" })
			if len(drained) > 0 {
				victim = drained[0]
			}
			return drained
		}).Should(HaveLen(1))
		seen := watchPodsOf(ctx, web.namespace, "web")

		_, err := labtools.KillContainer(victim.Status.ContainerStatuses[0].ContainerID)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pod := &corev1.Pod{}
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(&victim), pod)).To(Succeed())
			g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
			g.Expect(stage.PodConditionStatus(pod, corev1.ContainersReady)).To(Equal(corev1.ConditionTrue))
		}).Should(Succeed())
		Expect(labtools.KillKubelet(os.Getenv("INSITU_LAB"), victim.Spec.NodeName)).To(Succeed())
		time.Sleep(25 * time.Second) // two rounds of the kubelet, after it has started

		pod := &corev1.Pod{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(&victim), pod)).To(Succeed())
		Expect(pod.UID).To(Equal(victim.UID))
		Expect(stage.PodConditionStatus(pod, corev1.ContainersReady)).To(Equal(corev1.ConditionTrue))
		for _, state := range seen() {
			if state.UID == victim.UID {
				Expect(podutils.IsPodReady(state)).To(BeFalse())
			}
		}

		By("and go on when their grace period is over")
		web.annotate(ctx, native.GracePeriodSecondsAnnotation, ptr.To("1"))
		expectUIDs := uids(web.pods(ctx))
		after := web.updated(ctx)
		Expect(uids(after)).To(ConsistOf(expectUIDs))
		Expect(images(after)).To(HaveEach(sleeperV2))
	})

	// The operator is killed, and what it drained stays so, whatever its kubelet says, until
	// the switch is gone.
	It("are ready within 15 s when no operator runs and the switch is gone", func(ctx context.Context) {
		web := builtin{kind: deployment, namespace: newNamespace(ctx)}
		web.start(ctx, web.waiting(nginxAlpine, 3600))
		web.setImage(ctx, nginxLatest)
		drained := func(ctx context.Context) []corev1.Pod {
			var found []corev1.Pod
			for _, pod := range web.livePods(ctx) {
				if pod.Labels[appsv1beta1.DrainedLabel] != "" {
					found = append(found, pod)
				}
			}
			return found
		}
		Eventually(ctx, drained).ShouldNot(BeEmpty())
		start := stopOperator(ctx)

		out := drained(ctx)
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			for _, pod := range drained(ctx) {
				g.Expect(podutils.IsPodReady(&pod)).To(BeFalse(), "for longer than a round of the kubelet")
			}
		}).WithTimeout(12 * time.Second).WithPolling(time.Second).Should(Succeed())
		Expect(drained(ctx)).To(HaveLen(len(out)))

		gone := time.Now()
		giveBack := takeAway(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: native.SwitchName}})
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			for _, pod := range web.livePods(ctx) {
				g.Expect(podutils.IsPodReady(&pod)).To(BeTrue())
			}
		}).WithTimeout(15*time.Second - time.Since(gone)).WithPolling(100 * time.Millisecond).Should(Succeed())
		AddReportEntry("ready after", time.Since(gone).String(), ReportEntryVisibilityAlways)

		By("and a manager that starts ends what is left of it")
		giveBack(ctx)
		web.kubectl(ctx, "label", web.resource(), native.HeldLabel+"="+native.Release, "--overwrite")
		start(ctx)
		Eventually(ctx, drained).Should(BeEmpty())
		web.rolledOut(ctx)
	})
})
