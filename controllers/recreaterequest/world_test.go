// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

const (
	namespace = "shop"
	image     = "nginx:alpine"
	// readyAfter is how long a container runs before it is ready.
	readyAfter = 2 * time.Second
)

// errKilled is what a client says of whose manager is dead.
var errKilled = errors.New("the manager was killed")

// world is a pod with a kubelet, and a manager.
type world struct {
	*WithT
	client   client.Client
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	r        *Reconciler
	next     time.Time
	seen     string

	// runs holds the image that each container was started from, starts how often each was.
	runs   map[string]string
	starts map[string]int
	// served is true if a container of the pod was stopped while it was ready.
	served bool
	// outFor is for how long the pod was not ready when a container was stopped last.
	outFor time.Duration
	// unready are containers that do not become ready; refuses what the API server says to patches
	// of images, of one container if refusesOf names it.
	unready   map[string]bool
	refuses   error
	refusesOf string
	// left is after how many writes the manager is killed; negative for never. The write that it is
	// killed by may be done or not: isDone.
	left   int
	isDone bool
	writes int
}

func start() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// podOfTwo is a pod with two containers that has run for an hour.
func podOfTwo() *corev1.Pod {
	began := start().Add(-time.Hour)
	pod := builders.Pod("web-0", "", image).Ready(true, began).Condition(corev1.ContainersReady, corev1.ConditionTrue, began).Build()
	pod.Namespace, pod.Labels, pod.Annotations = namespace, map[string]string{"app": "web"}, nil
	pod.Spec.NodeName, pod.Generation, pod.Status.ObservedGeneration = "node-1", 1, 1
	side := pod.Spec.Containers[0]
	side.Name = "side"
	pod.Spec.Containers = append(pod.Spec.Containers, side)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		builders.RunningContainer("main", "main-0", image, began), builders.RunningContainer("side", "side-0", image, began),
	}
	return pod
}

// gated gives a pod the readiness gate by which it is taken out of service.
func gated(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: appsv1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue})
	return pod
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		WithT: NewWithT(t), clock: clocktesting.NewFakeClock(start()), recorder: events.NewFakeRecorder(10000),
		runs: map[string]string{}, starts: map[string]int{}, unready: map[string]bool{}, left: -1,
	}
	scheme := runtime.NewScheme()
	w.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	w.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&corev1.Pod{}, &appsv1beta1.ContainerRecreateRequest{})
	for _, index := range podcache.Indexes() {
		builder.WithIndex(index.Object, index.Field, index.Values)
	}
	builder.WithIndex(&request{}, podNameField, podNames)
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{Create: w.create, Patch: w.patch}).Build()
	for _, object := range objects {
		if pod, isPod := object.(*corev1.Pod); isPod {
			for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
				w.runs[c.Name] = c.Image
			}
		}
	}
	w.restart()
	return w
}

// create is what the API server does.
func (w *world) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	object.SetUID(types.UID("uid-of-" + object.GetName()))
	return c.Create(ctx, object, options...)
}

// patch is what the API server does: admission may refuse it, and a changed spec is another generation.
func (w *world) patch(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return c.Patch(ctx, object, patch, options...)
	}
	body, err := patch.Data(object)
	w.Expect(err).NotTo(HaveOccurred())
	if w.refuses != nil && strings.Contains(string(body), `"image"`) && strings.Contains(string(body), `"name":"`+w.refusesOf) {
		return w.refuses
	}
	if slices.Contains(options, client.PatchOption(client.DryRunAll)) {
		return c.Patch(ctx, pod, patch, options...)
	}
	before := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), before); err != nil {
		return err
	}
	if err := c.Patch(ctx, pod, patch, options...); err != nil {
		return err
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Image != before.Spec.Containers[i].Image {
			pod.Generation = before.Generation + 1
		}
	}
	return c.Update(ctx, pod)
}

// restart is what becomes of a manager that is killed: another one, which knows nothing.
func (w *world) restart() {
	die := func(write func() error) error {
		w.writes++
		if w.left == 0 {
			if w.isDone {
				_ = write()
			}
			return errKilled
		}
		w.left--
		return write()
	}
	mortal := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return die(func() error { return c.Delete(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if slices.Contains(options, client.PatchOption(client.DryRunAll)) {
				return c.Patch(ctx, o, patch, options...)
			}
			return die(func() error { return c.Patch(ctx, o, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return die(func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
	})
	w.seen, w.next = "", time.Time{}
	w.r = NewReconciler(mortal, w.client, w.recorder, w.clock)
}

// add creates the request that a manifest of its spec describes.
func (w *world) add(name, spec string) {
	w.addFrom("metadata: {name: " + name + "}\nspec: " + spec)
}

func (w *world) addFrom(manifest string) {
	one := &request{}
	w.Expect(yaml.UnmarshalStrict([]byte(manifest), one)).To(Succeed())
	one.Namespace = namespace
	w.Expect(w.client.Create(context.Background(), one)).To(Succeed())
}

// one returns a request.
func (w *world) one(name string) *request {
	one := &request{}
	w.Expect(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, one)).To(Succeed())
	return one
}

// pod returns the pod.
func (w *world) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	w.Expect(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "web-0"}, pod)).To(Succeed())
	return pod
}

// change changes the pod, as another client does.
func (w *world) change(do func(*corev1.Pod)) {
	pod := w.pod()
	do(pod)
	w.Expect(w.client.Update(context.Background(), pod)).To(Succeed())
}

// kubelet does what the kubelet does within a second.
func (w *world) kubelet() {
	pod := &corev1.Pod{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "web-0"}, pod); apierrors.IsNotFound(err) {
		return
	}
	before, now := pod.DeepCopy(), metav1.NewTime(w.clock.Now())
	pod.Status.ObservedGeneration = pod.Generation
	areReady := true
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if wanted := imageOf(pod, status.Name); wanted != w.runs[status.Name] {
			w.stop(pod)
			w.start(status, wanted)
		}
		if status.State.Running == nil {
			continue
		}
		status.Ready = !w.unready[status.Name] && !now.Time.Before(status.State.Running.StartedAt.Add(readyAfter))
		areReady = areReady && status.Ready
	}
	isOpen := true
	for _, c := range pod.Status.Conditions {
		isOpen = isOpen && (c.Type != appsv1beta1.InPlaceUpdateReady || c.Status == corev1.ConditionTrue)
	}
	set := func(kind corev1.PodConditionType, is bool) {
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[is]
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == kind && c.Status != status {
				c.Status, c.LastTransitionTime = status, now
			}
		}
	}
	set(corev1.ContainersReady, areReady)
	set(corev1.PodReady, areReady && isOpen)
	if !equal(before, pod) {
		w.Expect(w.client.Status().Update(context.Background(), pod)).To(Succeed())
	}
}

func equal(a, b *corev1.Pod) bool { return fmt.Sprint(a.Status) == fmt.Sprint(b.Status) }

// stop notes how the pod was when a container was stopped.
func (w *world) stop(pod *corev1.Pod) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			w.served = w.served || c.Status == corev1.ConditionTrue
			w.outFor = w.clock.Now().Sub(c.LastTransitionTime.Time)
		}
	}
}

// start starts a container.
func (w *world) start(status *corev1.ContainerStatus, from string) {
	w.starts[status.Name]++
	w.runs[status.Name] = from
	count := status.RestartCount + 1
	*status = builders.RunningContainer(status.Name, fmt.Sprintf("%s-%d", status.Name, count), image, w.clock.Now())
	status.RestartCount, status.Ready = count, false
}

// crash has a container restart by itself.
func (w *world) crash(name string) {
	pod := w.pod()
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == name {
			w.start(status, w.runs[name])
		}
	}
	w.Expect(w.client.Status().Update(context.Background(), pod)).To(Succeed())
}

func imageOf(pod *corev1.Pod, name string) string {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == name {
			return c.Image
		}
	}
	return ""
}

// versions tells the state of the cluster: what changes it makes events.
func (w *world) versions() string {
	all := &strings.Builder{}
	pods, requests := &corev1.PodList{}, &appsv1beta1.ContainerRecreateRequestList{}
	w.Expect(w.client.List(context.Background(), pods)).To(Succeed())
	w.Expect(w.client.List(context.Background(), requests)).To(Succeed())
	for i := range pods.Items {
		fmt.Fprintln(all, pods.Items[i].Name, pods.Items[i].ResourceVersion)
	}
	for i := range requests.Items {
		fmt.Fprintln(all, requests.Items[i].Name, requests.Items[i].ResourceVersion)
	}
	return all.String()
}

// reconcile reconciles the pod if something has changed, or the time has come. A manager that is killed
// is there again at the next time.
func (w *world) reconcile() {
	seen := w.versions()
	if seen == w.seen && (w.next.IsZero() || w.clock.Now().Before(w.next)) {
		return
	}
	w.seen, w.next = seen, time.Time{}
	result, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "web-0"}})
	if errors.Is(err, errKilled) || strings.Contains(fmt.Sprint(err), errKilled.Error()) || w.left == 0 {
		w.left = -1
		w.restart()
		return
	}
	if w.refuses != nil && errors.Is(err, w.refuses) { // the queue has it again
		w.next = w.clock.Now().Add(time.Second)
		return
	}
	w.Expect(err).NotTo(HaveOccurred())
	if result.RequeueAfter > 0 {
		w.next = w.clock.Now().Add(result.RequeueAfter)
	}
}

// run lets that many seconds pass.
func (w *world) run(seconds int) {
	for range seconds {
		for range 5 {
			w.reconcile()
			w.expectNothingAsked()
		}
		w.kubelet()
		w.clock.Step(time.Second)
	}
}

// expectNothingAsked expects that a complete request asks for nothing any more.
func (w *world) expectNothingAsked() {
	list, pod := &appsv1beta1.ContainerRecreateRequestList{}, &corev1.Pod{}
	w.Expect(w.client.List(context.Background(), list)).To(Succeed())
	if w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "web-0"}, pod) != nil || inplace.HasEnded(pod) {
		return
	}
	asked := inplace.RecreateRequestOf(pod)
	for i := range list.Items {
		if one := &list.Items[i]; asked != nil && one.UID == asked.UID && !isOpen(one) {
			w.Expect(asked.Containers).To(BeEmpty())
		}
	}
}

// phases are those of the containers of a request, and its own.
func (w *world) phases(name string) string {
	one := w.one(name)
	words := []string{string(one.Status.Phase)}
	for _, s := range one.Status.ContainerRecreateStates {
		words = append(words, s.Name+" "+string(s.Phase))
	}
	return strings.Join(words, ", ")
}

// expectRest expects of the pod that nothing is left of requests, and that it serves.
func (w *world) expectRest() {
	pod := w.pod()
	w.Expect(inplace.RecreateRequestOf(pod)).To(BeNil())
	w.Expect(pod.Labels).To(Equal(map[string]string{"app": "web"}))
	w.Expect(inplace.IsMarkedNotReady(pod)).To(BeFalse())
	for _, c := range pod.Status.Conditions {
		w.Expect(c.Status).To(Equal(corev1.ConditionTrue), string(c.Type))
	}
	before := w.writes
	w.run(60)
	w.Expect(w.writes).To(Equal(before), "at rest nothing is written")
}

func requestFor(pod string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: pod}}
}
