// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestFieldSaysWhereItIs(t *testing.T) {
	for _, test := range []struct {
		field Field
		path  string
		words string
	}{
		{memoryLimit, "spec.containers[main].resources.limits.memory", "memory limit of main"},
		{cpuRequest, "spec.containers[main].resources.requests.cpu", "cpu request of main"},
		{sideRequest, "spec.initContainers[side].resources.requests.cpu", "cpu request of side"},
		{podLimit, "spec.resources.limits.memory", "memory limit of the pod"},
	} {
		t.Run(test.path, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.field.String()).To(Equal(test.path))
			g.Expect(test.field.inWords()).To(Equal(test.words))
		})
	}
}

const everything = `
resources: {requests: {cpu: "1"}, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}
initContainers:
- {name: setup, resources: {requests: {cpu: 700m}, limits: {memory: 128Mi}}}
- {name: side, restartPolicy: Always, resources: {requests: {cpu: 50m}, limits: {memory: 32Mi}}}
containers:
- {name: main, resources: {requests: {cpu: 100m, ephemeral-storage: 1Gi}, limits: {memory: 64Mi, example.com/gpu: "1"}}}
- {name: helper}
ephemeralContainers:
- {name: debug, resources: {requests: {cpu: 10m}}}
`

func TestAmountsOfNamesWhatALivePodCanChange(t *testing.T) {
	g := NewWithT(t)
	g.Expect(text(AmountsOf(specOf(t, everything)))).To(Equal([]string{
		"spec.containers[main].resources.limits.memory=64Mi",
		"spec.containers[main].resources.requests.cpu=100m",
		"spec.initContainers[side].resources.limits.memory=32Mi",
		"spec.initContainers[side].resources.requests.cpu=50m",
		"spec.resources.limits.memory=1Gi",
		"spec.resources.requests.cpu=1",
	}))
	g.Expect(AmountsOf(&corev1.PodSpec{})).To(BeEmpty())
	g.Expect(AmountsOf(&corev1.PodSpec{})).NotTo(BeNil())
}

// What a 1.37 API server stored for these templates is what is expected of
// InTemplate.
func TestInTemplateForeseesWhatTheAPIServerAdds(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"a limit is the request, too": {
			spec: `containers: [{name: main, resources: {requests: {cpu: "0.5"}, limits: {memory: 0.5Gi, cpu: 1e0}}}]`,
			want: []string{
				"spec.containers[main].resources.limits.cpu=1",
				"spec.containers[main].resources.limits.memory=512Mi",
				"spec.containers[main].resources.requests.cpu=500m",
				"spec.containers[main].resources.requests.memory=512Mi",
			},
		},
		"also for a native sidecar": {
			spec: `
initContainers: [{name: side, restartPolicy: Always, resources: {limits: {cpu: 200m}}}]
containers: [{name: main}]`,
			want: []string{
				"spec.initContainers[side].resources.limits.cpu=200m",
				"spec.initContainers[side].resources.requests.cpu=200m",
			},
		},
		"empty resources of the pod add nothing": {
			spec: `
resources: {}
containers: [{name: main, resources: {requests: {cpu: 100m}}}]`,
			want: []string{"spec.containers[main].resources.requests.cpu=100m"},
		},
		"the pod requests its limit where no container requests": {
			spec: `
resources: {limits: {memory: 256Mi}}
containers: [{name: main}]`,
			want: []string{"spec.resources.limits.memory=256Mi", "spec.resources.requests.memory=256Mi"},
		},
		"the pod requests what its containers do, also of what it does not limit": {
			spec: `
resources: {limits: {cpu: "1"}}
containers:
- {name: main, resources: {requests: {cpu: 100m, memory: 64Mi}}}
- {name: b, resources: {limits: {memory: 32Mi}}}`,
			want: []string{
				"spec.containers[b].resources.limits.memory=32Mi",
				"spec.containers[b].resources.requests.memory=32Mi",
				"spec.containers[main].resources.requests.cpu=100m",
				"spec.containers[main].resources.requests.memory=64Mi",
				"spec.resources.limits.cpu=1",
				"spec.resources.requests.cpu=100m",
				"spec.resources.requests.memory=96Mi",
			},
		},
		"a request of 0 is one": {
			spec: `
resources: {limits: {cpu: "2"}}
containers: [{name: main, resources: {requests: {cpu: "0"}}}]`,
			want: []string{
				"spec.containers[main].resources.requests.cpu=0",
				"spec.resources.limits.cpu=2",
				"spec.resources.requests.cpu=0",
			},
		},
		"init containers count in the sum, by their largest moment": {
			spec: `
resources: {limits: {cpu: "1", memory: 256Mi}}
initContainers:
- {name: setup, resources: {requests: {cpu: 700m}, limits: {memory: 128Mi}}}
- {name: side, restartPolicy: Always, resources: {limits: {cpu: 200m}}}
- {name: last, resources: {requests: {cpu: 300m}}}
containers: [{name: main, resources: {requests: {cpu: 100m}}}]`,
			want: []string{
				"spec.containers[main].resources.requests.cpu=100m",
				"spec.initContainers[side].resources.limits.cpu=200m",
				"spec.initContainers[side].resources.requests.cpu=200m",
				"spec.resources.limits.cpu=1",
				"spec.resources.limits.memory=256Mi",
				"spec.resources.requests.cpu=700m",
				"spec.resources.requests.memory=128Mi",
			},
		},
		"the pod is limited where all containers are, not below its request": {
			spec: `
resources: {requests: {cpu: 500m}}
containers: [{name: main, resources: {requests: {memory: 1Gi}, limits: {cpu: 100m}}}]`,
			want: []string{
				"spec.containers[main].resources.limits.cpu=100m",
				"spec.containers[main].resources.requests.cpu=100m",
				"spec.containers[main].resources.requests.memory=1Gi",
				"spec.resources.limits.cpu=500m",
				"spec.resources.requests.cpu=500m",
				"spec.resources.requests.memory=1Gi",
			},
		},
		"the pod's limit is the sum of its containers' limits": {
			spec: `
resources: {requests: {cpu: 900m}}
initContainers:
- {name: setup, resources: {limits: {cpu: 700m, memory: 5Mi}}}
- {name: side, restartPolicy: Always, resources: {limits: {cpu: 200m, memory: 20Mi}}}
containers:
- {name: main, resources: {limits: {cpu: 100m, memory: 10Mi}}}
- {name: b, resources: {limits: {cpu: 100m, memory: 10Mi}, requests: {memory: 1Mi}}}`,
			want: []string{
				"spec.containers[b].resources.limits.cpu=100m",
				"spec.containers[b].resources.limits.memory=10Mi",
				"spec.containers[b].resources.requests.cpu=100m",
				"spec.containers[b].resources.requests.memory=1Mi",
				"spec.containers[main].resources.limits.cpu=100m",
				"spec.containers[main].resources.limits.memory=10Mi",
				"spec.containers[main].resources.requests.cpu=100m",
				"spec.containers[main].resources.requests.memory=10Mi",
				"spec.initContainers[side].resources.limits.cpu=200m",
				"spec.initContainers[side].resources.limits.memory=20Mi",
				"spec.initContainers[side].resources.requests.cpu=200m",
				"spec.initContainers[side].resources.requests.memory=20Mi",
				"spec.resources.limits.cpu=900m",
				"spec.resources.limits.memory=40Mi",
				"spec.resources.requests.cpu=900m",
				"spec.resources.requests.memory=31Mi",
			},
		},
		"an init container without a limit leaves the pod without one": {
			spec: `
resources: {requests: {cpu: 500m}}
initContainers: [{name: setup}]
containers: [{name: main, resources: {limits: {cpu: 100m}}}]`,
			want: []string{
				"spec.containers[main].resources.limits.cpu=100m",
				"spec.containers[main].resources.requests.cpu=100m",
				"spec.resources.requests.cpu=500m",
			},
		},
		"huge pages of the pod are enough to complete the rest": {
			spec: `
resources: {limits: {hugepages-2Mi: 4Mi}}
containers: [{name: main, resources: {requests: {memory: 1Gi}}}]`,
			want: []string{
				"spec.containers[main].resources.requests.memory=1Gi",
				"spec.resources.requests.memory=1Gi",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := specOf(t, test.spec)
			before := spec.DeepCopy()
			g.Expect(text(InTemplate(spec))).To(Equal(test.want))
			g.Expect(spec).To(Equal(before), "the template was changed")
		})
	}
}

func TestAmountsCompareBySizeNotBySpelling(t *testing.T) {
	g := NewWithT(t)
	a := Amounts{cpuRequest: size("0.5"), memoryLimit: size("1Gi")}
	same := Amounts{cpuRequest: size("500m"), memoryLimit: size("1024Mi")}
	other := Amounts{cpuRequest: size("500m"), memoryLimit: size("1G")}
	more := Amounts{cpuRequest: size("500m"), memoryLimit: size("1Gi"), sideRequest: size("0")}

	g.Expect(a.Equal(same)).To(BeTrue())
	g.Expect(a.Equal(other)).To(BeFalse())
	g.Expect(a.Equal(more)).To(BeFalse())
	g.Expect(Amounts(nil).Equal(Amounts{})).To(BeTrue())

	_, differ := a.FirstDifference(same)
	g.Expect(differ).To(BeFalse())
	field, differ := a.FirstDifference(other)
	g.Expect(differ).To(BeTrue())
	g.Expect(field).To(Equal(memoryLimit))
	for _, pair := range [][2]Amounts{{a, more}, {more, a}} {
		field, differ = pair[0].FirstDifference(pair[1])
		g.Expect(differ).To(BeTrue(), "a size of 0 is not the same as none")
		g.Expect(field).To(Equal(sideRequest))
	}
	_, differ = Amounts(nil).FirstDifference(nil)
	g.Expect(differ).To(BeFalse())

	g.Expect(a.Is(cpuRequest, size("500m"))).To(BeTrue())
	g.Expect(a.Is(cpuRequest, size("501m"))).To(BeFalse())
	g.Expect(a.Is(sideRequest, size("0"))).To(BeFalse())
}

func TestWithoutDropsFieldsWhateverTheirSize(t *testing.T) {
	g := NewWithT(t)
	a := Amounts{cpuRequest: size("1"), memoryLimit: size("1Gi")}
	g.Expect(text(a.Without(Amounts{cpuRequest: size("2"), sideRequest: size("1")}))).
		To(Equal([]string{"spec.containers[main].resources.limits.memory=1Gi"}))
	g.Expect(a).To(HaveLen(2), "the original was changed")
	g.Expect(Amounts(nil).Without(a)).To(BeEmpty())
}

func TestRequirementsComeBackForTheContainersOfAPod(t *testing.T) {
	g := NewWithT(t)
	pod := podOf(t, everything)
	amounts := AmountsOf(&pod.Spec)
	all := amounts.Requirements()

	g.Expect(all).To(HaveLen(3))
	g.Expect(all).To(HaveKey(""))
	g.Expect(all["main"].Requests).To(HaveLen(1))
	g.Expect(all["main"].Limits).To(HaveLen(1))
	g.Expect(text(FromRequirements(all, pod))).To(Equal(text(amounts)))

	all["gone"], all["setup"], all["debug"] = all["main"], all["main"], all["main"]
	g.Expect(text(FromRequirements(all, pod))).To(Equal(text(amounts)), "not of containers that cannot be resized")
	g.Expect(Amounts{}.Requirements()).To(BeNil())
	g.Expect(FromRequirements(nil, pod)).To(BeEmpty())
}
