// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Requests whose time is over are deleted. A patch writes the labels that say which pod a request is
// about, and takes the finalizer off that OpenKruise has left. The pod is patched as for an update.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

// recheckPeriod is when a request is looked at again that is not complete: what its containers wait
// for may be no event of the pod, and that one has been restarted may be proved by time alone.
const recheckPeriod = 5 * time.Second

// Reconciler reconciles the ContainerRecreateRequests of pods.
type Reconciler struct {
	// client reads from the cache, which shows our own writes, see NewReconciler.
	client client.Client
	// live reads from the API server.
	live     client.Reader
	clock    clock.PassiveClock
	executor *executor.Executor
	metrics  *executor.Metrics
}

// NewReconciler returns a Reconciler. The client reads from a cache with the options and indexes
// of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency), live from the API server.
func NewReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, live: live, clock: clock, executor: executor.New(c, recorder, clock)}
}

// Reconcile brings the requests about one pod, of the name in the key, nearer to their end.
func (r *Reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	requests, err := r.requests(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	var requeue workload.Requeue
	pod, err := r.pod(ctx, key, slices.ContainsFunc(requests, isOpen))
	if errors.Is(err, errUnseen) {
		requeue.AfterConflict()
		return requeue.Result(), nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	current := inTurn(requests)
	for _, one := range requests {
		if err := r.handle(ctx, one, current, pod, &requeue); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	if current == nil && pod != nil {
		errs = append(errs, r.rest(ctx, pod, &requeue))
	}
	var lasting []error
	for _, err := range errs {
		if workload.IgnoreConflict(err) == nil && err != nil {
			requeue.AfterConflict()
		}
		lasting = append(lasting, workload.IgnoreConflict(err))
	}
	if err := errors.Join(lasting...); err != nil {
		return ctrl.Result{}, err
	}
	return requeue.Result(), nil
}

// requests returns the requests about the pod of a name.
func (r *Reconciler) requests(ctx context.Context, key ctrl.Request) ([]*request, error) {
	list := &appsv1beta1.ContainerRecreateRequestList{}
	if err := r.client.List(ctx, list, aboutPod(key.NamespacedName)...); err != nil {
		return nil, fmt.Errorf("list ContainerRecreateRequests of pod %s: %w", key, err)
	}
	found := make([]*request, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}

// errUnseen is that the cache does not have a pod yet that is there.
var errUnseen = errors.New("the cache does not have the pod yet")

// pod returns the pod of a name; nil if there is none. If that matters, the API server is asked: the
// cache may be late.
func (r *Reconciler) pod(ctx context.Context, key ctrl.Request, matters bool) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, key.NamespacedName, pod)
	if err == nil {
		return pod, nil
	}
	if apierrors.IsNotFound(err) && matters {
		if err = r.live.Get(ctx, key.NamespacedName, pod); err == nil {
			return nil, errUnseen
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return nil, fmt.Errorf("read pod %s: %w", key, err)
}

// handle does for one request what is to be done now.
func (r *Reconciler) handle(ctx context.Context, one, current *request, pod *corev1.Pod, requeue *workload.Requeue) error {
	switch {
	case one.DeletionTimestamp != nil:
		return r.release(ctx, one, pod)
	case one.Status.CompletionTime != nil:
		return r.cleanUp(ctx, one, pod, requeue)
	}
	if late, at := isLate(one, r.clock.Now()); late {
		return r.end(ctx, one, pod, deadlineMessage)
	} else if !at.IsZero() {
		requeue.Within(at.Sub(r.clock.Now()))
	}
	switch {
	case isGone(one, pod):
		return r.end(ctx, one, pod, goneMessage)
	case one != current:
		return r.postpone(ctx, one, current, pod)
	default:
		return r.advance(ctx, one, pod, requeue)
	}
}

// release takes off a request and its pod what OpenKruise has put on them.
func (r *Reconciler) release(ctx context.Context, one *request, pod *corev1.Pod) error {
	if !controllerutil.ContainsFinalizer(one, appsv1beta1.ContainerRecreateRequestFinalizer) {
		return nil
	}
	if pod != nil && pod.DeletionTimestamp == nil {
		if err := executor.ReleaseFromRequest(ctx, r.client, pod, one, r.clock.Now()); err != nil {
			return err
		}
	}
	return r.label(ctx, one, func() { controllerutil.RemoveFinalizer(one, appsv1beta1.ContainerRecreateRequestFinalizer) })
}

// label changes the metadata of a request, and writes it if that changed something.
func (r *Reconciler) label(ctx context.Context, one *request, change func()) error {
	before := one.DeepCopy()
	change()
	if apiequality.Semantic.DeepEqual(before.ObjectMeta, one.ObjectMeta) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, one, patch); err != nil {
		return fmt.Errorf("patch metadata of ContainerRecreateRequest %s/%s: %w", one.Namespace, one.Name, err)
	}
	return nil
}

// identify notes which pod a request is about.
func (r *Reconciler) identify(ctx context.Context, one *request, pod *corev1.Pod) error {
	return r.label(ctx, one, func() {
		for key, value := range map[string]string{
			appsv1beta1.ContainerRecreateRequestPodUIDKey:   string(pod.UID),
			appsv1beta1.ContainerRecreateRequestNodeNameKey: pod.Spec.NodeName,
			appsv1beta1.ContainerRecreateRequestActiveKey:   "true",
		} {
			if len(validation.IsValidLabelValue(value)) == 0 { // the name of a node may be longer
				metav1.SetMetaDataLabel(&one.ObjectMeta, key, value)
			}
		}
	})
}

// report writes the status of a request, if it has changed.
func (r *Reconciler) report(ctx context.Context, one *request, change func(*appsv1beta1.ContainerRecreateRequestStatus)) error {
	before := one.DeepCopy()
	change(&one.Status)
	_, err := workload.PatchStatus(ctx, r.client, before, one)
	return err
}

// complete has nothing more done for a request, and writes that it is complete.
func (r *Reconciler) complete(ctx context.Context, p *progress, message string) error {
	if err := r.stop(ctx, p.request, p.pod); err != nil {
		return err
	}
	if err := r.report(ctx, p.request, func(status *appsv1beta1.ContainerRecreateRequestStatus) { p.describe(status, message, true) }); err != nil {
		return err
	}
	r.metrics.CountRequest(!slices.ContainsFunc(p.states, func(s state) bool { return s.Phase != succeeded }))
	return nil
}

// end completes a request that does not come to its end.
func (r *Reconciler) end(ctx context.Context, one *request, pod *corev1.Pod, message string) error {
	p := &progress{request: one, pod: pod, now: r.clock.Now(), states: one.DeepCopy().Status.ContainerRecreateStates}
	if len(p.states) == 0 {
		for _, c := range one.Spec.Containers {
			p.states = append(p.states, state{Name: c.Name, Phase: pending})
		}
	}
	p.failAll(message)
	return r.complete(ctx, p, message)
}

// stop has nothing more done for a request that is about to be complete: what it asks of its pod is
// taken back first.
func (r *Reconciler) stop(ctx context.Context, one *request, pod *corev1.Pod) error {
	if pod == nil || isGone(one, pod) {
		return nil
	}
	asked := inplace.RecreateRequestOf(pod)
	if asked == nil || asked.UID != one.UID || len(asked.Containers) == 0 {
		return nil
	}
	asked.Containers = nil
	return r.ask(ctx, pod, asked)
}

// postpone says of a request that another one comes before.
func (r *Reconciler) postpone(ctx context.Context, one, current *request, pod *corev1.Pod) error {
	if err := r.identify(ctx, one, pod); err != nil {
		return err
	}
	return r.report(ctx, one, func(status *appsv1beta1.ContainerRecreateRequestStatus) {
		status.Phase, status.Message = pending, fmt.Sprintf("ContainerRecreateRequest %s, of the same pod, comes before", current.Name)
	})
}

// advance carries out a request.
func (r *Reconciler) advance(ctx context.Context, one *request, pod *corev1.Pod, requeue *workload.Requeue) error {
	if !isIdentified(one) {
		if err := r.identify(ctx, one, pod); err != nil {
			return err
		}
	}
	p := observe(one, pod, r.clock.Now())
	if err := r.judge(ctx, p); err != nil {
		return err
	}
	if message, isOver := p.isDone(); isOver {
		return r.complete(ctx, p, message)
	}
	if !p.again.IsZero() {
		requeue.Within(max(p.again.Sub(p.now), time.Millisecond))
	}
	if !apiequality.Semantic.DeepEqual(one.Status.ContainerRecreateStates, p.states) {
		// What there was before is written down before anything changes.
		if err := r.report(ctx, one, func(status *appsv1beta1.ContainerRecreateRequestStatus) { p.describe(status, "", false) }); err != nil {
			return err
		}
	}
	if err := r.ask(ctx, pod, p.asks()); err != nil {
		return err
	}
	waits, err := r.carryOut(ctx, one, pod, requeue)
	requeue.Within(recheckPeriod)
	waits = strings.TrimSuffix(waits, inplace.ForRequest(one.Name))
	if len(p.toBeRestarted()) == 0 {
		waits = ""
	}
	return errors.Join(err, r.report(ctx, one, func(status *appsv1beta1.ContainerRecreateRequestStatus) { p.describe(status, waits, false) }))
}

// rest ends what a request has begun with a pod that no request asks for anything any more. One that
// no controller of ours updates comes back into service first.
func (r *Reconciler) rest(ctx context.Context, pod *corev1.Pod, requeue *workload.Requeue) error {
	asked := inplace.RecreateRequestOf(pod)
	if asked == nil || pod.DeletionTimestamp != nil || inplace.HasEnded(pod) || !inplace.IsMarkedNotReady(pod) {
		return r.ask(ctx, pod, nil)
	}
	object, err := gates.WorkloadOf(ctx, r.client, pod)
	if err != nil {
		return err
	}
	if object != nil {
		return r.ask(ctx, pod, nil)
	}
	asked.Containers = nil
	if err := r.ask(ctx, pod, asked); err != nil {
		return err
	}
	_, err = r.carryOut(ctx, pod, pod, requeue)
	return err
}

// ask writes into an annotation of a pod what a request asks of it; nil takes the annotation off.
func (r *Reconciler) ask(ctx context.Context, pod *corev1.Pod, asked *appsv1beta1.PodRecreateRequest) error {
	after := pod.DeepCopy()
	if asked == nil {
		delete(after.Annotations, appsv1beta1.RecreateRequestAnnotation)
	} else {
		raw, err := json.Marshal(asked)
		if err != nil {
			return fmt.Errorf("marshal what is asked of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, appsv1beta1.RecreateRequestAnnotation, string(raw))
	}
	if apiequality.Semantic.DeepEqual(pod.Annotations, after.Annotations) {
		return nil
	}
	patch := client.MergeFromWithOptions(pod.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch annotations of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	after.Spec, after.Status = pod.Spec, pod.Status // of the cache, as far as decisions read it
	*pod = *after
	return nil
}

// cleanUp brings the labels of a complete request to what they say then, and deletes it when its time
// has come.
func (r *Reconciler) cleanUp(ctx context.Context, one *request, pod *corev1.Pod, requeue *workload.Requeue) error {
	if err := r.release(ctx, one, pod); err != nil {
		return err
	}
	err := r.label(ctx, one, func() { delete(one.Labels, appsv1beta1.ContainerRecreateRequestActiveKey) })
	if err != nil || one.Spec.TTLSecondsAfterFinished == nil {
		return err
	}
	if left := one.Status.CompletionTime.Add(time.Duration(*one.Spec.TTLSecondsAfterFinished) * time.Second).Sub(r.clock.Now()); left > 0 {
		requeue.Within(left)
		return nil
	}
	return r.client.Delete(ctx, one, client.Preconditions{UID: ptr.To(one.UID), ResourceVersion: ptr.To(one.ResourceVersion)})
}
