// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const (
	oldImage = "registry.example/shop/api:1.8.2"
	newImage = "registry.example/shop/api:1.9.0"
)

// source says what a test puts into it.
type source struct {
	changed chan struct{}

	mu        sync.Mutex
	lists     int
	workloads []report.Workload
	err       error
	events    []dashboard.Event
	plan      report.Plan
	planErr   error
	asked     []dashboard.Change
}

func newSource(workloads ...report.Workload) *source {
	return &source{changed: make(chan struct{}, 1), workloads: workloads}
}

func (s *source) List(context.Context) ([]report.Workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.err != nil {
		return nil, s.err
	}
	// A copy of its own, so that tests may change pods in place.
	data, err := json.Marshal(s.workloads)
	if err != nil {
		return nil, err
	}
	var list []report.Workload
	return list, json.Unmarshal(data, &list)
}

func (s *source) Changed() <-chan struct{} { return s.changed }

// Events returns those of pods whose names begin with that of the workload.
func (s *source) Events(_ context.Context, ref report.Ref) ([]dashboard.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e dashboard.Event) bool { return !strings.HasPrefix(e.Pod+e.Message, ref.Name) }), nil
}

func (s *source) Plan(_ context.Context, _ report.Ref, change dashboard.Change) (report.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, change)
	return s.plan, s.planErr
}

// set changes what the source says, and tells that it did.
func (s *source) set(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// setAndAwait does so, and returns once it was read.
func (s *source) setAndAwait(t *testing.T, change func()) {
	t.Helper()
	var before int
	s.set(func() { change(); before = s.lists })
	NewWithT(t).Eventually(func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lists
	}).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(BeNumerically(">", before))
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

func resources(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return corev1.ResourceRequirements{Requests: list, Limits: corev1.ResourceList{corev1.ResourceMemory: list[corev1.ResourceMemory]}}
}

// kindsOf are the groups of the kinds.
var kindsOf = map[string]string{"CloneSet": "apps.kruise.io/v1beta1", "StatefulSet": "apps.kruise.io/v1beta1", "Deployment": "apps/v1", "DaemonSet": "apps/v1"}

// makeWorkload returns a healthy workload with this many pods.
func makeWorkload(kind, namespace, name string, pods int32) report.Workload {
	w := report.Workload{
		Ref: report.Ref{APIVersion: kindsOf[kind], Kind: kind, Namespace: namespace, Name: name}, UID: types.UID(namespace + name),
		Driver: report.Insitu, Phase: report.Healthy, Policy: "InPlaceIfPossible",
		Replicas: pods, Updated: pods, Ready: pods, Available: pods, InPlace: pods, MaxUnavailable: max(1, pods/4),
		Revisions: []report.Revision{
			{Name: name + "-7d9c5b6f4", Number: 8, Images: []string{newImage}, IsUpdate: true, Pods: pods, CreationTimestamp: ago(11 * time.Minute)},
		},
		Pods: []report.Pod{}, Blockers: []report.Blocker{}, CreationTimestamp: ago(90 * 24 * time.Hour),
	}
	for i := range pods {
		w.Pods = append(w.Pods, makePod(&w, int(i)))
	}
	return w
}

func makePod(w *report.Workload, ordinal int) report.Pod {
	name := fmt.Sprintf("%s-%d", w.Name, ordinal)
	return report.Pod{
		Name: name, UID: types.UID(w.Namespace + name), Node: fmt.Sprintf("node-%d", ordinal%5+1), IP: fmt.Sprintf("10.12.%d.%d", ordinal/200, ordinal%200+10),
		Revision: w.Revisions[0].Name, State: "Settled", Updated: true, Ready: true, Available: true, InPlace: true,
		Restarts: 1, CreationTimestamp: ago(40 * 24 * time.Hour), Since: ago(time.Hour),
		Containers: []report.Container{
			{Name: "api", State: "Running", Ready: true, Restarts: 1, Image: newImage, Resources: resources("500m", "512Mi")},
			{Name: "proxy", Sidecar: true, State: "Running", Ready: true, Image: "registry.example/mesh/proxy:2.4", Resources: resources("100m", "64Mi")},
		},
	}
}

// rollOut gives a workload a revision to come, that no pod has.
func rollOut(w *report.Workload) {
	w.Phase, w.Reason, w.Message = report.Progressing, "RollingUpdate", "pods are updated in place, 3 at a time"
	w.Updated, w.InPlace = 0, 0
	w.Revisions = []report.Revision{
		{Name: w.Name + "-7d9c5b6f4", Number: 8, Images: []string{newImage}, IsUpdate: true, CreationTimestamp: ago(11 * time.Minute)},
		{Name: w.Name + "-5f6b8d9c7", Number: 7, Images: []string{oldImage}, IsCurrent: true, Pods: w.Replicas, CreationTimestamp: ago(9 * 24 * time.Hour)},
	}
	for i := range w.Pods {
		pod := &w.Pods[i]
		pod.State, pod.Updated, pod.InPlace, pod.Revision = "Settled", false, false, w.Revisions[1].Name
		pod.Containers[0].Image, pod.Containers[0].WantedImage = oldImage, newImage
	}
}

// enter moves a pod to a step, since a time.
func enter(w *report.Workload, ordinal int, state string, since metav1.Time) {
	pod := &w.Pods[ordinal]
	pod.State, pod.Since = state, since
	serves := slices.Contains([]string{"Settled", "Waiting", "HookHeld", "Resizing"}, state)
	pod.Ready, pod.Available = serves, serves
	pod.Reason, pod.Message = "", ""
	switch state {
	case "Waiting":
		pod.Reason, pod.Message = "MaxUnavailable", "as many pods are unavailable as maxUnavailable allows"
	case "HookHeld":
		pod.Reason, pod.Message = "HookHeld", "the label example.com/drained of lifecycle hook inPlaceUpdate is not set"
	case "Draining":
		pod.Reason, pod.Message = "EndpointsListPod", "EndpointSlice shop/web-x2k9q still lists the pod as ready"
	case "Restarting", "Verifying":
		pod.Containers[0].Image, pod.Containers[0].WantedImage = newImage, ""
		pod.Containers[0].State, pod.Containers[0].Ready = "ContainerCreating", false
		pod.Revision = ""
	case "Settled":
		pod.Containers[0].Image, pod.Containers[0].WantedImage = newImage, ""
		pod.Containers[0].State, pod.Containers[0].Ready = "Running", true
		pod.Updated, pod.InPlace, pod.Revision = true, true, w.Revisions[0].Name
	}
	count(w)
}

// count adds up what the pods are.
func count(w *report.Workload) {
	w.Updated, w.Ready, w.Available, w.InPlace = 0, 0, 0, 0
	for i := range w.Pods {
		w.Updated += one(w.Pods[i].Updated)
		w.Ready += one(w.Pods[i].Ready)
		w.Available += one(w.Pods[i].Available)
		w.InPlace += one(w.Pods[i].InPlace)
	}
	if len(w.Revisions) > 1 {
		w.Revisions[0].Pods, w.Revisions[1].Pods = w.Updated, w.Replicas-w.Updated
	}
}

func one(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// stall makes a workload one that does not get on without help.
func stall(w *report.Workload, blocker report.Blocker, stuck ...int) {
	rollOut(w)
	blocker.NeedsHelp = true
	for _, ordinal := range stuck {
		enter(w, ordinal, "Stuck", blocker.Since)
		w.Pods[ordinal].Reason, w.Pods[ordinal].Message = blocker.Reason, blocker.Message
		blocker.Pod, blocker.Step = w.Pods[ordinal].Name, "Stuck"
		w.Blockers = append(w.Blockers, blocker)
	}
	w.Phase, w.Reason, w.Message = report.Stalled, blocker.Reason, blocker.Message
}

// fourStuck are a bad image, a hook that holds, a resize that no node has room for, and a
// claim that cannot grow.
func fourStuck() []report.Workload {
	image := makeWorkload("StatefulSet", "shop", "orders", 5)
	stall(&image, report.Blocker{
		Reason:  "ImagePullBackOff",
		Message: "container api: registry.example/shop/api:1.9.O: manifest unknown",
		Advice: "Name an image that exists, or go back: `kubectl describe pod orders-4 -n shop`; " +
			"`kubectl insitu undo statefulset.apps.kruise.io/orders -n shop`",
		Since: ago(14 * time.Minute),
	}, 4)
	hook := makeWorkload("CloneSet", "shop", "cart", 6)
	stall(&hook, report.Blocker{
		Reason:  "HookHeld",
		Message: "the label example.com/drained of lifecycle hook inPlaceUpdate is not set",
		Advice:  "Have the owner of the hook set the label once the pod is drained",
		Since:   ago(3 * time.Hour),
	}, 0, 1, 2)
	for i := range 3 {
		enter(&hook, i, "HookHeld", ago(3*time.Hour))
		hook.Blockers[i].Step = "HookHeld"
	}
	resize := makeWorkload("StatefulSet", "search", "index", 3)
	stall(&resize, report.Blocker{
		Reason:  "ResizeInfeasible",
		Message: "node node-3 has 8 CPUs, the pod asks for 12",
		Advice:  "Ask for sizes that fit, have such pods recreated by resize.onInfeasible Recreate, or go back: `kubectl insitu undo statefulset.apps.kruise.io/index -n search`",
		Since:   ago(26 * time.Minute),
	}, 2)
	resize.Pods[2].Containers[0].WantedResources = func() *corev1.ResourceRequirements { r := resources("12", "16Gi"); return &r }()
	claim := makeWorkload("StatefulSet", "billing", "ledger", 3)
	stall(&claim, report.Blocker{
		Reason:  "ClaimCannotGrow",
		Message: "claim data-ledger-2: storage class local-ssd does not allow volume expansion",
		Advice:  "Move the claims to a class that grows, or take the larger size back: `kubectl insitu undo statefulset.apps.kruise.io/ledger -n billing`",
		Since:   ago(2 * 24 * time.Hour),
	}, 2)
	claim.Pods[2].Claims = []report.Claim{{
		Name: "data-ledger-2", Template: "data", Capacity: "10Gi", Requested: "10Gi", Wanted: "20Gi", Class: "local-ssd", Phase: "Bound",
		Reason: "NotExpandable", Message: "storage class local-ssd does not allow volume expansion",
	}}
	return []report.Workload{image, hook, resize, claim}
}

// everything is a cluster with a bit of each.
func everything() []report.Workload {
	canary := makeWorkload("StatefulSet", "shop", "recommend", 8)
	rollOut(&canary)
	for i := 6; i < 8; i++ {
		enter(&canary, i, "Settled", ago(20*time.Minute))
	}
	canary.Phase, canary.Reason, canary.Message, canary.Partition = report.Paused, "PartitionReached", "6 pods stay at their revision, as partition says", "6"
	web := makeWorkload("Deployment", "shop", "web", 12)
	rollOut(&web)
	return append(fourStuck(), web, canary,
		makeWorkload("DaemonSet", "monitoring", "node-agent", 40), makeWorkload("Deployment", "shop", "checkout", 6),
		makeWorkload("CloneSet", "search", "crawler", 24), makeWorkload("StatefulSet", "billing", "postgres", 3))
}

// find returns a workload of the source by its name.
func (s *source) find(name string) *report.Workload {
	i := slices.IndexFunc(s.workloads, func(w report.Workload) bool { return w.Name == name })
	return &s.workloads[i]
}

// story tells the source of a rollout of web that began ten minutes ago, step by step, and
// leaves it in the middle.
func (s *source) story(t *testing.T) {
	t.Helper()
	steps := []string{"Waiting", "Draining", "Restarting", "Verifying", "Settled"}
	began := time.Now().Add(-10 * time.Minute)
	s.setAndAwait(t, func() {
		web := s.find("web")
		for i := range web.Pods {
			web.Pods[i].Since = metav1.NewTime(began)
		}
	})
	for tick := range 9 {
		s.setAndAwait(t, func() {
			web := s.find("web")
			for i := range web.Pods {
				// Three at a time; each group begins three ticks after the one before.
				step := tick - (i/3)*3
				if step < 0 || step >= len(steps) {
					continue
				}
				enter(web, i, steps[step], metav1.NewTime(began.Add(time.Duration(tick*65+i*7)*time.Second)))
			}
		})
	}
}
