// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// recreating has pods that are to be recreated at revision b.
func recreating(t *testing.T, replicas int) *admission {
	t.Helper()
	a := newSizes(t, replicas)
	a.workload.MaxUnavailable = 1
	a.workload.Current = &inplace.Revision{Name: "a", Template: sizedTemplate(a, "nginx:alpine", "100m")}
	a.workload.Target.Template = parsedTemplate(a, `{"spec":{"priorityClassName":"golden","containers":[{"name":"main","image":"nginx:alpine",
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"64Mi"}}}]}}`)
	return a
}

func parsedTemplate(a *admission, raw string) *inplace.Template {
	parsed, err := inplace.ParseTemplate([]byte(raw))
	a.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// The API server is asked whether it would accept a pod before the first one is deleted for
// it: once for all pods, and again when its answer is old.
func TestAPodIsDeletedOnlyIfANewOneWouldBeAccepted(t *testing.T) {
	const asked = "create sample-0-[All]"
	a := recreating(t, 3)
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-0"}))
	a.Expect(a.requests).To(Equal([]string{asked}))
	made := corev1.Pod{}
	a.Expect(json.Unmarshal([]byte(a.bodies[asked]), &made)).To(Succeed())
	a.Expect(made.Spec.PriorityClassName).To(Equal("golden"))

	a.plan()
	a.Expect(a.requests).To(BeEmpty(), "its answer is young")

	a.says = refuses("create", forbidden("no PriorityClass with name golden was found"))
	a.clock.Step(refusalPeriod)
	moves, plan, _ := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(a.requests).To(HaveLen(1), "once for all pods")
	a.Expect(plan.Blockers).To(HaveLen(3))
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonRecreationDenied), HaveField("Denied", true),
		HaveField("Message", ContainSubstring("would not accept a new pod: pods \"sample\" is forbidden: no PriorityClass with name golden was found")))))
	a.Expect(plan.Recheck).To(BeTemporally("==", a.clock.Now().Add(refusalPeriod)), "it is asked again without any event")
	a.Expect(a.recorder.events).To(HaveLen(2), "on the pod and on the workload")
	a.Expect(a.recorder.events).To(HaveEach(ContainSubstring("Warning RecreationDenied")))

	a.plan()
	a.Expect(a.requests).To(BeEmpty(), "its refusal is young")
	a.clock.Step(refusalPeriod)
	a.plan()
	a.Expect(a.requests).To(HaveLen(1))
	a.Expect(a.recorder.events).To(HaveLen(2), "what was told is not told again")

	a.says = func(string) error { return nil }
	a.clock.Step(refusalPeriod)
	moves, _, _ = a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-0"}))
}

// Where Kubernetes makes new pods first, it finds out itself what the API server says to them.
func TestPodsThatAreMadeFirstAreNotAskedFor(t *testing.T) {
	a := recreating(t, 1)
	a.workload.Unasked = true
	a.says = refuses("create", forbidden("not for you"))
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-0"}))
	a.Expect(a.requests).To(BeEmpty())
}

// The API server makes up a name for the pod that it is asked about, another one each time.
func TestARefusalNamesThePodThatThereIs(t *testing.T) {
	a := recreating(t, 1)
	for _, words := range []string{`Pod "sample-0-x7k2p" is invalid`, `pods "sample-0-" is forbidden`} {
		a.says = refuses("create", apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New(words)))
		a.clock.Step(refusalPeriod)
		_, plan, _ := a.plan()
		a.Expect(plan.Blockers[0].Message).To(And(ContainSubstring(`"sample-0" is`), Not(ContainSubstring("sample-0-"))))
	}
}

// Of a long name, the API server keeps the beginning.
func TestARefusalNamesAPodWithALongName(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{}
	pod.Name = strings.Repeat("long-", 12) + "0"
	err := apierrors.NewForbidden(corev1.Resource("pods"), pod.Name[:58]+"x7k2p", errors.New("not today"))

	refused := newRecreationRefusal(successorAnswer{pod: pod, err: err})

	g.Expect(refused.Message).To(HaveSuffix(`pods "` + pod.Name + `" is forbidden: not today`))
}

func TestARefusalIsToldAlsoAfterNoAnswer(t *testing.T) {
	a := recreating(t, 1)
	a.says = refuses("create", apierrors.NewServiceUnavailable("starting"))
	a.plan()
	a.Expect(a.recorder.events).To(BeEmpty())
	a.says = refuses("create", forbidden("not today"))
	a.clock.Step(refusalPeriod)
	a.plan()
	a.Expect(a.recorder.events).To(HaveLen(2))
}

func TestWhatTheAPIServerSaysOfANewPod(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  error
		deleted bool
		state   inplace.State
		reason  string
		// class is the priority class of the pods that there are, if not that of the new ones.
		class string
	}{
		"a webhook takes no part in dry runs": {answer: apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), deleted: true},
		"a user of the plugin may not ask":    {answer: forbidden(`User "me" cannot create resource "pods"`), deleted: true},
		"the quota counts the old pod":        {answer: forbidden("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"), deleted: true},
		"the quota of its priority class does not count the old pod": {
			answer: forbidden("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"), class: "silver", state: inplace.Stuck, reason: inplace.ReasonRecreationDenied,
		},
		"a webhook that has to be asked fails": {answer: apierrors.NewInternalError(errors.New("failed calling webhook")), state: inplace.Stuck, reason: inplace.ReasonRecreationDenied},
		"it does not answer":                   {answer: apierrors.NewServiceUnavailable("starting"), state: inplace.Waiting, reason: inplace.ReasonAdmissionUnknown},
		"the template is invalid": {
			answer: apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "sample", nil), state: inplace.Stuck, reason: inplace.ReasonRecreationDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := recreating(t, 2)
			for _, facts := range a.workload.Pods {
				facts.Pod.Spec.PriorityClassName = cmp.Or(tc.class, "golden")
			}
			a.says = refuses("create", tc.answer)
			moves, plan, _ := a.plan()
			if tc.deleted {
				a.Expect(moves).To(Equal([]string{"Recreate sample-0"}))
				return
			}
			a.Expect(moves).To(BeEmpty())
			a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", tc.state), HaveField("Reason", tc.reason))))
			a.Expect(plan.Recheck).NotTo(BeZero())
		})
	}
}

// A pod that the partition keeps comes back at the current revision, one that is not, at the
// new one: each is asked about.
func TestEachPodIsAskedAboutAtTheRevisionAtWhichItComesBack(t *testing.T) {
	a := recreating(t, 2)
	a.workload.MaxUnavailable = 2
	a.workload.Pods[1].Held = true
	for i := range a.workload.Pods {
		a.workload.Pods[i].Pod.Labels[appsv1beta1.SpecifiedDeleteKey] = "true"
	}
	a.says = func(request string) error {
		if strings.HasPrefix(request, "create") && strings.Contains(a.bodies[request], "golden") {
			return forbidden("no PriorityClass with name golden was found")
		}
		return nil
	}
	moves, plan, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-1"}))
	a.Expect(plan.Blockers).To(ConsistOf(And(HaveField("Pod.Name", "sample-0"), HaveField("Reason", inplace.ReasonRecreationDenied))))
	creations := slices.DeleteFunc(slices.Clone(a.requests), func(r string) bool { return !strings.HasPrefix(r, "create") })
	a.Expect(creations).To(ConsistOf("create sample-0-[All]", "create sample-1-[All]"))
	a.Expect(a.bodies["create sample-1-[All]"]).NotTo(ContainSubstring(appsv1beta1.SpecifiedDeleteKey), "no new pod has the label")
}

// A drained pod whose recreation is refused serves as it is.
func TestAPodThatCannotBeMadeAgainGoesBackIntoService(t *testing.T) {
	a := recreating(t, 1)
	a.says = refuses("create", forbidden("not today"))
	a.workload.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).Build()
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"MarkReady sample-0"}))
}

func TestRoomInAQuotaWhenAPodIsGone(t *testing.T) {
	pod := builders.Pod("sample-0", "a", "nginx:alpine").Sized("300m", "64Mi").Build() // limits 64Mi
	for words, fits := range map[string]bool{
		"requested: requests.cpu=400m, used: requests.cpu=900m, limited: requests.cpu=1":                               true,
		"requested: requests.cpu=400m, used: requests.cpu=901m, limited: requests.cpu=1":                               false,
		"requested: cpu=400m, used: cpu=900m, limited: cpu=1":                                                          true,
		"requested: limits.memory=128Mi, used: limits.memory=192Mi, limited: limits.memory=256Mi":                      true,
		"requested: limits.memory=129Mi, used: limits.memory=192Mi, limited: limits.memory=256Mi":                      false,
		"requested: pods=1, used: pods=10, limited: pods=10":                                                           true,
		"requested: pods=1, used: pods=11, limited: pods=10":                                                           false,
		"requested: pods=1,requests.cpu=2, used: pods=10,requests.cpu=900m, limited: pods=10,requests.cpu=1":           false,
		"requested: requests.example.com/gpu=1, used: requests.example.com/gpu=2, limited: requests.example.com/gpu=2": false,
		"of unknown words": false,
	} {
		NewWithT(t).Expect(hasRoomWithout(pod, `pods "x" is forbidden: exceeded quota: q, `+words)).To(Equal(fits), words)
	}
}

// A rollout that recreates a hundred pods asks a few times, not a hundred.
func TestALongRolloutAsksOnceInAWhile(t *testing.T) {
	a := recreating(t, 100)
	asked := 0
	for range 100 {
		a.plan()
		asked += len(a.requests)
		a.clock.Step(time.Second)
	}
	a.Expect(asked).To(Equal(7), refusalPeriod.String())
}
