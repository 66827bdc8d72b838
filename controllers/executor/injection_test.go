// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

const (
	proxied     = "create sample-0-[All]"
	oldProxy    = "proxy:1"
	newProxy    = "proxy:2"
	restartedAt = `"annotations":{"kubectl.kubernetes.io/restartedAt":"today"}`
)

// meshed has pods with a proxy of version 1, which their template does not have, that are to
// become what a template with this metadata says. A new pod gets a proxy of version 2.
func meshed(t *testing.T, replicas int, metadata string) *admission {
	t.Helper()
	a := newSizes(t, replicas)
	a.workload.MaxUnavailable, a.workload.Unasked = replicas, true
	a.workload.Target.Template = meshTemplate(a, "nginx:alpine", metadata)
	from := &inplace.Revision{Name: "a", Template: meshTemplate(a, "nginx:alpine", "")}
	for i := range a.workload.Pods {
		a.workload.Pods[i].From = from
		inject(a.workload.Pods[i].Pod, oldProxy)
	}
	a.stores = func(pod *corev1.Pod) { inject(pod, newProxy) }
	return a
}

func meshTemplate(a *admission, image, metadata string) *inplace.Template {
	return parsedTemplate(a, fmt.Sprintf(`{"metadata":{%s},"spec":{"containers":[{"name":"main","image":%q,
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"64Mi"}}}]}}`, metadata, image))
}

// inject does what admission does with a new pod.
func inject(pod *corev1.Pod, image string) {
	if len(pod.Spec.Containers) == 1 {
		pod.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: image}}, pod.Spec.Containers...)
	}
}

func creations(a *admission) []string {
	var found []string
	for _, request := range a.requests {
		if strings.HasPrefix(request, "create") {
			found = append(found, request)
		}
	}
	return found
}

// Whoever restarts the pods of a mesh that was upgraded wants the new proxy: only new pods get it.
func TestARestartBringsWhatAdmissionPutsIntoNewPods(t *testing.T) {
	a := meshed(t, 3, restartedAt)
	a.workload.Pods[1].Pod.Spec.Containers[0].Image = newProxy // made again since

	moves, plan, _ := a.plan()

	a.Expect(moves).To(ConsistOf("Recreate sample-0", "MarkNotReady sample-1", "Recreate sample-2"))
	a.Expect(creations(a)).To(Equal([]string{proxied}), "once for all pods")
	a.Expect(plan.Pods[0].Step.Reason).To(Equal(inplace.ReasonInjectionChanged))
	a.Expect(plan.Pods[0].Step.Message).To(Equal("a new pod gets other containers from admission, which the template does not have: image of proxy: proxy:1 to proxy:2"))

	a.plan()
	a.Expect(creations(a)).To(BeEmpty(), "the answer is young")
}

func TestWhatAdmissionPutsIntoNewPods(t *testing.T) {
	const withLabel = `"labels":{"mesh":"on"}`
	reads := func(key string, change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			inject(pod, newProxy)
			if pod.Labels[key] != "" || pod.Annotations[key] != "" {
				change(pod)
			}
		}
	}
	for name, tc := range map[string]struct {
		metadata, image string
		stores          func(*corev1.Pod)
		says            error
		// recreated is what the message says of why; empty if the pod is changed in place.
		recreated string
		asks      int
	}{
		"a restart, and nothing else is injected": {
			metadata: restartedAt, stores: func(pod *corev1.Pod) { inject(pod, oldProxy) }, asks: 1,
		},
		"a restart, and nothing is injected any more": {
			metadata: restartedAt, stores: func(*corev1.Pod) {}, asks: 1, recreated: "container proxy is removed",
		},
		"a restart, and a sidecar is injected beside": {
			metadata: restartedAt, asks: 1, recreated: "container agent is added, image of proxy: proxy:1 to proxy:2",
			stores: func(pod *corev1.Pod) {
				inject(pod, newProxy)
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "agent", Image: "agent:1"})
			},
		},
		"a restart of one container": {metadata: `"annotations":{"restart.insitu.dev/main":"today"}`},
		"another image":              {image: "nginx:latest"},
		"a label that no injector reads, while the proxy has another version": {
			metadata: withLabel, asks: 2,
		},
		"a label that has another version injected": {
			metadata: withLabel, asks: 3, recreated: "image of proxy: proxy:2 to proxy:3",
			stores: reads("mesh", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "proxy:3" }),
		},
		"an annotation that sets a variable of the proxy": {
			metadata: `"annotations":{"mesh":"on"}`, asks: 3, recreated: "container proxy is changed",
			stores: reads("mesh", func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}} }),
		},
		"a sidecar in place of the container": {
			metadata: restartedAt, asks: 1, recreated: "container proxy is one of initContainers",
			stores: func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: oldProxy, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			},
		},
		"an init container in place of the container": {
			metadata: restartedAt, asks: 1, recreated: "container proxy is one of initContainers",
			stores: func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: oldProxy}} },
		},
		"a variable with all annotations of the pod": {
			metadata: `"annotations":{"checksum/config":"b"}`, asks: 2,
			stores: func(pod *corev1.Pod) {
				inject(pod, newProxy)
				all, _ := json.Marshal(pod.Annotations)
				pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ANNOTATIONS", Value: string(all)}}
			},
		},
		"another image beside a label, and an injector that tells the image": {
			metadata: withLabel, image: "nginx:latest", asks: 2,
			stores: func(pod *corev1.Pod) {
				image := pod.Spec.Containers[0].Image
				inject(pod, newProxy)
				pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IMAGE", Value: image}}
			},
		},
		"volumes with names at random": {
			metadata: withLabel, asks: 2,
			stores: reads("mesh", func(pod *corev1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x7k2p"}}
			}),
		},
		"a restart and a label that has nothing injected": {
			metadata: withLabel + "," + restartedAt, asks: 3, recreated: "container proxy is removed",
			stores: func(pod *corev1.Pod) {
				if pod.Labels["mesh"] == "" {
					inject(pod, oldProxy)
				}
			},
		},
		"no new pod would be accepted":     {metadata: restartedAt, says: forbidden("not for you"), asks: 1},
		"a webhook does no dry runs":       {metadata: restartedAt, says: apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), asks: 1},
		"a user of the plugin may not ask": {metadata: restartedAt, says: forbidden(`User "me" cannot create resource "pods"`), asks: 1},
		"a quota that counts the old pod":  {metadata: restartedAt, says: forbidden("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"), asks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := meshed(t, 1, tc.metadata)
			if tc.image != "" {
				a.workload.Target.Template = meshTemplate(a, tc.image, tc.metadata)
			}
			if tc.stores != nil {
				a.stores = tc.stores
			}
			if tc.says != nil {
				a.says = refuses("create", tc.says)
			}

			moves, plan, _ := a.plan()

			a.Expect(creations(a)).To(HaveLen(tc.asks))
			if tc.recreated == "" {
				a.Expect(moves).To(ConsistOf(Or(Equal("MarkNotReady sample-0"), Equal("Patch sample-0"))))
				return
			}
			a.Expect(moves).To(Equal([]string{"Recreate sample-0"}))
			a.Expect(plan.Pods[0].Step.Message).To(HaveSuffix(": " + tc.recreated))
		})
	}
}

// What differs between two equal new pods is made up at random: it says nothing.
func TestWhatIsMadeUpAtRandomMakesNoDifference(t *testing.T) {
	a := meshed(t, 1, `"labels":{"mesh":"on"}`)
	made := 0
	a.stores = func(pod *corev1.Pod) {
		made++
		inject(pod, newProxy)
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NONCE", Value: strconv.Itoa(made)}}
	}
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Patch sample-0"}))
	a.Expect(creations(a)).To(HaveLen(3), "with the label, without it, and with it again")
}

// The pods that are asked about differ in the labels and annotations alone that admission may read.
func TestTheNewPodsThatAreComparedDifferInMetadataAlone(t *testing.T) {
	a := meshed(t, 1, `"labels":{"mesh":"on"},"annotations":{"kubectl.kubernetes.io/restartedAt":"today","note":"new"}`)
	a.workload.Target.Template = meshTemplate(a, "nginx:latest", `"labels":{"mesh":"on"},"annotations":{"kubectl.kubernetes.io/restartedAt":"today","note":"new"}`)
	a.workload.Pods[0].From = &inplace.Revision{Name: "a", Template: meshTemplate(a, "nginx:alpine", `"labels":{"mesh":"off"}`)}
	var asked []*corev1.Pod
	a.stores = func(pod *corev1.Pod) { asked = append(asked, pod.DeepCopy()) }

	a.plan()

	a.Expect(asked).To(HaveLen(2))
	a.Expect(asked[0].Annotations).To(Equal(map[string]string{"kubectl.kubernetes.io/restartedAt": "today", "note": "new"}))
	a.Expect(asked[1].Annotations).To(Equal(map[string]string{"kubectl.kubernetes.io/restartedAt": "today"}))
	a.Expect([]string{asked[0].Labels["mesh"], asked[1].Labels["mesh"]}).To(Equal([]string{"on", "off"}))
	for _, pod := range asked {
		pod.Labels, pod.Annotations = nil, nil
	}
	a.Expect(asked[0]).To(Equal(asked[1]))
}

// A pod that the partition keeps, or a pause, is not judged by where it does not go. One that is
// between two batches is finished.
func TestPodsThatStayAreNotJudged(t *testing.T) {
	for name, stay := range map[string]func(*admission){
		"held":   func(a *admission) { a.workload.Pods[0].Held = true },
		"paused": func(a *admission) { a.workload.Stopped = true },
	} {
		t.Run(name, func(t *testing.T) {
			a := meshed(t, 1, restartedAt)
			stay(a)
			a.workload.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).
				Ready(false, builders.Start).Sized("100m", "64Mi").Record(appsv1beta1.InPlaceUpdateState{
				Revision: "a", UpdateTimestamp: metav1.NewTime(builders.Start), NextContainerImages: map[string]string{"main": "nginx:latest"},
			}).Build()
			moves, _, _ := a.plan()
			a.Expect(moves).To(Equal([]string{"Patch sample-0"}), "its next batch")
			a.Expect(creations(a)).To(BeEmpty())
		})
	}
}

// While the API server does not say what a new pod would be, no pod is restarted.
func TestARestartWaitsForAnAnswer(t *testing.T) {
	for name, err := range map[string]error{
		"the server is starting": apierrors.NewServiceUnavailable("starting"),
		"the injector is down":   apierrors.NewInternalError(errors.New("failed calling webhook")),
	} {
		t.Run(name, func(t *testing.T) { waitsForAnswer(t, err) })
	}
}

func waitsForAnswer(t *testing.T, err error) {
	t.Helper()
	a := meshed(t, 2, restartedAt)
	a.says = refuses("create", err)

	moves, plan, _ := a.plan()

	a.Expect(moves).To(BeEmpty())
	a.Expect(creations(a)).To(HaveLen(1))
	a.Expect(plan.Blockers).To(HaveLen(2))
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Waiting), HaveField("Reason", inplace.ReasonAdmissionUnknown), HaveField("Denied", false))))
	a.Expect(plan.Recheck).To(BeTemporally("==", a.clock.Now().Add(refusalPeriod)), "it is asked again without any event")

	a.says = func(string) error { return nil }
	a.clock.Step(refusalPeriod)
	moves, _, _ = a.plan()
	a.Expect(moves).To(ConsistOf("Recreate sample-0", "Recreate sample-1"))
}

// An answer that does not come changes nothing of what was found a moment ago.
func TestWhatWasAnsweredCountsUntilThereIsAnotherAnswer(t *testing.T) {
	a := meshed(t, 1, restartedAt)
	a.stores = func(pod *corev1.Pod) { inject(pod, oldProxy) }
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-0"}))

	a.says = refuses("create", apierrors.NewServiceUnavailable("starting"))
	a.clock.Step(refusalPeriod)
	moves, _, _ = a.plan()
	a.Expect(creations(a)).To(HaveLen(1))
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-0"}))

	for range answerAge / refusalPeriod {
		a.clock.Step(refusalPeriod)
		moves, _, _ = a.plan()
	}
	a.Expect(moves).To(BeEmpty(), "what it said is old by now")
}

// A pod that is out of service already stays so while there is no answer.
func TestADrainedPodWaitsForAnAnswerAsItIs(t *testing.T) {
	a := meshed(t, 1, restartedAt)
	a.workload.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).Sized("100m", "64Mi").Build()
	a.says = refuses("create", apierrors.NewServiceUnavailable("starting"))
	moves, plan, _ := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(plan.Blockers).To(ConsistOf(HaveField("Reason", inplace.ReasonAdmissionUnknown)))
}

// A refusal of a recreation is told, also where the server was asked before what it would inject.
func TestARefusalIsToldAlsoBesideARestart(t *testing.T) {
	a := meshed(t, 2, restartedAt)
	a.workload.Unasked = false
	a.workload.Pods[0].Pod.Labels[appsv1beta1.SpecifiedDeleteKey] = "true"
	a.says = refuses("create", forbidden("not today"))
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1"}))
	a.Expect(a.recorder.events).To(ConsistOf(ContainSubstring("Pod Warning RecreationDenied"), ContainSubstring("StatefulSet Warning RecreationDenied")))
}

// Without recreation, an event says what stays as it was.
func TestWithInPlaceOnlyAnEventNamesTheContainersThatStay(t *testing.T) {
	a := meshed(t, 2, restartedAt)
	a.workload.Target.Policy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType

	moves, _, _ := a.plan()
	a.Expect(moves).To(ConsistOf("MarkNotReady sample-0", "MarkNotReady sample-1"))
	a.Expect(a.recorder.events).To(HaveLen(3), "on the pods, and one on the workload")
	a.Expect(a.recorder.events).To(ContainElement(ContainSubstring("pods sample-0, sample-1: ")))
	a.Expect(a.recorder.events).To(HaveEach(And(ContainSubstring("Warning InjectionChanged"), ContainSubstring("image of proxy: proxy:1 to proxy:2"))))

	a.clock.Step(refusalPeriod)
	a.plan()
	a.Expect(a.recorder.events).To(HaveLen(3), "what was told is not told again")
}

// A rollout that changes labels of a hundred pods asks a few times, not a hundred.
func TestManyPodsAreJudgedByOneAnswer(t *testing.T) {
	a := meshed(t, 100, `"labels":{"mesh":"on"}`)
	a.plan()
	a.Expect(creations(a)).To(HaveLen(2), "with the labels, and without them")
}
