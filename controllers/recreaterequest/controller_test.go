// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestARequest(t *testing.T) {
	w := newWorld(t, podOfTwo())
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.run(2)

	one := w.one("again")
	w.Expect(one.Labels).To(Equal(map[string]string{
		"crr.apps.kruise.io/pod-uid": string(w.pod().UID), "crr.apps.kruise.io/node-name": "node-1", "crr.apps.kruise.io/active": "true",
	}))
	w.Expect(w.phases("again")).To(Equal("Recreating, side Recreating"))
	w.Expect(one.Status.ContainerRecreateStates[0].IsKilled).To(BeTrue())
	result, err := w.r.Reconcile(t.Context(), requestFor("web-0"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", recheckPeriod)), "time alone may prove the restart")

	w.run(10)

	w.Expect(w.phases("again")).To(Equal("Completed, side Succeeded"))
	w.Expect(w.one("again").Status.Message).To(BeEmpty())
	w.Expect(w.one("again").Labels).NotTo(HaveKey("crr.apps.kruise.io/active"))
	w.Expect(w.starts).To(Equal(map[string]int{"side": 1}))
	w.Expect(w.served).To(BeTrue(), "nothing asked to take the pod out of service")
	w.expectRest()
}

// A request says what its pod waits for, and not that it is waited for by itself.
func TestAWaitingRequestSaysForWhat(t *testing.T) {
	w := newWorld(t, gated(podOfTwo()))
	w.add("again", "{podName: web-0, containers: [{name: side}], strategy: {unreadyGracePeriodSeconds: 30}}")
	w.run(10)
	w.Expect(w.one("again").Status.Message).To(Equal("out of service for 30s before it is changed"))
}

// A request that is complete is counted once, by whether all of its containers were restarted.
func TestRequestsAreCounted(t *testing.T) {
	w, metrics := newWorld(t, podOfTwo()), executor.NewMetrics()
	w.r.metrics = metrics
	w.add("done", "{podName: web-0, containers: [{name: side}]}")
	w.add("failed", "{podName: web-0, containers: [{name: side}, {name: missing}]}")
	w.run(40)

	registry := prometheus.NewPedanticRegistry()
	for _, collector := range metrics.Collectors() {
		w.Expect(registry.Register(collector)).To(Succeed())
	}
	w.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP insitu_container_recreate_requests_total Complete ContainerRecreateRequests, by whether all their containers were restarted.
# TYPE insitu_container_recreate_requests_total counter
insitu_container_recreate_requests_total{outcome="Done"} 1
insitu_container_recreate_requests_total{outcome="Failed"} 1
`), "insitu_container_recreate_requests_total")).To(Succeed())
}

func TestRequests(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		pod  func(*corev1.Pod)
		// during happens after as many seconds as its place.
		during map[int]func(*world)
		starts map[string]int
		phases string
		// message is what the request says in the end.
		message string
		served  bool
		outFor  time.Duration
	}{
		"of both, at once": {
			spec:   "{podName: web-0, containers: [{name: side}, {name: main}]}",
			starts: map[string]int{"main": 1, "side": 1}, phases: "Completed, side Succeeded, main Succeeded", served: true,
		},
		"of both, one after the other": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {orderedRecreate: true, minStartedSeconds: 5}}",
			during: map[int]func(*world){4: func(w *world) {
				w.Expect(w.starts).To(Equal(map[string]int{"side": 1}), "side has not run for 5 seconds")
				w.Expect(w.phases("again")).To(Equal("Recreating, side Recreating, main Pending"))
			}},
			starts: map[string]int{"main": 1, "side": 1}, phases: "Completed, side Succeeded, main Succeeded", served: true,
		},
		"one that is not ready holds up the next": {
			spec:   "{podName: web-0, containers: [{name: side}, {name: main}], activeDeadlineSeconds: 20, strategy: {orderedRecreate: true}}",
			during: map[int]func(*world){0: func(w *world) { w.unready["side"] = true }},
			starts: map[string]int{"side": 1}, phases: "Completed, side Failed, main Failed", message: deadlineMessage, served: true,
		},
		"one that was restarted by itself, and is not ready, holds up the next": {
			spec:   "{podName: web-0, containers: [{name: side, statusContext: {containerID: earlier}}, {name: main}], activeDeadlineSeconds: 20, strategy: {orderedRecreate: true}}",
			during: map[int]func(*world){0: func(w *world) { w.unready["side"] = true; w.kubelet() }},
			phases: "Completed, side Failed, main Failed", message: deadlineMessage,
		},
		"out of service before": {
			spec: "{podName: web-0, containers: [{name: side}], strategy: {unreadyGracePeriodSeconds: 7}}", pod: func(pod *corev1.Pod) { gated(pod) },
			starts: map[string]int{"side": 1}, phases: "Completed, side Succeeded", outFor: 7 * time.Second,
		},
		"out of service until the last is restarted": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {unreadyGracePeriodSeconds: 3, orderedRecreate: true, minStartedSeconds: 4}}", pod: func(pod *corev1.Pod) { gated(pod) },
			starts: map[string]int{"side": 1, "main": 1}, phases: "Completed, side Succeeded, main Succeeded", outFor: 7 * time.Second,
		},
		"late, and not begun": {
			spec: "{podName: web-0, containers: [{name: side}], activeDeadlineSeconds: 3, strategy: {unreadyGracePeriodSeconds: 10}}", pod: func(pod *corev1.Pod) { gated(pod) },
			phases: "Completed, side Failed", message: deadlineMessage,
		},
		"late, and begun": {
			spec: "{podName: web-0, containers: [{name: side}], activeDeadlineSeconds: 3, strategy: {minStartedSeconds: 10}}", served: true,
			starts: map[string]int{"side": 1}, phases: "Completed, side Failed", message: deadlineMessage,
		},
		"of a container that restarts by itself meanwhile": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {orderedRecreate: true, minStartedSeconds: 3}}", served: true,
			during: map[int]func(*world){1: func(w *world) { w.crash("main") }},
			starts: map[string]int{"side": 1, "main": 1}, phases: "Completed, side Succeeded, main Succeeded",
		},
		"of the same, by force": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {orderedRecreate: true, minStartedSeconds: 3, forceRecreate: true}}", served: true,
			during: map[int]func(*world){1: func(w *world) { w.crash("main") }},
			starts: map[string]int{"side": 1, "main": 2}, phases: "Completed, side Succeeded, main Succeeded",
		},
		"of one that had restarted when OpenKruise saw the request": {
			spec:   "{podName: web-0, containers: [{name: side, statusContext: {containerID: 'containerd://earlier', restartCount: 0}}]}",
			phases: "Completed, side Succeeded",
		},
		"with the time to stop that the pod has": {
			spec: "{podName: web-0, containers: [{name: side}], strategy: {terminationGracePeriodSeconds: 30}}", served: true,
			starts: map[string]int{"side": 1}, phases: "Completed, side Succeeded",
		},
		"with another time to stop": {
			spec:   "{podName: web-0, containers: [{name: side}], strategy: {terminationGracePeriodSeconds: 5}}",
			phases: "Completed, side Failed", message: "not restarted: side: strategy.terminationGracePeriodSeconds is 5, and the kubelet stops containers within the time of the pod: 30, or none is accepted",
		},
		"with the hook that the container has": {
			spec: "{podName: web-0, containers: [{name: side, preStop: {exec: {command: [stop]}}}]}", served: true, pod: func(pod *corev1.Pod) {
				pod.Spec.Containers[1].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}}}
			},
			starts: map[string]int{"side": 1}, phases: "Completed, side Succeeded",
		},
		"with another hook": {
			spec:   "{podName: web-0, containers: [{name: side, preStop: {exec: {command: [stop]}}}]}",
			phases: "Completed, side Failed", message: "not restarted: side: spec.containers[0].preStop is not that of container side, and the kubelet runs the container's own: leave it out",
		},
		"of a container that is not there": {
			spec:   "{podName: web-0, containers: [{name: main}, {name: other}]}",
			phases: "Completed, main Pending, other Failed", message: "not restarted: other: container other of pod web-0 has not been started yet, or the pod has none of that name",
		},
		"of one that is not there, and the other all the same": {
			spec: "{podName: web-0, containers: [{name: main}, {name: other}], strategy: {failurePolicy: Ignore}}", served: true,
			starts: map[string]int{"main": 1}, phases: "Completed, main Succeeded, other Failed",
			message: "not restarted: other: container other of pod web-0 has not been started yet, or the pod has none of that name",
		},
		"of an image with one spelling": {
			spec: "{podName: web-0, containers: [{name: side}]}", pod: func(pod *corev1.Pod) {
				pod.Spec.Containers[1].Image, pod.Spec.Containers[1].ImagePullPolicy = "registry:5000/nginx:1", corev1.PullAlways
			},
			phases: "Completed, side Failed",
			message: "not restarted: side: container side: it can be restarted by spelling its image otherwise only, " +
				"and of registry:5000/nginx:1 no other spelling is known",
		},
		"that a policy refuses": {
			spec: "{podName: web-0, containers: [{name: side}]}",
			during: map[int]func(*world){0: func(w *world) {
				w.refuses = apierrors.NewForbidden(corev1.Resource("pods"), "web-0", errors.New("no tags"))
			}},
			phases: "Completed, side Failed", message: `not restarted: side: the API server refuses to update pod web-0 in place: pods "web-0" is forbidden: no tags`,
		},
		"that a policy refuses of one": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {failurePolicy: Ignore}}", served: true,
			during: map[int]func(*world){0: func(w *world) {
				w.refuses, w.refusesOf = apierrors.NewForbidden(corev1.Resource("pods"), "web-0", errors.New("no tags")), "side"
			}},
			starts: map[string]int{"main": 1}, phases: "Completed, side Failed, main Succeeded",
			message: `not restarted: side: the API server refuses to update pod web-0 in place: pods "web-0" is forbidden: no tags`,
		},
		"of three, one after the other": {
			spec: "{podName: web-0, containers: [{name: third}, {name: side}, {name: main}], strategy: {orderedRecreate: true, unreadyGracePeriodSeconds: 0}}", served: false,
			pod: func(pod *corev1.Pod) {
				gated(pod)
				third := pod.Spec.Containers[0]
				third.Name = "third"
				pod.Spec.Containers = append(pod.Spec.Containers, third)
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, builders.RunningContainer("third", "third-0", image, start().Add(-time.Hour)))
			},
			during: map[int]func(*world){20: func(w *world) {
				w.Expect(w.phases("again")).To(HavePrefix("Completed"), "none waits until the one before is certain")
			}},
			starts: map[string]int{"main": 1, "side": 1, "third": 1}, phases: "Completed, third Succeeded, side Succeeded, main Succeeded",
		},
		"of a static pod": {
			spec: "{podName: web-0, containers: [{name: side}]}", pod: func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
			},
			phases: "Completed, side Failed", message: "not restarted: side: pod web-0 is static: its kubelet runs what a file on its node says",
		},
		"of a container that has ended for good": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {failurePolicy: Ignore}}", served: true, pod: func(pod *corev1.Pod) {
				pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
				pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			},
			starts: map[string]int{"main": 1}, phases: "Completed, side Failed, main Succeeded",
			message: "not restarted: side: container side has ended, and restartPolicy OnFailure of the pod lets no kubelet start it again",
		},
		"of a pod that a label asks to be deleted, by another controller": {
			spec: "{podName: web-0, containers: [{name: side}]}", served: true, pod: func(pod *corev1.Pod) {
				pod.Labels[appsv1beta1.SpecifiedDeleteKey], pod.Labels[appsv1beta1.LifecycleStateKey] = "true", "Updated"
			},
			during: map[int]func(*world){30: func(w *world) {
				w.Expect(w.pod().Labels).To(And(HaveKey(appsv1beta1.SpecifiedDeleteKey), HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "Updated")))
				w.change(func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "web"} })
			}},
			starts: map[string]int{"side": 1}, phases: "Completed, side Succeeded",
		},
		"while a webhook does not answer": {
			spec: "{podName: web-0, containers: [{name: side}]}", served: true,
			during: map[int]func(*world){
				0: func(w *world) { w.refuses = apierrors.NewInternalError(errors.New("failed calling webhook")) },
				9: func(w *world) {
					w.Expect(w.phases("again")).To(BeEmpty())
					w.refuses = nil
				},
			},
			starts: map[string]int{"side": 1}, phases: "Completed, side Succeeded",
		},
		"of a container that gets an image with one spelling meanwhile": {
			spec: "{podName: web-0, containers: [{name: side}, {name: main}], strategy: {unreadyGracePeriodSeconds: 10, failurePolicy: Ignore}}", pod: func(pod *corev1.Pod) { gated(pod) },
			during: map[int]func(*world){4: func(w *world) {
				w.change(func(pod *corev1.Pod) {
					pod.Spec.Containers[1].Image, pod.Spec.Containers[1].ImagePullPolicy = "registry:5000/nginx:1", corev1.PullAlways
				})
				w.runs["side"] = "registry:5000/nginx:1"
			}},
			starts: map[string]int{"main": 1}, phases: "Completed, side Failed, main Succeeded",
			message: "not restarted: side: container side: it can be restarted by spelling its image otherwise only, " +
				"and of registry:5000/nginx:1 no other spelling is known",
		},
		"of a pod that goes": {
			spec: "{podName: web-0, containers: [{name: side}], strategy: {unreadyGracePeriodSeconds: 10}}", pod: func(pod *corev1.Pod) { gated(pod) },
			during: map[int]func(*world){4: func(w *world) { w.change(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }); w.end() }},
			phases: "Completed, side Failed", message: goneMessage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOfTwo()
			if test.pod != nil {
				test.pod(pod)
			}
			w := newWorld(t, pod)
			w.add("again", test.spec)
			for second := range 60 {
				if do := test.during[second]; do != nil {
					do(w)
				}
				w.run(1)
			}

			w.Expect(w.phases("again")).To(Equal(test.phases))
			w.Expect(w.one("again").Status.Message).To(Equal(test.message))
			if test.starts == nil {
				test.starts = map[string]int{}
			}
			w.Expect(w.starts).To(Equal(test.starts))
			w.Expect(w.served).To(Equal(test.served))
			w.Expect(w.outFor).To(BeNumerically(">=", test.outFor))
			if !inplace.HasEnded(w.pod()) && len(w.unready) == 0 {
				w.expectRest()
			}
		})
	}
}

// end lets the pod end for good.
func (w *world) end() {
	pod := w.pod()
	pod.Status.Phase = corev1.PodFailed
	w.Expect(w.client.Status().Update(context.Background(), pod)).To(Succeed())
}

// Two requests of one pod are carried out one after the other, the older one first.
func TestOneRequestAfterTheOther(t *testing.T) {
	w := newWorld(t, podOfTwo())
	w.add("b", "{podName: web-0, containers: [{name: side}], strategy: {minStartedSeconds: 10}}")
	w.clock.Step(time.Second)
	w.add("a", "{podName: web-0, containers: [{name: side}]}")
	w.run(6)

	w.Expect(w.phases("b")).To(Equal("Recreating, side Recreating"))
	w.Expect(w.phases("a")).To(Equal("Pending"))
	w.Expect(w.one("a").Status.Message).To(Equal("ContainerRecreateRequest b, of the same pod, comes before"))
	w.run(90) // it takes its time until it is certain that the container is to be restarted once more

	w.Expect(w.phases("b")).To(Equal("Completed, side Succeeded"))
	w.Expect(w.phases("a")).To(Equal("Completed, side Succeeded"))
	w.Expect(w.starts).To(Equal(map[string]int{"side": 2}))
	w.expectRest()
}

// What a deleted request has asked for, and was not done, is not done any more.
func TestARequestThatIsDeleted(t *testing.T) {
	for name, isKilled := range map[string]bool{"the manager sees it": false, "the manager comes later": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gated(podOfTwo()))
			w.add("again", "{podName: web-0, containers: [{name: side}], strategy: {unreadyGracePeriodSeconds: 30}}")
			w.run(10)
			w.Expect(inplace.IsMarkedNotReady(w.pod())).To(BeTrue())
			w.Expect(w.client.Delete(t.Context(), w.one("again"))).To(Succeed())
			if isKilled {
				w.restart()
			}
			w.run(30)

			w.Expect(w.starts).To(BeEmpty())
			w.expectRest()
		})
	}
}

// A request of OpenKruise that is deleted, and has its finalizer.
func TestTheFinalizerOfOpenKruise(t *testing.T) {
	w := newWorld(t, podOfTwo())
	w.addFrom("metadata: {name: again, finalizers: [crr.apps.kruise.io/unready-acquired]}\nspec: {podName: gone, containers: [{name: main}]}")
	w.Expect(w.client.Delete(t.Context(), w.one("again"))).To(Succeed())

	_, err := w.r.Reconcile(t.Context(), requestFor("gone"))

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "again"}, &request{}))).To(BeTrue())
}

func TestARequestIsDeletedInTime(t *testing.T) {
	w := newWorld(t, podOfTwo())
	w.add("again", "{podName: web-0, containers: [{name: side}], ttlSecondsAfterFinished: 20}")
	w.run(15)
	w.Expect(w.phases("again")).To(Equal("Completed, side Succeeded"))
	w.run(20)

	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "again"}, &request{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	w.expectRest()
}

// The pod of a request may be gone, or be another one of its name.
func TestARequestOfAPodThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.run(2)
	w.Expect(w.phases("again")).To(Equal("Completed, side Failed"))
	w.Expect(w.one("again").Status.Message).To(Equal(goneMessage))

	w = newWorld(t, podOfTwo())
	w.addFrom("metadata: {name: again, labels: {crr.apps.kruise.io/pod-uid: earlier}}\nspec: {podName: web-0, containers: [{name: side}], strategy: {minStartedSeconds: 10}}")
	w.run(5)
	w.Expect(w.one("again").Labels).To(HaveKeyWithValue("crr.apps.kruise.io/pod-uid", string(w.pod().UID)), "the manifest is that of another request")
	w.Expect(w.starts).To(HaveKeyWithValue("side", 1))
	another := podOfTwo()
	another.UID, another.ResourceVersion = "another", ""
	w.Expect(w.client.Delete(t.Context(), w.pod())).To(Succeed())
	w.Expect(w.client.Create(t.Context(), another)).To(Succeed())
	w.run(20)
	w.Expect(w.phases("again")).To(Equal("Completed, side Failed"))
	w.Expect(w.one("again").Status.Message).To(Equal(goneMessage))
}

// The cache may not have a pod yet that is there.
func TestACacheThatIsLate(t *testing.T) {
	w := newWorld(t, podOfTwo())
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	late := newWorld(t)
	late.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.r.client, w.r.live = late.client, w.client

	result, err := w.r.Reconcile(t.Context(), requestFor("web-0"))

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(late.phases("again")).To(BeEmpty())
}

// The name of a node may be longer than a label can be.
func TestALongNameOfANode(t *testing.T) {
	pod := podOfTwo()
	pod.Spec.NodeName = strings.Repeat("n", 100)
	w := newWorld(t, pod)
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.run(10)
	w.Expect(w.phases("again")).To(Equal("Completed, side Succeeded"))
	w.Expect(w.one("again").Labels).NotTo(HaveKey("crr.apps.kruise.io/node-name"))
}

// What wakes the controller: each request wakes its pod, and each pod itself that a request is about or
// has asked.
func TestEvents(t *testing.T) {
	w := newWorld(t, podOfTwo())
	pod := []reconcile.Request{requestFor("web-0")}
	w.Expect(w.r.requestedPod(t.Context(), w.pod())).To(BeEmpty())
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.Expect(podOf(t.Context(), w.one("again"))).To(Equal(pod))
	w.Expect(w.r.requestedPod(t.Context(), w.pod())).To(Equal(pod))
	w.run(10)
	w.Expect(w.phases("again")).To(Equal("Completed, side Succeeded"))
	w.Expect(w.r.requestedPod(t.Context(), w.pod())).To(BeEmpty(), "it is complete")
	asked := w.pod()
	asked.Annotations[appsv1beta1.RecreateRequestAnnotation] = "{}"
	w.Expect(w.r.requestedPod(t.Context(), asked)).To(Equal(pod), "by a request that is gone")
}

// The controller of a workload of ours restarts the containers; until then the request says what they
// wait for.
func TestAPodOfAWorkloadOfOurs(t *testing.T) {
	set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "set"}}
	pod := podOfTwo()
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1beta1.StatefulSetKind)}
	w := newWorld(t, pod, set)
	w.add("again", "{podName: web-0, containers: [{name: side}]}")
	w.run(5)

	w.Expect(inplace.RecreateRequestOf(w.pod())).To(Equal(&appsv1beta1.PodRecreateRequest{Name: "again", UID: w.one("again").UID, Containers: []string{"side"}}))
	w.Expect(w.starts).To(BeEmpty())
	w.Expect(w.one("again").Status.Message).To(Equal("StatefulSet web restarts them when their turn comes"))
	set.Status.Blockers = []appsv1beta1.Blocker{{Pod: "web-1"}, {Pod: "web-0", Message: "web-1 is unavailable" + inplace.ForRequest("again")}}
	w.Expect(w.client.Update(t.Context(), set)).To(Succeed())
	w.run(10)
	w.Expect(w.one("again").Status.Message).To(Equal("StatefulSet web: web-1 is unavailable"), "not that it is waited for by itself")
}

// A manager that is killed at any write leaves nothing undone, and does nothing twice.
func TestAManagerThatIsKilled(t *testing.T) {
	for name, test := range map[string]struct {
		strategy, phases string
		starts           map[string]int
	}{
		"done": {
			strategy: "ttlSecondsAfterFinished: 200, strategy: {orderedRecreate: true, unreadyGracePeriodSeconds: 2}",
			phases:   "Completed, side Succeeded, main Succeeded", starts: map[string]int{"side": 1, "main": 1},
		},
		"late": {
			strategy: "activeDeadlineSeconds: 9, strategy: {unreadyGracePeriodSeconds: 300}",
			phases:   "Completed, side Failed, main Failed", starts: map[string]int{},
		},
	} {
		spec := "{podName: web-0, containers: [{name: side}, {name: main}], " + test.strategy + "}"
		whole := newWorld(t, gated(podOfTwo()))
		whole.add("again", spec)
		whole.run(60)
		whole.Expect(whole.phases("again")).To(Equal(test.phases))
		whole.Expect(whole.writes).To(BeNumerically(">", 6))
		step := 1
		if testing.Short() {
			step = 3
		}
		for _, isDone := range []bool{false, true} {
			for left := 0; left < whole.writes; left += step {
				t.Run(fmt.Sprintf("%s, at write %d, done %t", name, left, isDone), func(t *testing.T) {
					w := newWorld(t, gated(podOfTwo()))
					w.left, w.isDone = left, isDone
					w.add("again", spec)
					w.run(80)

					w.Expect(w.phases("again")).To(Equal(test.phases))
					w.Expect(w.starts).To(Equal(test.starts))
					w.Expect(w.served).To(BeFalse())
					w.expectRest()
				})
			}
		}
	}
}

// Requests that a live OpenKruise has left are as they were, and those that it had not begun go on.
func TestRequestsOfOpenKruise(t *testing.T) {
	text, err := os.ReadFile("testdata/openkruise.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	list := &appsv1beta1.ContainerRecreateRequestList{}
	NewWithT(t).Expect(yaml.UnmarshalStrict(text, list)).To(Succeed())
	NewWithT(t).Expect(list.Items).To(HaveLen(2))
	pod := podOfTwo()
	grace := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	objects := []client.Object{gated(pod)}
	for i := range list.Items {
		one := &list.Items[i]
		one.Namespace, one.ResourceVersion, one.Spec.PodName = namespace, "", "web-0"
		one.CreationTimestamp = metav1.NewTime(start())
		one.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey] = string(pod.UID)
		one.Status.CompletionTime = ptr.To(metav1.NewTime(start()))
		objects = append(objects, one)
	}
	// OpenKruise keeps the pod out of service for it, and has killed one of the containers.
	entry := `[{"userAgent":"ContainerRecreateRequest","key":"shop/begun"},{"userAgent":"other","key":"x"}]`
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: appsv1beta1.KruisePodReady})
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: appsv1beta1.KruisePodReady, Status: corev1.ConditionFalse, Message: entry})
	begun := list.Items[1].DeepCopy()
	begun.Name, begun.UID, begun.Status = "begun", "begun", appsv1beta1.ContainerRecreateRequestStatus{Phase: recreating}
	begun.Finalizers = []string{appsv1beta1.ContainerRecreateRequestFinalizer}
	begun.Spec.Containers = []appsv1beta1.ContainerRecreateRequestContainer{
		{Name: "side", StatusContext: &appsv1beta1.ContainerRecreateRequestContainerContext{ContainerID: pod.Status.ContainerStatuses[1].ContainerID}},
		{Name: "main", StatusContext: &appsv1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://main-before"}},
	}
	begun.Status.ContainerRecreateStates = []state{{Name: "side", Phase: pending}, {Name: "main", Phase: recreating, IsKilled: true}}
	w := newWorld(t, append(objects, begun)...)
	before := w.one("crr-deadline")
	w.run(30)

	w.Expect(w.one("crr-deadline").Status).To(Equal(before.Status))
	w.Expect(w.phases("begun")).To(Equal("Completed, side Succeeded, main Succeeded"))
	w.Expect(w.one("begun").Finalizers).To(BeEmpty())
	w.Expect(w.starts).To(Equal(map[string]int{"side": 1}))
	for _, c := range w.pod().Status.Conditions {
		if c.Type == appsv1beta1.KruisePodReady {
			w.Expect(c.Message).To(Equal(`[{"userAgent":"other","key":"x"}]`), "others go on keeping the pod out of service")
		}
	}
}
