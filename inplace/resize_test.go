// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/test/builders"
)

// sizes are revisions by name, with the cpu and memory of the container main. Those
// with a v run image v2, the others v1.
var sizes = map[string]Revision{
	"small":    sized("small", "v1", "100m", "64Mi"),
	"large":    sized("large", "v1", "150m", "96Mi"),
	"largeV":   sized("largeV", "v2", "150m", "96Mi"),
	"mixedV":   sized("mixedV", "v2", "150m", "32Mi"),
	"mixed":    sized("mixed", "v1", "150m", "32Mi"),
	"smallV":   sized("smallV", "v2", "100m", "64Mi"),
	"restartV": sized("restartV", "v2", "100m", "96Mi"),
	"lessV":    sized("lessV", "v2", "50m", "96Mi"),
	"cpuV":     sized("cpuV", "v2", "150m", "64Mi"),
	"none":     {Name: "none", Template: mustTemplate(`{"spec":{"containers":[{"name":"main","image":"app:v1"}]}}`)},
	"limited": {Name: "limited", Template: mustTemplate(`{"spec":{"containers":[{"name":"main","image":"app:v1",
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"100m","memory":"64Mi"}}}]}}`)},
}

func sized(name, tag, cpu, memory string) Revision {
	return Revision{Name: name, Template: mustTemplate(fmt.Sprintf(`{"spec":{"containers":[{"name":"main","image":"app:%s",
		"resources":{"requests":{"cpu":%q,"memory":%q},"limits":{"memory":%q}}}]}}`, tag, cpu, memory, memory))}
}

func mustTemplate(raw string) *Template {
	template, err := ParseTemplate([]byte(raw))
	if err != nil {
		panic(err)
	}
	return template
}

// at returns the facts of a pod that was made from a revision, ten seconds after
// the start.
func at(revision string, change func(*builders.PodBuilder)) PodFacts {
	from := sizes[revision]
	size := from.Template.amounts
	cpu, memory := size[resize.Field{Container: "main", Resource: corev1.ResourceCPU}], size[resize.Field{Container: "main", Resource: corev1.ResourceMemory}]
	b := builders.Pod("sample-0", revision, from.Template.image("main")).Gated(corev1.ConditionTrue, builders.Start).Sized(cpu.String(), memory.String())
	if change != nil {
		change(b)
	}
	return PodFacts{Pod: b.Build(), From: &from}
}

func to(revision string) Target {
	return Target{Revision: sizes[revision], Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType}
}

// spec changes what is asked of the pod, not what it has.
func spec(cpu, memory string) func(*builders.PodBuilder) {
	return func(b *builders.PodBuilder) {
		b.With(func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = builders.Resources(cpu, memory) })
	}
}

// written is spec by the operator.
func written(cpu, memory string) func(*builders.PodBuilder) {
	return func(b *builders.PodBuilder) {
		spec(cpu, memory)(b)
		b.ResizedBy("insitu", after(5), "requests.cpu", "requests.memory", "limits.memory")
	}
}

func inForce(cpu, memory string) func(*builders.PodBuilder) {
	return func(b *builders.PodBuilder) { b.InForce(cpu, memory) }
}

func deferred(b *builders.PodBuilder) {
	b.With(func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred,
			Message: "no room", LastTransitionTime: metav1.NewTime(after(6)),
		})
	})
}

func restartsForMemory(b *builders.PodBuilder) {
	b.With(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	})
}

func both(changes ...func(*builders.PodBuilder)) func(*builders.PodBuilder) {
	return func(b *builders.PodBuilder) {
		for _, change := range changes {
			change(b)
		}
	}
}

func TestNextResizes(t *testing.T) {
	recreate := func(target *Target) {
		target.Resize = resize.Policy{
			OnDeferred: appsv1beta1.RecreateResizeDeferred, OnInfeasible: appsv1beta1.RecreateResizeFailure, OnError: appsv1beta1.RecreateResizeFailure,
		}
	}
	only := func(target *Target) {
		recreate(target)
		target.Policy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	}
	enforce := func(target *Target) { target.Resize.Enforce = true }
	condition := func(kind corev1.PodConditionType, reason string) func(*builders.PodBuilder) {
		return func(b *builders.PodBuilder) {
			b.With(func(pod *corev1.Pod) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
					Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "the kubelet says so", LastTransitionTime: metav1.NewTime(after(6)),
				})
			})
		}
	}
	failing := condition(corev1.PodResizeInProgress, corev1.PodReasonError)
	drained := func(b *builders.PodBuilder) {
		b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(2)).Ready(false, after(3))
	}
	for name, tc := range map[string]struct {
		pod    PodFacts
		target string
		with   func(*Target)
		now    time.Time
		action Action
		state  State
		reason string
		says   string
	}{
		"sizes alone are changed in service": {
			pod: at("small", nil), target: "large", action: Resize, state: Resizing, says: "cpu request of main: 100m to 150m",
		},
		"the label follows what was written before a kill": {
			pod: at("small", written("150m", "96Mi")), target: "large", action: Patch, state: Patching, says: "revision label only",
		},
		"what was written before a kill is taken back by a rollback": {
			pod: at("small", written("150m", "96Mi")), target: "small", action: Resize, state: Resizing, says: "cpu request of main: 150m to 100m",
		},
		"what was written before a kill is overtaken by other sizes": {
			pod: at("small", written("150m", "96Mi")), target: "mixed", action: Resize, state: Resizing, says: "memory request of main: 96Mi to 32Mi",
		},
		"what another client wrote stays": {
			pod: at("small", spec("150m", "96Mi")), target: "small", action: Wait, state: Settled,
		},
		"what another client wrote stays in a revision of the image": {
			pod: at("small", spec("150m", "96Mi")), target: "smallV", action: MarkNotReady, state: Draining,
		},
		"what another client wrote is set back where that is wanted": {
			pod: at("small", spec("150m", "96Mi")), target: "small", with: enforce, action: Resize, state: Resizing, says: "150m to 100m",
		},
		"a revision of the sizes applies to what another client wrote": {
			pod: at("small", spec("700m", "700Mi")), target: "large", action: Resize, state: Resizing, says: "700m to 150m",
		},
		"what admission made of it is left": {
			pod: at("large", both(written("120m", "96Mi"), func(b *builders.PodBuilder) {
				b.InForce("120m", "96Mi").Record(appsv1beta1.InPlaceUpdateState{
					Revision: "large", UpdateTimestamp: metav1.NewTime(after(5)),
					Resized:     map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("120m")}}},
					ResizedFrom: map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}}},
				})
			})), target: "large", action: Wait, state: Settled,
		},
		"what grows comes before the image": {
			pod: at("small", nil), target: "mixedV", action: Resize, state: Resizing,
			says: "cpu request of main: 100m to 150m; then image of main: app:v1 to app:v2, memory limit of main: 64Mi to 32Mi, memory request of main: 64Mi to 32Mi",
		},
		"the image waits until the node has made what grows": {
			pod: at("small", both(written("150m", "64Mi"), condition(corev1.PodResizeInProgress, ""))), target: "mixedV", action: Wait, state: Resizing, reason: ReasonResizeInProgress,
		},
		"the image waits for a kubelet that has not seen it": {
			pod: at("small", both(written("150m", "64Mi"), func(b *builders.PodBuilder) { b.Generation(2, 1) })), target: "mixedV", action: Wait, state: Resizing, reason: ReasonNotObserved,
		},
		"the image comes when the pod has grown": {
			pod: at("small", both(written("150m", "64Mi"), func(b *builders.PodBuilder) { b.InForce("150m", "64Mi") })), target: "mixedV", action: MarkNotReady, state: Draining,
		},
		"less memory comes with the image: the kubelet lowers that of no container that runs for the second time": {
			pod:    at("small", both(drained, written("150m", "64Mi"), inForce("150m", "64Mi"))),
			target: "mixedV", action: Resize, state: Resizing, says: "image of main: app:v1 to app:v2, memory limit of main: 64Mi to 32Mi",
		},
		"less cpu is recorded with the image": {
			pod:    at("small", both(drained, written("100m", "96Mi"), inForce("100m", "96Mi"))),
			target: "lessV", action: Patch, state: Patching, says: "image of main: app:v1 to app:v2, then cpu request of main: 100m to 50m",
		},
		"an image alone does not wait for a resize of before": {
			pod: at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)), target: "largeV", action: MarkNotReady, state: Draining,
		},
		"a drained pod serves while it waits for room": {
			pod: at("small", both(written("150m", "64Mi"), deferred, drained)), target: "mixedV", action: MarkReady, state: Verifying,
		},
		"what restarts is changed out of service": {
			pod: at("small", restartsForMemory), target: "large", action: MarkNotReady, state: Draining,
		},
		"what restarts is changed when the pod is out of service": {
			pod: at("small", both(restartsForMemory, drained)), target: "large", action: Resize, state: Resizing, says: "memory limit of main: 64Mi to 96Mi",
		},
		"what restarts comes with the image": {
			pod:    at("small", both(restartsForMemory, drained, written("150m", "64Mi"), func(b *builders.PodBuilder) { b.InForce("150m", "64Mi") })),
			target: "largeV", action: Resize, state: Resizing, says: "image of main: app:v1 to app:v2, memory limit of main: 64Mi to 96Mi",
		},
		"a pod serves again only when its containers were restarted for their sizes": {
			pod: at("large", both(written("150m", "96Mi"), restartsForMemory, drained, func(b *builders.PodBuilder) { b.InForce("150m", "64Mi") },
				condition(corev1.PodResizeInProgress, ""))), target: "large", action: Wait, state: Resizing, reason: ReasonResizeInProgress,
		},
		"a pod serves while its restart for its sizes waits for room": {
			pod:    at("large", both(written("150m", "96Mi"), restartsForMemory, drained, func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "large", action: MarkReady, state: Verifying,
		},
		"deferred: waits": {
			pod:    at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "large", action: Wait, state: Resizing, reason: ReasonResizeDeferred, says: "no room",
		},
		"deferred: recreated": {
			pod:    at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "large", with: recreate, action: Recreate, state: Recreating, reason: ReasonResizeDeferred,
		},
		"deferred: InPlaceOnly waits": {
			pod:    at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "large", with: only, action: Wait, state: Resizing, reason: ReasonResizeDeferred,
		},
		"deferred for too long: kept": {
			pod:    at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "large", with: func(t *Target) { t.Resize.DeferredTimeout = 4 * time.Second }, action: Wait, state: Stuck, reason: ReasonResizeInfeasible,
			says: "no room for longer than 4s: no room; the pod keeps its old size",
		},
		"deferred before the image: recreated": {
			pod:    at("small", both(written("150m", "64Mi"), deferred)),
			target: "mixedV", with: recreate, action: Recreate, state: Recreating, reason: ReasonResizeDeferred,
		},
		"deferred and rolled back": {
			pod:    at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") }, deferred)),
			target: "small", action: Resize, state: Resizing, says: "150m to 100m",
		},
		"infeasible: kept": {
			pod: at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") },
				condition(corev1.PodResizePending, corev1.PodReasonInfeasible))),
			target: "large", action: Wait, state: Stuck, reason: ReasonResizeInfeasible, says: "resize.onInfeasible Recreate",
		},
		"infeasible: recreated": {
			pod: at("large", both(written("150m", "96Mi"), func(b *builders.PodBuilder) { b.InForce("100m", "64Mi") },
				condition(corev1.PodResizePending, corev1.PodReasonInfeasible))),
			target: "large", with: recreate, action: Recreate, state: Recreating, reason: ReasonResizeInfeasible,
		},
		"below use: kept": {
			pod:    at("small", both(written("100m", "64Mi"), inForce("100m", "96Mi"), failing)),
			target: "small", now: after(30), action: Wait, state: Stuck, reason: ReasonResizeError, says: "resize.onError Recreate",
		},
		"below use: recreated": {
			pod:    at("small", both(written("100m", "64Mi"), inForce("100m", "96Mi"), failing)),
			target: "small", with: recreate, now: after(30), action: Recreate, state: Recreating, reason: ReasonResizeError,
		},
		"below use: the kubelet tries again": {
			pod:    at("small", both(written("100m", "64Mi"), inForce("100m", "96Mi"), failing)),
			target: "small", with: recreate, action: Wait, state: Resizing, reason: ReasonResizeError,
		},
		"QoS: recreated, as for other fields": {
			pod: at("small", nil), target: "limited", action: Recreate, state: Recreating, reason: string(resize.OtherQOSClass), says: "Pod QOS Class may not change",
		},
		"QoS: InPlaceOnly is stuck": {
			pod: at("small", nil), target: "limited", with: only, action: Wait, state: Stuck, reason: string(resize.OtherQOSClass), says: "revert the field, or allow recreation",
		},
		"a limit removed: recreated, as for other fields": {
			pod: at("small", nil), target: "none", action: Recreate, state: Recreating, reason: string(resize.Removed), says: "spec.containers[main].resources.limits.memory",
		},
		"a limit removed: InPlaceOnly is stuck": {
			pod: at("small", nil), target: "none", with: only, action: Wait, state: Stuck, reason: string(resize.Removed),
		},
		"refused by the server: kept": {
			pod: refusedAs(at("small", nil), ReasonResizeDenied), target: "large", action: Wait, state: Stuck, reason: ReasonResizeDenied, says: "exceeded quota; the pod keeps its old size",
		},
		"refused by the server: recreated": {
			pod: refusedAs(at("small", nil), ReasonResizeDenied), target: "large", with: recreate, action: Recreate, state: Recreating, reason: ReasonResizeDenied,
		},
		"refused for the node: recreated": {
			pod: refusedAs(at("small", nil), ReasonResizeInfeasible), target: "large", with: recreate, action: Recreate, state: Recreating, reason: ReasonResizeInfeasible,
		},
		"an update refused by the server is no reason to recreate": {
			pod: refusedAs(at("small", nil), ReasonAdmissionDenied), target: "largeV", with: recreate, action: Wait, state: Stuck, reason: ReasonAdmissionDenied,
		},
		"a pod whose image is refused keeps what it has grown: tried again, it would grow again": {
			pod: refusedAs(at("small", both(written("150m", "64Mi"), inForce("150m", "64Mi"))), ReasonAdmissionDenied), target: "mixedV", action: Wait, state: Stuck, reason: ReasonAdmissionDenied,
		},
		"an image and the old size do not wait for the room of a revision that is left": {
			pod: at("large", both(written("150m", "96Mi"), inForce("100m", "64Mi"), deferred)), target: "smallV", action: Resize, state: Resizing, says: "150m to 100m",
		},
		"an image and what restarts, of which the label was not written: the image follows": {
			pod: at("small", both(restartsForMemory, drained, written("100m", "96Mi"), inForce("100m", "64Mi"), deferred)), target: "restartV", action: Patch, state: Patching,
			says: "image of main: app:v1 to app:v2",
		},
		"what admission made of the growth is waited for no more": {
			pod: at("small", both(written("120m", "64Mi"), inForce("120m", "64Mi"), func(b *builders.PodBuilder) {
				b.Record(appsv1beta1.InPlaceUpdateState{
					Revision: "small", UpdateTimestamp: metav1.NewTime(after(5)),
					Resized:     map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("120m")}}},
					ResizedFrom: map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}}},
				})
			})), target: "mixedV", action: MarkNotReady, state: Draining,
		},
		"room that is waited for since before our write": {
			pod: at("large", both(written("150m", "96Mi"), inForce("100m", "64Mi"), func(b *builders.PodBuilder) {
				b.With(func(pod *corev1.Pod) {
					pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
						Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, LastTransitionTime: metav1.NewTime(after(-3600)),
					})
				})
			})), target: "large", with: func(t *Target) { t.Resize.DeferredTimeout = time.Minute }, action: Wait, state: Resizing, reason: ReasonResizeDeferred,
		},
		"a size that is taken back while it waits for room does not wait for the image": {
			pod: at("small", both(written("150m", "700Mi"), inForce("100m", "64Mi"), deferred)), target: "cpuV", action: Resize, state: Resizing,
			says: "memory limit of main: 700Mi to 64Mi, memory request of main: 700Mi to 64Mi; then image of main",
		},
		"drift is left on a server that cannot resize": {
			pod: at("small", spec("150m", "96Mi")), target: "small", with: func(t *Target) { enforce(t); t.CannotResize = true }, action: Wait, state: Settled,
		},
		"drift that cannot be set back is no reason to recreate": {
			pod: at("small", both(spec("150m", "96Mi"), func(b *builders.PodBuilder) {
				b.With(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Resources = nil })
			})), target: "small", with: func(t *Target) { recreate(t); enforce(t) }, action: Wait, state: Stuck, reason: string(resize.NodeUnsupported),
		},
		"a server that cannot resize": {
			pod: at("small", nil), target: "large", with: func(t *Target) { t.CannotResize = true }, action: Recreate, state: Recreating, reason: ReasonResizeUnsupported,
			says: "spec.containers[main].resources.limits.memory was changed, and the API server does not serve pods/resize",
		},
		"a server that cannot resize, and no resize": {
			pod: at("small", nil), target: "smallV", with: func(t *Target) { t.CannotResize = true }, action: MarkNotReady, state: Draining,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := to(tc.target)
			if tc.with != nil {
				tc.with(&target)
			}
			if tc.now.IsZero() {
				tc.now = after(10)
			}
			step := Next(tc.pod, target, tc.now)
			g.Expect(step.Action).To(Equal(tc.action), "%+v", step)
			g.Expect(step.State).To(Equal(tc.state), "%+v", step)
			g.Expect(step.LeadsToPatch).To(Equal(leadsToPatch(step)), "%+v", step)
			g.Expect(step.Message).To(ContainSubstring(tc.says))
			if tc.reason != "" || step.Action == Recreate {
				g.Expect(step.Reason).To(Equal(tc.reason), "%+v", step)
			}
			byEviction := step.Action == Recreate && !slices.Contains([]string{string(resize.Removed), string(resize.OtherQOSClass), ReasonResizeUnsupported}, step.Reason)
			g.Expect(step.Evict).To(Equal(byEviction), "what a resize takes out of service goes through the eviction API")
		})
	}
}

// A pod that serves while it waits for room is as any that serves, unless its hook has
// released it for the update: that would be asked again.
func TestStateOfAPodThatServesWhileItWaitsForRoom(t *testing.T) {
	for state, want := range map[appsv1beta1.LifecycleStateType]appsv1beta1.LifecycleStateType{
		"": "",
		appsv1beta1.LifecycleStatePreparingNormal: appsv1beta1.LifecycleStateNormal,
		appsv1beta1.LifecycleStateUpdating:        "",
	} {
		t.Run(string(state), func(t *testing.T) {
			pod := at("small", both(written("150m", "64Mi"), deferred, func(b *builders.PodBuilder) {
				b.Gated(corev1.ConditionFalse, after(2)).Ready(false, after(3))
				if state != "" {
					b.Label(appsv1beta1.LifecycleStateKey, string(state))
				}
			}))
			step := Next(pod, to("mixedV"), after(10))
			NewWithT(t).Expect(step).To(And(HaveField("Action", MarkReady), HaveField("Lifecycle", want)))
		})
	}
}

func refusedAs(facts PodFacts, reason string) PodFacts {
	facts.Refused = &Refusal{Reason: reason, Message: "exceeded quota", Until: after(25), Denied: true}
	return facts
}

// workloadAt is a workload whose pods are all at a revision, and go to another.
func workloadAt(n int, revision, target string, change func(i int, b *builders.PodBuilder)) Workload {
	w := Workload{Target: to(target), Replicas: n, MaxUnavailable: 1, MaxConcurrentResizes: 2}
	for i := range n {
		facts := at(revision, func(b *builders.PodBuilder) {
			b.With(func(pod *corev1.Pod) { pod.Name = fmt.Sprintf("sample-%d", i) })
			if change != nil {
				change(i, b)
			}
		})
		w.Pods = append(w.Pods, facts)
	}
	return w
}

func moved(plan Plan) string {
	var words []string
	for _, m := range plan.Moves {
		words = append(words, fmt.Sprintf("%s %s", m.Step.Action, m.Pod.Name))
	}
	return strings.Join(words, ", ")
}

func TestSizesAloneTakeNoBudget(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(5, "small", "large", func(i int, b *builders.PodBuilder) {
		if i == 4 {
			b.Ready(false, after(1)) // the budget is used up
		}
	})
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("Resize sample-4, Resize sample-0"), "two at a time, pods that do not serve first")
	g.Expect(plan.Moves).To(HaveEach(HaveField("Evict", false)))
	g.Expect(plan.Blockers).To(HaveEach(HaveField("Reason", ReasonMaxConcurrent)))
	g.Expect(plan.Blockers[0].Message).To(Equal("2 pods are being resized, maxConcurrent is 2"))
}

func TestAPodThatIsBeingResizedIsAvailableAndNotUpdated(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(3, "large", "large", func(_ int, b *builders.PodBuilder) {
		written("150m", "96Mi")(b)
		b.Generation(2, 1).InForce("100m", "64Mi")
	})
	plan := MakePlan(w, after(10))
	g.Expect(plan.Pods).To(HaveEach(And(HaveField("Available", true), HaveField("Proved", false), HaveField("Updated", false))))
	g.Expect(plan.Moves).To(BeEmpty())
	g.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", Resizing), HaveField("Reason", ReasonNotObserved))))
}

// Wherever a pod is on its way, it is not evicted if no other could come in its place.
func TestPodsThatCouldNotBeMadeAgainAreKept(t *testing.T) {
	pending := func(reason string) func(int, *builders.PodBuilder) {
		return func(_ int, b *builders.PodBuilder) {
			written("150m", "96Mi")(b)
			b.InForce("100m", "64Mi").With(func(pod *corev1.Pod) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
			})
		}
	}
	for _, reason := range []string{corev1.PodReasonInfeasible, corev1.PodReasonDeferred} {
		for _, ready := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ready %t", reason, ready), func(t *testing.T) {
				g := NewWithT(t)
				w := workloadAt(2, "large", "large", func(i int, b *builders.PodBuilder) {
					pending(reason)(i, b)
					b.Ready(ready, after(1))
				})
				w.Target.Resize = resize.Policy{OnDeferred: appsv1beta1.RecreateResizeDeferred, OnInfeasible: appsv1beta1.RecreateResizeFailure}
				g.Expect(MakePlan(w, after(10)).Moves).To(ContainElement(HaveField("Step.Evict", true)))

				for i := range w.Pods {
					w.Pods[i].Irreplaceable = &Refusal{Message: "no more than 100m", Until: after(20)}
				}
				plan := MakePlan(w, after(10))
				g.Expect(plan.Moves).To(BeEmpty())
				g.Expect(plan.Blockers).To(HaveLen(2))
				if reason == corev1.PodReasonInfeasible {
					g.Expect(plan.Blockers).To(HaveEach(HaveField("Message", ContainSubstring("would not accept a new pod: no more than 100m"))))
					g.Expect(plan.Recheck).NotTo(BeZero())
				}
			})
		}
	}
}

func TestPodsThatWaitForRoomDoNotHoldUpOthers(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(4, "small", "large", func(i int, b *builders.PodBuilder) {
		if i < 2 {
			b.Label(appsv1beta1.ControllerRevisionHashLabel, "large")
			written("150m", "96Mi")(b)
			deferred(b)
		}
	})
	large := sizes["large"]
	w.Pods[0].From, w.Pods[1].From = &large, &large
	g.Expect(moved(MakePlan(w, after(10)))).To(Equal("Resize sample-2, Resize sample-3"))
}

// A pod that was resized, and has not been ready since, has a place for resizes: it does
// not wait for itself when its sizes are changed once more.
func TestAPodUsesItsOwnPlaceForResizes(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(2, "large", "large", func(i int, b *builders.PodBuilder) {
		spec("120m", "96Mi")(b)
		b.InForce("120m", "96Mi")
		if i == 0 {
			b.ResizedBy("insitu", after(5), "requests.memory", "limits.memory").Ready(false, after(6)).
				Record(appsv1beta1.InPlaceUpdateState{Revision: "large", UpdateTimestamp: metav1.NewTime(after(5))})
		}
	})
	w.Target.Resize.Enforce = true
	w.MaxConcurrentResizes = 1
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("Resize sample-0"))
	g.Expect(plan.Blockers).To(ConsistOf(And(HaveField("Pod.Name", "sample-1"), HaveField("Reason", ReasonMaxConcurrent))))
}

func TestAPodGrowsWhenItsTurnComes(t *testing.T) {
	g := NewWithT(t)
	grown := func(n int) func(int, *builders.PodBuilder) {
		return func(i int, b *builders.PodBuilder) {
			if i < n {
				written("150m", "64Mi")(b)
				b.InForce("150m", "64Mi")
			}
		}
	}
	g.Expect(moved(MakePlan(workloadAt(3, "small", "mixedV", nil), after(10)))).To(Equal("Resize sample-0"))
	g.Expect(moved(MakePlan(workloadAt(3, "small", "mixedV", grown(1)), after(10)))).To(Equal("MarkNotReady sample-0"), "its place is kept for it")

	more := MakePlan(workloadAt(3, "small", "mixedV", grown(2)), after(10))
	g.Expect(moved(more)).To(Equal("MarkNotReady sample-0"), "more than the budget have grown: one after the other")
	g.Expect(more.Blockers).To(ContainElement(And(HaveField("Pod.Name", "sample-1"), HaveField("Reason", ReasonBudget))))

	asked := workloadAt(3, "small", "mixedV", nil)
	asked.Target.RespectBudgets = true
	g.Expect(MakePlan(asked, after(10)).Moves).To(ConsistOf(HaveField("Evict", false)), "to grow takes nothing away")
}

func TestEvictionsForSizesStayWithinTheBudget(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(3, "large", "large", func(_ int, b *builders.PodBuilder) {
		written("150m", "96Mi")(b)
		b.InForce("100m", "64Mi")
		deferred(b)
	})
	w.Target.Resize.OnDeferred = appsv1beta1.RecreateResizeDeferred
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("Recreate sample-0"))
	g.Expect(plan.Moves[0].Evict).To(BeTrue())

	w.Stopped = true
	g.Expect(moved(MakePlan(w, after(10)))).To(BeEmpty(), "nothing is evicted while the workload is paused")
}

func TestAPausedPodTakesBackWhatItHasGrown(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(1, "small", "mixedV", func(_ int, b *builders.PodBuilder) { written("150m", "64Mi")(b) })
	w.Stopped = true
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("Resize sample-0"))
	g.Expect(plan.Moves[0].Step.Message).To(ContainSubstring("150m to 100m"))
}

// atMixedV is a pod whose image was changed, and that is to shrink now.
func atMixedV(change func(*builders.PodBuilder)) PodFacts {
	return at("mixedV", both(written("150m", "64Mi"), func(b *builders.PodBuilder) {
		b.InForce("150m", "64Mi").Record(appsv1beta1.InPlaceUpdateState{
			Revision: "mixedV", UpdateTimestamp: metav1.NewTime(after(5)),
			NextContainerResources: map[string]corev1.ResourceRequirements{"main": {
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
			}},
		})
		b.With(func(pod *corev1.Pod) { // the memory was not written by us yet
			pod.ManagedFields = nil
		}).ResizedBy("insitu", after(5), "requests.cpu")
		if change != nil {
			change(b)
		}
	}))
}

func TestAPodShrinksWhenItServes(t *testing.T) {
	g := NewWithT(t)
	step := Next(atMixedV(nil), to("mixedV"), after(10))
	g.Expect(step.Action).To(Equal(Resize))
	g.Expect(step.Message).To(Equal("memory limit of main: 64Mi to 32Mi, memory request of main: 64Mi to 32Mi"))
	g.Expect(step.Record.NextContainerResources).To(BeEmpty(), "then nothing is left to do")

	notReady := atMixedV(func(b *builders.PodBuilder) { b.Ready(false, after(6)) })
	g.Expect(Next(notReady, to("mixedV"), after(10)).State).To(Equal(Verifying))

	shrunk := atMixedV(spec("150m", "32Mi"))
	step = Next(shrunk, to("mixedV"), after(10))
	g.Expect(step.Action).To(Equal(Patch), "killed between the two writes: the record is to be cleared, or a later change by others would be fought")
	g.Expect(step.Record.NextContainerResources).To(BeEmpty())
}

func TestWhatIsDueIsNotForgottenByTheNextRevision(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Next(atMixedV(nil), to("mixed"), after(10)).Action).To(Equal(MarkNotReady), "an image, and what was due")
	out := atMixedV(func(b *builders.PodBuilder) {
		b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(2)).Ready(false, after(3))
	})
	step := Next(out, to("mixed"), after(10))
	g.Expect(step.Action).To(Equal(Resize))
	g.Expect(step.Change.Resize.String()).To(Equal("memory limit of main: 64Mi to 32Mi, memory request of main: 64Mi to 32Mi"))
	g.Expect(step.Record.NextContainerResources).To(BeEmpty())
	g.Expect(Next(atMixedV(nil), to("small"), after(10)).Change.Shrink.String()).To(Equal("cpu request of main: 150m to 100m"), "a rollback does not shrink the memory")
}

func TestAContainerRestartedForItsSizeIsNoProofOfItsImage(t *testing.T) {
	g := NewWithT(t)
	facts := at("small", both(restartsForMemory, func(b *builders.PodBuilder) {
		b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(2)).Ready(false, after(3)).
			With(func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("150m")
			}).InForce("150m", "64Mi")
	}))
	step := Next(facts, to("largeV"), after(10))
	g.Expect(step.Action).To(Equal(Resize))
	g.Expect(step.Record.LastContainerStatuses["main"].Resizing).To(BeTrue())

	restarted := func(image string) Progress {
		status := builders.RunningContainer("main", "main-2", image, after(12))
		return Observe(builders.Pod("sample-0", "largeV", "app:v2").Generation(3, 3).Record(*step.Record).Status(status).Build(), after(13))
	}
	g.Expect(restarted("app:v2").Complete).To(BeTrue(), "another content is proof")
	g.Expect(restarted("app:v1").Complete).To(BeFalse(), "it was started after the change, for its size")
}

func TestAHookIsToldOfSizes(t *testing.T) {
	g := NewWithT(t)
	facts := at("small", func(b *builders.PodBuilder) { b.Label("hold", "true") })
	target := to("largeV")
	target.Lifecycle = &appsv1beta1.Lifecycle{InPlaceUpdate: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{"hold": "true"}}}
	step := Next(facts, target, after(10))
	g.Expect(step.Action).To(Equal(SetLifecycle))
	g.Expect(step.Pending.Containers).To(HaveLen(1))
	g.Expect(step.Pending.Containers[0].Resources.Limits.Memory().String()).To(Equal("64Mi"))
	g.Expect(step.Pending.Containers[0].NewResources.Limits.Memory().String()).To(Equal("96Mi"))
	g.Expect(step.Pending.Containers[0].NewImage).To(Equal("app:v2"))

	target.Revision = sizes["large"]
	step = Next(facts, target, after(10))
	g.Expect(step.Action).To(Equal(SetLifecycle), "sizes alone are held, too")
	g.Expect(step.Pending.Containers[0].Image).To(Equal("app:v1"))
	g.Expect(step.Pending.Containers[0].NewImage).To(Equal("app:v1"))
}

func TestWithAnswerRecordsWhatAdmissionMade(t *testing.T) {
	g := NewWithT(t)
	facts := at("small", nil)
	step := Next(facts, to("large"), after(10))
	asked, rewritten := facts.Pod.DeepCopy(), facts.Pod.DeepCopy()
	asked.Spec.Containers[0].Resources = builders.Resources("150m", "96Mi")
	rewritten.Spec.Containers[0].Resources = builders.Resources("120m", "96Mi")

	g.Expect(WithAnswer(facts.Pod, step, asked, after(10)).Record.Resized).To(BeEmpty())
	kept := WithAnswer(facts.Pod, step, rewritten, after(10)).Record.Resized["main"]
	g.Expect(kept.Requests.Cpu().String()).To(Equal("120m"))
	g.Expect(kept.Requests).To(HaveLen(1))
	g.Expect(step.Record.Resized).To(BeEmpty(), "the step that was given stays as it is")

	growing := Next(facts, to("mixedV"), after(10))
	g.Expect(growing).To(And(HaveField("Action", Resize), HaveField("Record", BeNil()), HaveField("LeadsToPatch", true)))
	g.Expect(WithAnswer(facts.Pod, growing, rewritten, after(10))).To(And(HaveField("Record", Not(BeNil())), HaveField("LeadsToPatch", false)),
		"the record is what is left to be written")
}

func TestWithAnswerKeepsEarlierAnswers(t *testing.T) {
	g := NewWithT(t)
	facts := at("small", both(written("150m", "64Mi"), inForce("150m", "64Mi"), func(b *builders.PodBuilder) {
		b.Record(appsv1beta1.InPlaceUpdateState{
			Revision: "small", UpdateTimestamp: metav1.NewTime(after(5)),
			Resized:     map[string]corev1.ResourceRequirements{"main": {Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}},
			ResizedFrom: map[string]corev1.ResourceRequirements{"main": {Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}}},
		})
	}))
	step := Next(facts, to("mixedV"), after(10))
	g.Expect(step.Action).To(Equal(MarkNotReady))
	grow := Next(at("small", nil), to("mixedV"), after(10))
	g.Expect(grow.Record).To(BeNil())
	answer := facts.Pod.DeepCopy()
	answer.Spec.Containers[0].Resources = builders.Resources("120m", "64Mi")
	recorded := WithAnswer(facts.Pod, grow, answer, after(10)).Record
	g.Expect(recorded.Revision).To(Equal("small"), "the label does not move")
	stored, asked := recorded.Resized["main"], recorded.ResizedFrom["main"]
	g.Expect(stored.Requests.Cpu().String()).To(Equal("120m"))
	g.Expect(asked.Requests.Cpu().String()).To(Equal("150m"))
	g.Expect(stored.Limits.Memory().String()).To(Equal("64Mi"), "what was answered before is not asked again")
}

// A limit that was added for a revision cannot be taken off again; the pods are at
// the revision that is wanted, but for that.
func TestARollbackOfAnAddedLimitTakesItsTurn(t *testing.T) {
	g := NewWithT(t)
	added := func(_ int, b *builders.PodBuilder) {
		b.With(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		}).ResizedBy("insitu", after(5), "limits.cpu")
	}
	w := workloadAt(4, "small", "small", added)
	g.Expect(moved(MakePlan(w, after(60)))).To(Equal("Recreate sample-0"), "within maxUnavailable")
	w.Stopped = true
	g.Expect(moved(MakePlan(w, after(60)))).To(BeEmpty(), "not while the workload is paused")
}

func TestHooksHoldEvictionsForSizes(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(4, "large", "large", func(_ int, b *builders.PodBuilder) {
		b.Label("hold", "true")
		both(written("150m", "96Mi"), inForce("100m", "64Mi"), deferred)(b)
	})
	w.Target.Resize.OnDeferred = appsv1beta1.RecreateResizeDeferred
	w.Target.Lifecycle = &appsv1beta1.Lifecycle{PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{"hold": "true"}}}
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("SetLifecycle sample-0"), "one at a time")

	held := w.Pods[0].Pod.DeepCopy()
	held.Labels[appsv1beta1.LifecycleStateKey] = string(appsv1beta1.LifecycleStatePreparingDelete)
	w.Pods[0].Pod = held
	g.Expect(moved(MakePlan(w, after(11)))).To(BeEmpty(), "it waits for its hook, and so do the others")
	delete(held.Labels, "hold")
	plan = MakePlan(w, after(12))
	g.Expect(moved(plan)).To(Equal("Recreate sample-0"))
	g.Expect(plan.Moves[0].Evict).To(BeTrue())
}

func TestRestartsForSizesWithoutAGateKeepTheBudget(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(4, "small", "large", func(i int, b *builders.PodBuilder) {
		restartsForMemory(b)
		b.With(func(pod *corev1.Pod) { pod.Spec.ReadinessGates = nil })
		if i == 0 { // written, and the kubelet has not acted
			b.Label(appsv1beta1.ControllerRevisionHashLabel, "large")
			written("150m", "96Mi")(b)
			b.InForce("100m", "64Mi").Generation(2, 1)
		}
	})
	large := sizes["large"]
	w.Pods[0].From = &large
	g.Expect(moved(MakePlan(w, after(10)))).To(BeEmpty())
}

// The kubelet restarts them as soon as there is room, drained or not.
func TestPodsThatWillRestartWhenThereIsRoomTakeTheBudget(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(3, "small", "large", func(i int, b *builders.PodBuilder) {
		restartsForMemory(b)
		if i == 0 {
			b.Label(appsv1beta1.ControllerRevisionHashLabel, "large")
			both(written("150m", "96Mi"), inForce("100m", "64Mi"), deferred)(b)
		}
	})
	large := sizes["large"]
	w.Pods[0].From = &large
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(BeEmpty())
	g.Expect(plan.Blockers).To(ContainElement(HaveField("Message", "1 pod is unavailable, maxUnavailable is 1: sample-0")))
}

// A pod that is out of service for another change is resized with it, and takes a place
// like any other: the next plan counts it.
func TestResizesOfPodsThatAreBeingChangedTakeAPlace(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(2, "smallV", "mixedV", nil)
	w.Pods[0], w.MaxConcurrentResizes = at("small", func(b *builders.PodBuilder) {
		b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(2)).Ready(false, after(3))
		both(written("150m", "64Mi"), inForce("150m", "64Mi"))(b)
	}), 1
	plan := MakePlan(w, after(10))
	g.Expect(moved(plan)).To(Equal("Resize sample-0"))
	g.Expect(plan.Blockers).To(ContainElement(HaveField("Message", "1 pod is being resized, maxConcurrent is 1")))
}

func TestASilentNodeDoesNotHoldUpResizes(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(3, "small", "large", func(i int, b *builders.PodBuilder) {
		if i == 0 {
			b.Label(appsv1beta1.ControllerRevisionHashLabel, "large")
			written("150m", "96Mi")(b)
			b.Generation(2, 1).InForce("100m", "64Mi").Ready(false, after(6))
		}
	})
	large := sizes["large"]
	w.Pods[0].From = &large
	w.MaxConcurrentResizes = 1
	g.Expect(moved(MakePlan(w, after(60)))).To(Equal("Resize sample-1"))
}

func TestSizesThatPodsAreNotReadyWithAreNotRolledOutFurther(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(3, "small", "large", func(i int, b *builders.PodBuilder) {
		if i == 0 {
			b.Label(appsv1beta1.ControllerRevisionHashLabel, "large")
			both(written("150m", "96Mi"), inForce("150m", "96Mi"))(b)
			b.Record(appsv1beta1.InPlaceUpdateState{Revision: "large", UpdateTimestamp: metav1.NewTime(after(5))}).Ready(false, after(6))
		}
	})
	large := sizes["large"]
	w.Pods[0].From = &large
	w.MaxConcurrentResizes = 1
	g.Expect(moved(MakePlan(w, after(60)))).To(BeEmpty())
}

func TestWhatIsDueHasAnOrder(t *testing.T) {
	g := NewWithT(t)
	facts := atMixedV(nil)
	first := facts.Read(after(10)).read.shrinks()
	for range 20 {
		g.Expect(facts.Read(after(10)).read.shrinks()).To(Equal(first))
	}
	g.Expect(first).To(HaveLen(2))
}

// Its label never moved, and it has not the sizes that the label says.
func TestAPodThatIsToTakeBackItsSizeIsNotUpdated(t *testing.T) {
	g := NewWithT(t)
	w := workloadAt(1, "small", "small", func(_ int, b *builders.PodBuilder) { both(written("150m", "96Mi"), inForce("150m", "96Mi"))(b) })
	g.Expect(MakePlan(w, after(60)).Pods[0].Updated).To(BeFalse())

	w = workloadAt(1, "small", "small", func(_ int, b *builders.PodBuilder) { spec("150m", "96Mi")(b) })
	g.Expect(MakePlan(w, after(60)).Pods[0].Updated).To(BeTrue(), "what others did is no matter of the revision")
}
