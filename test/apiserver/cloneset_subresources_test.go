// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// typedCloneSet creates a set with two containers and returns it typed.
func typedCloneSet(t *testing.T, c client.Client, name string) *appsv1beta1.CloneSet {
	t.Helper()

	object := patchOf(t, validCloneSet, appsv1beta1.GroupVersion.String(), `
metadata: {name: `+name+`}
spec: {template: {spec: {containers: [{name: main, image: "nginx:alpine"}, {name: log, image: "fluent:1"}]}}}`)
	created(t, c, object)

	set := &appsv1beta1.CloneSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), set))

	return set
}

// fullCloneSetStatus is a status with every field set.
func fullCloneSetStatus() appsv1beta1.CloneSetStatus {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())

	return appsv1beta1.CloneSetStatus{
		ObservedGeneration: 1, Replicas: 7, ReadyReplicas: 6, AvailableReplicas: 5,
		UpdatedReplicas: 4, UpdatedReadyReplicas: 3, UpdatedAvailableReplicas: 2, ExpectedUpdatedReplicas: 4,
		InPlaceUpdated: 1, Recreated: 3, CurrentRevision: "sample-1", UpdateRevision: "sample-2", CollisionCount: ptr.To[int32](1),
		Conditions: []appsv1beta1.CloneSetCondition{{
			Type: appsv1beta1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: appsv1beta1.ReasonCloneSetUpdated,
			Message: appsv1beta1.MessageCloneSetUpdated, ObservedGeneration: 1, LastUpdateTime: now, LastTransitionTime: now,
		}},
		LabelSelector: "app=sample",
		Resize:        &appsv1beta1.ResizeStatus{InProgress: 3, Deferred: 2, Kept: 1},
		Blockers:      []appsv1beta1.Blocker{{Pod: "sample-abcde", Step: "Verify", Reason: "ImagePullBackOff", Message: "no such image", Since: now}},
	}
}

func TestCloneSetStatusSubresource(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedCloneSet(t, c, "clone-with-status")

	set.Spec.Replicas = ptr.To[int32](9)
	set.Status = fullCloneSetStatus()
	must(t, c.Status().Update(t.Context(), set))

	read := &appsv1beta1.CloneSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), read))
	g.Expect(read.Spec.Replicas).To(HaveValue(Equal(int32(1))), "a status write must not change the spec")
	g.Expect(read.Generation).To(Equal(int64(1)))
	g.Expect(read.Status).To(Equal(fullCloneSetStatus()))

	read.Status = appsv1beta1.CloneSetStatus{}
	read.Spec.Replicas = ptr.To[int32](9)
	must(t, c.Update(t.Context(), read))
	g.Expect(read.Status.Replicas).To(Equal(int32(7)), "a spec write must not change the status")
	g.Expect(read.Generation).To(Equal(int64(2)))
}

func TestCloneSetStatusIsChecked(t *testing.T) {
	c := strictClient(t)
	set := typedCloneSet(t, c, "clone-with-mistakes")

	for range 11 {
		set.Status.Blockers = append(set.Status.Blockers, appsv1beta1.Blocker{Pod: "a", Reason: "B"})
	}

	assertRefused(t, c.Status().Update(t.Context(), set), "status.blockers", "must have at most 10 items")

	set.Status = fullCloneSetStatus()
	set.Status.Conditions = append(set.Status.Conditions, set.Status.Conditions...)
	assertRefused(t, c.Status().Update(t.Context(), set), "status.conditions[1]", "Duplicate value")
}

func TestCloneSetScaleSubresource(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedCloneSet(t, c, "clone-with-scale")
	set.Status = fullCloneSetStatus()
	must(t, c.Status().Update(t.Context(), set))

	scale := &autoscalingv1.Scale{}
	must(t, c.SubResource("scale").Get(t.Context(), set, scale))
	g.Expect(scale.Spec.Replicas).To(Equal(int32(1)))
	g.Expect(scale.Status.Replicas).To(Equal(int32(7)))
	g.Expect(scale.Status.Selector).To(Equal("app=sample"))

	scale.Spec.Replicas = 4
	must(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	g.Expect(set.Spec.Replicas).To(HaveValue(Equal(int32(4))))
}

func TestCloneSetColumns(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedCloneSet(t, c, "clone-with-columns")
	set.Status = fullCloneSetStatus()
	must(t, c.Status().Update(t.Context(), set))

	for _, version := range versions() {
		table := getTable(t, version, "clonesets", set.Name)
		narrow, wide := columns(table)

		g.Expect(narrow).To(HaveKey("AGE"))
		delete(narrow, "AGE")
		g.Expect(narrow).To(Equal(map[string]any{
			"Name": "clone-with-columns", "DESIRED": int64(1), "UPDATED": int64(4), "UPDATED_READY": int64(3),
			"UPDATED_AVAILABLE": int64(2), "READY": int64(6), "TOTAL": int64(7),
		}))
		g.Expect(wide).To(Equal(map[string]any{"CONTAINERS": "main", "IMAGES": "nginx:alpine", "SELECTOR": "app=sample"}))

		var order []string
		for _, column := range table.ColumnDefinitions {
			order = append(order, column.Name)
		}

		g.Expect(order).To(Equal([]string{
			"Name", "DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE", "CONTAINERS", "IMAGES", "SELECTOR",
		}))
	}
}

func TestCloneSetDiscovery(t *testing.T) {
	g := NewWithT(t)

	c, err := discovery.NewDiscoveryClientForConfig(server)
	must(t, err)

	for _, version := range versions() {
		list, err := c.ServerResourcesForGroupVersion(version)
		must(t, err)

		byName := map[string]metav1.APIResource{}
		for _, resource := range list.APIResources {
			byName[resource.Name] = resource
		}

		g.Expect(byName).To(HaveKey("clonesets/status"))
		g.Expect(byName).To(HaveKey("clonesets/scale"))

		set := byName["clonesets"]
		g.Expect(set.ShortNames).To(ConsistOf("clone"))
		g.Expect(set.Categories).To(ConsistOf("all"))
		g.Expect(set.Namespaced).To(BeTrue())
	}
}
