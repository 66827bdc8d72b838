// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// clones is a CloneSet on a real kubelet.
type clones struct {
	set *appsv1beta1.CloneSet
}

// newClones creates a CloneSet and waits until all its pods are available.
func newClones(ctx context.Context, b *builders.CloneSetBuilder) *clones {
	GinkgoHelper()
	c := &clones{set: b.Build()}
	Expect(api.Create(ctx, c.set)).To(Succeed())
	c.waitSettled(ctx)
	return c
}

func (c *clones) change(ctx context.Context, mutate func(*appsv1beta1.CloneSet)) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(c.set), c.set)).To(Succeed())
	before := c.set.DeepCopy()
	mutate(c.set)
	Expect(api.Patch(ctx, c.set, client.MergeFrom(before))).To(Succeed())
}

func (c *clones) setImage(ctx context.Context, image string) {
	GinkgoHelper()
	c.change(ctx, func(set *appsv1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = image })
}

func (c *clones) pods(ctx context.Context) []observe.Pod {
	GinkgoHelper()
	found, err := observe.Pods(ctx, kube, c.set.Namespace, "app="+c.set.Name)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// names returns the names of the pods.
func (c *clones) names(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, pod := range c.pods(ctx) {
		names = append(names, pod.Name)
	}
	return names
}

// live returns the pods as they are.
func (c *clones) live(ctx context.Context) []*corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(c.set.Namespace), client.MatchingLabels{"app": c.set.Name})).To(Succeed())
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}

// waitState waits until one pod is in a lifecycle state, and says what it is held
// for.
func (c *clones) waitState(ctx context.Context, state appsv1beta1.LifecycleStateType) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		var held []string
		for _, pod := range c.live(ctx) {
			if stateOf(pod) == state {
				held = append(held, pod.Annotations[appsv1beta1.PendingUpdateKey])
			}
		}
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(c.set), c.set)).To(Succeed())
		g.Expect(held).To(ConsistOf(ContainSubstring(c.set.Spec.Template.Spec.Containers[0].Image)))
	}).Should(Succeed())
}

// eventually reads the set until it is as wanted.
func (c *clones) eventually(ctx context.Context, wanted func(Gomega, appsv1beta1.CloneSetStatus)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(c.set), c.set)).To(Succeed())
		g.Expect(c.set.Status.ObservedGeneration).To(Equal(c.set.Generation))
		wanted(g, c.set.Status)
	}).Should(Succeed())
}

// waitSettled waits until every pod is at the present template and available.
func (c *clones) waitSettled(ctx context.Context) {
	GinkgoHelper()
	c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
		g.Expect(status.UpdatedAvailableReplicas).To(Equal(*c.set.Spec.Replicas), "blockers: %+v", status.Blockers)
		g.Expect(status.Replicas).To(Equal(*c.set.Spec.Replicas))
		g.Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
		g.Expect(c.pods(ctx)).To(HaveLen(int(*c.set.Spec.Replicas)))
	})
}

var _ = Describe("A CloneSet", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	four := func() *builders.CloneSetBuilder {
		return builders.CloneSet(namespace, "sample", nginxAlpine).Replicas(4).MaxUnavailable(2)
	}

	It("of v1alpha1, applied as users have it, changes its image in place", short.Spec, func(ctx context.Context) {
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "cloneset-v1alpha1.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		c := &clones{set: &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}}
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.AvailableReplicas).To(BeEquivalentTo(3))
		})
		before := c.pods(ctx)
		output, err = kubectl(ctx, "patch", "clonesets.v1alpha1.apps.kruise.io", "sample", "-n", namespace, "--type=json",
			"-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+nginxLatest+`"}]`)
		Expect(err).NotTo(HaveOccurred(), output)
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)
		Expect(c.set.Status.InPlaceUpdated).To(BeEquivalentTo(3))
	})

	It("moves its partition for a tool that knows v1alpha1, which finds what it reads", func(ctx context.Context) {
		c := newClones(ctx, four())
		before := c.pods(ctx)
		move := func(partition string) {
			GinkgoHelper()
			output, err := kubectl(ctx, "get", "clonesets.v1alpha1.apps.kruise.io", "sample", "-n", namespace,
				"-o", "jsonpath={.spec.updateStrategy.partition} {.spec.updateStrategy.maxUnavailable} {.spec.updateStrategy.maxSurge}")
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).To(HaveSuffix(" 20% 0"))
			output, err = kubectl(ctx, "patch", "clonesets.v1alpha1.apps.kruise.io", "sample", "-n", namespace, "--type=merge",
				"-p", `{"spec":{"updateStrategy":{"partition":`+partition+`}}}`)
			Expect(err).NotTo(HaveOccurred(), output)
		}
		move("3")
		c.setImage(ctx, nginxLatest)
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.UpdatedAvailableReplicas).To(BeEquivalentTo(1))
			g.Expect(status.AvailableReplicas).To(BeEquivalentTo(4))
		})
		move("0")
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)
	})

	It("of v1alpha1 restarts once for an annotation that the environment reads, and once with a new image", func(ctx context.Context) {
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "cloneset-env-v1alpha1.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		c := &clones{set: &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}}
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.AvailableReplicas).To(BeEquivalentTo(2))
		})
		before := c.pods(ctx)
		for restarts, patch := range []string{
			`[{"op":"replace","path":"/spec/template/metadata/annotations/app-config","value":"two"}]`,
			`[{"op":"replace","path":"/spec/template/metadata/annotations/app-config","value":"three"},` +
				`{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"` + sleeperV2 + `"}]`,
		} {
			output, err = kubectl(ctx, "patch", "clonesets.v1alpha1.apps.kruise.io", "sample", "-n", namespace, "--type=json", "-p", patch)
			Expect(err).NotTo(HaveOccurred(), output)
			c.waitSettled(ctx)
			expectInPlace(before, c.pods(ctx), int32(restarts)+1)
			for _, pod := range c.live(ctx) {
				Expect(ask(ctx, pod).Env).To(HaveKeyWithValue("CONFIG", c.set.Spec.Template.Annotations[configAnnotation]))
			}
		}
	})

	It("stops in the middle while it is paused, and goes on", func(ctx context.Context) {
		c := newClones(ctx, four().MaxUnavailable(1).GracePeriod(2).Partition(3))
		before := c.pods(ctx)
		// The partition keeps the middle until the pause does.
		pause := func(is bool) {
			GinkgoHelper()
			c.change(ctx, func(set *appsv1beta1.CloneSet) {
				set.Spec.UpdateStrategy.RollingUpdate.Paused, set.Spec.UpdateStrategy.RollingUpdate.Partition = is, nil
			})
		}
		c.setImage(ctx, nginxLatest)
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.UpdatedAvailableReplicas).To(BeEquivalentTo(1))
		})
		pause(true)
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.AvailableReplicas).To(BeEquivalentTo(4))
		})
		updated := images(c.pods(ctx))
		Expect(updated).To(And(ContainElement(nginxAlpine), ContainElement(nginxLatest)))
		Consistently(ctx, func(ctx context.Context) []string { return images(c.pods(ctx)) }).WithTimeout(5 * time.Second).Should(Equal(updated))
		pause(false)
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)
	})

	It("goes through its hooks, also back while they hold, and down", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { releaseAll(ctx, namespace) })
		c := newClones(ctx, builders.CloneSet(namespace, "sample", sleeperV1).MaxUnavailable(1).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template.Finalizers = []string{blocker}
			set.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
			set.Spec.Lifecycle = &appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(true), PreDelete: blockerHook(false)}
		}))
		before := c.pods(ctx)
		c.setImage(ctx, sleeperV2)
		c.waitState(ctx, appsv1beta1.LifecycleStatePreparingUpdate)
		c.setImage(ctx, sleeperV1)
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 0)

		// Three revisions in flight, and one pod at a time.
		for _, image := range []string{sleeperV2, "insitu-dev/sleeper:v3", sleeperV2} {
			c.setImage(ctx, image)
			c.waitState(ctx, appsv1beta1.LifecycleStatePreparingUpdate)
		}
		conducts(ctx, namespace, "sample")
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)

		c.change(ctx, func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](1) })
		c.waitSettled(ctx)
	})

	It("updates exactly one of four pods at a partition of 99%", func(ctx context.Context) {
		c := newClones(ctx, four().With(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
		}))
		before := c.pods(ctx)
		c.setImage(ctx, nginxLatest)
		c.eventually(ctx, func(g Gomega, status appsv1beta1.CloneSetStatus) {
			g.Expect(status.UpdatedAvailableReplicas).To(BeEquivalentTo(1))
			g.Expect(status.ExpectedUpdatedReplicas).To(BeEquivalentTo(1))
		})
		Consistently(ctx, func(ctx context.Context) []string { return images(c.pods(ctx)) }).
			WithTimeout(5 * time.Second).Should(ConsistOf(nginxAlpine, nginxAlpine, nginxAlpine, nginxLatest))
		c.change(ctx, func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)
	})

	It("replaces pods with two beyond replicas, and none out of service", func(ctx context.Context) {
		c := newClones(ctx, four().MaxUnavailable(0).MaxSurge(2).Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		gone := map[types.UID]bool{}
		for _, pod := range c.pods(ctx) {
			gone[pod.UID] = true
		}
		c.setImage(ctx, nginxLatest)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found := c.pods(ctx)
			ready := slices.DeleteFunc(slices.Clone(found), func(pod observe.Pod) bool { return !pod.Ready })
			if len(ready) < 4 {
				StopTrying("a pod went before another was there").Attach("pods", found).Now()
			}
			g.Expect(found).To(HaveLen(4))
			g.Expect(found).To(HaveEach(HaveField("Image", nginxLatest)))
		}).WithPolling(50 * time.Millisecond).Should(Succeed())
		c.waitSettled(ctx)
		for _, pod := range c.pods(ctx) {
			Expect(gone).NotTo(HaveKey(pod.UID))
		}
	})

	It("goes down by the pods that the spec names", func(ctx context.Context) {
		c := newClones(ctx, four())
		before := c.names(ctx)
		c.change(ctx, func(set *appsv1beta1.CloneSet) {
			set.Spec.Replicas = ptr.To[int32](2)
			set.Spec.ScaleStrategy.PodsToDelete = []string{before[0], before[2]}
		})
		c.waitSettled(ctx)
		Expect(c.names(ctx)).To(ConsistOf(before[1], before[3]))
	})

	It("gives claims that are reused to the successors of pods that are deleted all at once", func(ctx context.Context) {
		c := newClones(ctx, four().With(func(set *appsv1beta1.CloneSet) {
			set.Spec.ScaleStrategy.EnablePVCReuse = ptr.To(true)
			template := claiming(namespace, "", "").Build().Spec.VolumeClaimTemplates[0]
			for _, name := range []string{"data", "log"} {
				claim := *template.DeepCopy()
				claim.Name, claim.Spec.StorageClassName = name, ptr.To(classStandard)
				set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim)
			}
			set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "log", MountPath: "/log"}}
		}))
		before, names := claims(ctx, namespace), c.names(ctx)
		Expect(before).To(HaveLen(8))
		for _, name := range names {
			inPod(ctx, namespace, name, "busybox", "sh", "-c", "echo of "+name+" > /data/file; sync")
		}
		deleted := sets.New[types.UID]()
		for _, pod := range c.live(ctx) {
			Expect(api.Delete(ctx, pod)).To(Succeed())
			deleted.Insert(pod.UID)
		}
		// The status may not have seen yet that they go.
		Eventually(ctx, func(ctx context.Context) bool {
			return slices.ContainsFunc(c.live(ctx), func(pod *corev1.Pod) bool { return deleted.Has(pod.UID) })
		}).Should(BeFalse())
		c.waitSettled(ctx)
		Expect(c.names(ctx)).To(ConsistOf(names))
		Expect(claims(ctx, namespace)).To(Equal(before))
		for _, name := range names {
			Expect(inPod(ctx, namespace, name, "busybox", "cat", "/data/file")).To(Equal("of " + name))
		}
	})

	It("deletes claims with their pods, also with one that was gone at once", func(ctx context.Context) {
		makeVolumes(ctx, namespace, 6)
		c := newClones(ctx, builders.CloneSet(namespace, "sample", sleeperV1).Replicas(3).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.VolumeClaimTemplates = claiming(namespace, "", "").Build().Spec.VolumeClaimTemplates
			set.Spec.ScaleStrategy.EnablePVCReuse = ptr.To(false)
		}))
		expectClaims := func() {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				var wanted []string
				for _, name := range c.names(ctx) {
					wanted = append(wanted, "data-"+name)
				}
				g.Expect(slices.Collect(maps.Keys(claims(ctx, namespace)))).To(ConsistOf(wanted))
			}).Should(Succeed())
		}
		expectClaims()
		c.change(ctx, func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](2) })
		c.waitSettled(ctx)
		expectClaims()

		gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.names(ctx)[0]}}
		Expect(api.Delete(ctx, gone, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(ctx, c.names).ShouldNot(ContainElement(gone.Name))
		c.waitSettled(ctx)
		expectClaims()
	})
})
