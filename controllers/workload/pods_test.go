// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// refusingPods makes pods where the server refuses those of which a function says so, and
// counts the tries.
func refusingPods(refuses func(name string) bool) (pods *Pods, tries *int) {
	tries = new(int)
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			*tries++
			if refuses(obj.GetName()) {
				return apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), errors.New("denied by a policy"))
			}
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	pods = NewPods(c, events.NewFakeRecorder(1000))
	pods.Parallelism = 1
	return pods, tries
}

// missing returns the pods of a set that do not exist.
func (p *Pods) missing(g Gomega, replicas int) []NewPod {
	var missing []NewPod
	for ordinal := range replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("sample-%d", ordinal)}}
		err := p.Client.Get(context.Background(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		if err != nil {
			missing = append(missing, NewPod{Pod: pod})
		}
	}
	return missing
}

var sampleOwner = Owner{Object: &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "1"}}}

// A policy refuses the twenty pods with the lowest ordinals for good.
func TestPodsThatAreRefusedDoNotKeepOthersAway(t *testing.T) {
	g := NewWithT(t)
	refused := map[string]bool{}
	for ordinal := range 20 {
		refused[fmt.Sprintf("sample-%d", ordinal)] = true
	}
	pods, _ := refusingPods(func(name string) bool { return refused[name] })
	for range 10 {
		g.Expect(pods.Create(t.Context(), sampleOwner, pods.missing(g, 30))).NotTo(BeEmpty())
	}
	g.Expect(pods.missing(g, 30)).To(HaveLen(20), "the others are there")

	refused = nil // the policy is gone
	for range 3 {
		pods.Create(t.Context(), sampleOwner, pods.missing(g, 30))
	}
	g.Expect(pods.missing(g, 30)).To(BeEmpty())
}

func TestAFewPodsAreTriedWhereAllAreRefused(t *testing.T) {
	g := NewWithT(t)
	pods, tries := refusingPods(func(string) bool { return true })
	for round := 1; round <= 20; round++ {
		g.Expect(pods.Create(t.Context(), sampleOwner, pods.missing(g, 30))).To(HaveLen(MaxFailures))
		g.Expect(*tries).To(Equal(round * MaxFailures))
	}
}

// A pod whose name is made up has another one with each try. What is said of it is the same, so
// that it is one event with a count, and no write of the status.
func TestWhatIsSaidOfPodsWithNamesAtRandom(t *testing.T) {
	g := NewWithT(t)
	pods, _ := refusingPods(func(string) bool { return true })
	recorder := events.NewFakeRecorder(1000)
	pods.Recorder = recorder
	said := map[string]int{}
	for round := range 3 {
		var wanted []NewPod
		for i := range MaxFailures {
			name := fmt.Sprintf("sample-%c%c", 'a'+round, 'a'+i)
			wanted = append(wanted, NewPod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, MadeUp: true})
		}
		errs := pods.Create(t.Context(), sampleOwner, wanted)
		g.Expect(errs).To(HaveEach(Satisfy(apierrors.IsForbidden)))
		said[Summary(errs)]++
		for range errs {
			said[<-recorder.Events]++
		}
	}
	g.Expect(said).To(Equal(map[string]int{
		`create pod default/sample-…: pods "sample-…" is forbidden: denied by a policy`:              3,
		`Warning FailedCreate create pod sample-…: pods "sample-…" is forbidden: denied by a policy`: 3 * MaxFailures,
	}))
}
