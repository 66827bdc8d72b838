// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/insitu-dev/insitu/apis/native"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
)

// candidate is a Deployment whose change is held if the policies act.
func candidate(namespace, name string, change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceOnly"}},
		Spec:       appsv1.DeploymentSpec{Template: webTemplate("app:a"), Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}},
		Status:     appsv1.DeploymentStatus{Replicas: 1},
	}
	if change != nil {
		change(d)
	}
	return d
}

// policies are those of an API server that acts in some namespaces.
type policies struct {
	// holdsNot are the namespaces in which it does not.
	holdsNot map[string]bool
	// answer is an error for all tries; nil if there is none.
	answer error
	tries  []string
}

func (p *policies) client(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, options ...client.PatchOption) error {
			if dry := (&client.PatchOptions{}).ApplyOptions(options).DryRun; len(dry) != 1 {
				return errors.New("this is no dry run")
			}
			p.tries = append(p.tries, object.GetNamespace()+"/"+object.GetName())
			if !p.holdsNot[object.GetNamespace()] {
				object.SetLabels(map[string]string{native.HeldLabel: native.Held})
			}
			return p.answer
		},
	}).Build()
}

// One workload of each namespace speaks for the others, and only one that would be held.
func TestOnePerNamespace(t *testing.T) {
	g := NewWithT(t)
	c := (&policies{}).client(
		candidate("b", "z", nil), candidate("b", "y", nil), candidate("a", "web", nil),
		candidate("b", "a-paused", func(d *appsv1.Deployment) { d.Spec.Paused = true }),
		candidate("b", "a-held", func(d *appsv1.Deployment) { d.Labels[native.HeldLabel] = native.Held }),
		candidate("b", "a-recreated", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }),
		candidate("b", "a-empty", func(d *appsv1.Deployment) { d.Status.Replicas = 0 }),
		candidate("b", "a-other", func(d *appsv1.Deployment) { d.Labels = nil }),
		candidate("c", "manager", func(d *appsv1.Deployment) { d.Spec.Template.Labels[native.PartOfLabel] = "insitu" }),
	)

	found, err := OnePerNamespace(t.Context(), c, Deployment)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveExactElements(HaveField("GetName()", "web"), HaveField("GetName()", "y")))
}

// Whoever is opted in and would not be held hears of it, and so do the metrics, until it
// would be.
func TestHoldWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := &policies{holdsNot: map[string]bool{"left-out": true}}
		recorder, measured := events.NewFakeRecorder(10), workloads.NewMetrics()
		h := newHoldWatch(p.client(candidate("shop", "web", nil), candidate("left-out", "web", nil)), recorder, measured, nil)
		told := func() []string {
			var all []string
			for len(recorder.Events) > 0 {
				all = append(all, <-recorder.Events)
			}
			return all
		}
		series := func() int { return testutil.CollectAndCount(measured, "insitu_native_not_held") }
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Start(ctx) }()

		pass(59 * time.Second)
		g.Expect(p.tries).To(BeEmpty(), "the policies may be on their way")
		pass(10 * time.Second)
		g.Expect(p.tries).To(ConsistOf("shop/web", "left-out/web", "left-out/web"))
		g.Expect(told()).To(ConsistOf(HavePrefix("Warning NotHeld a change of the template would not be held: " +
			"Kubernetes would recreate the pods of each Deployment of namespace left-out")))
		g.Expect(testutil.CollectAndCompare(measured, strings.NewReader(`
# HELP insitu_native_not_held 1 for a namespace in which a change of an opted-in workload of Kubernetes would not be held: Kubernetes would recreate its pods.
# TYPE insitu_native_not_held gauge
insitu_native_not_held{kind="Deployment.apps",namespace="left-out"} 1
`), "insitu_native_not_held")).To(Succeed())

		p.answer = errors.New("a webhook refuses dry runs")
		pass(10 * time.Minute)
		g.Expect(series()).To(Equal(1), "what is not answered is not known")
		p.holdsNot, p.answer = nil, nil
		pass(10 * time.Minute)
		g.Expect(series()).To(BeZero())
		p.holdsNot, p.answer = map[string]bool{"shop": true}, errors.New("a webhook refuses dry runs")
		pass(10 * time.Minute)
		g.Expect(series()).To(BeZero(), "nor is it then")
		g.Expect(told()).To(BeEmpty())

		stop()
		g.Expect(<-ended).NotTo(HaveOccurred())
	})
}

// Before Kubernetes 1.36, nothing is held but by hand.
func TestHoldWatchWithoutPolicies(t *testing.T) {
	g := NewWithT(t)
	p := &policies{holdsNot: map[string]bool{"shop": true}}
	served := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "admissionregistration.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "validatingadmissionpolicies"}},
	}}}}
	recorder := events.NewFakeRecorder(10)
	h := newHoldWatch(p.client(candidate("shop", "web", nil)), recorder, nil, workloads.NewCapabilities(served, clock.RealClock{}))

	h.look(t.Context())

	g.Expect(p.tries).To(BeEmpty())
	g.Expect(recorder.Events).To(BeEmpty())
}

// A workload whose user takes the label off, or pauses it, between the two tries.
func TestHoldWatchOfWhatIsNotToBeHeldAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := &policies{holdsNot: map[string]bool{"shop": true}}
		d := candidate("shop", "web", nil)
		c, recorder := p.client(d), events.NewFakeRecorder(10)
		time.AfterFunc(time.Second, func() {
			d.Labels = nil
			g.Expect(c.Update(t.Context(), d)).To(Succeed())
		})

		newHoldWatch(c, recorder, nil, nil).look(t.Context())

		g.Expect(p.tries).To(HaveLen(1))
		g.Expect(recorder.Events).To(BeEmpty())
	})
}

// An API server that has just lost its policies for a moment, or a write on its way to being
// held, is no reason to warn.
func TestHoldWatchTriesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := &policies{holdsNot: map[string]bool{"shop": true}}
		recorder := events.NewFakeRecorder(10)
		h := newHoldWatch(p.client(candidate("shop", "web", nil)), recorder, nil, nil)
		time.AfterFunc(time.Second, func() { p.holdsNot = nil })

		h.look(t.Context())

		g.Expect(p.tries).To(HaveLen(2))
		g.Expect(recorder.Events).To(BeEmpty())
	})
}
