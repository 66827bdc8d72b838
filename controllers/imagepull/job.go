// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Jobs whose time is over are deleted. A patch takes the finalizer off that OpenKruise has left.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=create;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

const (
	// limitPeriod is when pods are made that were too many for the manager.
	limitPeriod = 5 * time.Second
	// deadlineRoom is by how much the kubelet lets a pod live longer than its try may take.
	deadlineRoom = time.Minute
	// A job is looked at, and its status written, at most once in these times: each of thousands of
	// nodes has several events.
	passPeriod, reportPeriod = 250 * time.Millisecond, time.Second
	// reportNodes is for how many nodes the status is written once more seldom: it has their names.
	reportNodes = 500
)

// What the status of a job says when it is complete, in OpenKruise's words.
const (
	completedMessage = "job has completed"
	deadlineMessage  = "job exceeds activeDeadlineSeconds"
)

// Reconciler reconciles ImagePullJobs.
type Reconciler struct {
	// client reads from the cache, which shows our own writes, see NewReconciler.
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	pulling  *executor.Pulling
	metrics  *executor.PullMetrics
	known    memories
	// namespaceScope: there is no right to read nodes.
	namespaceScope bool
}

// NewReconciler returns a Reconciler. The client reads from a cache with the options and indexes
// of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency).
func NewReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock, pulling *executor.Pulling) *Reconciler {
	return &Reconciler{client: c, recorder: recorder, clock: clock, pulling: pulling}
}

// Reconcile brings one job nearer to its completion.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	job := &appsv1beta1.ImagePullJob{}
	if err := r.client.Get(ctx, request.NamespacedName, job); err != nil {
		if apierrors.IsNotFound(err) {
			r.known.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.release(ctx, job); err != nil || job.DeletionTimestamp != nil { // its pods go with it
		return ctrl.Result{}, err
	}
	var requeue workload.Requeue
	var err error
	if job.Status.CompletionTime == nil {
		err = r.advance(ctx, job, &requeue)
	}
	if err == nil && job.Status.CompletionTime != nil {
		r.known.forget(request.NamespacedName)
		err = r.cleanUp(ctx, job, &requeue)
	}
	if apierrors.IsConflict(err) {
		requeue.AfterConflict()
	}
	return requeue.Result(), workload.IgnoreConflict(err)
}

// release takes off a job what OpenKruise has put on it. Nothing would when it is deleted.
func (r *Reconciler) release(ctx context.Context, job *appsv1beta1.ImagePullJob) error {
	before := job.DeepCopy()
	if !controllerutil.RemoveFinalizer(job, appsv1beta1.ImagePullJobFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, job, patch))
}

// advance makes the pods that are due, writes how far the job is, and deletes the pods that are not
// needed any more.
func (r *Reconciler) advance(ctx context.Context, job *appsv1beta1.ImagePullJob, requeue *workload.Requeue) error {
	know, now := r.known.of(client.ObjectKeyFromObject(job), job.UID), r.clock.Now()
	if rest := know.passed.Add(passPeriod).Sub(now); rest > 0 {
		requeue.Within(rest)
		return nil
	}
	know.passed = now
	pods, err := r.pods(ctx, job)
	if err != nil {
		return err
	}
	targets, why, err := r.targets(ctx, job, pods)
	if err != nil {
		return err
	}
	seen := observe(job, know, targets, pods, now)
	seen.areUnknown = why != ""
	isLate := seen.isLate(targets)
	note, makeErr := r.begin(ctx, &seen, requeue)
	if err := r.report(ctx, &seen, seen.ending(isLate), cmp.Or(why, note), requeue); err != nil {
		return errors.Join(makeErr, err)
	}
	if !seen.again.IsZero() {
		requeue.Within(max(seen.again.Sub(now), time.Millisecond))
	}
	return makeErr
}

// pods returns the pods that pull for a job. They are only read.
func (r *Reconciler) pods(ctx context.Context, job *appsv1beta1.ImagePullJob) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := podcache.Pullers(ctx, r.client, job, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// begin makes the pods that are due, as many as may pull now. It returns what keeps others.
func (r *Reconciler) begin(ctx context.Context, seen *progress, requeue *workload.Requeue) (note string, err error) {
	var errs []error
	hasRefused := false
	request := executor.PullRequest{Reader: r.client, Now: seen.now, Number: len(seen.due), Job: seen.job.UID, OfJob: seen.pulling}
	began, err := r.pulling.Begin(ctx, request, func(i int) {
		if seen.now.Before(seen.know.quiet) || len(errs) >= enoughRefusals {
			return
		}
		due := seen.due[i]
		switch err := r.try(ctx, seen, due); {
		case err == nil:
		case executor.IsRefusal(err):
			hasRefused = true
			words := executor.Shorten("the API server does not take the pod that pulls: " + executor.ServerWords(err))
			if seen.know.refuse(due.name, words, seen.now) {
				seen.failRefused(due, words)
			}
		default:
			errs = append(errs, err)
		}
	})
	if hasRefused {
		// Others may be accepted; when the server is not asked, the next look is later by itself.
		seen.within(seen.now.Add(passPeriod))
		r.recorder.Eventf(seen.job, nil, corev1.EventTypeWarning, appsv1beta1.ReasonFailedCreate, workload.ActionCreate, "%s", seen.know.words)
	}
	if hasRefused || seen.isRefused {
		note = seen.know.words
	}
	if began < len(seen.due) {
		requeue.Within(limitPeriod)
		note = cmp.Or(note, "it waits for others that pull: jobs have half of config.imagePull.maxConcurrent")
	}
	return note, errors.Join(append(errs, err)...)
}

// try makes a pod that pulls, in the place of the one before.
func (r *Reconciler) try(ctx context.Context, seen *progress, due attempt) error {
	if due.before != nil {
		// Should the next one be refused, the memory has how often the node has tried.
		seen.know.tries[due.name] = try{number: due.number - 1, at: due.before.CreationTimestamp.Time}
		if err := executor.DeletePuller(ctx, r.client, due.before); err != nil {
			return fmt.Errorf("delete pod %s: %w", due.before.Name, err)
		}
	}
	pod := puller(seen.job, due)
	if err := r.client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	seen.know.accept(due.name, due.number, seen.now)
	seen.pulling++
	if due.number == 1 {
		seen.active++
	}
	seen.within(seen.now.Add(seen.job.Spec.GetTimeout()))
	ctrl.LoggerFrom(ctx).Info("Pulling image", "Node", due.name, "image", seen.job.Spec.Image, "Pod", klog.KObj(pod))
	return nil
}

// puller returns the pod that pulls. It goes onto its node whatever the node's taints say: the job
// says which nodes are meant.
func puller(job *appsv1beta1.ImagePullJob, due attempt) *corev1.Pod {
	as := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace}}
	as.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for _, secret := range job.Spec.PullSecrets {
		as.Spec.ImagePullSecrets = append(as.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	if due.os == corev1.Windows {
		as.Spec.OS = &corev1.PodOS{Name: due.os}
	}
	pod := pullOn(job, due.name).Puller(job, *metav1.NewControllerRef(job, appsv1beta1.ImagePullJobKind), as)
	pod.Name += "-" + strconv.Itoa(due.number)
	pod.Spec.ActiveDeadlineSeconds = ptr.To(min(int64((job.Spec.GetTimeout() + deadlineRoom).Seconds()), math.MaxInt32))
	if config := job.Spec.SandboxConfig; config != nil {
		pod.Labels, pod.Annotations = withoutOurs(config.Labels, pod.Labels), withoutOurs(config.Annotations, pod.Annotations)
	}
	return pod
}

// withoutOurs returns what a job says together with what pods that pull have, which counts.
func withoutOurs(said, ours map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, said)
	maps.Copy(all, ours)
	return all
}

// report writes how far a job is, if that has changed, and deletes the pods then that are not
// needed any more: they are what says so until then.
func (r *Reconciler) report(ctx context.Context, seen *progress, end, note string, requeue *workload.Requeue) error {
	period := reportPeriod * time.Duration(1+len(seen.succeeded)/reportNodes)
	if rest := seen.know.reported.Add(period).Sub(seen.now); rest > 0 && end == "" {
		requeue.Within(rest)
		return nil
	}
	job := seen.job
	before := job.DeepCopy()
	seen.describe(&job.Status, end, note)
	differs, err := workload.PatchStatus(ctx, r.client, before, job)
	if err != nil {
		return err
	}
	if differs {
		seen.know.reported = seen.now
	}
	r.count(seen)
	r.tell(job, seen.failures)
	return r.deleteAll(ctx, seen.obsolete)
}

// count counts what has come of pulls since the status was written last.
func (r *Reconciler) count(seen *progress) {
	for _, after := range seen.pulls {
		r.metrics.Pulled(after)
	}
	r.metrics.Failed(len(seen.failures))
}

// tell says in an event which nodes have failed.
func (r *Reconciler) tell(job *appsv1beta1.ImagePullJob, failures []failure) {
	if len(failures) == 0 {
		return
	}
	others := ""
	if n := len(failures) - 1; n > 0 {
		others = fmt.Sprintf(" and %d others", n)
	}
	r.recorder.Eventf(job, nil, corev1.EventTypeWarning, inplace.ReasonImageNotPullable, workload.ActionCreate, "%s",
		executor.Shorten(fmt.Sprintf("%s%s cannot pull %s: %s", failures[0].node, others, job.Spec.Image, failures[0].words)))
}

// cleanUp deletes the pods of a complete job, and the job when its time has come.
func (r *Reconciler) cleanUp(ctx context.Context, job *appsv1beta1.ImagePullJob, requeue *workload.Requeue) error {
	pods, err := r.pods(ctx, job)
	if err != nil {
		return err
	}
	if err := r.deleteAll(ctx, pods); err != nil {
		return err
	}
	return deleteInTime(ctx, r.client, job, job.Spec.CompletionPolicy.TTLSecondsAfterFinished, expiry{*job.Status.CompletionTime, r.clock.Now(), requeue})
}

// deleteAll deletes pods that pull.
func (r *Reconciler) deleteAll(ctx context.Context, pods []*corev1.Pod) error {
	var errs []error
	for _, pod := range pods {
		if err := executor.DeletePuller(ctx, r.client, pod); err != nil {
			errs = append(errs, fmt.Errorf("delete pod %s: %w", pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// expiry is what says whether the time of a complete job is over.
type expiry struct {
	completed metav1.Time
	now       time.Time
	requeue   *workload.Requeue
}

// deleteInTime deletes a complete job, if it is to be and its time is over.
func deleteInTime(ctx context.Context, c client.Client, job client.Object, ttl *int32, e expiry) error {
	if ttl == nil {
		return nil
	}
	if left := e.completed.Add(time.Duration(*ttl) * time.Second).Sub(e.now); left > 0 {
		e.requeue.Within(left)
		return nil
	}
	preconditions := client.Preconditions{UID: ptr.To(job.GetUID()), ResourceVersion: ptr.To(job.GetResourceVersion())}
	return client.IgnoreNotFound(c.Delete(ctx, job, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
