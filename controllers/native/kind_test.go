// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
)

func TestMaxUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		value    string
		replicas int
		roundUp  bool
		want     int
	}{
		"a number":                     {"2", 10, false, 2},
		"a percentage":                 {"25%", 10, false, 2},
		"rounded up":                   {"25%", 10, true, 3},
		"of few":                       {"25%", 3, false, 1},
		"of none":                      {"25%", 0, false, 1},
		"0 is 0":                       {"0", 10, false, 0},
		"0% is 0":                      {"0%", 10, true, 0},
		"what the server never stores": {"many", 10, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(maxUnavailable(intstr.Parse(test.value), test.replicas, test.roundUp)).To(Equal(test.want))
		})
	}
}

// rs returns a ReplicaSet with an image, made in the n-th minute.
func rs(name, image string, replicas int32, minute int) *replicaSet {
	object := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(minute)*60, 0)), Annotations: map[string]string{}},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(replicas), Template: templateOf(image)},
	}
	found, err := replicaSets([]appsv1.ReplicaSet{*object})
	if err != nil {
		panic(err) // the template marshals
	}
	return found[0]
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

func TestChooseKeeper(t *testing.T) {
	promoted := rs("promoted", "nginx:3", 1, 4)
	promoted.Annotations["insitu.dev/previous-revision"] = "web-1 7"
	for name, test := range map[string]struct {
		live []*replicaSet
		want string
	}{
		"the one with the most pods":             {[]*replicaSet{rs("few", "nginx:1", 1, 1), rs("many", "nginx:2", 2, 2)}, "many"},
		"of equal ones the older":                {[]*replicaSet{rs("young", "nginx:1", 1, 2), rs("old", "nginx:2", 1, 1)}, "old"},
		"the one that has the template":          {[]*replicaSet{rs("many", "nginx:1", 5, 1), rs("new", "nginx:9", 1, 2)}, "new"},
		"of two that have it the older":          {[]*replicaSet{rs("young", "nginx:9", 5, 2), rs("old", "nginx:9", 1, 1)}, "old"},
		"made in the same second, by name":       {[]*replicaSet{rs("b", "nginx:9", 5, 1), rs("a", "nginx:9", 1, 1)}, "a"},
		"the one that is being promoted":         {[]*replicaSet{rs("new", "nginx:9", 5, 1), promoted}, "promoted"},
		"not one whose pods are being taken off": {[]*replicaSet{rs("leaving", "nginx:9", 0, 1), rs("many", "nginx:1", 1, 2)}, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := templateOf("nginx:9")

			g.Expect(chooseKeeper(test.live, &target, false).Name).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(chooseKeeper([]*replicaSet{rs("leaving", "nginx:9", 0, 1)}, nil, false)).To(BeNil())
}

// A hold has Kubernetes make a pod of the template: the others are to stay.
func TestChooseKeeperBesideANewPod(t *testing.T) {
	surge := func(name, image string, replicas int32, minute int) *replicaSet {
		made := rs(name, image, replicas, minute)
		made.Spec.MinReadySeconds = native.HeldMinReadySeconds
		return made
	}
	promoted := surge("promoted", "nginx:9", 1, 4)
	promoted.Annotations["insitu.dev/previous-revision"] = "web-1 7"
	for name, test := range map[string]struct {
		live []*replicaSet
		want string
	}{
		"the one with the most pods":                {[]*replicaSet{surge("new", "nginx:9", 1, 1), rs("many", "nginx:2", 2, 2)}, "many"},
		"scaled before the choice was recorded":     {[]*replicaSet{surge("new", "nginx:9", 2, 2), rs("one", "nginx:2", 1, 1)}, "one"},
		"of one pod each, the one without the hold": {[]*replicaSet{surge("new", "nginx:9", 1, 1), rs("one", "nginx:2", 1, 2)}, "one"},
		"going back":              {[]*replicaSet{surge("back", "nginx:9", 3, 1), surge("other", "nginx:2", 1, 2)}, "back"},
		"going back with one pod": {[]*replicaSet{surge("back", "nginx:9", 1, 1), surge("other", "nginx:2", 1, 2)}, "back"},
		"the one that is promoted, however few pods": {[]*replicaSet{surge("many", "nginx:9", 5, 1), promoted}, "promoted"},
	} {
		t.Run(name, func(t *testing.T) {
			target := templateOf("nginx:9")
			NewWithT(t).Expect(chooseKeeper(test.live, &target, true).Name).To(Equal(test.want))
		})
	}
}

// What a Deployment is without its hold. Annotations that were changed by hand count as
// absent, all of them.
func TestWished(t *testing.T) {
	for name, test := range map[string]struct {
		annotations           map[string]string
		unavailable, surge    string
		minReady, deadline    int32
		missing, missingOfTen int
	}{
		"what was kept": {map[string]string{
			native.HeldMaxUnavailableAnnotation: "2", native.HeldMaxSurgeAnnotation: "50%",
			native.HeldMinReadySecondsAnnotation: "10", native.HeldProgressDeadlineSecondsAnnotation: "60",
		}, "2", "50%", 10, 60, 2, 2},
		"the defaults":            {nil, "25%", "25%", 0, 600, 0, 2},
		"none and none":           {map[string]string{native.HeldMaxUnavailableAnnotation: "0%", native.HeldMaxSurgeAnnotation: "0"}, "25%", "25%", 0, 600, 0, 2},
		"no number":               {map[string]string{native.HeldMaxUnavailableAnnotation: "1", native.HeldMinReadySecondsAnnotation: "soon"}, "25%", "25%", 0, 600, 0, 2},
		"a number below 0":        {map[string]string{native.HeldMaxSurgeAnnotation: "-1"}, "25%", "25%", 0, 600, 0, 2},
		"more than all":           {map[string]string{native.HeldMaxUnavailableAnnotation: "101%"}, "25%", "25%", 0, 600, 0, 2},
		"a deadline that is over": {map[string]string{native.HeldMinReadySecondsAnnotation: "600"}, "25%", "25%", 0, 600, 0, 2},
		"no pod more, 1%":         {map[string]string{native.HeldMaxUnavailableAnnotation: "1%", native.HeldMaxSurgeAnnotation: "0"}, "1%", "0", 0, 600, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations},
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), MinReadySeconds: native.HeldMinReadySeconds},
			}
			wished := deployment{d}.wished()
			g.Expect(wished.Spec.Strategy.RollingUpdate.MaxUnavailable.String()).To(Equal(test.unavailable))
			g.Expect(wished.Spec.Strategy.RollingUpdate.MaxSurge.String()).To(Equal(test.surge))
			g.Expect(wished.Spec.MinReadySeconds).To(Equal(test.minReady))
			g.Expect(*wished.Spec.ProgressDeadlineSeconds).To(Equal(test.deadline))
			g.Expect(deployment{d}.spec().maxUnavailable).To(Equal(test.missing), "of 3")
			d.Spec.Replicas = ptr.To[int32](10)
			g.Expect(deployment{d}.spec().maxUnavailable).To(Equal(test.missingOfTen), "of 10")
		})
	}
}

func TestPreviousIsReadAsItIsWritten(t *testing.T) {
	for name, before := range map[string]previous{
		"all":           {"web-5d8f", "3", "kubectl set image deployment/web nginx=nginx:2"},
		"without cause": {"web-5d8f", "3", ""},
		"bare":          {"web-5d8f", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set, other := rs("web", "nginx:1", 1, 1), rs("other", "nginx:1", 1, 1)
			set.UID, other.UID = "a", "b"
			text := set.promotionFrom(before)
			set.Annotations["insitu.dev/previous-revision"], other.Annotations["insitu.dev/previous-revision"] = text, text

			g.Expect(set.previous()).To(Equal(before))
			g.Expect(other.isPromoted()).To(BeFalse(), "it was copied")
		})
	}
	NewWithT(t).Expect(rs("web", "nginx:1", 1, 1).previous()).To(Equal(previous{}))
}

// A promotion that a release before this one began is brought to its end, with the empty
// ReplicaSet that it may have made.
func TestPreviousOfReleasesThatNamedNoReplicaSet(t *testing.T) {
	g := NewWithT(t)
	set, now := rs("web", "nginx:1", 1, 1), rs("web", "nginx:1", 1, 1)
	set.UID, now.UID = "a", "a"
	set.Annotations["insitu.dev/previous-revision"] = "web-5d8f 3 two words"

	g.Expect(set.previous()).To(Equal(previous{"web-5d8f", "3", "two words"}))
	now.Annotations["insitu.dev/previous-revision"] = now.promotionFrom(set.previous())
	g.Expect(hashOf(now)).To(Equal(hashOf(set)))
}

func TestAnnotationsInHistory(t *testing.T) {
	g := NewWithT(t)
	w := deployment{annotated(map[string]string{
		"example.io/team": "a", "insitu.dev/gracePeriodSeconds": "1", "insitu.dev/paused": "true", "insitu.dev/status": "{}",
		"deployment.kubernetes.io/revision": "4", "kubernetes.io/change-cause": "new", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	})}

	g.Expect(w.annotationsInHistory(previous{"web-1", "3", "old"})).To(Equal(map[string]string{
		"example.io/team": "a", "insitu.dev/gracePeriodSeconds": "1",
		"deployment.kubernetes.io/revision": "3", "kubernetes.io/change-cause": "old",
	}))
	g.Expect(replacing(map[string]string{"insitu.dev/paused": "true", "deployment.kubernetes.io/max-replicas": "4"}, map[string]string{"a": "b"})).
		To(Equal(map[string]any{"insitu.dev/paused": nil, "a": "b"}))
	set := rs("web", "nginx:1", 1, 1)
	set.Annotations = map[string]string{
		"insitu.dev/previous-revision": "web-1", "insitu.dev/partition": "1", "insitu.dev/paused": "true", "deployment.kubernetes.io/revision": "4",
	}
	g.Expect(w.staleAnnotations(set)).To(Equal(map[string]any{"insitu.dev/previous-revision": nil, "insitu.dev/partition": nil}))
}

// Whether Kubernetes deletes a pod before it has made another decides whether it is asked about.
func TestWhoDeletesPodsFirst(t *testing.T) {
	rolling := func(replicas int32, maxUnavailable, maxSurge string) deployment {
		return deployment{&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.Parse(maxUnavailable)), MaxSurge: ptr.To(intstr.Parse(maxSurge))},
		}}}}
	}
	recreating := rolling(1, "0", "1")
	recreating.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	daemons := func(maxSurge string) daemonSet {
		return daemonSet{&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{native.HeldMaxSurgeAnnotation: maxSurge}}}}
	}
	for name, test := range map[string]struct {
		workload workload
		want     bool
	}{
		"a StatefulSet":                             {statefulSet{&appsv1.StatefulSet{}}, true},
		"a DaemonSet":                               {daemonSet{&appsv1.DaemonSet{}}, true},
		"a DaemonSet with maxSurge 0":               {daemons("0"), true},
		"a DaemonSet with maxSurge 10%":             {daemons("10%"), false},
		"a Deployment of few pods":                  {rolling(3, "25%", "25%"), false},
		"a Deployment of many pods":                 {rolling(4, "25%", "25%"), true},
		"a Deployment without a pod more":           {rolling(3, "0", "0"), true},
		"a Deployment that misses none":             {rolling(8, "0", "1"), false},
		"a Deployment that is recreated as a whole": {recreating, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(test.workload.spec().deletesFirst).To(Equal(test.want))
		})
	}
}
