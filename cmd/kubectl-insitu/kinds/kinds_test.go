// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
)

// Each row has what all kinds need.
func TestRowsAreComplete(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(appsv1.AddToScheme(scheme)).To(Succeed())
	for _, kind := range All() {
		t.Run(kind.String(), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(kind.names).To(ContainElement(strings.ToLower(kind.Kind)))
			g.Expect(kind.read).NotTo(BeNil())
			g.Expect(kind.New).NotTo(BeNil())
			g.Expect(kind.NewList).NotTo(BeNil())
			g.Expect(apiutil.GVKForObject(kind.New(), scheme)).To(Equal(kind.GroupVersionKind))
			g.Expect(apiutil.GVKForObject(kind.NewList(), scheme)).To(Equal(kind.GroupVersion().WithKind(kind.Kind + "List")))
			g.Expect(Called(kind.resource + "." + kind.Group)).To(ConsistOf(HaveField("GroupVersionKind", kind.GroupVersionKind)))

			view, err := Read(kind.New())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(view.Kind.GroupVersionKind).To(Equal(kind.GroupVersionKind))
			g.Expect(view.Template).NotTo(BeNil())
			g.Expect(view.Inspect).NotTo(BeNil())
			g.Expect(view.Resume).NotTo(BeNil())
			g.Expect(view.Partition.Keeps).NotTo(BeNil())
			g.Expect(len(view.Partition.Paths) > 0 || view.Partition.Annotation != "").To(BeTrue(), "nothing holds the partition")
			g.Expect(view.Parameters != nil).To(Equal(kind.IsOurs()))
			g.Expect(filled).To(HaveKey(kind.String()), "TestRead has no case")
		})
	}
}

// What is no workload has no view.
func TestReadOfAnotherObject(t *testing.T) {
	_, err := Read(&corev1.Pod{})
	NewWithT(t).Expect(err).To(MatchError("*v1.Pod is no workload"))
}

var (
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}}
	// paused are annotations of a paused workload of Kubernetes.
	paused = map[string]string{nativeapi.PausedAnnotation: "true", nativeapi.PartitionAnnotation: "2"}
)

// filled has a paused workload of each kind, with a partition that keeps 2 of 4 pods.
var filled = map[string]struct {
	object    func() client.Object
	partition Partition
}{
	"statefulset.apps.kruise.io": {
		func() client.Object {
			return &appsv1beta1.StatefulSet{
				Spec: appsv1beta1.StatefulSetSpec{
					Replicas: ptr.To[int32](4), Selector: selector, Template: template,
					UpdateStrategy: appsv1beta1.StatefulSetUpdateStrategy{
						RollingUpdate: &appsv1beta1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2), Paused: true},
					},
				},
				Status: appsv1beta1.StatefulSetStatus{UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7},
			}
		},
		Partition{Paths: [][]string{{"spec", "updateStrategy", "rollingUpdate", "partition"}}, Value: intstr.FromInt32(2), Pods: 2},
	},
	"daemonset.apps.kruise.io": {
		func() client.Object {
			return &appsv1beta1.DaemonSet{
				Spec: appsv1beta1.DaemonSetSpec{
					Selector: selector, Template: template,
					UpdateStrategy: appsv1beta1.DaemonSetUpdateStrategy{
						RollingUpdate: &appsv1beta1.RollingUpdateDaemonSetStrategy{Partition: ptr.To(intstr.FromString("50%")), Paused: ptr.To(true)},
					},
				},
				Status: appsv1beta1.DaemonSetStatus{
					DesiredNumberScheduled: 4, UpdatedNumberScheduled: 3, NumberReady: 2, NumberAvailable: 1, ObservedGeneration: 7,
				},
			}
		},
		Partition{
			Paths: [][]string{{"spec", "updateStrategy", "rollingUpdate", "partition"}}, TakesPercentages: true, Value: intstr.FromString("50%"), Pods: 2,
		},
	},
	"cloneset.apps.kruise.io": {
		func() client.Object {
			half := intstr.FromString("50%")
			return &appsv1beta1.CloneSet{
				Spec: appsv1beta1.CloneSetSpec{
					Replicas: ptr.To[int32](4), Selector: selector, Template: template,
					UpdateStrategy: appsv1beta1.CloneSetUpdateStrategy{
						Type:                     appsv1beta1.InPlaceIfPossibleCloneSetUpdateStrategyType,
						CloneSetUpdateParameters: appsv1beta1.CloneSetUpdateParameters{Partition: &half, Paused: true},
					},
				},
				Status: appsv1beta1.CloneSetStatus{UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7},
			}
		},
		Partition{Paths: [][]string{{"spec", "updateStrategy", "partition"}}, Value: intstr.FromString("50%"), TakesPercentages: true, Pods: 2},
	},
	"deployment.apps": {
		func() client.Object {
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Annotations: paused},
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](4), Selector: selector, Template: template},
				Status:     appsv1.DeploymentStatus{UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7},
			}
		},
		Partition{Annotation: nativeapi.PartitionAnnotation, TakesPercentages: true},
	},
	"statefulset.apps": {
		func() client.Object {
			return &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Annotations: paused},
				Spec: appsv1.StatefulSetSpec{
					Replicas: ptr.To[int32](4), Selector: selector, Template: template,
					UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
						RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)},
					},
				},
				Status: appsv1.StatefulSetStatus{UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7},
			}
		},
		Partition{Paths: [][]string{{"spec", "updateStrategy", "rollingUpdate", "partition"}}, Value: intstr.FromInt32(2), Pods: 2},
	},
	"daemonset.apps": {
		func() client.Object {
			return &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Annotations: paused},
				Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: template},
				Status: appsv1.DaemonSetStatus{
					DesiredNumberScheduled: 4, UpdatedNumberScheduled: 3, NumberReady: 2, NumberAvailable: 1, ObservedGeneration: 7,
				},
			}
		},
		Partition{Annotation: nativeapi.PartitionAnnotation, TakesPercentages: true},
	},
}

func TestRead(t *testing.T) {
	for name, test := range filled {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object, _ := test.object().DeepCopyObject().(client.Object)
			view, err := Read(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(view.Kind.String()).To(Equal(name))
			g.Expect(*view.Template).To(Equal(template))
			g.Expect(view.Selector).To(Equal(selector))
			g.Expect([]int32{view.Replicas, view.Updated, view.Ready, view.Available}).To(Equal([]int32{4, 3, 2, 1}))
			g.Expect(view.ObservedGeneration).To(BeEquivalentTo(7))
			g.Expect(view.OnDelete).To(BeFalse())
			g.Expect(view.NotRolling).To(BeEmpty())

			g.Expect(view.Partition.Keeps(intstr.FromInt32(2))).To(Equal(2))
			g.Expect(view.Partition.Keeps(intstr.FromInt32(9))).To(Equal(4), "there are no more pods")
			view.Partition.Keeps = nil
			g.Expect(view.Partition).To(Equal(test.partition))

			g.Expect(view.Paused).To(BeTrue())
			g.Expect(view.Resume()).To(BeTrue())
			g.Expect(view.Resume()).To(BeFalse(), "it was resumed already")
			resumed, err := Read(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resumed.Paused).To(BeFalse())
		})
	}
}

// A change of the template in the view is one of the object.
func TestTemplateIsThatOfTheObject(t *testing.T) {
	for name, test := range filled {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object, _ := test.object().DeepCopyObject().(client.Object)
			view, err := Read(object)
			g.Expect(err).NotTo(HaveOccurred())
			view.Template.Spec.Containers[0].Image = "nginx:2"
			again, err := Read(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Template.Spec.Containers[0].Image).To(Equal("nginx:2"))
		})
	}
}

// A revision of a kind of ours holds claim templates, and one of a kind with ReplicaSets is
// without the label that they add.
func TestContent(t *testing.T) {
	for name, test := range filled {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			view, err := Read(test.object())
			g.Expect(err).NotTo(HaveOccurred())
			view.Template = view.Template.DeepCopy()
			view.Template.Labels = map[string]string{appsv1beta1.PodTemplateHashLabel: "a1"}
			content, err := view.Content()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content.Claims != nil).To(Equal(view.Kind.IsOurs()))
			raw, err := content.Template.MarshalJSON()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Contains(string(raw), appsv1beta1.PodTemplateHashLabel)).To(Equal(!view.Kind.ThroughReplicaSets))
		})
	}
}

// Only this package asks for the Go type of a workload, so that a new kind is a row here.
func TestOnlyThisPackageAsksForTheType(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, kind := range All() {
		names = append(names, kind.Kind)
	}
	workload := `\*\w+\.(` + strings.Join(names, "|") + `)\b`
	asks := regexp.MustCompile(`\.\(` + workload + `\)|case .*` + workload)
	g.Expect(asks.MatchString("case *appsv1.Deployment:")).To(BeTrue())
	files := 0
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join("..", "kinds") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		g.Expect(asks.FindAllString(string(text), -1)).To(BeEmpty(), path)
		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(BeNumerically(">", 50), "where are they?")
}
