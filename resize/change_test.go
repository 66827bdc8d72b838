// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// changeOf is what Compare makes of two templates, for a pod of the first.
func changeOf(t testing.TB, from, to string) (*corev1.Pod, Change) {
	t.Helper()
	pod := podOf(t, from)
	change, refused := Compare(pod, Wish{From: AmountsOf(&pod.Spec), To: AmountsOf(specOf(t, to))})
	NewWithT(t).Expect(refused).To(BeNil())
	return pod, change
}

func TestChangeInWords(t *testing.T) {
	g := NewWithT(t)
	change := Change{
		{Field: memoryLimit, From: "64Mi", To: "96Mi", Restarts: true},
		{Field: memoryRequest, From: "64Mi", To: "96Mi", Restarts: true},
		{Field: podRequest, To: "1"},
	}
	g.Expect(change.String()).To(Equal(
		"memory limit of main: 64Mi to 96Mi, memory request of main: 64Mi to 96Mi, cpu request of the pod: none to 1"))
	g.Expect(change.Restarted()).To(Equal([]string{"main"}))
	g.Expect(change.Restarts()).To(BeTrue())
	g.Expect(change[2:].Restarts()).To(BeFalse())
	g.Expect(text(change.Amounts())).To(Equal([]string{
		"spec.containers[main].resources.limits.memory=96Mi", "spec.containers[main].resources.requests.memory=96Mi", "spec.resources.requests.cpu=1",
	}))
	g.Expect(text(change.Before())).To(Equal([]string{
		"spec.containers[main].resources.limits.memory=64Mi", "spec.containers[main].resources.requests.memory=64Mi",
	}))
	g.Expect(Change(nil).String()).To(BeEmpty())
	g.Expect(Change(nil).Restarted()).To(BeEmpty())
}

func TestSplit(t *testing.T) {
	const restartMemory = `resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]`
	for name, test := range map[string]struct {
		from, to            string
		before, with, after string
	}{
		"what grows comes before, what shrinks after": {
			from:   onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 900m, memory: 128Mi}}`),
			to:     onlyMain(`{requests: {cpu: "0.2", memory: 32Mi}, limits: {cpu: 800m, memory: 256Mi}}`),
			before: "memory limit of main: 128Mi to 256Mi, cpu request of main: 100m to 200m",
			after:  "cpu limit of main: 900m to 800m, memory request of main: 64Mi to 32Mi",
		},
		"what is compared is the size, not its spelling": {
			from:   onlyMain(`{requests: {cpu: 900m, memory: 900Mi}}`),
			to:     onlyMain(`{requests: {cpu: "1", memory: 1Gi}}`),
			before: "cpu request of main: 900m to 1, memory request of main: 900Mi to 1Gi",
		},
		"a first request gives, a first limit takes": {
			from:   onlyMain(`{requests: {cpu: 100m}}`),
			to:     onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: "1"}}`),
			before: "memory request of main: none to 64Mi",
			after:  "cpu limit of main: none to 1",
		},
		"what restarts comes with the rest that does, resource by resource": {
			from: `containers: [{name: main, ` + restartMemory + `, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}},
{name: b, resources: {requests: {memory: 64Mi}}}]`,
			to: `containers: [{name: main, resources: {requests: {cpu: 200m, memory: 32Mi}, limits: {memory: 256Mi}}},
{name: b, resources: {requests: {memory: 32Mi}}}]`,
			before: "cpu request of main: 100m to 200m",
			with:   "memory limit of main: 128Mi to 256Mi, memory request of main: 64Mi to 32Mi",
			after:  "memory request of b: 64Mi to 32Mi",
		},
		"native sidecars and the pod": {
			from: `
resources: {requests: {cpu: "1", memory: 128Mi}, limits: {cpu: "2"}}
initContainers: [{name: side, restartPolicy: Always, ` + restartMemory + `, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
` + onlyMain(`{requests: {cpu: 100m}}`),
			to: `
resources: {requests: {cpu: "1.5", memory: 96Mi}, limits: {cpu: "1.8"}}
initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 50m, memory: 32Mi}}}]
` + onlyMain(`{requests: {cpu: 200m}}`),
			before: "cpu request of main: 100m to 200m, cpu request of the pod: 1 to 1500m",
			with:   "memory request of side: 64Mi to 32Mi",
			after:  "cpu request of side: 100m to 50m, cpu limit of the pod: 2 to 1800m, memory request of the pod: 128Mi to 96Mi",
		},
		"a guaranteed pod that only grows does so at once": {
			from:   onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}`),
			to:     onlyMain(`{requests: {cpu: 200m, memory: 96Mi}, limits: {cpu: 200m, memory: 96Mi}}`),
			before: "cpu limit of main: 100m to 200m, memory limit of main: 64Mi to 96Mi, cpu request of main: 100m to 200m, memory request of main: 64Mi to 96Mi",
		},
		"a pod that stays burstable in between": {
			from:   onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}`),
			to:     onlyMain(`{requests: {cpu: 200m, memory: 64Mi}, limits: {cpu: 300m, memory: 32Mi}}`),
			before: "cpu limit of main: 200m to 300m, cpu request of main: 100m to 200m",
			after:  "memory limit of main: 64Mi to 32Mi",
		},
		"of another class after the first part": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}`),
			to:   onlyMain(`{requests: {cpu: 200m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}`),
			with: "cpu request of main: 100m to 200m, memory request of main: 64Mi to 32Mi",
		},
		"of another class after the second part": {
			from: `containers: [{name: main, ` + restartMemory + `, resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 100m, memory: 64Mi}}}]`,
			to:   onlyMain(`{requests: {cpu: 50m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}`),
			with: "cpu request of main: 100m to 50m, memory request of main: 32Mi to 64Mi",
		},
		"no room in the pod for one container to grow before another shrinks": {
			from: `
resources: {requests: {cpu: 400m}}
containers: [{name: main, resources: {requests: {cpu: 100m}}}, {name: b, resources: {requests: {cpu: 300m}}}]`,
			to: `
resources: {requests: {cpu: 400m}}
containers: [{name: main, resources: {requests: {cpu: 300m}}}, {name: b, resources: {requests: {cpu: 100m}}}]`,
			with: "cpu request of b: 300m to 100m, cpu request of main: 100m to 300m",
		},
		"no room in a first request of the pod for what its containers still have": {
			from: onlyMain(`{requests: {cpu: 500m}}`),
			to:   "resources: {requests: {cpu: 100m}}\n" + onlyMain(`{requests: {cpu: 100m}}`),
			with: "cpu request of main: 500m to 100m, cpu request of the pod: none to 100m",
		},
		"no room in the limit that the server gives a pod with its first request": {
			from: `containers: [{name: main, ` + restartMemory + `, resources: {requests: {memory: 64Mi}, limits: {memory: 64Mi}}}]`,
			to:   "resources: {requests: {memory: 96Mi}, limits: {memory: 1Gi}}\n" + onlyMain(`{requests: {memory: 64Mi}, limits: {memory: 128Mi}}`),
			with: "memory limit of main: 64Mi to 128Mi, memory limit of the pod: none to 1Gi, memory request of the pod: none to 96Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod, change := changeOf(t, test.from, test.to)
			live := pod.DeepCopy()
			before, with, after := change.Split(pod, nil, nil)
			g.Expect([]string{before.String(), with.String(), after.String()}).To(Equal([]string{test.before, test.with, test.after}))
			g.Expect(pod).To(Equal(live), "the pod was changed")
		})
	}
}

func TestPatch(t *testing.T) {
	const metadata = `{"metadata":{"uid":"uid-1","resourceVersion":"7"},"spec":`
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"nothing but the field that changes": {
			from: onlyMain(`{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}`),
			to:   onlyMain(`{requests: {cpu: "0.2", memory: 64Mi}, limits: {memory: 64Mi}}`),
			want: `{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}]}}`,
		},
		"containers in the order of the pod, each once": {
			from: `containers: [{name: main, resources: {requests: {cpu: 1, memory: 1Gi}}}, {name: a, resources: {requests: {cpu: 1}}}]`,
			to:   `containers: [{name: main, resources: {requests: {cpu: 2, memory: 2Gi}, limits: {cpu: 3}}}, {name: a, resources: {requests: {cpu: 2}}}]`,
			want: `{"containers":[{"name":"main","resources":{"limits":{"cpu":"3"},"requests":{"cpu":"2","memory":"2Gi"}}},` +
				`{"name":"a","resources":{"requests":{"cpu":"2"}}}]}}`,
		},
		"a native sidecar": {
			from: "initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 1}}}]\n" + onlyMain(`{}`),
			to:   "initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 2}}}]\n" + onlyMain(`{}`),
			want: `{"initContainers":[{"name":"side","resources":{"requests":{"cpu":"2"}}}]}}`,
		},
		"the pod": {
			from: "resources: {requests: {cpu: 1}}\n" + onlyMain(`{requests: {cpu: 1}}`),
			to:   "resources: {requests: {cpu: 2}, limits: {memory: 1Gi}}\n" + onlyMain(`{requests: {cpu: 1}}`),
			want: `{"resources":{"limits":{"memory":"1Gi"},"requests":{"cpu":"2"}}}}`,
		},
		"all of them": {
			from: "resources: {requests: {cpu: 3}}\ninitContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 1}}}]\n" + onlyMain(`{requests: {cpu: 1}}`),
			to:   "resources: {requests: {cpu: 4}}\ninitContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 2}}}]\n" + onlyMain(`{requests: {cpu: 2}}`),
			want: `{"resources":{"requests":{"cpu":"4"}},"initContainers":[{"name":"side","resources":{"requests":{"cpu":"2"}}}],` +
				`"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod, change := changeOf(t, test.from, test.to)
			body, err := change.Patch(pod)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body)).To(Equal(metadata + test.want))
		})
	}

	t.Run("for a pod whatever its version", func(t *testing.T) {
		g := NewWithT(t)
		pod, change := changeOf(t, onlyMain(`{requests: {cpu: 1}}`), onlyMain(`{requests: {cpu: 2}}`))
		pod.ResourceVersion = ""
		body, err := change.Patch(pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(body)).To(HavePrefix(`{"metadata":{"uid":"uid-1"},"spec":`))
	})
}

// Of a container whose image comes later, what grows is made at once, and what goes with
// the image waits for it.
func TestSplitLeavesToLaterImagesWhatGoesWithThem(t *testing.T) {
	g := NewWithT(t)
	pod, change := changeOf(t, `containers: [{name: main, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}},
		{name: b, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}},
		{name: c, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}], resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}}]`,
		`containers: [{name: main, resources: {requests: {cpu: 200m, memory: 32Mi}, limits: {memory: 32Mi}}},
		{name: b, resources: {requests: {cpu: 200m, memory: 32Mi}, limits: {memory: 32Mi}}},
		{name: c, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}], resources: {requests: {cpu: 50m, memory: 96Mi}, limits: {memory: 96Mi}}}]`)

	before, with, after := change.Split(pod, []string{"main"}, []string{"b", "c"})

	g.Expect(before.String()).To(Equal("cpu request of b: 100m to 200m, cpu request of main: 100m to 200m"))
	g.Expect(with.String()).To(Equal("memory limit of main: 64Mi to 32Mi, memory request of main: 64Mi to 32Mi"))
	g.Expect(after.String()).To(Equal("memory limit of b: 64Mi to 32Mi, memory request of b: 64Mi to 32Mi, " +
		"memory limit of c: 64Mi to 96Mi, memory request of c: 64Mi to 96Mi, cpu request of c: 100m to 50m"))
	together := after.Amounts().Together(pod, []string{"c"})
	g.Expect(together).To(HaveLen(2))
	g.Expect(together).To(HaveKey(Field{Container: "c", Limit: true, Resource: "memory"}))
	g.Expect(together).To(HaveKey(Field{Container: "c", Resource: "memory"}))
}

func TestSplitLowersMemoryTogetherWithTheImage(t *testing.T) {
	g := NewWithT(t)
	pod := podOf(t, `containers: [{name: a, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}},
		{name: b, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}}]`)
	to := Amounts{}
	for _, name := range []string{"a", "b"} {
		to[Field{Container: name, Resource: "cpu"}] = size("50m")
		to[Field{Container: name, Resource: "memory"}] = size("32Mi")
		to[Field{Container: name, Limit: true, Resource: "memory"}] = size("32Mi")
	}
	change, refused := Compare(pod, Wish{From: AmountsOf(&pod.Spec), To: to})
	g.Expect(refused).To(BeNil())
	before, with, after := change.Split(pod, []string{"a"}, nil)
	g.Expect(before).To(BeEmpty())
	g.Expect(with.String()).To(Equal("memory limit of a: 64Mi to 32Mi, memory request of a: 64Mi to 32Mi"))
	g.Expect(after.String()).To(Equal("cpu request of a: 100m to 50m, memory limit of b: 64Mi to 32Mi, cpu request of b: 100m to 50m, memory request of b: 64Mi to 32Mi"))
}
