// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

const namespace = "shop"

// errKilled is what a client says of whose manager is dead.
var errKilled = errors.New("the manager was killed")

// world is a cluster of nodes with kubelets, and a manager.
type world struct {
	*WithT
	client   client.Client
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	jobs     *Reconciler
	lists    *ListReconciler
	pulling  *executor.Pulling

	// lacks are the nodes whose registry does not have the image; dead those without a kubelet;
	// slow those that do not finish.
	lacks, dead, slow map[string]bool
	// tries are the names of the pods that were made on each node.
	tries map[string][]string
	// most is how many pods pulled at a time.
	most int
	// waits are the nodes on which a container without its command waits, as with CRI-O.
	waits map[string]bool
	// refuses is what the API server says to new pods, of some nodes only if refusesOn names any.
	// refused is how many it has refused, made how many objects it was to make.
	refuses       error
	refusesJobs   error
	refusesOn     map[string]bool
	refused, made int
	// seen is the state that the manager has heard of, next when each job and list is to be looked
	// at again.
	seen string
	next map[types.UID]time.Time
	// left is after how many writes the manager is killed; negative for never. The write that it is
	// killed by may be done or not: isDone.
	left   int
	isDone bool
	// fails is what that write comes to instead, while the manager lives.
	fails error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		WithT: NewWithT(t), clock: clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), recorder: events.NewFakeRecorder(1000),
		lacks: map[string]bool{}, dead: map[string]bool{}, slow: map[string]bool{}, waits: map[string]bool{}, tries: map[string][]string{}, left: -1, pulling: &executor.Pulling{},
	}
	scheme := runtime.NewScheme()
	w.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	w.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&corev1.Pod{}, &corev1.Node{}, &appsv1beta1.ImagePullJob{}, &appsv1beta1.ImageListPullJob{})
	for _, index := range podcache.Indexes() {
		builder.WithIndex(index.Object, index.Field, index.Values)
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{Create: w.create}).Build()
	w.restart()
	return w
}

// create is what the API server does.
func (w *world) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	w.made++
	object.SetGeneration(1)
	object.SetUID(types.UID(fmt.Sprintf("%s-uid-%d", object.GetName(), w.made)))
	pod, isPod := object.(*corev1.Pod)
	isPuller := isPod && inplace.IsPuller(pod)
	if isPuller && w.refuses != nil && (len(w.refusesOn) == 0 || w.refusesOn[pod.Spec.NodeName]) {
		w.refused++
		return w.refuses
	}
	if job, isJob := object.(*appsv1beta1.ImagePullJob); isJob && w.refusesJobs != nil && len(job.OwnerReferences) > 0 {
		return w.refusesJobs
	}
	err := c.Create(ctx, object, options...)
	if isPuller && err == nil {
		w.tries[pod.Spec.NodeName] = append(w.tries[pod.Spec.NodeName], pod.Name)
	}
	return err
}

// restart is what becomes of a manager that is killed: another one, which knows nothing.
func (w *world) restart() {
	die := func(write func() error) error {
		if w.left == 0 && w.fails != nil {
			w.left = -1
			return w.fails
		}
		if w.left == 0 && !w.isDone {
			return errKilled
		}
		if w.left == 0 {
			_ = write()
			return errKilled
		}
		w.left--
		return write()
	}
	mortal := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return die(func() error { return c.Create(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if apierrors.IsConflict(w.fails) { // it would be another pod
				return c.Delete(ctx, o, options...)
			}
			return die(func() error { return c.Delete(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return die(func() error { return c.Patch(ctx, o, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return die(func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
	})
	w.seen, w.next = "", map[types.UID]time.Time{}
	w.jobs = NewReconciler(mortal, w.recorder, w.clock, w.pulling)
	w.lists = NewListReconciler(mortal, w.recorder, w.clock)
}

// node returns a node that is ready, with labels as pairs.
func node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// nodes returns that many.
func nodes(names ...string) []client.Object {
	var all []client.Object
	for _, name := range names {
		all = append(all, node(name))
	}
	return all
}

// add creates what a manifest describes.
func (w *world) add(manifest string, into client.Object) {
	w.Expect(yaml.UnmarshalStrict([]byte(manifest), into)).To(Succeed())
	into.SetNamespace(namespace)
	into.SetGeneration(1)
	w.Expect(w.client.Create(context.Background(), into)).To(Succeed())
}

// addJob creates a job with the name and the spec.
func (w *world) addJob(name, spec string) {
	w.add("metadata: {name: "+name+"}\nspec: "+spec, &appsv1beta1.ImagePullJob{})
}

func (w *world) job(name string) *appsv1beta1.ImagePullJob {
	job := &appsv1beta1.ImagePullJob{}
	w.Expect(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, job)).To(Succeed())
	return job
}

// edit changes the spec of a job, as a user does.
func (w *world) edit(name string, change func(*appsv1beta1.ImagePullJobSpec)) {
	job := w.job(name)
	change(&job.Spec)
	job.Generation++
	w.Expect(w.client.Update(context.Background(), job)).To(Succeed())
}

// pods returns the pods that pull, by node.
func (w *world) pods() map[string]*corev1.Pod {
	list := &corev1.PodList{}
	w.Expect(w.client.List(context.Background(), list, client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	found := map[string]*corev1.Pod{}
	for i := range list.Items {
		found[list.Items[i].Spec.NodeName+" "+list.Items[i].Spec.Containers[0].Image] = &list.Items[i]
	}
	w.Expect(found).To(HaveLen(len(list.Items)), "one pod for each node and image")
	return found
}

// kubelets do what kubelets do with pods that pull.
func (w *world) kubelets() {
	working := 0
	for _, pod := range w.pods() {
		state, _ := inplace.PullStateOf(pod)
		if state == inplace.PullUnanswered || state == inplace.PullUnderWay {
			working++
		}
		status := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name}
		switch name := pod.Spec.NodeName; {
		case w.dead[name] || pod.Status.Phase == corev1.PodFailed:
			continue
		case w.lacks[name]:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
		case w.slow[name]:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		case w.waits[name]:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: "no such file"}
		default:
			status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		w.Expect(w.client.Status().Update(context.Background(), pod)).To(Succeed())
	}
	w.most = max(w.most, working)
}

// versions tells the state of the cluster: what changes it makes events.
func (w *world) versions() string {
	versions := &strings.Builder{}
	fmt.Fprintln(versions, w.made, "made, also if they are gone")
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}, &appsv1beta1.ImagePullJobList{}, &appsv1beta1.ImageListPullJobList{}} {
		w.Expect(w.client.List(context.Background(), list)).To(Succeed())
		objects, err := meta.ExtractList(list)
		w.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			o := object.(client.Object)
			fmt.Fprintln(versions, o.GetName(), o.GetUID(), o.GetResourceVersion())
		}
	}
	return versions.String()
}

// reconcile reconciles the jobs and lists that are due, all if something has changed. It reports
// whether the manager is alive.
func (w *world) reconcile() bool {
	hasEvents := false
	if seen := w.versions(); seen != w.seen {
		w.seen, hasEvents = seen, true
	}
	isDue := func(o client.Object) bool {
		next, isKnown := w.next[o.GetUID()]
		return hasEvents || !isKnown || !next.IsZero() && !w.clock.Now().Before(next)
	}
	note := func(o client.Object, result ctrl.Result) {
		w.next[o.GetUID()] = time.Time{}
		if result.RequeueAfter > 0 {
			w.next[o.GetUID()] = w.clock.Now().Add(result.RequeueAfter)
		}
	}
	ctx := context.Background()
	lists, jobs := &appsv1beta1.ImageListPullJobList{}, &appsv1beta1.ImagePullJobList{}
	w.Expect(w.client.List(ctx, lists)).To(Succeed())
	for i := range lists.Items {
		if !isDue(&lists.Items[i]) {
			continue
		}
		result, err := w.lists.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&lists.Items[i])})
		if errors.Is(err, errKilled) {
			return false
		}
		if err != nil && errors.Is(err, w.fails) {
			delete(w.next, lists.Items[i].UID) // the queue has it again
			continue
		}
		w.Expect(err).NotTo(HaveOccurred())
		note(&lists.Items[i], result)
	}
	w.Expect(w.client.List(ctx, jobs)).To(Succeed())
	for i := range jobs.Items {
		if !isDue(&jobs.Items[i]) {
			continue
		}
		result, err := w.jobs.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
		if errors.Is(err, errKilled) {
			return false
		}
		if err != nil && errors.Is(err, w.fails) {
			delete(w.next, jobs.Items[i].UID) // the queue has it again
			continue
		}
		w.Expect(err).NotTo(HaveOccurred())
		note(&jobs.Items[i], result)
	}
	return true
}

// collect deletes the pods of jobs that are gone, as the garbage collector does.
func (w *world) collect() {
	ctx := context.Background()
	jobs, pods := &appsv1beta1.ImagePullJobList{}, &corev1.PodList{}
	w.Expect(w.client.List(ctx, jobs)).To(Succeed())
	w.Expect(w.client.List(ctx, pods, client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	for i := range pods.Items {
		isOwned := slices.ContainsFunc(jobs.Items, func(job appsv1beta1.ImagePullJob) bool { return metav1.IsControlledBy(&pods.Items[i], &job) })
		if !isOwned {
			w.Expect(w.client.Delete(ctx, &pods.Items[i])).To(Succeed())
		}
	}
}

// run lets that many seconds pass. A manager that dies is back in the next one.
func (w *world) run(seconds int) {
	for range seconds {
		if !w.reconcile() {
			w.left = -1
			w.restart()
		}
		w.collect()
		w.kubelets()
		w.clock.Step(time.Second)
	}
}

// result is what clients see of a job that is over.
func result(job *appsv1beta1.ImagePullJob) []any {
	s := job.Status
	return []any{s.Desired, s.Active, s.Succeeded, s.Failed, strings.Join(s.FailedNodes, " "), s.Message, s.CompletionTime != nil}
}

// triesOn returns how many pods were made on a node.
func (w *world) triesOn(node string) int { return len(w.tries[node]) }

// nodesWithPods returns the nodes on which there is a pod that pulls.
func (w *world) nodesWithPods() []string {
	names := map[string]bool{}
	for _, pod := range w.pods() {
		names[pod.Spec.NodeName] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// quota is the API server's word for a pod that is one too many.
var quota = apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("exceeded quota: none, limited: pods=0"))

// look reconciles one job, and returns when it is to be looked at again.
func (w *world) look(name string) time.Duration {
	result, err := w.jobs.Reconcile(context.Background(), requestFor(name))
	w.Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// everyFew counts to a number; with go test -short, in steps of three.
func everyFew(number int) iter.Seq[int] {
	step := 1
	if testing.Short() {
		step = 3
	}
	return func(yield func(int) bool) {
		for i := 0; i < number && yield(i); i += step {
		}
	}
}
