// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"flag"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/policies"
)

var update = flag.Bool("update", false, "write the transcripts")

// optedIn has Insitu update the pods of a workload of Kubernetes.
var optedIn = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"}

func (w *world) create(obj client.Object) client.Object {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	w.Expect(w.c.Create(w.t.Context(), obj)).To(Succeed())
	w.Expect(policies.GivePods(w.t.Context(), w.c, obj)).To(Succeed())
	return obj
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}},
			InitContainers: []corev1.Container{
				{Name: "setup", Image: "setup:1"},
				{Name: "proxy", Image: "envoy:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			},
		},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func (w *world) deployment(labels map[string]string) *appsv1.Deployment {
	return w.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](4), Selector: selector(), Template: template()},
	}).(*appsv1.Deployment)
}

func (w *world) nativeStatefulSet(labels map[string]string) client.Object {
	return w.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](4), Selector: selector(), Template: template(),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
				Partition: ptr.To[int32](3), MaxUnavailable: ptr.To(intstr.FromInt32(2)),
			}},
		},
	})
}

func (w *world) daemonSet(labels map[string]string) client.Object {
	return w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: selector(), Template: template()},
	})
}

func (w *world) statefulSet() *appsv1beta1.StatefulSet {
	set := builders.StatefulSet(w.namespace, "web", "nginx:alpine").Replicas(4).Partition(3).Build()
	set.Spec.Template = template()
	return w.create(set).(*appsv1beta1.StatefulSet)
}

func (w *world) cloneSet() client.Object {
	set := builders.CloneSet(w.namespace, "web", "nginx:alpine").Replicas(4).Build()
	set.Spec.Template = template()
	set.Spec.UpdateStrategy = appsv1beta1.CloneSetUpdateStrategy{Type: "InPlaceIfPossible"}
	set.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromString("75%"))
	return w.create(set)
}

// ourDaemonSet has pods on four nodes.
func (w *world) ourDaemonSet() client.Object {
	set := &appsv1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1beta1.DaemonSetSpec{
			Selector: selector(), Template: template(),
			UpdateStrategy: appsv1beta1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1beta1.RollingUpdateDaemonSetStrategy{
				RollingUpdateType: "InPlaceIfPossible", Partition: ptr.To(intstr.FromString("75%")),
			}},
		},
	}
	w.create(set)
	set.Status = appsv1beta1.DaemonSetStatus{
		ObservedGeneration: set.Generation, DesiredNumberScheduled: 4, CurrentNumberScheduled: 4, UpdatedNumberScheduled: 4,
	}
	w.Expect(w.c.Status().Update(w.t.Context(), set)).To(Succeed())
	return set
}

// steer runs every command on a workload, twice, and mistakes.
func (w *world) steer(of client.Object, name string) {
	w.t.Helper()
	for _, line := range []string{
		"pause NAME", "pause NAME", "resume NAME", "resume NAME",
		"set image NAME main=nginx:latest --dry-run=server",
		"set image NAME main=nginx:latest --dry-run=client",
		"set image NAME main=nginx:latest proxy=envoy:2",
		"set image NAME main=nginx:latest proxy=envoy:2",
		"set image NAME web=nginx:latest",
		"set resources NAME -c main --requests=cpu=100m --limits=memory=1Gi",
		"set resources NAME -c main --requests=cpu=0.1 --limits=memory=1024Mi",
		"set resources NAME --requests=cpu=-1",
		"pause NAME", "resume NAME",
		"promote NAME --to 99", "promote NAME --by 1", "promote NAME", "promote NAME",
		"restart NAME", "restart NAME -c main,proxy", "restart NAME -c setup", "restart NAME -c web",
		"undo NAME", "undo NAME --to-revision 7",
		"pause NAME -o name", "resume NAME -o jsonpath={.metadata.name}{\"\\n\"}",
		"pause NAME --dry-run=maybe",
	} {
		w.insitu(of, strings.ReplaceAll(line, "NAME", name))
	}
}

func TestOurStatefulSet(t *testing.T) {
	w := newWorld(t)
	w.steer(w.statefulSet(), "sts/web")
	w.matches("statefulset.apps.kruise.io")
}

func TestCloneSet(t *testing.T) {
	w := newWorld(t)
	w.steer(w.cloneSet(), "cloneset web")
	w.matches("cloneset.apps.kruise.io")
}

func TestOurDaemonSet(t *testing.T) {
	w := newWorld(t)
	w.steer(w.ourDaemonSet(), "ads/web")
	w.matches("daemonset.apps.kruise.io")
}

func TestDeployment(t *testing.T) {
	w := newWorld(t)
	deployment := w.deployment(optedIn)
	deployment.Annotations = map[string]string{native.PartitionAnnotation: "3"}
	w.Expect(w.c.Update(t.Context(), deployment)).To(Succeed())
	w.steer(deployment, "deploy/web")
	w.matches("deployment")
}

func TestNativeStatefulSet(t *testing.T) {
	w := newWorld(t)
	w.steer(w.nativeStatefulSet(optedIn), "statefulset.apps/web")
	w.matches("statefulset")
}

func TestDaemonSet(t *testing.T) {
	w := newWorld(t)
	w.steer(w.daemonSet(optedIn), "ds/web")
	w.matches("daemonset")
}

func TestWithoutTheLabel(t *testing.T) {
	w := newWorld(t)
	w.steer(w.deployment(nil), "deployments.apps/web")
	w.steer(w.nativeStatefulSet(nil), "statefulsets/web")
	w.steer(w.daemonSet(nil), "daemonset.apps/web")
	w.matches("without-the-label")
}
