// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("Containers with a launch priority", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	// ranked has a main container that is ready some seconds after its start, and
	// one that is changed after it.
	ranked := func() *builders.StatefulSetBuilder {
		priority := func(p string) []corev1.EnvVar { return []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: p}} }
		return reading(namespace).Replicas(1).With(func(s *appsv1beta1.StatefulSet) {
			readyAfter("3s")(s)
			containers := s.Spec.Template.Spec.Containers
			containers[0].Env = append(containers[0].Env, priority("10")...)
			containers[1].Env = priority("1")
		})
	}
	both := func(version string) edit {
		return func(s *appsv1beta1.StatefulSet) {
			for i := range s.Spec.Template.Spec.Containers {
				s.Spec.Template.Spec.Containers[i].Image = version
			}
		}
	}

	It("are changed one after the other, each ready before the next, in one update", short.Spec, func(ctx context.Context) {
		set := create(ctx, ranked())
		before := getPod(ctx, set, 0)
		change(ctx, set, both(sleeperV2))
		waitSettled(ctx, set)
		pod := getPod(ctx, set, 0)
		Expect(pod.UID).To(Equal(before.UID))
		expectRestarts(pod, 1, 1)
		main, side := pod.Status.ContainerStatuses[0].State.Running, pod.Status.ContainerStatuses[1].State.Running
		Expect(side.StartedAt.Sub(main.StartedAt.Time)).To(BeNumerically(">=", 3e9), "main was ready before")
		Expect(pod.Annotations).To(HaveKeyWithValue(appsv1beta1.PodRestartCountKey, "0"))
	})

	It("lose nothing when a newer revision comes in between", func(ctx context.Context) {
		set := create(ctx, ranked().With(readyAsAnnotated))
		before := getPod(ctx, set, 0)
		change(ctx, set, edits(both(sleeperV2), neverReady))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Reason", inplace.ReasonNextBatch)))
			g.Expect(set.Status.UpdatedReplicas).To(BeZero(), "it is of neither revision")
		})
		change(ctx, set, edits(both("insitu-dev/sleeper:v3"), readyAtOnce))
		waitSettled(ctx, set)
		pod := getPod(ctx, set, 0)
		Expect(pod.UID).To(Equal(before.UID))
		expectRestarts(pod, 2, 1)
		Expect(ask(ctx, pod).Version).To(Equal("v3"))
	})

	// Neither the order of the list, nor that of the names, is that of the priorities, and a
	// container without one counts as 0.
	It("keep their images and sizes while one before them fails, and go on when it is fixed", func(ctx context.Context) {
		names, priorities := []string{"zeta", "alpha", "first"}, []string{"-1", "5", ""}
		container := func(i int, image, memory string) corev1.Container {
			amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse(memory)}
			c := corev1.Container{
				Name: names[i], Image: image, Args: []string{fmt.Sprintf("-listen=:%d", 8080+i)},
				Resources: corev1.ResourceRequirements{Requests: amounts, Limits: corev1.ResourceList{corev1.ResourceMemory: amounts[corev1.ResourceMemory]}},
			}
			if priorities[i] != "" {
				c.Env = []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: priorities[i]}}
			}
			return c
		}
		containers := func(memory string, images ...string) edit {
			return func(s *appsv1beta1.StatefulSet) {
				s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
				s.Spec.Template.Spec.Containers = []corev1.Container{
					container(0, images[0], memory), container(1, images[1], memory), container(2, images[2], memory),
				}
			}
		}
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(1).With(containers("64Mi", sleeperV1, sleeperV1, sleeperV1)).With(unpulledSet))
		before := getPod(ctx, set, 0)

		change(ctx, set, containers("48Mi", sleeperV2, nginxMissing, sleeperV2)) // alpha, the first in line, does not start
		has := func(ctx context.Context) map[string]string {
			all := map[string]string{}
			for _, c := range getPod(ctx, set, 0).Spec.Containers {
				all[c.Name] = c.Image + " " + c.Resources.Limits.Memory().String()
			}
			return all
		}
		half := map[string]string{"zeta": sleeperV1 + " 64Mi", "alpha": nginxMissing + " 48Mi", "first": sleeperV1 + " 64Mi"}
		Eventually(ctx, has).Should(Equal(half))
		Consistently(ctx, has).WithTimeout(8 * time.Second).Should(Equal(half))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Message", ContainSubstring("alpha"))))
		})

		change(ctx, set, containers("48Mi", sleeperV2, sleeperV2, sleeperV2))
		waitSettled(ctx, set)
		pod := getPod(ctx, set, 0)
		Expect(pod.UID).To(Equal(before.UID))
		started := map[string]time.Time{}
		for _, status := range pod.Status.ContainerStatuses {
			Expect(status.Resources.Limits.Memory().String()).To(Equal("48Mi"), status.Name)
			started[status.Name] = status.State.Running.StartedAt.Time
			if status.Name != "alpha" {
				Expect(status.RestartCount).To(BeEquivalentTo(1), status.Name)
			}
		}
		Expect(started["first"]).NotTo(BeTemporally("<", started["alpha"]))
		Expect(started["zeta"]).NotTo(BeTemporally("<", started["first"]))
	})
})
