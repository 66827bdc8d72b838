// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/daemonset"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/stage"
)

const (
	oldImage = "nginx:alpine"
	newImage = "nginx:latest"
)

// world is a namespace with a kubelet and an operator. Their clock began an hour ago, so
// that what they did is long over for who looks at it now.
type world struct {
	ctx       context.Context
	namespace string
	api       client.Client
	clock     *clocktesting.FakeClock
	kubelet   *stage.Kubelet
	manager   *stage.Manager
	// cluster is what the plugin has, audit what it wrote.
	cluster *cluster.Cluster
	audit   *audit
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{
		ctx: context.WithoutCancel(ctx), api: shared.GetClient(),
		clock: clocktesting.NewFakeClock(time.Now().Add(-time.Hour).Truncate(time.Second)),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}}
	Expect(w.api.Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.kubelet = stage.NewKubelet(w.namespace, w.clock)
	w.kubelet.API, w.kubelet.Live = w.api, shared.GetAPIReader()
	w.manager = stage.NewManager(w.api)
	w.cluster, w.audit = w.asUser("")
	return w
}

// asUser returns what the plugin has that a user runs; without a name, an administrator.
func (w *world) asUser(name string) (*cluster.Cluster, *audit) {
	GinkgoHelper()
	config, audit := audited(server.Config())
	config.Impersonate.UserName = name
	c, err := cluster.New(config)
	Expect(err).NotTo(HaveOccurred())
	return c, audit
}

// reconcile has the operator look at a workload once.
func (w *world) reconcile(object client.Object) ctrl.Result {
	GinkgoHelper()
	live, recorder := shared.GetAPIReader(), workload.SilentRecorder()
	var r interface {
		reconcile.Reconciler
		PullAs(pulling *executor.Pulling)
	}
	switch object.(type) {
	case *appsv1beta1.StatefulSet:
		r = statefulset.NewReconciler(w.manager, live, recorder, w.clock)
	case *appsv1beta1.CloneSet:
		r = cloneset.NewReconciler(w.manager, live, recorder, w.clock, utilrand.String)
	case *appsv1beta1.DaemonSet:
		r = daemonset.NewReconciler(w.manager, live, recorder, w.clock, utilrand.String)
	default:
		r = native.NewReconciler(nativeKind(object), w.manager, live, recorder, w.clock)
	}
	r.PullAs(stage.NoPulls())
	result, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	Expect(err).NotTo(HaveOccurred())
	return result
}

func nativeKind(object client.Object) native.Kind {
	switch object.(type) {
	case *appsv1.Deployment:
		return native.Deployment
	case *appsv1.StatefulSet:
		return native.StatefulSet
	default:
		return native.DaemonSet
	}
}

// step lets operator and kubelet take a turn each, and reports whether one of them moved.
func (w *world) step(object client.Object) bool {
	GinkgoHelper()
	before := len(w.manager.Writes(""))
	result := w.reconcile(object)
	w.clock.Step(time.Second)
	moved := w.kubelet.Sync(w.ctx) || len(w.manager.Writes("")) > before
	if !moved && result.RequeueAfter > 0 && result.RequeueAfter < time.Minute {
		w.clock.Step(result.RequeueAfter)
		return true
	}
	return moved
}

// awaitView waits until the view that all specs share shows the pods as they are.
func (w *world) awaitView() {
	GinkgoHelper()
	versions := func(reader client.Reader) map[string]string {
		list, found := &corev1.PodList{}, map[string]string{}
		Expect(reader.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		for i := range list.Items {
			found[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		return found
	}
	Eventually(func() map[string]string { return versions(shared.GetClient()) }).Should(Equal(versions(shared.GetAPIReader())))
}

// settle brings a workload to rest.
func (w *world) settle(object client.Object) {
	GinkgoHelper()
	for range 100 {
		if !w.step(object) {
			return
		}
	}
	Fail("not at rest")
}

// create creates an object in the namespace.
func create[T client.Object](w *world, object T) T {
	GinkgoHelper()
	object.SetNamespace(w.namespace)
	Expect(w.api.Create(w.ctx, object)).To(Succeed())
	return object
}

// mutate changes an object as its owner does.
func mutate[T client.Object](w *world, object T, change func(T)) T {
	GinkgoHelper()
	Expect(shared.GetAPIReader().Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	change(object)
	Expect(w.api.Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
	return object
}

// mutateStatus is mutate of a status, as controllers of Kubernetes do.
func mutateStatus[T client.Object](w *world, object T, change func(T)) T {
	GinkgoHelper()
	Expect(shared.GetAPIReader().Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	change(object)
	Expect(w.api.Status().Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
	return object
}

// found names an object as the command line has it, and finds it.
func (w *world) found(object client.Object) cluster.Found {
	GinkgoHelper()
	for _, kind := range kinds.All() {
		if fmt.Sprintf("%T", kind.New()) == fmt.Sprintf("%T", object) {
			found, err := w.cluster.Find(w.ctx, w.namespace, kind.String()+"/"+object.GetName())
			Expect(err).NotTo(HaveOccurred())
			return found
		}
	}
	Fail(fmt.Sprintf("no kind of %T", object))
	return cluster.Found{}
}

func (w *world) report(object client.Object) report.Workload {
	GinkgoHelper()
	told, err := w.cluster.Report(w.ctx, w.found(object))
	Expect(err).NotTo(HaveOccurred())
	return told
}

// plan plans an edit.
func (w *world) plan(object client.Object, edit change.Edit) report.Plan {
	GinkgoHelper()
	planned, err := w.tryPlan(w.cluster, object, edit)
	Expect(err).NotTo(HaveOccurred())
	return planned
}

func (w *world) tryPlan(c *cluster.Cluster, object client.Object, edit change.Edit) (report.Plan, error) {
	GinkgoHelper()
	found := w.found(object)
	writer := change.Writer{Client: c.Client, FieldManager: "plugin", DryRun: change.ServerDryRun}
	result, err := writer.Write(w.ctx, found.Kind, client.ObjectKeyFromObject(object), edit)
	if err != nil {
		return report.Plan{}, err
	}
	changed := found.Kind.New()
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object.Object, changed)).To(Succeed())
	return c.Plan(w.ctx, found, changed)
}

// planOf plans a change of the object that a dry run of it returns.
func planOf[T client.Object](w *world, object T, edit func(T)) report.Plan {
	GinkgoHelper()
	found := w.found(object)
	changed := found.Object.DeepCopyObject().(T)
	edit(changed)
	Expect(w.cluster.Client.Patch(w.ctx, changed, client.MergeFrom(found.Object), client.DryRunAll)).To(Succeed())
	planned, err := w.cluster.Plan(w.ctx, found, changed)
	Expect(err).NotTo(HaveOccurred())
	return planned
}

func image(name string) change.Edit {
	return change.SetImages([]change.ContainerImage{{Container: "main", Image: name}})
}

// everything returns the resource versions of what there is in the namespace.
func (w *world) everything() map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{}, &appsv1.ReplicaSetList{},
		&appsv1beta1.StatefulSetList{}, &appsv1beta1.CloneSetList{}, &appsv1beta1.DaemonSetList{},
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
	} {
		Expect(shared.GetAPIReader().List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		items, err := runtimeItems(list)
		Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			versions[fmt.Sprintf("%T %s", item, item.GetName())] = item.GetResourceVersion()
		}
	}
	return versions
}

// ways returns what becomes of pods, by name.
func ways(p report.Plan) map[string]report.Way {
	found := map[string]report.Way{}
	for _, pod := range p.Pods {
		found[pod.Name] = pod.Way
	}
	return found
}

// moved returns the pods that a plan moves now.
func moved(plan inplace.Plan) map[string]bool {
	pods := map[string]bool{}
	for _, move := range plan.Moves {
		pods[move.Pod.Name] = true
	}
	return pods
}

// podsOf returns the pods that writes were made to.
func podsOf(writes []string) map[string]bool {
	pods := map[string]bool{}
	for _, write := range writes {
		words := strings.Fields(write)
		if kind, _, _ := strings.Cut(words[1], "/"); kind == "Pod" && words[0] != "create" {
			pods[words[2]] = true
		}
	}
	return pods
}

// labels of a workload of Kubernetes that has opted in.
func optedIn() map[string]string {
	return map[string]string{nativeapi.UpdatePolicyLabel: "InPlaceIfPossible"}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: image}},
		},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

// deployment creates a Deployment with what the controllers of Kubernetes make of it.
func (w *world) deployment(labels map[string]string) *appsv1.Deployment {
	GinkgoHelper()
	d := create(w, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template(oldImage)},
	})
	t := template(oldImage)
	t.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "a1"
	rs := create(w, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-a1", Labels: t.Labels, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: t.Labels}, Template: t},
	})
	mutateStatus(w, rs, func(rs *appsv1.ReplicaSet) {
		rs.Status = appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	})
	for _, name := range []string{"web-a1-x", "web-a1-y"} {
		w.pod(name, rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet").Kind, t)
	}
	w.kubelet.Sync(w.ctx)
	w.kubelet.Sync(w.ctx)
	return mutateStatus(w, d, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	})
}

// pod creates a pod of an owner.
func (w *world) pod(name string, owner client.Object, kind string, t corev1.PodTemplateSpec) {
	GinkgoHelper()
	create(w, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: t.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))},
		},
		Spec: t.Spec,
	})
}

// daemonSet creates a DaemonSet with what the controllers of Kubernetes make of it.
func (w *world) daemonSet(labels map[string]string) *appsv1.DaemonSet {
	GinkgoHelper()
	ds := create(w, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: template(oldImage)},
	})
	w.revision(ds, "DaemonSet")
	t := template(oldImage)
	t.Labels[appsv1.ControllerRevisionHashLabelKey] = "r1"
	w.pod("web-x", ds, "DaemonSet", t)
	w.kubelet.Sync(w.ctx)
	w.kubelet.Sync(w.ctx)
	return mutateStatus(w, ds, func(ds *appsv1.DaemonSet) {
		ds.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: ds.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		}
	})
}

// statefulSet creates a StatefulSet of Kubernetes with what its controllers make of it.
func (w *world) statefulSet(labels map[string]string) *appsv1.StatefulSet {
	GinkgoHelper()
	set := create(w, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2), ServiceName: "web", Selector: selector, Template: template(oldImage)},
	})
	w.revision(set, "StatefulSet")
	t := template(oldImage)
	t.Labels[appsv1.ControllerRevisionHashLabelKey] = "web-r1"
	for _, name := range []string{"web-0", "web-1"} {
		w.pod(name, set, "StatefulSet", t)
	}
	w.kubelet.Sync(w.ctx)
	w.kubelet.Sync(w.ctx)
	return mutateStatus(w, set, func(set *appsv1.StatefulSet) {
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: 2, UpdatedReplicas: 2, CurrentReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			CurrentRevision: "web-r1", UpdateRevision: "web-r1",
		}
	})
}

// revision creates the first revision of a workload of Kubernetes.
func (w *world) revision(owner client.Object, kind string) {
	GinkgoHelper()
	create(w, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-r1", Labels: map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: hashOf(kind)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))},
		},
		Data: runtime.RawExtension{Raw: revisionData(owner)}, Revision: 1,
	})
}

func hashOf(kind string) string {
	if kind == "StatefulSet" {
		return "web-r1"
	}
	return "r1"
}

// templateOf returns the pod template in a workload.
func templateOf(object client.Object) *corev1.PodTemplateSpec {
	GinkgoHelper()
	view, err := kinds.Read(object)
	Expect(err).NotTo(HaveOccurred())
	return view.Template
}

// revisionData returns what the controllers of Kubernetes keep of a workload.
func revisionData(owner client.Object) []byte {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(templateOf(owner))
	Expect(err).NotTo(HaveOccurred())
	fields["$patch"] = "replace"
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
	Expect(err).NotTo(HaveOccurred())
	return raw
}

// runtimeItems returns the objects of a list.
func runtimeItems(list client.ObjectList) ([]client.Object, error) {
	var items []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		items = append(items, item.(client.Object))
		return nil
	})
	return items, err
}
