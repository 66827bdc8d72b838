// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/test/builders"
)

// restartable is a template with annotations: two containers, a sidecar, and an init
// container that has ended.
func restartable(t *testing.T, annotations string) *Template {
	t.Helper()
	return parse(t, `{"metadata":{"annotations":{`+annotations+`}},"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:alpine"},{"name":"side","image":"nginx:alpine"}]}}`)
}

// restartablePod is a pod of that template.
func restartablePod() *corev1.Pod {
	pod := builders.Pod("sample-0", "a", alpineImage).
		Sidecar(alpineImage, builders.RunningContainer("proxy", "proxy-1", alpineImage, builders.Start)).Build()
	side := pod.Spec.Containers[0]
	side.Name = "side"
	pod.Spec.Containers = append(pod.Spec.Containers, side)
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
		builders.RunningContainer("side", "side-1", alpineImage, builders.Start))
	return pod
}

func TestAskedRestarts(t *testing.T) {
	const (
		all      = `"kubectl.kubernetes.io/restartedAt":"%"`
		one      = `"restart.insitu.dev/side":"%"`
		sidecar  = `"restart.insitu.dev/proxy":"%"`
		ended    = `"restart.insitu.dev/setup":"%"`
		missing  = `"restart.insitu.dev/missing":"%"`
		checksum = `"checksum/config":"%"`
	)
	at := func(annotation, value string) string { return strings.ReplaceAll(annotation, "%", value) }
	for name, test := range map[string]struct {
		from, to string
		restarts []string
	}{
		"of all":                             {"", at(all, "1"), []string{"main", "side", "proxy"}},
		"of all again":                       {at(all, "1"), at(all, "2"), []string{"main", "side", "proxy"}},
		"of one":                             {"", at(one, "1"), []string{"side"}},
		"of one again":                       {at(one, "1"), at(one, "2"), []string{"side"}},
		"of one, of all before":              {at(all, "1"), at(all, "1") + "," + at(one, "1"), []string{"side"}},
		"of two":                             {"", at(one, "1") + "," + at(sidecar, "1"), []string{"side", "proxy"}},
		"of a sidecar":                       {at(sidecar, "1"), at(sidecar, "2"), []string{"proxy"}},
		"the same":                           {at(all, "1") + "," + at(one, "1"), at(all, "1") + "," + at(one, "1"), nil},
		"all is taken back":                  {at(all, "1"), "", nil},
		"one is taken back":                  {at(one, "1"), "", nil},
		"of a container that has ended":      {"", at(ended, "1"), nil},
		"of a container that is not there":   {"", at(missing, "1"), nil},
		"by what asks for one natively only": {at(checksum, "1"), at(checksum, "2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from, to := restartable(t, test.from), restartable(t, test.to)

			change, refused := Compare(restartablePod(), from, to, after(0))

			g.Expect(refused).To(BeNil())
			g.Expect(change.restarted()).To(ConsistOf(test.restarts))
			for _, image := range change.Images {
				g.Expect(image.Asked).To(BeTrue())
				g.Expect(image.String()).To(And(HavePrefix("restart of "), HaveSuffix(" asks")))
			}
			g.Expect(from.Equal(to)).To(Equal(test.from == test.to), "what asks for a restart is a revision")
		})
	}
}

// An image that changes restarts its container anyway.
func TestAskedRestartTogetherWithAnImage(t *testing.T) {
	g := NewWithT(t)
	from, to := restartable(t, ""), parse(t, `{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"1"}},"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:latest"},{"name":"side","image":"nginx:alpine"}]}}`)

	change, refused := Compare(restartablePod(), from, to, after(0))

	g.Expect(refused).To(BeNil())
	g.Expect(change.restarted()).To(ConsistOf("main", "side", "proxy"))
	g.Expect(change.Images[0]).To(And(HaveField("To", "nginx:latest"), HaveField("Restart", false)))
}

// Where its image has one spelling only, it says what asked for the restart.
func TestAskedRestartOfWhatCannotBe(t *testing.T) {
	g := NewWithT(t)
	text := `{"metadata":{"annotations":{"restart.insitu.dev/main":"%"}},"spec":{"containers":[{"name":"main","image":"registry:5000/nginx:1"}]}}`
	pod := builders.Pod("sample-0", "a", "registry:5000/nginx:1").Build()
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways

	_, refused := Compare(pod, parse(t, strings.Replace(text, "%", "1", 1)), parse(t, strings.Replace(text, "%", "2", 1)), after(0))

	g.Expect(refused).To(HaveField("Field", "metadata.annotations['restart.insitu.dev/main']"))
	g.Expect(refused.Message).To(HavePrefix("container main: it can be restarted by spelling its image otherwise only"))
}
