// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/test/builders"
)

func parse(t testing.TB, raw string) *Template {
	t.Helper()
	template, err := ParseTemplate([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

const (
	alpineImage = "nginx:alpine"
	latestImage = "nginx:latest"
)

func simple(t *testing.T, image string) *Template {
	t.Helper()
	return parse(t, `{"metadata":{"labels":{"app":"sample"}},"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}`)
}

func TestTemplateEqual(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b  string
		equal bool
	}{
		"identical":                  {`{"spec":{"a":1}}`, `{"spec":{"a":1}}`, true},
		"null is absent":             {`{"metadata":{"creationTimestamp":null},"spec":{"a":1}}`, `{"spec":{"a":1}}`, true},
		"empty list is absent":       {`{"spec":{"tolerations":[]}}`, `{"spec":{}}`, true},
		"empty resources are absent": {`{"spec":{"containers":[{"name":"a","resources":{}}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`, true},
		"nested emptiness is absent": {`{"spec":{"containers":[{"name":"a","resources":{"limits":{}}}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`, true},
		"an empty selector selects all": {
			`{"spec":{"topologySpreadConstraints":[{"labelSelector":{}}]}}`, `{"spec":{"topologySpreadConstraints":[{}]}}`, false,
		},
		"a default is absent":     {`{"spec":{"restartPolicy":"Always","hostNetwork":false}}`, `{"spec":{}}`, true},
		"false is not absent":     {`{"spec":{"fromTheFuture":false}}`, `{"spec":{}}`, false},
		"an unknown field counts": {`{"spec":{"fromTheFuture":1}}`, `{"spec":{"fromTheFuture":2}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(parse(t, tc.a).Equal(parse(t, tc.b))).To(Equal(tc.equal))
			g.Expect(parse(t, tc.b).Equal(parse(t, tc.a))).To(Equal(tc.equal))
		})
	}
}

func TestParseTemplateRefusesWhatIsNoObject(t *testing.T) {
	for _, raw := range []string{``, `[]`, `"x"`, `{"spec":`} {
		_, err := ParseTemplate([]byte(raw))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("parse pod template")), raw)
	}
}

func TestCompareRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to       string
		reason, field  string
		messageContain string
	}{
		"an env value": {
			`{"spec":{"containers":[{"name":"main","env":[{"name":"LEVEL","value":"a"}]}]}}`,
			`{"spec":{"containers":[{"name":"main","env":[{"name":"LEVEL","value":"b"}]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].env[LEVEL].value", "was changed",
		},
		"an added env": {
			`{"spec":{"containers":[{"name":"main"}]}}`,
			`{"spec":{"containers":[{"name":"main","env":[{"name":"LEVEL","value":"b"}]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].env", "was added",
		},
		"one env more": {
			`{"spec":{"containers":[{"name":"main","env":[{"name":"A"}]}]}}`,
			`{"spec":{"containers":[{"name":"main","env":[{"name":"A"},{"name":"B"}]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].env[B]", "was added",
		},
		"env in another order": {
			`{"spec":{"containers":[{"name":"main","env":[{"name":"A"},{"name":"B"}]}]}}`,
			`{"spec":{"containers":[{"name":"main","env":[{"name":"B"},{"name":"A"}]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].env", "another order",
		},
		"an argument": {
			`{"spec":{"containers":[{"name":"main","args":["-a","-b"]}]}}`,
			`{"spec":{"containers":[{"name":"main","args":["-a","-c"]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].args[1]", "was changed",
		},
		"fewer arguments": {
			`{"spec":{"containers":[{"name":"main","args":["-a","-b"]}]}}`,
			`{"spec":{"containers":[{"name":"main","args":["-a"]}]}}`,
			ReasonFieldImmutable, "spec.containers[main].args", "has 1 items instead of 2",
		},
		"a new container": {
			`{"spec":{"containers":[{"name":"main","image":"a"}]}}`,
			`{"spec":{"containers":[{"name":"main","image":"b"},{"name":"side","image":"b"}]}}`,
			ReasonContainersChanged, "spec.containers[side]", "was added",
		},
		"a removed container": {
			`{"spec":{"containers":[{"name":"main"},{"name":"side"}]}}`, `{"spec":{"containers":[{"name":"main"}]}}`,
			ReasonContainersChanged, "spec.containers[side]", "was removed",
		},
		"containers in another order": {
			`{"spec":{"containers":[{"name":"main"},{"name":"side"}]}}`, `{"spec":{"containers":[{"name":"side"},{"name":"main"}]}}`,
			ReasonContainersChanged, "spec.containers", "another order",
		},
		"the image of an init container": {
			`{"spec":{"initContainers":[{"name":"init","image":"a"}]}}`, `{"spec":{"initContainers":[{"name":"init","image":"b"}]}}`,
			ReasonRunsOnce, "spec.initContainers[init].image", "was changed",
		},
		"a removed field": {
			`{"spec":{"hostNetwork":true,"nodeName":"a"}}`, `{"spec":{"hostNetwork":true}}`,
			ReasonFieldImmutable, "spec.nodeName", "was removed",
		},
		"an AppArmor profile": {
			`{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/main":"unconfined"}},"spec":{}}`,
			`{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/main":"runtime/default"}},"spec":{}}`,
			ReasonFieldImmutable, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]", "was changed",
		},
		"an added AppArmor profile": {
			`{"spec":{}}`, `{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/main":"unconfined"}},"spec":{}}`,
			ReasonFieldImmutable, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]", "was added",
		},
		"a removed mirror pod annotation": {
			`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"a"}},"spec":{}}`, `{"spec":{}}`,
			ReasonFieldImmutable, "metadata.annotations[kubernetes.io/config.mirror]", "was removed",
		},
		"a field of another kind": {
			`{"spec":{"x":[1]}}`, `{"spec":{"x":"1"}}`, ReasonFieldImmutable, "spec.x", "was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, refused := Compare(builders.Pod("sample-0", "a", "a").Build(), parse(t, tc.from), parse(t, tc.to), patched)
			g.Expect(refused).NotTo(BeNil())
			g.Expect(refused.Reason).To(Equal(tc.reason))
			g.Expect(refused.Field).To(Equal(tc.field))
			g.Expect(refused.Message).To(And(ContainSubstring(tc.field), ContainSubstring(tc.messageContain)))
		})
	}
}

// The readiness gate in the template is no difference for a pod that has it: new pods
// have it in any case. Another gate is one.
func TestCompareOfTheReadinessGate(t *testing.T) {
	gates := func(names ...string) string {
		list := ""
		for _, name := range names {
			list += `,{"conditionType":"` + name + `"}`
		}
		return `{"spec":{"nodeName":"a","readinessGates":[` + strings.TrimPrefix(list, ",") + `]}}`
	}
	const ours, theirs = "InPlaceUpdateReady", "example.io/ready"
	for name, tc := range map[string]struct {
		from, to string
		lacks    bool
		native   bool
		want     string
	}{
		"added to the template":                  {from: gates(), to: gates(ours)},
		"removed from the template":              {from: gates(ours), to: gates()},
		"added beside another":                   {from: gates(theirs), to: gates(ours, theirs)},
		"moved":                                  {from: gates(theirs, ours), to: gates(ours, theirs)},
		"in both templates, which the pod lacks": {from: gates(ours), to: gates(ours), lacks: true},
		"removed, which the pod lacks":           {from: gates(ours), to: gates(), lacks: true},
		"added, which the pod lacks":             {from: gates(), to: gates(ours), lacks: true, want: "spec.readinessGates[InPlaceUpdateReady] was added"},
		"another added":                          {from: gates(ours), to: gates(theirs), want: "spec.readinessGates was added"},
		"another in its place":                   {from: gates("a", ours), to: gates("b", ours), want: "spec.readinessGates[0].conditionType was changed"},
		"added to the template of a Deployment":  {from: gates(), to: gates(ours), native: true, want: "spec.readinessGates[InPlaceUpdateReady] was added"},
		"removed from the template of one":       {from: gates(ours), to: gates(), native: true, want: "spec.readinessGates[InPlaceUpdateReady] was removed"},
		"in both templates of one":               {from: gates(ours), to: gates(ours), native: true},
		"a text instead of a list of gates":      {from: `{"spec":{"readinessGates":"a"}}`, to: `{"spec":{"readinessGates":"a"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := builders.Pod("sample-0", "a", alpineImage)
			if !tc.lacks {
				pod.Gated(corev1.ConditionTrue, after(0))
			}
			from, to := parse(t, tc.from), parse(t, tc.to)
			if tc.native {
				from, to = from.Native(), to.Native()
			}
			change, refused := Compare(pod.Build(), from, to, patched)
			if tc.want == "" {
				g.Expect(refused).To(BeNil())
				g.Expect(change.isEmpty()).To(BeTrue())
				return
			}
			g.Expect(refused).To(HaveField("Reason", ReasonFieldImmutable))
			g.Expect(refused.Message).To(HavePrefix(tc.want))
		})
	}
}

func TestCompareRefusesAnUnknownRevision(t *testing.T) {
	_, refused := Compare(builders.Pod("sample-0", "a", alpineImage).Build(), nil, simple(t, alpineImage), patched)
	NewWithT(t).Expect(refused).To(HaveField("Reason", ReasonRevisionUnknown))
}

func TestCompareImages(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).Build()

	change, refused := Compare(pod, simple(t, alpineImage), simple(t, latestImage), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change).To(Equal(Change{Images: []ImageChange{{Container: "main", From: alpineImage, To: latestImage}}}))
	g.Expect(change.Restarts()).To(BeTrue())
	g.Expect(change.String()).To(Equal("image of main: nginx:alpine to nginx:latest"))

	change, refused = Compare(pod, simple(t, alpineImage), simple(t, alpineImage), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change).To(BeZero())
	g.Expect(change.String()).To(Equal("revision label only"))
}

func TestCompareLeavesAnImageThatAdmissionRewroteAlone(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", "nginx:alpine@sha256:0123").Build()
	to := parse(t, `{"metadata":{"labels":{"app":"sample","new":"x"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`)

	change, refused := Compare(pod, simple(t, alpineImage), to, patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change).To(Equal(Change{Labels: map[string]*string{"new": ptr.To("x")}}))
}

func TestCompareDoesNotRepeatWhatThePodIs(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", latestImage).Build()

	change, refused := Compare(pod, simple(t, alpineImage), simple(t, latestImage), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change.Restarts()).To(BeFalse())
}

func TestCompareMetadata(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).
		Label("kept", "1").Label("changed", "1").Label("removed", "1").Label("theirs", "1").Label("touched", "by hand").
		Annotation("note", "old").Build()
	from := parse(t, `{"metadata":{"labels":{"kept":"1","changed":"1","removed":"1","gone":"1","touched":"1"},"annotations":{"note":"old"}},"spec":{}}`)
	to := parse(t, `{"metadata":{"labels":{"kept":"1","changed":"2","added":"1","touched":"1"},"annotations":{"note":"new"}},"spec":{}}`)

	change, refused := Compare(pod, from, to, patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change.Labels).To(Equal(map[string]*string{"changed": ptr.To("2"), "added": ptr.To("1"), "removed": nil}))
	g.Expect(change.Annotations).To(Equal(map[string]*string{"note": ptr.To("new")}))
	g.Expect(change.Restarts()).To(BeFalse())
	g.Expect(change.String()).To(Equal("labels or annotations"))
}

const envFromMetadata = `{"metadata":{"annotations":{"level":"%s"},"labels":{"zone":"%s"}},"spec":{"containers":[` +
	`{"name":"main","image":"%s","env":[{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]},` +
	`{"name":"side","image":"side:1","env":[{"name":"ZONE","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['zone']"}}}]}]}}`

// A running container keeps the environment that it was started with, so it is
// restarted: by its new image, or by another spelling of the present one.
func TestCompareRestartsWhatReadsMetadata(t *testing.T) {
	alpineOtherwise, sideOtherwise := pinned(alpineImage), pinned("side:1")
	for name, tc := range map[string]struct {
		level, zone, image string
		want               []string
	}{
		"an annotation that an env reads": {"2", "a", alpineImage, []string{
			"restart of main as " + alpineOtherwise + ", since it reads metadata.annotations['level']",
		}},
		"a label that an env reads": {"1", "b", alpineImage, []string{
			"restart of side as " + sideOtherwise + ", since it reads metadata.labels['zone']",
		}},
		"the container that reads it restarts anyway": {"2", "a", latestImage, []string{"image of main: nginx:alpine to nginx:latest"}},
		"both": {"2", "b", latestImage, []string{
			"image of main: nginx:alpine to nginx:latest", "restart of side as " + sideOtherwise + ", since it reads metadata.labels['zone']",
		}},
		"nothing that an env reads": {"1", "a", alpineImage, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			change, refused := Compare(readingPod().Build(), readingTemplate(t, "1", "a", alpineImage),
				readingTemplate(t, tc.level, tc.zone, tc.image), patched)
			g.Expect(refused).To(BeNil())
			words := make([]string, 0, len(change.Images))
			for _, image := range change.Images {
				words = append(words, image.String())
			}
			g.Expect(words).To(Equal(tc.want))
		})
	}
}

// readingPod is made from the template of readingTemplate, and its containers run.
func readingPod() *builders.PodBuilder {
	return builders.Pod("sample-0", "a", alpineImage).Label("zone", "a").Annotation("level", "1").With(func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side:1"})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, builders.RunningContainer("side", "side-1", "side:1", builders.Start))
	})
}

func readingTemplate(t *testing.T, level, zone, image string) *Template {
	t.Helper()
	return parse(t, fmt.Sprintf(envFromMetadata, level, zone, image))
}

// pinned spells an image with its digest.
func pinned(image string) string {
	_, digest, _ := strings.Cut(builders.ImageID(image), "@")
	return image + "@" + digest
}

func TestCompareRefusesWhatCannotBeRestarted(t *testing.T) {
	g := NewWithT(t)
	loaded := readingPod().With(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "sha256:0123" })
	_, refused := Compare(loaded.Build(), readingTemplate(t, "1", "a", "registry.example.com/app:1"),
		readingTemplate(t, "2", "a", "registry.example.com/app:1"), patched)
	g.Expect(refused).To(BeNil(), "the image in the pod is one of Docker Hub")

	loaded.With(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example.com/app:1" })
	_, refused = Compare(loaded.Build(), readingTemplate(t, "1", "a", "registry.example.com/app:1"),
		readingTemplate(t, "2", "a", "registry.example.com/app:1"), patched)
	g.Expect(refused).To(And(HaveField("Reason", ReasonEnvFromMetadata), HaveField("Field", "spec.containers[main].env[LEVEL]"),
		HaveField("Message", ContainSubstring("of registry.example.com/app:1 no other spelling is known"))))
}

// A manifest pasted together from the YAML of a pod has the pod's own labels.
func TestCompareLeavesTheOperatorsOwnKeysAlone(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-1", "a", alpineImage).Label("statefulset.kubernetes.io/pod-name", "sample-1").Build()
	to := parse(t, `{"metadata":{"labels":{"app":"sample","statefulset.kubernetes.io/pod-name":"sample-0","controller-revision-hash":"x"}},`+
		`"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`)
	for _, way := range [][2]*Template{{simple(t, alpineImage), to}, {to, simple(t, alpineImage)}} {
		change, refused := Compare(pod, way[0], way[1], patched)
		g.Expect(refused).To(BeNil())
		g.Expect(change).To(BeZero())
	}
}

func TestCompareRefusesWhatAnInitContainerHasRead(t *testing.T) {
	g := NewWithT(t)
	const raw = `{"metadata":{"annotations":{"level":"1"}},"spec":{"initContainers":[{"name":"setup","image":"setup:1","env":[` +
		`{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]}],"containers":[{"name":"main","image":"nginx:alpine"}]}}`
	_, refused := Compare(settledPod().Build(), parse(t, raw), parse(t, strings.Replace(raw, `"level":"1"`, `"level":"2"`, 1)), patched)
	g.Expect(refused).To(And(HaveField("Reason", ReasonEnvFromMetadata), HaveField("Field", "spec.initContainers[setup].env[LEVEL]"),
		HaveField("Message", ContainSubstring("does not run again"))))
}

func TestCompareRestartsASidecarThatReadsMetadata(t *testing.T) {
	g := NewWithT(t)
	change, refused := Compare(sidecarPod("a", proxyV1, oldProxy()).Build(), sidecarTemplate(t), sidecarTemplate(t, `"level":"info"`, `"level":"debug"`), patched)
	g.Expect(refused).To(BeNil())
	g.Expect(change.Images).To(ConsistOf(And(HaveField("Container", "proxy"), HaveField("Sidecar", true), HaveField("To", pinned(proxyV1)))))
}
