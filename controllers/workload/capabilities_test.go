// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// discovered is an API server whose discovery can be changed and can fail.
type discovered struct {
	*fakediscovery.FakeDiscovery
	clock *clocktesting.FakePassiveClock
	err   error
}

func newDiscovered(resources ...metav1.APIResource) *discovered {
	d := &discovered{
		FakeDiscovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}},
		clock:         clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	d.serve(resources...)
	d.AddReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return d.err != nil, nil, d.err })

	return d
}

func (d *discovered) serve(resources ...metav1.APIResource) {
	d.Resources = []*metav1.APIResourceList{
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{podResize}},
		{GroupVersion: "v1", APIResources: resources},
	}
}

var (
	pods      = metav1.APIResource{Name: "pods", Verbs: []string{"get", "list", "patch"}}
	podResize = metav1.APIResource{Name: "pods/resize", Verbs: []string{"get", "patch", "update"}}
	readOnly  = metav1.APIResource{Name: "pods/resize", Verbs: []string{"get"}}
)

func TestCanResizeIsWhatTheServerSays(t *testing.T) {
	for name, test := range map[string]struct {
		served []metav1.APIResource
		want   bool
	}{
		"served":              {[]metav1.APIResource{pods, podResize}, true},
		"not served":          {[]metav1.APIResource{pods}, false},
		"served to read only": {[]metav1.APIResource{pods, readOnly}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := newDiscovered(test.served...)

			NewWithT(t).Expect(NewCapabilities(server, server.clock).CanResize(t.Context())).To(Equal(test.want))
		})
	}
}

func TestCanResizeAsksAgainAfterAWhile(t *testing.T) {
	g := NewWithT(t)
	server := newDiscovered(pods)
	capabilities := NewCapabilities(server, server.clock)
	g.Expect(capabilities.CanResize(t.Context())).To(BeFalse())

	server.serve(pods, podResize)
	server.clock.SetTime(server.clock.Now().Add(discoveryPeriod - time.Second))
	g.Expect(capabilities.CanResize(t.Context())).To(BeFalse(), "not asked yet")
	g.Expect(server.Actions()).To(HaveLen(1))

	server.clock.SetTime(server.clock.Now().Add(time.Second))
	g.Expect(capabilities.CanResize(t.Context())).To(BeTrue(), "the server was upgraded")
	g.Expect(server.Actions()).To(HaveLen(2))
}

func TestCanResizeWhenTheServerGivesNoAnswer(t *testing.T) {
	g := NewWithT(t)
	server := newDiscovered(pods)
	capabilities := NewCapabilities(server, server.clock)

	server.err = errors.New("the server is overloaded")
	g.Expect(capabilities.CanResize(t.Context())).To(BeTrue(), "nothing is known")
	g.Expect(capabilities.CanResize(t.Context())).To(BeTrue())
	g.Expect(server.Actions()).To(HaveLen(1), "an overloaded server is not asked at every turn")

	server.err = nil
	server.clock.SetTime(server.clock.Now().Add(discoveryPeriod))
	g.Expect(capabilities.CanResize(t.Context())).To(BeFalse())

	server.err = errors.New("the server is overloaded")
	server.clock.SetTime(server.clock.Now().Add(discoveryPeriod))
	g.Expect(capabilities.CanResize(t.Context())).To(BeFalse(), "what it said last holds")
}

func TestCanResizeForManyAtATime(t *testing.T) {
	g := NewWithT(t)
	server := newDiscovered(pods)
	capabilities := NewCapabilities(server, server.clock)

	var all sync.WaitGroup
	answers := make([]bool, 50)
	for i := range answers {
		all.Go(func() { answers[i] = capabilities.CanResize(t.Context()) })
	}
	all.Wait()

	g.Expect(answers).To(HaveEach(false), "no caller goes on before the answer is there")
	g.Expect(server.Actions()).To(HaveLen(1))
}

func TestNoCapabilitiesCanDoEverything(t *testing.T) {
	var capabilities *Capabilities

	NewWithT(t).Expect(capabilities.CanResize(t.Context())).To(BeTrue())
}
