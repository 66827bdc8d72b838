// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// A user who asks for more than a node has, and then for less together with another image
// and more of something else, gets all of it: nothing waits for what no revision asks for
// any more, and no container has less before its image comes than it had.
func TestSplitWaitsForNothingThatIsNotAskedForAnyMore(t *testing.T) {
	const (
		restartCPU = `resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}], `
		// what the container main has, where it asks for more
		has150m = `containerStatuses: [{name: main, allocatedResources: {cpu: 150m, memory: 64Mi}, resources: {requests: {cpu: 150m, memory: 64Mi}, limits: {memory: 64Mi}}}]`
	)
	main := func(policy, cpu, memory string) string {
		return `containers: [{name: main, ` + policy + `resources: {requests: {cpu: ` + cpu + `, memory: ` + memory + `}, limits: {memory: ` + memory + `}}}]`
	}
	for name, test := range map[string]struct {
		// asked is what the pod asks for, shows what its node says, and wanted what it is
		// to have.
		asked, shows, wanted string
		before, with, after  string
	}{
		"CPU that the node can never give": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main("", "100m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
			after:  "cpu request of main: 150m to 100m",
		},
		"CPU for which the node has no room now": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + deferred + `], ` + has150m + `}`, wanted: main("", "100m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
			after:  "cpu request of main: 150m to 100m",
		},
		"CPU that the node has not seen yet": {
			asked: main("", "99", "64Mi"), shows: `{observedGeneration: 1, ` + has150m + `}`, wanted: main("", "100m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
			after:  "cpu request of main: 150m to 100m",
		},
		"nothing else grows: it goes back all the same": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main("", "100m", "64Mi"),
			before: "cpu request of main: 99 to 150m", after: "cpu request of main: 150m to 100m",
		},
		"what the node has is what is wanted": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main("", "150m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
		},
		"what the node has is reported rounded": {
			asked:  main("", "99", "64Mi"),
			shows:  `{conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {cpu: 150m, memory: 64Mi}, resources: {requests: {cpu: 151m, memory: 64Mi}}}]}`,
			wanted: main("", "150m", "64Mi"),
			before: "cpu request of main: 99 to 150m",
		},
		"more than the node has, less than was asked for": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main("", "200m", "64Mi"),
			before: "cpu request of main: 99 to 200m",
		},
		"even more": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main("", "100", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 100, memory request of main: 64Mi to 96Mi",
		},
		"memory": {
			asked: main("", "150m", "99Gi"), shows: `{conditions: [` + deferred + `], ` + has150m + `}`, wanted: main("", "200m", "32Mi"),
			before: "memory limit of main: 99Gi to 64Mi, cpu request of main: 150m to 200m, memory request of main: 99Gi to 64Mi",
			with:   "memory limit of main: 64Mi to 32Mi, memory request of main: 64Mi to 32Mi",
		},
		"CPU that restarts the container, which it does out of service only": {
			asked: main(restartCPU, "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main(restartCPU, "100m", "96Mi"),
			with: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 100m, memory request of main: 64Mi to 96Mi",
		},
		"CPU that restarts the container, back to what it has: the node may have given it more just now": {
			asked: main(restartCPU, "99", "64Mi"), shows: `{conditions: [` + deferred + `], ` + has150m + `}`, wanted: main(restartCPU, "150m", "96Mi"),
			with: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
		},
		"CPU that restarts the container, and nothing that would wait for it": {
			asked: main(restartCPU, "99", "64Mi"), shows: `{conditions: [` + never + `], ` + has150m + `}`, wanted: main(restartCPU, "100m", "32Mi"),
			with: "memory limit of main: 64Mi to 32Mi, cpu request of main: 99 to 100m, memory request of main: 64Mi to 32Mi",
		},
		"limits, which follow their requests": {
			asked: onlyMain(`{requests: {cpu: 99, memory: 64Mi}, limits: {cpu: 99, memory: 64Mi}}`),
			shows: `{qosClass: Guaranteed, conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {cpu: 150m, memory: 64Mi},
resources: {requests: {cpu: 150m, memory: 64Mi}, limits: {cpu: 160m, memory: 64Mi}}}]}`,
			wanted: onlyMain(`{requests: {cpu: 100m, memory: 96Mi}, limits: {cpu: 100m, memory: 96Mi}}`),
			before: "cpu limit of main: 99 to 150m, memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 150m, memory request of main: 64Mi to 96Mi",
			after:  "cpu limit of main: 150m to 100m, cpu request of main: 150m to 100m",
		},
		"a limit that is not in force yet stays above its request": {
			asked:  onlyMain(`{requests: {cpu: 99}, limits: {cpu: 100}}`),
			shows:  `{conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {cpu: 300m}, resources: {requests: {cpu: 200m}, limits: {cpu: 250m}}}]}`,
			wanted: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 150m}}`),
			before: "cpu limit of main: 100 to 300m, cpu request of main: 99 to 300m",
			after:  "cpu limit of main: 300m to 150m, cpu request of main: 300m to 100m",
		},
		"a first limit cannot be taken back": {
			asked:  onlyMain(`{requests: {cpu: 99}, limits: {cpu: 100}}`),
			shows:  `{conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {cpu: 150m}, resources: {requests: {cpu: 150m}}}]}`,
			wanted: onlyMain(`{requests: {cpu: 100m}, limits: {cpu: 200m}}`),
			before: "cpu request of main: 99 to 150m", after: "cpu limit of main: 100 to 200m, cpu request of main: 150m to 100m",
		},
		"a first request that the node has not granted": {
			asked:  onlyMain(`{requests: {cpu: 99, memory: 64Mi}}`),
			shows:  `{conditions: [` + never + `], containerStatuses: [{name: main, allocatedResources: {memory: 64Mi}, resources: {requests: {memory: 64Mi}}}]}`,
			wanted: onlyMain(`{requests: {cpu: 100m, memory: 96Mi}}`),
			before: "cpu request of main: 99 to 100m, memory request of main: 64Mi to 96Mi",
		},
		"a container that has never run loses nothing": {
			asked: main("", "99", "64Mi"), shows: `{conditions: [` + never + `], containerStatuses: [{name: main}]}`, wanted: main("", "100m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, cpu request of main: 99 to 100m, memory request of main: 64Mi to 96Mi",
		},
		"native sidecars and other containers": {
			asked: `
initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 99}}}]
containers: [{name: main, resources: {requests: {cpu: 100m}}}, {name: b, resources: {requests: {cpu: 98}}}]`,
			shows: `{conditions: [` + deferred + `], initContainerStatuses: [{name: side, allocatedResources: {cpu: 50m}, resources: {requests: {cpu: 50m}}}],
containerStatuses: [{name: main, allocatedResources: {cpu: 100m}, resources: {requests: {cpu: 100m}}}, {name: b, allocatedResources: {cpu: 40m}, resources: {requests: {cpu: 40m}}}]}`,
			wanted: `
initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 20m}}}]
containers: [{name: main, resources: {requests: {cpu: 200m}}}, {name: b, resources: {requests: {cpu: 30m}}}]`,
			before: "cpu request of b: 98 to 40m, cpu request of main: 100m to 200m, cpu request of side: 99 to 50m",
			after:  "cpu request of b: 40m to 30m, cpu request of side: 50m to 20m",
		},
		"the pod as a whole": {
			asked: "resources: {requests: {cpu: 99}}\n" + onlyMain(`{requests: {cpu: 100m, memory: 64Mi}}`),
			shows: `{conditions: [` + never + `], allocatedResources: {cpu: 300m}, resources: {requests: {cpu: 300m}},
containerStatuses: [{name: main, allocatedResources: {cpu: 100m, memory: 64Mi}, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}`,
			wanted: "resources: {requests: {cpu: 200m}}\n" + onlyMain(`{requests: {cpu: 100m, memory: 96Mi}}`),
			before: "memory request of main: 64Mi to 96Mi, cpu request of the pod: 99 to 300m",
			after:  "cpu request of the pod: 300m to 200m",
		},
		"what the node has granted shrinks afterwards, as ever": {
			asked: main("", "150m", "64Mi"), shows: `{` + has150m + `}`, wanted: main("", "100m", "96Mi"),
			before: "memory limit of main: 64Mi to 96Mi, memory request of main: 64Mi to 96Mi", after: "cpu request of main: 150m to 100m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := seen(t, podOf(t, test.asked), test.shows)
			change, refused := Compare(pod, Wish{From: AmountsOf(&pod.Spec), To: AmountsOf(specOf(t, test.wanted))})
			g.Expect(refused).To(BeNil())
			before, with, after := change.Split(pod, []string{"main"}, nil)
			g.Expect([]string{before.String(), with.String(), after.String()}).To(Equal([]string{test.before, test.with, test.after}))
			g.Expect(before.Restarts()).To(BeFalse())

			both := append(append(before, with...), after...)
			g.Expect(both.Before()).To(Equal(change.Before()), "what the pod asked for")
			g.Expect(both.Amounts()).To(Equal(change.Amounts()))
		})
	}
}

// Of containers whose images come in turns, too, each keeps what it has until then.
func TestSplitTakesBackBeforeImagesThatComeLater(t *testing.T) {
	g := NewWithT(t)
	status := func(name string) string {
		return `{name: ` + name + `, allocatedResources: {cpu: 100m, memory: 64Mi}, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}}`
	}
	pod := seen(t, podOf(t, `containers: [{name: main, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}},
		{name: b, resources: {requests: {cpu: 100m, memory: 9Gi}, limits: {memory: 9Gi}}}]`),
		`{conditions: [`+deferred+`], containerStatuses: [`+status("main")+`, `+status("b")+`]}`)
	to := AmountsOf(specOf(t, `containers: [{name: main, resources: {requests: {cpu: 200m, memory: 64Mi}, limits: {memory: 64Mi}}},
		{name: b, resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 32Mi}}}]`))
	change, refused := Compare(pod, Wish{From: AmountsOf(&pod.Spec), To: to})
	g.Expect(refused).To(BeNil())
	before, with, after := change.Split(pod, []string{"main"}, []string{"b"})
	g.Expect(before.String()).To(Equal("memory limit of b: 9Gi to 64Mi, memory request of b: 9Gi to 64Mi, cpu request of main: 100m to 200m"))
	g.Expect(with).To(BeEmpty())
	g.Expect(after.String()).To(Equal("memory limit of b: 64Mi to 32Mi, memory request of b: 64Mi to 32Mi"))
	g.Expect(after.Amounts().Together(pod, []string{"b"})).To(HaveKeyWithValue(Field{Container: "b", Limit: true, Resource: corev1.ResourceMemory}, size("32Mi")))
}
