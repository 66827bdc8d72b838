// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/stage"
)

const (
	name     = "web"
	oldImage = "nginx:alpine"
	newImage = "nginx:latest"
)

// world is a namespace without the controllers of Kubernetes and without policies:
// what they would do the specs do.
type world struct {
	ctx       context.Context
	namespace string
	// name is that of the workload.
	name     string
	api      client.Client
	live     client.Reader
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	manager  *stage.Manager
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{
		name: name, ctx: context.WithoutCancel(ctx), api: shared.GetClient(), live: shared.GetAPIReader(),
		clock: clocktesting.NewFakeClock(time.Now()), recorder: events.NewFakeRecorder(100),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "native-"}}
	Expect(w.api.Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.manager = stage.NewManager(w.api)
	return w
}

// reconcile reconciles the workload once, with a manager that was started a moment
// ago. One that was killed is no failure.
func (w *world) reconcile(kind native.Kind) ctrl.Result {
	GinkgoHelper()
	r := native.NewReconciler(kind, w.manager, w.live, w.recorder, w.clock)
	r.PullAs(stage.NoPulls())
	r.WriteInOrder()
	result, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: w.name}})
	if !errors.Is(err, stage.ErrDead) {
		Expect(err).NotTo(HaveOccurred())
	}
	return result
}

// told returns the events so far.
func (w *world) told() []string {
	var told []string
	for {
		select {
		case event := <-w.recorder.Events:
			told = append(told, event)
		default:
			return told
		}
	}
}

func (w *world) meta(annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.namespace, Name: w.name, Annotations: annotations,
		Labels: map[string]string{apinative.UpdatePolicyLabel: "InPlaceIfPossible", apinative.HeldLabel: apinative.Held},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}}},
	}
}

func create[T client.Object](w *world, object T) T {
	GinkgoHelper()
	Expect(w.api.Create(w.ctx, object)).To(Succeed())
	return object
}

// get reads an object from the API server.
func get[T client.Object](w *world, into T, named string) T {
	GinkgoHelper()
	Expect(w.live.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: named}, into)).To(Succeed())
	return into
}

// deployment creates a held Deployment that wants the new image.
func (w *world) deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{
		ObjectMeta: w.meta(map[string]string{"example.io/team": "a", "deployment.kubernetes.io/revision": "1"}),
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template(newImage), Paused: true},
	}
	if change != nil {
		change(d)
	}
	return create(w, d)
}

// replicaSet creates a ReplicaSet of a Deployment, and says for its controller that
// it has the pods that it is to have.
func (w *world) replicaSet(owner *appsv1.Deployment, hash, image string, replicas int32) *appsv1.ReplicaSet {
	GinkgoHelper()
	return w.replicaSetWith(owner, hash, replicas, template(image))
}

// replicaSetWith is replicaSet with any template.
func (w *world) replicaSetWith(owner *appsv1.Deployment, hash string, replicas int32, t corev1.PodTemplateSpec) *appsv1.ReplicaSet {
	GinkgoHelper()
	t.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	number := "1"
	if hash != "old" {
		number = "0" // no two have the same
	}
	rs := create(w, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: w.name + "-" + hash, Labels: t.Labels,
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": number, "kubernetes.io/change-cause": "first"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: t.Labels}, Template: t},
	})
	w.observe(rs.Name)
	return rs
}

// observe is what the controller of ReplicaSets says.
func (w *world) observe(named string) {
	GinkgoHelper()
	rs := get(w, &appsv1.ReplicaSet{}, named)
	if rs.Status.ObservedGeneration == rs.Generation {
		return
	}
	before := rs.DeepCopy()
	rs.Status.ObservedGeneration, rs.Status.Replicas = rs.Generation, ptr.Deref(rs.Spec.Replicas, 1)
	Expect(w.api.Status().Patch(w.ctx, rs, client.MergeFrom(before))).To(Succeed())
}

// pods creates the pods of a ReplicaSet, which run and are ready.
func (w *world) pods(rs *appsv1.ReplicaSet) {
	GinkgoHelper()
	for i := range *rs.Spec.Replicas {
		spec := rs.Spec.Template.Spec.DeepCopy()
		spec.NodeName = "node-1"
		pod := create(w, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: fmt.Sprintf("%s-%d", rs.Name, i), Labels: rs.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			},
			Spec: *spec,
		})
		w.run(pod, "1")
	}
}

// run is what the kubelet says of a pod: its container was started for the n-th time.
func (w *world) run(pod *corev1.Pod, n string) {
	GinkgoHelper()
	before := pod.DeepCopy()
	now := metav1.NewTime(w.clock.Now()).Rfc3339Copy()
	image := pod.Spec.Containers[0].Image
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: pod.Generation,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Image: image, ImageID: "id of " + image, ContainerID: "containerd://" + pod.Name + "-" + n, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// notReady is what the kubelet says of a pod whose container is as it is made to be.
func (w *world) notReady(named string, change func(*corev1.ContainerStatus)) {
	GinkgoHelper()
	pod := get(w, &corev1.Pod{}, named)
	before := pod.DeepCopy()
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	change(&pod.Status.ContainerStatuses[0])
	Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// labelRevision gives a pod the label of the revision of a Deployment, and makes that.
func (w *world) labelRevision(pod *corev1.Pod, of *appsv1.Deployment) {
	GinkgoHelper()
	content, err := inplace.NewTemplate(of.Spec.Template)
	Expect(err).NotTo(HaveOccurred())
	owner := history.Owner{Object: of, Kind: appsv1.SchemeGroupVersion.WithKind("Deployment")}
	revision, _, err := history.NewKeeper(w.api).Ensure(w.ctx, owner, &history.History{}, history.Content{Template: content.Native()})
	Expect(err).NotTo(HaveOccurred())
	pod.Labels["controller-revision-hash"] = revision.Hash()
	Expect(w.api.Update(w.ctx, pod)).To(Succeed())
	w.run(pod, "2")
}

// pullers lets the kubelet say how the container is of each pod that pulls an image.
func (w *world) pullers(container corev1.ContainerState) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(w.live.List(w.ctx, pods, client.InNamespace(w.namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	Expect(pods.Items).To(HaveLen(1), "one for the node")
	before := pods.Items[0].DeepCopy()
	pods.Items[0].Status = corev1.PodStatus{
		Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "pull-0", Image: newImage, State: container}},
	}
	Expect(w.api.Status().Patch(w.ctx, &pods.Items[0], client.MergeFrom(before))).To(Succeed())
}

// play lets the kubelet and the controller of ReplicaSets do what they would: run
// what pods say, and observe what ReplicaSets do.
func (w *world) play() {
	GinkgoHelper()
	w.clock.Step(time.Second)
	pods := &corev1.PodList{}
	Expect(w.live.List(w.ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.ObservedGeneration != pod.Generation {
			w.run(pod, fmt.Sprint(pod.Generation))
		}
	}
	sets := &appsv1.ReplicaSetList{}
	Expect(w.live.List(w.ctx, sets, client.InNamespace(w.namespace))).To(Succeed())
	for i := range sets.Items {
		w.observe(sets.Items[i].Name)
	}
}
