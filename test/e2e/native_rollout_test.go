// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// What is told of workloads of Kubernetes.
const (
	reasonReleased       = "ReleasedForRecreation"
	reasonInvalidOptions = "InvalidOptions"
)

var _ = forEachKind("A rollout", func(kind string) {
	var web builtin
	BeforeEach(func(ctx context.Context) { web = builtin{kind: kind, namespace: newNamespace(ctx)} })

	It("goes in place with kubectl set image, and back with kubectl rollout undo", short.Spec, func(ctx context.Context) {
		before := web.start(ctx, web.waiting(nginxAlpine, 1))
		wish := web.wish(ctx)

		web.setImage(ctx, nginxLatest)
		after := web.updated(ctx)
		expectInPlace(before, after, 1)
		Expect(images(after)).To(HaveEach(nginxLatest))
		Expect(web.wish(ctx)).To(Equal(wish))
		Expect(web.history(ctx)).To(Equal([]string{nginxAlpine, nginxLatest}))

		web.kubectl(ctx, "rollout", "undo", web.resource())
		after = web.updated(ctx)
		expectInPlace(before, after, 2)
		Expect(images(after)).To(HaveEach(nginxAlpine))
		Expect(web.wish(ctx)).To(Equal(wish))
		Expect(web.history(ctx)).To(Equal([]string{nginxLatest, nginxAlpine}))

		By("and forth again")
		web.kubectl(ctx, "rollout", "undo", web.resource())
		after = web.updated(ctx)
		expectInPlace(before, after, 3)
		Expect(images(after)).To(HaveEach(nginxLatest))
		Expect(web.history(ctx)).To(Equal([]string{nginxAlpine, nginxLatest}))
	})

	It("changes resources without a restart", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		limits := large.resources().Limits
		web.kubectl(ctx, "set", "resources", web.resource(), "--requests=cpu="+large.cpu+",memory="+large.memory,
			"--limits=cpu="+limits.Cpu().String()+",memory="+limits.Memory().String())
		expectInPlace(before, web.updated(ctx), 0)
		for _, pod := range web.livePods(ctx) {
			expectSize(&pod, large)
		}
	})

	It("restarts in place with kubectl rollout restart", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.kubectl(ctx, "rollout", "restart", web.resource())
		after := web.updated(ctx)
		expectInPlace(before, after, 1)
		for _, pod := range web.livePods(ctx) {
			Expect(pod.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
		}
	})

	It("comes back from an image that does not exist", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.annotate(ctx, native.ImagePullAnnotation, ptr.To(`{"policy":"None"}`))
		web.setImage(ctx, nginxMissing)
		web.tried(ctx, nginxMissing)
		Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(Or(ContainSubstring("ImagePullBackOff"), ContainSubstring("ErrImagePull")))
		Expect(countImage(web.pods(ctx), nginxMissing)).To(BeNumerically("<=", 1), "no more than maxUnavailable")
		Expect(web.isHeld(ctx)).To(BeTrue())

		web.setImage(ctx, nginxAlpine)
		after := web.updated(ctx)
		Expect(uids(after)).To(ConsistOf(uids(before)))
		Expect(images(after)).To(HaveEach(nginxAlpine))
	})

	It("takes no pod out of service for an image that no node can pull", shortOfSets(kind), func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.setImage(ctx, nginxMissing)
		var pullers []corev1.Pod
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(web.annotation(ctx, native.StatusAnnotation)).To(And(ContainSubstring(nginxMissing), ContainSubstring("ErrImagePull")))
			pullers = web.pullers(ctx)
			g.Expect(pullers).NotTo(BeEmpty())
		}).Should(Succeed())
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			found := web.pods(ctx)
			for _, pod := range before {
				g.Expect(found).To(ContainElement(And(HaveField("UID", pod.UID), HaveField("Image", nginxAlpine), HaveField("Ready", true), HaveField("Restarts", pod.Restarts))))
			}
			for _, puller := range web.pullers(ctx) {
				g.Expect(metav1.GetControllerOf(&puller)).NotTo(BeNil(), "a node with it could not be drained")
			}
		}).WithTimeout(5 * time.Second).Should(Succeed())

		web.setImage(ctx, nginxLatest)
		expectInPlace(before, web.updated(ctx), 1)
		Eventually(ctx, web.pullers).Should(BeEmpty(), "nothing is left behind")
	})

	if kind != deployment { // Kubernetes makes a new pod of that first
		It("keeps its pods for an image that no node can pull, also where they are to be recreated", func(ctx context.Context) {
			before := web.start(ctx, web.manifest(nginxAlpine))
			web.setImage(ctx, nginxMissing)
			web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"template": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}}`)
			Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(And(ContainSubstring(nginxMissing), ContainSubstring("ErrImagePull")))
			Consistently(ctx, func(g Gomega, ctx context.Context) {
				g.Expect(web.isHeld(ctx)).To(BeTrue())
				g.Expect(observe.Differences(before, web.pods(ctx), 0)).To(BeEmpty())
			}).WithTimeout(5 * time.Second).Should(Succeed())

			web.setImage(ctx, nginxLatest)
			expectRecreated(before, web.updated(ctx), nginxLatest)
			expectEvent(ctx, web.namespace, web.kind, reasonReleased, "spec.volumes")
			Eventually(ctx, web.pullers).Should(BeEmpty(), "nothing is left behind")
		})
	}

	It("goes from an image that does not exist to a third one", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.annotate(ctx, native.ImagePullAnnotation, ptr.To(`{"policy":"None"}`))
		web.setImage(ctx, nginxMissing)
		web.tried(ctx, nginxMissing)
		web.setImage(ctx, nginxLatest)
		after := web.updated(ctx)
		Expect(uids(after)).To(ConsistOf(uids(before)))
		Expect(images(after)).To(HaveEach(nginxLatest))
	})

	It("drains pods that have the readiness gate", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		seen := watchPodsOf(ctx, web.namespace, "web")
		web.setImage(ctx, nginxLatest)
		expectInPlace(before, web.updated(ctx), 1)
		drained := map[types.UID]bool{}
		for _, pod := range seen() {
			if gateStatus(pod) == corev1.ConditionFalse && pod.Spec.Containers[0].Image == nginxAlpine {
				drained[pod.UID] = true
			}
		}
		Expect(drained).To(HaveLen(len(before)))
	})

	It("drains pods without a readiness gate", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		seen := watchPodsOf(ctx, web.namespace, "web")
		web.setImage(ctx, nginxLatest)
		expectInPlace(before, web.updated(ctx), 1)
		drained := map[types.UID]bool{}
		for _, pod := range seen() {
			if pod.Labels[appsv1beta1.DrainedLabel] == "" {
				continue
			}
			Expect(podutils.IsPodReady(pod)).To(BeFalse(), "whatever the kubelet says")
			if pod.Spec.Containers[0].Image == nginxAlpine {
				drained[pod.UID] = true
			}
		}
		Expect(drained).To(HaveLen(len(before)))
		for _, pod := range web.livePods(ctx) {
			Expect(pod.Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
		}
	})

	It("keeps a drained pod out of service whose probe changes its mind", func(ctx context.Context) {
		const probe = `        readinessProbe: {periodSeconds: 1, failureThreshold: 1, exec: {command: [sh, -c, "test $(( $(date +%s) / 3 % 2 )) = 0"]}}` + "\n"
		flapping := func(image string) string {
			return strings.Replace(web.waiting(image, 12), "        imagePullPolicy:", probe+"        imagePullPolicy:", 1)
		}
		before := web.start(ctx, flapping(nginxAlpine))
		seen := watchPodsOf(ctx, web.namespace, "web")
		web.apply(ctx, flapping(nginxLatest))
		expectInPlace(before, web.updated(ctx), 1)
		changes, was := map[types.UID]int{}, map[types.UID]bool{}
		for _, pod := range seen() {
			if pod.Labels[appsv1beta1.DrainedLabel] == "" || pod.Spec.Containers[0].Image != nginxAlpine {
				continue
			}
			Expect(podutils.IsPodReady(pod)).To(BeFalse(), "whatever its probe says")
			isReady := pod.Status.ContainerStatuses[0].Ready
			if last, known := was[pod.UID]; known && last != isReady {
				changes[pod.UID]++
			}
			was[pod.UID] = isReady
		}
		for _, pod := range before {
			Expect(changes[pod.UID]).To(BeNumerically(">", 1), "the probe of pod %s changed its mind", pod.Name)
		}
	})

	It("is left to Kubernetes when a volume is added, and says why", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		wish := web.wish(ctx)
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"template": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}}`)
		after := web.updated(ctx)
		expectRecreated(before, after, nginxAlpine)
		Expect(web.wish(ctx)).To(Equal(wish))
		expectEvent(ctx, web.namespace, web.kind, reasonReleased, "spec.volumes")
	})

	It("gets tolerations in place, without a restart, and loses them with its pods", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		web.kubectl(ctx, "patch", web.resource(), "--type=merge", "-p", `{"spec": {"template": {"spec": {"tolerations": [{"key": "spot", "operator": "Exists"}]}}}}`)
		after := web.updated(ctx)
		expectInPlace(before, after, 0)
		for _, pod := range web.livePods(ctx) {
			Expect(pod.Spec.Tolerations).To(ContainElement(corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}))
		}
		web.kubectl(ctx, "patch", web.resource(), "--type=json", "-p", `[{"op": "remove", "path": "/spec/template/spec/tolerations"}]`)
		expectRecreated(after, web.updated(ctx), nginxAlpine)
	})

	It("keeps its pods while new ones are refused, says who refuses them, and goes on then", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		class := "golden-" + web.namespace
		web.kubectl(ctx, "patch", web.resource(), "--type=merge", "-p", `{"spec": {"template": {"spec": {"priorityClassName": "`+class+`"}}}}`)
		Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(And(
			ContainSubstring(string(native.Stalled)), ContainSubstring("no PriorityClass with name "+class+" was found")))
		expectEvent(ctx, web.namespace, web.kind, inplace.ReasonRecreationDenied, "no PriorityClass with name "+class)
		Consistently(ctx, web.isHeld).WithTimeout(17*time.Second).Should(BeTrue(), "longer than the time after which the server is asked again")
		expectInPlace(before, web.pods(ctx), 0)

		web.kubectl(ctx, "create", "priorityclass", class, "--value=1")
		DeferCleanup(func(ctx context.Context) { web.kubectl(ctx, "delete", "priorityclass", class) })
		expectRecreated(before, web.updated(ctx), nginxAlpine)
	})

	It("waits under InPlaceOnly when a volume is added, until it is taken back", func(ctx context.Context) {
		before := web.start(ctx, strings.Replace(web.manifest(nginxAlpine), "InPlaceIfPossible", "InPlaceOnly", 1))
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"spec": {"template": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}}`)
		Eventually(ctx, web.annotation).WithArguments(native.StatusAnnotation).Should(And(ContainSubstring(string(native.Stalled)), ContainSubstring("spec.volumes")))
		Consistently(ctx, web.isHeld).WithTimeout(3 * time.Second).Should(BeTrue())
		web.kubectl(ctx, "patch", web.resource(), "--type=json", "-p", `[{"op": "remove", "path": "/spec/template/spec/volumes"}]`)
		expectInPlace(before, web.updated(ctx), 0)
	})

	It("is left to Kubernetes when an option cannot be read, and says which", func(ctx context.Context) {
		before := web.start(ctx, web.manifest(nginxAlpine))
		wish := web.wish(ctx)
		web.kubectl(ctx, "annotate", web.resource(), native.GracePeriodSecondsAnnotation+"=soon")
		web.setImage(ctx, nginxLatest)
		after := web.updated(ctx)
		expectRecreated(before, after, nginxLatest)
		Expect(web.wish(ctx)).To(Equal(wish))
		expectEvent(ctx, web.namespace, web.kind, reasonInvalidOptions, `"soon"`)
	})

	It("replaces a pod that is deleted in the middle, and finishes", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		web.half(ctx, nginxLatest)
		deleted := web.pods(ctx)[0]
		web.kubectl(ctx, "delete", "pod", deleted.Name)
		web.pause(ctx, false)
		after := web.updated(ctx)
		Expect(after).To(HaveLen(len(before)))
		Expect(images(after)).To(HaveEach(nginxLatest))
		Expect(uids(after)).To(ContainElements(uids(without(before, deleted.UID))))
	})
})

var _ = forEachKind("The hold", func(kind string) {
	var web builtin
	BeforeEach(func(ctx context.Context) { web = builtin{kind: kind, namespace: newNamespace(ctx)} })

	It("stays when the manifest is applied again in the middle", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		wish, release := web.wish(ctx), web.keepOthers(ctx)
		web.apply(ctx, web.gated(nginxLatest))
		Expect(web.isHeld(ctx)).To(BeTrue())
		web.reached(ctx, nginxLatest, 1)
		web.apply(ctx, web.gated(nginxLatest))
		Expect(web.isHeld(ctx)).To(BeTrue())
		release(ctx)
		expectInPlace(before, web.updated(ctx), 1)
		Expect(web.wish(ctx)).To(Equal(wish))
		Expect(web.apply(ctx, web.gated(nginxLatest))).To(ContainSubstring("unchanged"))
	})

	It("leaves no conflict for server-side apply", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine), "--server-side")
		release := web.keepOthers(ctx)
		web.apply(ctx, web.gated(nginxLatest), "--server-side")
		Expect(web.isHeld(ctx)).To(BeTrue())
		web.reached(ctx, nginxLatest, 1)
		web.apply(ctx, web.gated(nginxLatest), "--server-side")
		Expect(web.isHeld(ctx)).To(BeTrue())
		release(ctx)
		expectInPlace(before, web.updated(ctx), 1)
		web.apply(ctx, web.gated(nginxAlpine), "--server-side")
		expectInPlace(before, web.updated(ctx), 2)
		written := web.written(ctx)
		web.apply(ctx, web.gated(nginxAlpine), "--server-side")
		Expect(web.written(ctx)).To(Equal(written), "applied again, it changes nothing")
	})

	It("takes over a new strategy, and restores that", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		release := web.keepOthers(ctx)
		web.apply(ctx, web.gated(nginxLatest))
		web.reached(ctx, nginxLatest, 1)
		changed := strings.Replace(web.gated(nginxLatest), "maxUnavailable: 1", "maxUnavailable: 2", 1)
		changed = strings.Replace(changed, "partition: 0", "partition: 1", 1)
		web.apply(ctx, changed)
		Expect(web.isHeld(ctx)).To(BeTrue())
		release(ctx)
		after := web.updated(ctx)
		Expect(uids(after)).To(Equal(uids(before)))
		strategy := web.get(ctx).Object["spec"].(map[string]any)
		Expect([]any{strategy["updateStrategy"], strategy["strategy"]}).To(ContainElement(HaveKeyWithValue("rollingUpdate", Or(
			HaveKeyWithValue("maxUnavailable", BeEquivalentTo(2)), HaveKeyWithValue("partition", BeEquivalentTo(1))))))
	})

	It("ends when the label is removed in the middle: Kubernetes goes on", func(ctx context.Context) {
		web.start(ctx, web.gated(nginxAlpine))
		wish := web.wish(ctx)
		web.half(ctx, nginxLatest)
		web.kubectl(ctx, "label", web.resource(), native.UpdatePolicyLabel+"-")
		Expect(web.isHeld(ctx)).To(BeFalse())
		web.expectNoTraces(ctx)
		Expect(web.wish(ctx)).To(Equal(wish))
		web.rolledOut(ctx)
		Expect(images(web.pods(ctx))).To(HaveEach(nginxLatest))
	})

	It("ends when the label is removed together with a change of the template", func(ctx context.Context) {
		before := web.start(ctx, web.gated(nginxAlpine))
		wish := web.wish(ctx)
		web.half(ctx, nginxLatest)
		web.kubectl(ctx, "patch", web.resource(), "--type=strategic", "-p", `{"metadata": {"labels": {"`+native.UpdatePolicyLabel+`": null}},
			"spec": {"template": {"spec": {"containers": [{"name": "`+container+`", "image": "`+nginxStable+`"}]}}}}`)
		web.expectNoTraces(ctx)
		Expect(web.wish(ctx)).To(Equal(wish))
		web.rolledOut(ctx)
		expectRecreated(before, web.pods(ctx), nginxStable)
	})

	It("ends when its user asks for the release", func(ctx context.Context) {
		web.start(ctx, web.gated(nginxAlpine))
		web.half(ctx, nginxLatest)
		web.kubectl(ctx, "label", "--overwrite", web.resource(), native.HeldLabel+"="+native.Release)
		web.expectNoTraces(ctx)
		web.rolledOut(ctx)
		Expect(images(web.pods(ctx))).To(HaveEach(nginxLatest))
	})

	It("is not there for workloads that are not opted in, whose gates are opened", func(ctx context.Context) {
		before := web.start(ctx, strings.Replace(web.gated(nginxAlpine), native.UpdatePolicyLabel, "example.io/other", 1))
		web.setImage(ctx, nginxLatest)
		Expect(web.isHeld(ctx)).To(BeFalse())
		web.rolledOut(ctx)
		expectRecreated(before, web.pods(ctx), nginxLatest)
	})
})

// written returns the workload as it was written, but for its status: who counts pods
// may be late to write that.
func (b builtin) written(ctx context.Context) map[string]any {
	GinkgoHelper()
	object := b.get(ctx)
	object.SetResourceVersion("")
	object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "status"
	}))
	unstructured.RemoveNestedField(object.Object, "status")
	return object.Object
}

// annotation returns an annotation of the workload.
func (b builtin) annotation(ctx context.Context, key string) string {
	GinkgoHelper()
	return b.get(ctx).GetAnnotations()[key]
}

// history returns the images of the revisions that kubectl rollout history lists, the
// oldest first.
func (b builtin) history(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for line := range strings.Lines(b.kubectl(ctx, "rollout", "history", b.resource())) {
		number, _, _ := strings.Cut(line, " ")
		if _, err := strconv.Atoi(number); err != nil {
			continue // the heading
		}
		_, rest, _ := strings.Cut(b.kubectl(ctx, "rollout", "history", b.resource(), "--revision="+number), "Image:")
		found = append(found, strings.Fields(rest)[0])
	}
	return found
}

// without returns the pods but one.
func without(found []observe.Pod, uid types.UID) []observe.Pod {
	return slices.DeleteFunc(slices.Clone(found), func(pod observe.Pod) bool { return pod.UID == uid })
}
