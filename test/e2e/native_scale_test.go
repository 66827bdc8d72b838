// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// scale scales the workload, and waits for the pods.
func (b builtin) scale(ctx context.Context, replicas int) {
	GinkgoHelper()
	b.kubectl(ctx, "scale", b.resource(), "--replicas="+strconv.Itoa(replicas))
	Eventually(ctx, b.pods).Should(HaveLen(replicas))
}

// replicaSets returns the ReplicaSets of a Deployment.
func (b builtin) replicaSets(ctx context.Context) []appsv1.ReplicaSet {
	GinkgoHelper()
	list := &appsv1.ReplicaSetList{}
	Expect(api.List(ctx, list, client.InNamespace(b.namespace))).To(Succeed())
	return list.Items
}

// withPods returns the names of the ReplicaSets that are to have pods.
func withPods(all []appsv1.ReplicaSet) []string {
	var found []string
	for _, rs := range all {
		if ptr.Deref(rs.Spec.Replicas, 1) > 0 {
			found = append(found, rs.Name)
		}
	}
	return found
}

var _ = DescribeTable("Scaling in the middle of a rollout in place", func(ctx context.Context, kind string) {
	web := builtin{kind: kind, namespace: newNamespace(ctx)}
	before := web.start(ctx, web.gated(nginxAlpine))
	web.half(ctx, nginxLatest)

	web.scale(ctx, 5)
	grown := web.pods(ctx)
	Expect(uids(grown)).To(ContainElements(uids(before)))
	Expect(web.isHeld(ctx)).To(BeTrue())
	web.pause(ctx, false)
	web.reached(ctx, nginxLatest, 2)
	web.scale(ctx, 2)

	after := web.updated(ctx)
	Expect(after).To(HaveLen(2))
	expectNotRecreated(grown, after, nginxLatest)
	By("and up again, with pods of the present template")
	web.scale(ctx, 3)
	web.rolledOut(ctx)
	expectNotRecreated(web.pods(ctx), after, nginxLatest)
},
	Entry("of a Deployment", deployment), Entry("of a StatefulSet", statefulSet),
)

var _ = DescribeTable("A rollout in place without pods", func(ctx context.Context, kind string) {
	web := builtin{kind: kind, namespace: newNamespace(ctx)}
	web.start(ctx, web.manifest(nginxAlpine))
	web.scale(ctx, 0)
	web.setImage(ctx, nginxLatest)
	web.released(ctx)
	web.scale(ctx, 2)
	web.rolledOut(ctx)
	Expect(images(web.pods(ctx))).To(HaveEach(nginxLatest))
},
	Entry("of a Deployment", deployment), Entry("of a StatefulSet", statefulSet),
)

var _ = Describe("A StatefulSet", func() {
	It("has an updated pod that is deleted in the middle come back at the new revision", func(ctx context.Context) {
		web := builtin{kind: statefulSet, namespace: newNamespace(ctx)}
		before := web.start(ctx, web.gated(nginxAlpine))
		web.half(ctx, nginxLatest)
		web.kubectl(ctx, "delete", "pod", before[2].Name)
		Eventually(ctx, web.pods).Should(And(HaveLen(3), Not(ContainElement(HaveField("UID", before[2].UID)))))
		Expect(web.pods(ctx)[2].Image).To(Equal(nginxLatest), "it has written its volume")
		Expect(web.isHeld(ctx)).To(BeTrue())

		web.pause(ctx, false)
		after := web.updated(ctx)
		expectInPlace(before[:2], after[:2], 1)
		Expect(after[2]).To(And(HaveField("Image", nginxLatest), HaveField("Restarts", BeZero())))
	})

	It("has a pod recreated at the new revision that cannot be updated in place, and the others stay", func(ctx context.Context) {
		web := builtin{kind: statefulSet, namespace: newNamespace(ctx)}
		before := web.start(ctx, web.manifest(nginxAlpine))
		By("recreating the last pod by another template, up to a partition")
		differs := strings.Replace(web.manifest(nginxAlpine), "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 2", 1)
		web.apply(ctx, strings.Replace(differs, "partition: 0", "partition: 2", 1))
		web.rolledOut(ctx)
		mixed := web.pods(ctx)
		Expect(uids(mixed)).To(And(HaveLen(3), ContainElements(before[0].UID, before[1].UID), Not(ContainElement(before[2].UID))))

		web.apply(ctx, web.manifest(nginxLatest))
		Expect(web.isHeld(ctx)).To(BeTrue())

		after := web.updated(ctx)
		expectInPlace(before[:2], after[:2], 1)
		Expect(after[2].UID).NotTo(Equal(mixed[2].UID))
		Expect(after[2]).To(And(HaveField("Image", nginxLatest), HaveField("Restarts", BeZero())), "it came back at the new revision")
	})
})

var _ = Describe("A Deployment", func() {
	var web builtin
	BeforeEach(func(ctx context.Context) { web = builtin{kind: deployment, namespace: newNamespace(ctx)} })

	It("is waited for by kubectl rollout status, from the very write that changes it", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		web.setImage(ctx, nginxLatest)
		web.rolledOut(ctx)
		after := web.pods(ctx)
		expectInPlace(before, after, 1)
		Expect(after).To(HaveEach(HaveField("Ready", true)))
	})

	It("of one pod serves all the time, by a pod more that goes when the same one is back", short.Spec, func(ctx context.Context) {
		one := strings.Replace(web.manifest(nginxAlpine), "  replicas: 3", "  replicas: 1", 1)
		before := web.start(ctx, strings.Replace(one, "maxSurge: 1, maxUnavailable: 1", "maxSurge: 25%, maxUnavailable: 25%", 1))
		Expect(before).To(HaveLen(1))
		seen := watchPodsOf(ctx, web.namespace, "web")
		for n, command := range []string{"set image deployment/web " + container + "=" + nginxLatest, "rollout undo deployment/web"} {
			web.kubectl(ctx, strings.Fields(command)...)
			Expect(web.isHeld(ctx)).To(BeTrue())
			expectInPlace(before, web.updated(ctx), int32(n)+1)
		}
		ready := map[types.UID]bool{before[0].UID: true}
		for _, pod := range seen() {
			if ready[pod.UID] = podutils.IsPodReady(pod) && pod.DeletionTimestamp == nil; !ready[pod.UID] {
				delete(ready, pod.UID)
			}
			Expect(ready).NotTo(BeEmpty(), "no pod was ready when %s was not", pod.Name)
		}
	})

	It("that may have no pod more is held by a pause, and keeps its history", func(ctx context.Context) {
		before := web.start(ctx, strings.Replace(web.manifest(nginxAlpine), "maxSurge: 1,", "maxSurge: 0,", 1))
		wish := web.wish(ctx)
		web.setImage(ctx, nginxLatest)
		Expect(web.kubectl(ctx, "get", web.resource(), "-o", "jsonpath={.spec.paused}")).To(Equal("true"))
		expectInPlace(before, web.updated(ctx), 1)
		Expect(web.history(ctx)).To(Equal([]string{nginxAlpine, nginxLatest}))

		web.kubectl(ctx, "rollout", "undo", web.resource())
		expectInPlace(before, web.updated(ctx), 2)
		Expect(web.history(ctx)).To(Equal([]string{nginxLatest, nginxAlpine}))
		Expect(web.wish(ctx)).To(Equal(wish))
	})

	It("proves an image by a pod more, and touches no other before that serves", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		wish := web.wish(ctx)
		web.setImage(ctx, nginxMissing)
		Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(
			And(ContainSubstring("of the new template does not serve yet"), Or(ContainSubstring("ImagePullBackOff"), ContainSubstring("ErrImagePull"))))
		Expect(web.pods(ctx)).To(Equal(before))
		Expect(web.kubectlFails(ctx, "rollout", "status", web.resource(), "--timeout=2s")).To(ContainSubstring("timed out waiting for the condition"))

		web.kubectl(ctx, "rollout", "undo", web.resource())
		after := web.updated(ctx)
		Expect(after).To(Equal(before), "no pod was touched")
		Expect(web.wish(ctx)).To(Equal(wish))
	})

	Context("with several ReplicaSets that an unfinished rollout left", func() {
		// stuck begins a native rollout that cannot end, and opts the Deployment in. It
		// returns the pods that still serve.
		stuck := func(ctx context.Context, rolling string, serving int) []observe.Pod {
			GinkgoHelper()
			manifest := strings.Replace(web.manifest(nginxAlpine), native.UpdatePolicyLabel, "example.io/other", 1)
			web.start(ctx, strings.Replace(manifest, "maxSurge: 1, maxUnavailable: 1", rolling, 1))
			web.setImage(ctx, nginxMissing)
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				found := web.pods(ctx)
				g.Expect(found).To(HaveLen(4), "maxSurge")
				g.Expect(countImage(found, nginxAlpine)).To(Equal(serving), "maxUnavailable")
			}).Should(Succeed())
			web.kubectl(ctx, "label", web.resource(), native.UpdatePolicyLabel+"=InPlaceIfPossible")
			Expect(web.isHeld(ctx)).To(BeFalse())
			return slices.DeleteFunc(web.pods(ctx), func(pod observe.Pod) bool { return pod.Image != nginxAlpine })
		}

		It("keeps the pods that serve", func(ctx context.Context) {
			before := stuck(ctx, "maxSurge: 25%, maxUnavailable: 25%", 3)
			web.setImage(ctx, nginxLatest)
			Expect(web.isHeld(ctx)).To(BeTrue())
			after := web.updated(ctx)
			expectInPlace(before, after, 1)
			Expect(withPods(web.replicaSets(ctx))).To(HaveLen(1))
			Expect(web.history(ctx)).To(Equal([]string{nginxAlpine, nginxMissing, nginxLatest}))
		})

		It("keeps them also where the broken pods take all of maxUnavailable", func(ctx context.Context) {
			before := stuck(ctx, "maxSurge: 1, maxUnavailable: 1", 2)
			web.setImage(ctx, nginxLatest)
			after := web.updated(ctx)
			Expect(after).To(HaveLen(3))
			Expect(images(after)).To(HaveEach(nginxLatest))
			Expect(uids(after)).To(ContainElements(uids(before)))
			Expect(withPods(web.replicaSets(ctx))).To(HaveLen(1))
		})
	})

	It("keeps as much history as it says, whichever ReplicaSet is the older", func(ctx context.Context) {
		// Two ReplicaSets by a native rollout: the one of the first template is older.
		opted := web.manifest(nginxAlpine)
		web.start(ctx, strings.Replace(opted, native.UpdatePolicyLabel, "example.io/other", 1)+"  revisionHistoryLimit: 1\n")
		web.setImage(ctx, nginxLatest)
		web.rolledOut(ctx)
		web.kubectl(ctx, "label", web.resource(), native.UpdatePolicyLabel+"=InPlaceIfPossible")
		before := web.pods(ctx)

		web.kubectl(ctx, "rollout", "undo", web.resource())
		expectInPlace(before, web.updated(ctx), 1)
		Expect(web.history(ctx)).To(Equal([]string{nginxLatest, nginxAlpine}))
		web.kubectl(ctx, "rollout", "undo", web.resource())
		expectInPlace(before, web.updated(ctx), 2)
		Expect(web.history(ctx)).To(Equal([]string{nginxAlpine, nginxLatest}))
	})

	It("goes in place without a history", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine)+"  revisionHistoryLimit: 0\n")
		web.setImage(ctx, nginxLatest)
		expectInPlace(before, web.updated(ctx), 1)
		web.setImage(ctx, nginxAlpine)
		expectInPlace(before, web.updated(ctx), 2)
		Expect(web.replicaSets(ctx)).To(HaveLen(1))
	})

	It("shows the causes of its changes in the history", func(ctx context.Context) {
		web.start(ctx, web.manifest(nginxAlpine))
		web.kubectl(ctx, "annotate", web.resource(), "kubernetes.io/change-cause=first")
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}},
			"spec": {"template": {"spec": {"containers": [{"name": "`+container+`", "image": "`+nginxLatest+`"}]}}}}`)
		web.updated(ctx)
		history := web.kubectl(ctx, "rollout", "history", web.resource())
		Expect(history).To(MatchRegexp(`(?m)^1 +first$`))
		Expect(history).To(MatchRegexp(`(?m)^3 +second$`), "the pod that the hold made more had number 2")
	})

	It("keeps its annotations when its rollout is undone", func(ctx context.Context) {
		web.start(ctx, web.gated(nginxAlpine))
		web.kubectl(ctx, "annotate", web.resource(), "example.io/team=storage")
		web.half(ctx, nginxLatest)
		web.kubectl(ctx, "annotate", web.resource(), native.PausedAnnotation+"-")
		web.updated(ctx)
		for _, image := range []string{nginxAlpine, nginxLatest} {
			web.kubectl(ctx, "rollout", "undo", web.resource())
			Expect(images(web.updated(ctx))).To(HaveEach(image))
			Expect(web.get(ctx).GetAnnotations()).To(And(
				HaveKeyWithValue("example.io/team", "storage"), HaveKeyWithValue(native.GracePeriodSecondsAnnotation, "3"),
				Not(HaveKey(native.PausedAnnotation))))
		}
	})

	It("changes the labels of its pods in place", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}}`)
		expectInPlace(before, web.updated(ctx), 0)
		for _, pod := range web.livePods(ctx) {
			Expect(pod.Labels).To(HaveKeyWithValue("tier", "front"))
		}
	})

	It("is left to Kubernetes after its deadline, when the new pod does not come up: then kubectl says so", func(ctx context.Context) {
		before := web.start(ctx, strings.Replace(web.manifest(nginxAlpine), "maxUnavailable: 1", "maxUnavailable: 0", 1))
		// Only what is to be late has a short deadline: on a busy machine, the others take longer.
		update := func(image, deadline string) {
			web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"progressDeadlineSeconds": `+deadline+`,
				"template": {"spec": {"containers": [{"name": "`+container+`", "image": "`+image+`"}]}}}}`)
		}
		update(nginxMissing, "8")
		expectEvent(ctx, web.namespace, deployment, "HoldTimedOut", "failed to pull and unpack image")
		Expect(web.kubectlFails(ctx, "rollout", "status", web.resource(), "--timeout="+patience.String())).To(ContainSubstring("exceeded its progress deadline"))
		Expect(uids(web.pods(ctx))).To(ContainElements(uids(before)))
		update(nginxLatest, "600")
		web.rolledOut(ctx)
		Expect(uids(web.updated(ctx))).To(Equal(uids(before)))
	})

	It("is left to Kubernetes after its deadline, where a policy refuses changes of pods and allows new ones", func(ctx context.Context) {
		before := web.start(ctx, web.waiting(nginxAlpine, 0))
		allowImages(ctx, &web.livePods(ctx)[0], fmt.Sprintf("[%q]", nginxAlpine))
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"progressDeadlineSeconds": 8,
			"template": {"spec": {"containers": [{"name": "`+container+`", "image": "`+nginxLatest+`"}]}}}}`)
		expectEvent(ctx, web.namespace, deployment, "HoldTimedOut", "ask the platform team to approve the image")
		web.rolledOut(ctx)
		expectRecreated(before, web.updated(ctx), nginxLatest)
	})
})
