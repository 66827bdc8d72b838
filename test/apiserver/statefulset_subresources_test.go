// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// typedSet creates a set with two containers and returns it typed.
func typedSet(t *testing.T, c client.Client, name string) *appsv1beta1.StatefulSet {
	t.Helper()

	object := patched(t, appsv1beta1.GroupVersion.String(), `
metadata: {name: `+name+`}
spec: {template: {spec: {containers: [{name: main, image: "nginx:alpine"}, {name: log, image: "fluent:1"}]}}}`)
	created(t, c, object)

	set := &appsv1beta1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), set))

	return set
}

// fullStatus is a status with every field set.
func fullStatus() appsv1beta1.StatefulSetStatus {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	collisions := int32(1)

	return appsv1beta1.StatefulSetStatus{
		ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 2, CurrentReplicas: 1,
		UpdatedReplicas: 2, UpdatedReadyReplicas: 1, UpdatedAvailableReplicas: 1, InPlaceUpdated: 1, Recreated: 1,
		CurrentRevision: "sample-1", UpdateRevision: "sample-2", CollisionCount: &collisions,
		Conditions: []metav1.Condition{{
			Type: appsv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: appsv1beta1.ReasonUpdating,
			Message: "1 of 3 pods to go", ObservedGeneration: 1, LastTransitionTime: now,
		}},
		LabelSelector: "app=sample",
		Resize:        &appsv1beta1.ResizeStatus{InProgress: 3, Deferred: 2, Kept: 1},
		VolumeClaims:  []appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 2}},
		Blockers:      []appsv1beta1.Blocker{{Pod: "sample-2", Step: "Verify", Reason: "ImagePullBackOff", Message: "no such image", Since: now}},
	}
}

func TestStatusSubresource(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedSet(t, c, "with-status")

	replicas := int32(9)
	set.Spec.Replicas = &replicas
	set.Status = fullStatus()
	must(t, c.Status().Update(t.Context(), set))

	read := &appsv1beta1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), read))
	g.Expect(read.Spec.Replicas).To(HaveValue(Equal(int32(1))), "a status write must not change the spec")
	g.Expect(read.Generation).To(Equal(int64(1)))
	g.Expect(read.Status.Conditions[0].LastTransitionTime.Equal(&fullStatus().Conditions[0].LastTransitionTime)).To(BeTrue())

	read.Status.Conditions[0].LastTransitionTime = fullStatus().Conditions[0].LastTransitionTime
	read.Status.Blockers[0].Since = fullStatus().Blockers[0].Since
	g.Expect(read.Status).To(Equal(fullStatus()))

	read.Status = appsv1beta1.StatefulSetStatus{}
	read.Spec.Replicas = &replicas
	must(t, c.Update(t.Context(), read))
	g.Expect(read.Status.Replicas).To(Equal(int32(3)), "a spec write must not change the status")
	g.Expect(read.Generation).To(Equal(int64(2)))
}

func TestAtMostTenBlockers(t *testing.T) {
	c := strictClient(t)
	set := typedSet(t, c, "with-blockers")

	for range 11 {
		set.Status.Blockers = append(set.Status.Blockers, appsv1beta1.Blocker{Pod: "a", Reason: "B"})
	}

	assertRefused(t, c.Status().Update(t.Context(), set), "status.blockers", "must have at most 10 items")
}

func TestScaleSubresource(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedSet(t, c, "with-scale")
	set.Status = fullStatus()
	must(t, c.Status().Update(t.Context(), set))

	scale := &autoscalingv1.Scale{}
	must(t, c.SubResource("scale").Get(t.Context(), set, scale))
	g.Expect(scale.Spec.Replicas).To(Equal(int32(1)))
	g.Expect(scale.Status.Replicas).To(Equal(int32(3)))
	g.Expect(scale.Status.Selector).To(Equal("app=sample"))

	scale.Spec.Replicas = 4
	must(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	g.Expect(set.Spec.Replicas).To(HaveValue(Equal(int32(4))))

	scale.ResourceVersion = ""
	scale.Spec.Replicas = -1
	assertRefused(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)), "spec.replicas")
}

// TestColumns reads the table that kubectl get prints. The API server prints
// the first value of a path only, here the first of two containers.
func TestColumns(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	set := typedSet(t, c, "with-columns")
	set.Status = fullStatus()
	must(t, c.Status().Update(t.Context(), set))

	for _, version := range versions() {
		narrow, wide := columns(getTable(t, version, "statefulsets", set.Name))

		g.Expect(narrow).To(HaveKey("AGE"))
		delete(narrow, "AGE")
		g.Expect(narrow).To(Equal(map[string]any{
			"Name": "with-columns", "DESIRED": int64(1), "CURRENT": int64(3), "UPDATED": int64(2), "READY": int64(2),
		}))
		g.Expect(wide).To(Equal(map[string]any{
			"CONTAINERS": "main", "IMAGES": "nginx:alpine", "BLOCKED": "ImagePullBackOff",
		}))
	}
}

// columns returns the first row of a table by the names of its columns: those
// that are always printed, and those of wide output.
func columns(table *metav1.Table) (narrow, wide map[string]any) {
	narrow, wide = map[string]any{}, map[string]any{}

	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			narrow[column.Name] = table.Rows[0].Cells[i]
		} else {
			wide[column.Name] = table.Rows[0].Cells[i]
		}
	}

	return narrow, wide
}

// getTable returns an object as the API server prints it.
func getTable(t *testing.T, version, resource, name string) *metav1.Table {
	t.Helper()

	groupVersion, err := schema.ParseGroupVersion(version)
	must(t, err)

	config := rest.CopyConfig(server)
	config.GroupVersion = &groupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()

	c, err := rest.RESTClientFor(config)
	must(t, err)

	raw, err := c.Get().Namespace("default").Resource(resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)

	table := &metav1.Table{}
	must(t, utiljson.Unmarshal(raw, table))

	return table
}

// TestDiscovery checks the names by which kubectl finds the kind.
func TestDiscovery(t *testing.T) {
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

		g.Expect(byName).To(HaveKey("statefulsets/status"))
		g.Expect(byName).To(HaveKey("statefulsets/scale"))

		set := byName["statefulsets"]
		g.Expect(set.ShortNames).To(ConsistOf("asts"), "with sts, kubectl get sts would warn: Kubernetes has it, too")
		g.Expect(set.Categories).To(ConsistOf("all"))
		g.Expect(set.Namespaced).To(BeTrue())
	}
}
