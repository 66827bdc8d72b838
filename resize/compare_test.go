// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestCompareChangesWhatTheTemplatesTellApart(t *testing.T) {
	for name, test := range map[string]struct {
		from, to, live string // live is as from if it is empty
		want           string
	}{
		"nothing": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m}}`),
		},
		"only the spelling": {
			from: onlyMain(`{requests: {cpu: "0.5"}, limits: {memory: 1Gi}}`),
			to:   onlyMain(`{requests: {cpu: 500m}, limits: {memory: 1024Mi}}`),
		},
		"a request grows": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: "0.3"}}`),
			want: "cpu request of main: 100m to 300m",
		},
		"a request and a limit, of one resource of two": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: "1", memory: 64Mi}}`),
			to:   onlyMain(`{requests: {cpu: 100m, memory: 96Mi}, limits: {cpu: "1", memory: 96Mi}}`),
			want: "memory limit of main: 64Mi to 96Mi, memory request of main: 64Mi to 96Mi",
		},
		"a request that others raised above a limit that is lowered": {
			from: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 128Mi}}`), to: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 96Mi}}`),
			live: onlyMain(`{requests: {memory: 100Mi}, limits: {memory: 128Mi}}`),
			want: "memory limit of main: 128Mi to 96Mi, memory request of main: 100Mi to 64Mi",
		},
		"a limit that others lowered below a request that is raised": {
			from: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 128Mi}}`), to: onlyMain(`{requests: {memory: 96Mi}, limits: {memory: 128Mi}}`),
			live: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 80Mi}}`),
			want: "memory limit of main: 80Mi to 128Mi, memory request of main: 64Mi to 96Mi",
		},
		"a limit of others below a request that is raised": {
			from: onlyMain(`{requests: {memory: 64Mi}}`), to: onlyMain(`{requests: {memory: 96Mi}}`),
			live: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 80Mi}}`),
			want: "memory limit of main: 80Mi to 96Mi, memory request of main: 64Mi to 96Mi",
		},
		"a limit of others that has room for a request that is raised": {
			from: onlyMain(`{requests: {memory: 64Mi}}`), to: onlyMain(`{requests: {memory: 96Mi}}`),
			live: onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 96Mi}}`),
			want: "memory request of main: 64Mi to 96Mi",
		},
		"a limit is added": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 200m}}`),
			want: "cpu limit of main: none to 200m",
		},
		"requests are added": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}}`),
			want: "memory request of main: none to 64Mi",
		},
		"what is added is there already": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 200m}}`),
			live: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: "0.2"}}`),
		},
		"what is added is there with another size": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 200m}}`),
			live: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 300m}}`),
			want: "cpu limit of main: 300m to 200m",
		},
		"others changed what the templates tell apart": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 200m}}`),
			live: onlyMain(`{requests: {cpu: 300m}}`),
			want: "cpu request of main: 300m to 200m",
		},
		"others changed it to what is wanted": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 200m}}`),
			live: onlyMain(`{requests: {cpu: "0.2"}}`),
		},
		"others changed what the templates name alike": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}}`), to: onlyMain(`{requests: {cpu: 200m, memory: 64Mi}}`),
			live: onlyMain(`{requests: {cpu: 100m, memory: 80Mi}}`),
			want: "cpu request of main: 100m to 200m",
		},
		"others added what the templates do not name": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}}`), to: onlyMain(`{requests: {cpu: 200m, memory: 64Mi}}`),
			live: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}`),
			want: "cpu request of main: 100m to 200m",
		},
		"what is removed is not there": {
			from: onlyMain(`{requests: {cpu: 100m}, limits: {memory: 1Gi}}`), to: onlyMain(`{requests: {cpu: 100m}}`),
			live: onlyMain(`{requests: {cpu: 100m}}`),
		},
		"native sidecars and the pod": {
			from: "resources: {requests: {cpu: 300m}}\ninitContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]\n" + onlyMain(`{requests: {cpu: 100m}}`),
			to:   "resources: {requests: {cpu: 400m}}\ninitContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 200m}}}]\n" + onlyMain(`{requests: {cpu: 100m}}`),
			want: "cpu request of side: 100m to 200m, cpu request of the pod: 300m to 400m",
		},
		"sizes of the pod are added": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: "resources: {limits: {cpu: \"1\"}}\n" + onlyMain(`{requests: {cpu: 100m}}`),
			want: "cpu limit of the pod: none to 1",
		},
		"what the server derives for the pod follows the containers that admission added": {
			from: "resources: {limits: {cpu: 1}}\n" + onlyMain(`{requests: {cpu: 100m}}`),
			to:   "resources: {limits: {cpu: 1}}\n" + onlyMain(`{requests: {cpu: 200m}}`),
			live: "resources: {limits: {cpu: 1}, requests: {cpu: 150m}}\n" +
				"containers: [{name: main, resources: {requests: {cpu: 100m}}}, {name: proxy, resources: {requests: {cpu: 50m}}}]",
			want: "cpu request of main: 100m to 200m, cpu request of the pod: 150m to 250m",
		},
		"what the server derives for the pod is not asked for where there is none": {
			from: "resources: {requests: {cpu: 1}}\n" + onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 100m}}`),
			to:   "resources: {requests: {cpu: 1}}\n" + onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 2}}`),
			live: "resources: {requests: {cpu: 1}}\n" +
				"containers: [{name: main, resources: {requests: {cpu: 100m}, limits: {cpu: 100m}}}, {name: proxy}]",
			want: "cpu limit of main: 100m to 2",
		},
		"a container that admission added is left alone": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 200m}}`),
			live: "containers: [{name: main, resources: {requests: {cpu: 100m}}}, {name: proxy, resources: {requests: {cpu: 50m}}}]",
			want: "cpu request of main: 100m to 200m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if test.live == "" {
				test.live = test.from
			}
			pod := podOf(t, test.live)
			before := pod.DeepCopy()
			change, refused := Compare(pod, Wish{
				From: InTemplate(specOf(t, test.from)), To: InTemplate(specOf(t, test.to)), Derived: Derived(specOf(t, test.to)),
			})
			g.Expect(refused).To(BeNil())
			g.Expect(change.String()).To(Equal(test.want))
			g.Expect(pod).To(Equal(before), "the pod was changed")
		})
	}
}

func TestCompareFinishesAndTakesBackWhatWasBegun(t *testing.T) {
	own := sets.New(cpuRequest)
	for name, test := range map[string]struct {
		live string
		wish Wish
		want string
	}{
		"a size of ours is finished": {
			live: onlyMain(`{requests: {cpu: 100m}}`), wish: Wish{Begun: own}, want: "cpu request of main: 100m to 200m",
		},
		"a size of ours is as it shall be": {
			live: onlyMain(`{requests: {cpu: "0.2"}}`), wish: Wish{Begun: own, Enforce: true},
		},
		"a size of others is left": {
			live: onlyMain(`{requests: {cpu: 100m}}`), wish: Wish{Begun: sets.New(memoryRequest)},
		},
		"a size of others is set back where that is wanted": {
			live: onlyMain(`{requests: {cpu: 100m}}`), wish: Wish{Enforce: true}, want: "cpu request of main: 100m to 200m",
		},
		"a size that is missing is given where that is wanted": {
			live: onlyMain(`{requests: {memory: 1Gi}}`), wish: Wish{Enforce: true}, want: "cpu request of main: none to 200m",
		},
		"what others added is not for us to remove": {
			live: onlyMain(`{requests: {cpu: 200m}, limits: {cpu: 300m}}`), wish: Wish{Enforce: true},
		},
		"what the server made of ours stays": {
			live: onlyMain(`{requests: {cpu: 150m}}`), wish: Wish{Begun: own, Enforce: true, Asked: Amounts{cpuRequest: size("0.2")}, Answered: Amounts{cpuRequest: size("0.15")}},
		},
		"what the server made of ours, and others changed since": {
			live: onlyMain(`{requests: {cpu: 160m}}`), wish: Wish{Enforce: true, Asked: Amounts{cpuRequest: size("0.2")}, Answered: Amounts{cpuRequest: size("0.15")}},
			want: "cpu request of main: 160m to 200m",
		},
		"what the server made of ours, in a change that asks for something else": {
			live: onlyMain(`{requests: {cpu: 150m}}`),
			wish: Wish{From: Amounts{cpuRequest: size("120m")}, Begun: own, Asked: Amounts{cpuRequest: size("120m")}, Answered: Amounts{cpuRequest: size("150m")}},
			want: "cpu request of main: 150m to 200m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.wish.To = Amounts{cpuRequest: size("200m")}
			if test.wish.From == nil {
				test.wish.From = test.wish.To
			}
			change, refused := Compare(podOf(t, test.live), test.wish)
			g.Expect(refused).To(BeNil())
			g.Expect(change.String()).To(Equal(test.want))
		})
	}
}

func TestCompareRefusesWhatTheAPIServerWould(t *testing.T) {
	const (
		guaranteed = `{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}`
		burstable  = `{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}`
	)
	for name, test := range map[string]struct {
		from, to, live string
		begun          []Field
		status         string
		reason         RefusalReason
		field          string
		says           string
	}{
		"a limit is removed": {
			from: onlyMain(burstable), to: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}`),
			reason: Removed, field: "spec.containers[main].resources.limits.cpu", says: "spec.containers[main].resources.limits.cpu was removed",
		},
		"a request is removed": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}}`), to: onlyMain(`{requests: {cpu: 100m}}`),
			reason: Removed, field: "spec.containers[main].resources.requests.memory",
		},
		"a size of the pod is removed": {
			from: "resources: {requests: {cpu: 100m, memory: 64Mi}}\n" + onlyMain(`{}`), to: "resources: {requests: {cpu: 100m}}\n" + onlyMain(`{}`),
			reason: Removed, field: "spec.resources.requests.memory",
		},
		"a size of a sidecar is removed, although others changed it": {
			from:   "initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]\n" + onlyMain(`{}`),
			to:     "initContainers: [{name: side, restartPolicy: Always}]\n" + onlyMain(`{}`),
			live:   "initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 300m}}}]\n" + onlyMain(`{}`),
			reason: Removed, field: "spec.initContainers[side].resources.requests.cpu",
		},
		"what a change began to add is not wanted any more": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 100m}}`), live: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 200m}}`),
			begun:  []Field{cpuLimit},
			reason: Removed, field: "spec.containers[main].resources.limits.cpu",
		},
		"a removal outweighs the rest": {
			from: onlyMain(guaranteed), to: onlyMain(`{requests: {cpu: 100m, memory: 96Mi}}`),
			reason: Removed, field: "spec.containers[main].resources.limits.cpu",
		},
		"a guaranteed pod would be burstable": {
			from: onlyMain(guaranteed), to: onlyMain(burstable),
			reason: OtherQOSClass, field: "spec.containers[main].resources.limits.cpu",
			says: "cpu limit of main: 100m to 200m would make the pod Burstable instead of Guaranteed",
		},
		"a burstable pod would be guaranteed": {
			from: onlyMain(burstable), to: onlyMain(guaranteed),
			reason: OtherQOSClass, field: "spec.containers[main].resources.limits.cpu",
		},
		"a pod without sizes would have some": {
			from: onlyMain(`{}`), to: onlyMain(`{requests: {cpu: 100m}}`),
			reason: OtherQOSClass, field: "spec.containers[main].resources.requests.cpu", says: "Burstable instead of BestEffort",
		},
		"the pod would be guaranteed by its own sizes": {
			from: onlyMain(burstable), to: "resources: {limits: {cpu: 200m, memory: 64Mi}, requests: {cpu: 200m, memory: 64Mi}}\n" + onlyMain(burstable),
			reason: OtherQOSClass, field: "spec.resources.limits.cpu",
		},
		"a kubelet that reports no sizes": {
			from: onlyMain(`{requests: {cpu: 100m}}`), to: onlyMain(`{requests: {cpu: 200m}}`),
			status: `{containerStatuses: [{name: main, state: {running: {}}}]}`,
			reason: NodeUnsupported, says: "the kubelet on node-1 reports no sizes of container main",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if test.live == "" {
				test.live = test.from
			}
			pod := seen(t, podOf(t, test.live), test.status)
			wish := Wish{From: InTemplate(specOf(t, test.from)), To: InTemplate(specOf(t, test.to)), Derived: Derived(specOf(t, test.to)), Begun: sets.New(test.begun...)}
			_, refused := Compare(pod, wish)
			g.Expect(refused).NotTo(BeNil())
			g.Expect(refused.Reason).To(Equal(test.reason))
			g.Expect(refused.Field).To(Equal(test.field))
			g.Expect(refused.Message).To(ContainSubstring(test.says))
		})
	}
}

// The class is that of the pod as admission made it, not that of the template.
func TestCompareJudgesTheQOSClassOfTheLivePod(t *testing.T) {
	const (
		small = `{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}`
		large = `{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}`
	)
	for name, test := range map[string]struct {
		from, to, live string
		class          corev1.PodQOSClass
		refused        bool
	}{
		"an injected sidecar makes it burstable anyway": {
			from: small, to: large,
			live: "initContainers: [{name: proxy, restartPolicy: Always, resources: {requests: {cpu: 10m}}}]\n" + onlyMain(small),
		},
		"an injected container makes it burstable anyway": {
			from: small, to: large,
			live: "containers: [{name: main, resources: " + small + "}, {name: proxy, resources: {requests: {cpu: 10m}}}]",
		},
		"an injected sidecar keeps a pod without sizes from being one": {
			from: `{}`, to: `{requests: {cpu: 100m}}`,
			live: "initContainers: [{name: proxy, restartPolicy: Always, resources: {requests: {cpu: 10m}}}]\n" + onlyMain(`{}`),
		},
		"limits of a LimitRange make it guaranteed": {
			from: `{requests: {cpu: 100m, memory: 64Mi}}`, to: `{requests: {cpu: 150m, memory: 64Mi}}`,
			live: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 150m, memory: 64Mi}}`), refused: true,
		},
		"the class that the status says": {
			from: `{requests: {cpu: 100m}}`, to: `{requests: {cpu: 200m}}`,
			live: onlyMain(`{requests: {cpu: 100m}}`), class: corev1.PodQOSGuaranteed, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := podOf(t, test.live)
			pod.Status.QOSClass = test.class
			change, refused := Compare(pod, Wish{From: InTemplate(specOf(t, onlyMain(test.from))), To: InTemplate(specOf(t, onlyMain(test.to)))})
			if test.refused {
				g.Expect(refused).To(HaveField("Reason", OtherQOSClass))
				return
			}
			g.Expect(refused).To(BeNil())
			g.Expect(change).NotTo(BeEmpty())
		})
	}
}

// The API server looks at the first running container only, so do we; and where
// nothing is to be changed, nothing is refused.
func TestCompareAsksTheFirstRunningContainerForSupport(t *testing.T) {
	for name, test := range map[string]struct {
		to, status string
		refused    bool
	}{
		"none runs":              {"200m", `{containerStatuses: [{name: main, state: {waiting: {}}}]}`, false},
		"none has a status":      {"200m", `{}`, false},
		"it reports sizes":       {"200m", `{containerStatuses: [{name: main, state: {running: {}}, resources: {}}]}`, false},
		"the second one does":    {"200m", `{containerStatuses: [{name: b, state: {running: {}}}, {name: main, state: {running: {}}, resources: {}}]}`, true},
		"only the first does":    {"200m", `{containerStatuses: [{name: b, state: {running: {}}, resources: {}}, {name: main, state: {running: {}}}]}`, false},
		"the first one waits":    {"200m", `{containerStatuses: [{name: b, state: {waiting: {}}}, {name: main, state: {running: {}}}]}`, true},
		"init containers do not": {"200m", `{initContainerStatuses: [{name: side, state: {running: {}}}]}`, false},
		"nothing is to change":   {"100m", `{containerStatuses: [{name: main, state: {running: {}}}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := seen(t, podOf(t, onlyMain(`{requests: {cpu: 100m}}`)), test.status)
			_, refused := Compare(pod, Wish{From: Amounts{cpuRequest: size("100m")}, To: Amounts{cpuRequest: size(test.to)}})
			if test.refused {
				g.Expect(refused).To(HaveField("Reason", NodeUnsupported))
			} else {
				g.Expect(refused).To(BeNil())
			}
		})
	}
}

func TestCompareReadsTheRestartPolicyOfEachResource(t *testing.T) {
	g := NewWithT(t)
	const policy = `resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}, {resourceName: cpu, restartPolicy: NotRequired}]`
	text := func(cpu, memory string) string {
		resources := `resources: {requests: {cpu: ` + cpu + `, memory: ` + memory + `}, limits: {memory: ` + memory + `}}`
		return resources + "\ninitContainers: [{name: side, restartPolicy: Always, " + policy + ", " + resources + "}]" +
			"\ncontainers: [{name: main, " + policy + ", " + resources + "}, {name: b, " + resources + "}]"
	}
	change, refused := Compare(podOf(t, text("1", "1Gi")), Wish{
		From: AmountsOf(specOf(t, text("1", "1Gi"))), To: AmountsOf(specOf(t, text("2", "2Gi"))),
	})
	g.Expect(refused).To(BeNil())
	g.Expect(change).To(HaveLen(12))
	for _, delta := range change {
		want := delta.Resource == corev1.ResourceMemory && (delta.Container == "main" || delta.Container == "side")
		g.Expect(delta.Restarts).To(Equal(want), delta.String())
	}
	g.Expect(change.Restarted()).To(Equal([]string{"main", "side"}))
}

func TestCompareTakesARequestAlongThatOthersRaisedAboveANewLimit(t *testing.T) {
	g := NewWithT(t)
	limit, request := Field{Container: "main", Limit: true, Resource: "memory"}, Field{Container: "main", Resource: "memory"}
	live := podOf(t, onlyMain(`{requests: {cpu: 100m, memory: 80Mi}, limits: {memory: 100Mi}}`))
	wish := Wish{
		From: Amounts{request: size("50Mi"), limit: size("100Mi")},
		To:   Amounts{request: size("50Mi"), limit: size("64Mi")},
	}
	change, refused := Compare(live, wish)
	g.Expect(refused).To(BeNil())
	g.Expect(change.String()).To(Equal("memory limit of main: 100Mi to 64Mi, memory request of main: 80Mi to 50Mi"))

	wish.To[limit] = size("90Mi")
	change, _ = Compare(live, wish)
	g.Expect(change.String()).To(Equal("memory limit of main: 100Mi to 90Mi"), "where it fits, it is left alone")

	delete(wish.From, request)
	delete(wish.To, request)
	wish.To[limit] = size("64Mi")
	change, _ = Compare(live, wish)
	g.Expect(change.String()).To(ContainSubstring("memory request of main: 80Mi to 64Mi"))
}
