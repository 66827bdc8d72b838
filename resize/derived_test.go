// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The template names the request of the pod for memory, and leaves that for CPU to
// the server.
func TestDerivedSizesOfOurs(t *testing.T) {
	const main = `{requests: {cpu: 100m}}`
	template := specOf(t, "resources: {requests: {memory: 1Gi}}\n"+onlyMain(main))
	with := func(cpu, proxy string) string {
		return "resources: {requests: {memory: 1Gi, cpu: " + cpu + "}}\n" +
			"containers: [{name: main, resources: " + main + "}, {name: proxy, resources: {requests: {cpu: " + proxy + "}}}]"
	}
	derived, limit := Field{Resource: "cpu"}, Field{Limit: true, Resource: "memory"}
	for name, test := range map[string]struct {
		live, want string
		begun      Field
		enforce    bool
		removed    bool
	}{
		"follow a container that admission added": {live: with("150m", "50m"), begun: derived},
		"are set back where they do not follow":   {live: with("400m", "50m"), begun: derived, want: "cpu request of the pod: 400m to 150m"},
		"are set back for others":                 {live: with("400m", "50m"), enforce: true, want: "cpu request of the pod: 400m to 150m"},
		"are left where others set them":          {live: with("400m", "50m")},
		"are left where others changed a container": {
			live:  "resources: {requests: {memory: 1Gi, cpu: 100m}}\n" + onlyMain(`{requests: {cpu: 60m}}`),
			begun: derived,
		},
		"are kept where the server added them": {
			live:  "resources: {requests: {memory: 1Gi, cpu: 100m}, limits: {memory: 1Gi}}\n" + onlyMain(`{requests: {cpu: 100m}, limits: {memory: 64Mi}}`),
			begun: limit,
		},
		"are removed where the server would add none": {
			live:  "resources: {requests: {memory: 1Gi, cpu: 100m}, limits: {memory: 1Gi}}\n" + onlyMain(main),
			begun: limit, removed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			change, refused := Compare(podOf(t, test.live), Wish{
				From: InTemplate(template), To: InTemplate(template), Derived: Derived(template),
				Begun: sets.New(test.begun), Enforce: test.enforce,
			})
			if test.removed {
				g.Expect(refused).To(HaveField("Reason", Removed))
				return
			}
			g.Expect(refused).To(BeNil())
			g.Expect(change.String()).To(Equal(test.want))
		})
	}
}
