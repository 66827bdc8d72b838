// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/sim"
)

// storySeeds is in how many ways the model plays a story.
const storySeeds = 2000

// storyImages are the images of stories in the lab.
var storyImages = map[sim.Image]string{
	sim.ImageA: sleeperV1, sim.ImageB: sleeperV2, sim.ImageBAgain: sleeperV2Again,
	sim.ImageMissing: "insitu-dev/sleeper:no-such-tag", sim.ImageCrash: sleeperCrash,
}

// The simulation (test/sim) is worth as much as its kubelet is true to this one.
var _ = Describe("The simulated kubelet conforms to the real one", func() {
	for _, story := range sim.PodStories {
		It("when "+story.Name, storyLabels(story), func(ctx context.Context) {
			behavior, err := story.Behavior(storySeeds)
			Expect(err).NotTo(HaveOccurred())
			Expect(behavior.Check(play(ctx, newNamespace(ctx), story))).To(Succeed())
		})
	}
})

// shortStory is that of the short run: the kubelet restarts a container, and nothing but its own
// word tells that it did.
const shortStory = "another tag has the same digest"

// storyLabels returns the labels of the spec of a story.
func storyLabels(story sim.PodStory) Labels {
	if story.Name == shortStory {
		return short.Spec
	}
	return nil
}

// play plays a story on a real kubelet, and returns what was seen.
func play(ctx context.Context, namespace string, story sim.PodStory) []sim.Observation {
	GinkgoHelper()
	pod := storyPod(namespace, story)
	Expect(api.Create(ctx, pod)).To(Succeed())
	observer := watchPod(ctx, pod)
	act := func(do func(*corev1.Pod), subresource string) {
		GinkgoHelper()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		before := pod.DeepCopy()
		do(pod)
		if subresource != "" {
			Expect(api.SubResource(subresource).Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
		} else {
			Expect(api.Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
		}
	}
	act(func(pod *corev1.Pod) { sim.SetGate(pod, corev1.ConditionTrue, metav1.Now()) }, "status")
	observer.wait(ctx, pod.Generation, func(o sim.Observation) bool { return o.Ready })
	for _, a := range story.Acts {
		act(func(pod *corev1.Pod) { a.Do(pod, storyImages) }, a.Subresource())
		if a.Until != nil {
			observer.wait(ctx, pod.Generation, a.Until)
		}
	}
	return observer.Seen()
}

// storyPod gives each container a port and a probe.
func storyPod(namespace string, story sim.PodStory) *corev1.Pod {
	pod := story.Pod(storyImages)
	pod.Namespace = namespace
	port := 8080
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Env = []corev1.EnvVar{
				{Name: "SLEEPER_LISTEN", Value: fmt.Sprintf(":%d", port)},
				{Name: "SLEEPER_READY_AFTER", Value: "2s"}, // longer than the one that crashes lives
			}
			containers[i].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(port)},
			}}
			port++
		}
	}
	return pod
}

// podObserver sees every version of a pod while a story is played.
type podObserver struct {
	mutex    sync.Mutex
	observer sim.Observer
	// generation is the last one that was seen.
	generation int64
}

func watchPod(ctx context.Context, pod *corev1.Pod) *podObserver {
	GinkgoHelper()
	// The watch outlives this node of the spec's context.
	versions, err := kube.CoreV1().Pods(pod.Namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: pod.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(versions.Stop)
	o := &podObserver{}
	go func() {
		for event := range versions.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.DeletionTimestamp == nil {
				o.mutex.Lock()
				o.observer.See(pod)
				o.generation = pod.Generation
				o.mutex.Unlock()
			}
		}
	}()
	return o
}

// Seen returns what was seen so far.
func (o *podObserver) Seen() []sim.Observation {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.observer.Seen())
}

// wait waits until a version of the pod of this generation, or a later one, is as
// wanted.
func (o *podObserver) wait(ctx context.Context, generation int64, wanted func(sim.Observation) bool) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.generation < generation || !o.observer.Shows(wanted) {
			return fmt.Errorf("not what is waited for, at generation %d: %v", o.generation, o.observer.Seen())
		}
		return nil
	}).Should(Succeed())
}
