// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// A list makes and deletes the jobs of its images.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=create;delete

// ListReconciler reconciles ImageListPullJobs.
type ListReconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	known    memories
}

// NewListReconciler returns a ListReconciler, see [NewReconciler].
func NewListReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *ListReconciler {
	return &ListReconciler{client: c, recorder: recorder, clock: clock}
}

// Reconcile sees to it that there is a job for each image of a list, and sums up how far they are.
func (r *ListReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	list := &appsv1beta1.ImageListPullJob{}
	if err := r.client.Get(ctx, request.NamespacedName, list); err != nil {
		if apierrors.IsNotFound(err) {
			r.known.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if list.DeletionTimestamp != nil { // its jobs go with it
		return ctrl.Result{}, nil
	}
	var requeue workload.Requeue
	var err error
	if list.Status.CompletionTime == nil {
		err = r.advance(ctx, list, &requeue)
	}
	if completed := list.Status.CompletionTime; err == nil && completed != nil {
		err = deleteInTime(ctx, r.client, list, list.Spec.CompletionPolicy.TTLSecondsAfterFinished, expiry{*completed, r.clock.Now(), &requeue})
	}
	if apierrors.IsConflict(err) {
		requeue.AfterConflict()
	}
	return requeue.Result(), workload.IgnoreConflict(err)
}

// advance makes the jobs that there are not, deletes those that do not do what the list says, and
// writes how far the others are, once in a second.
func (r *ListReconciler) advance(ctx context.Context, list *appsv1beta1.ImageListPullJob, requeue *workload.Requeue) error {
	know, now := r.known.of(client.ObjectKeyFromObject(list), list.UID), r.clock.Now()
	if rest := know.passed.Add(reportPeriod).Sub(now); rest > 0 {
		requeue.Within(rest)
		return nil
	}
	know.passed = now
	jobs := &appsv1beta1.ImagePullJobList{}
	if err := r.client.List(ctx, jobs, client.InNamespace(list.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ImagePullJobs in namespace %s: %w", list.Namespace, err)
	}
	wanted, err := newWanted(list)
	if err != nil {
		return err
	}
	others := wanted.assign(jobs.Items)
	var errs []error
	for _, job := range others {
		errs = append(errs, client.IgnoreNotFound(r.client.Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID})))
	}
	errs = append(errs, r.create(ctx, wanted))
	if wanted.refused != "" {
		requeue.Within(refusalPeriod)
	}
	return errors.Join(append(errs, r.patchStatus(ctx, wanted, requeue))...)
}

// create makes the jobs that there are not, up to the first that the API server does not take.
func (r *ListReconciler) create(ctx context.Context, w *wanted) error {
	var errs []error
	for _, image := range w.list.Spec.Images {
		if w.byImage[image] != nil || w.refused != "" {
			continue
		}
		switch err := r.client.Create(ctx, w.newJob(image)); {
		case err == nil:
		case apierrors.IsAlreadyExists(err), executor.IsRefusal(err):
			w.refused = executor.Shorten(fmt.Sprintf("the API server does not take its job: %s", executor.ServerWords(err)))
		default:
			errs = append(errs, fmt.Errorf("create ImagePullJob for %s: %w", image, err))
		}
	}
	if w.refused != "" {
		r.recorder.Eventf(w.list, nil, corev1.EventTypeWarning, appsv1beta1.ReasonFailedCreate, workload.ActionCreate, "%s", w.refused)
	}
	return errors.Join(errs...)
}

// wanted are the jobs that a list is to have.
type wanted struct {
	list *appsv1beta1.ImageListPullJob
	// template is what the jobs have beside their image, and text the same as JSON.
	template *appsv1beta1.ImagePullJobTemplate
	text     string
	// byImage are those that there are. refused is why one cannot be made.
	byImage map[string]*appsv1beta1.ImagePullJob
	refused string
}

func newWanted(list *appsv1beta1.ImageListPullJob) (*wanted, error) {
	template := list.Spec.ImagePullJobTemplate.DeepCopy()
	template.CompletionPolicy.TTLSecondsAfterFinished = nil // they go with the list
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("write template of ImageListPullJob %s/%s: %w", list.Namespace, list.Name, err)
	}
	return &wanted{list: list, template: template, text: string(text), byImage: map[string]*appsv1beta1.ImagePullJob{}}, nil
}

// nameFor returns the name of the job of an image. It tells what the job does, so that it is made
// once, and another template makes another job.
func (w *wanted) nameFor(image string) string {
	const longest = 240
	prefix := strings.TrimRight(w.list.Name[:min(len(w.list.Name), longest)], "-.")
	return prefix + "-" + shortHash(string(w.list.UID), image, w.text)
}

// assign finds the jobs of the list that do what it says, one for each image, and returns the others
// of the list. They may be of OpenKruise, whose jobs have other names; a name of ours that another
// image has is to be free.
func (w *wanted) assign(jobs []appsv1beta1.ImagePullJob) (others []*appsv1beta1.ImagePullJob) {
	names := make(map[string]string, len(w.list.Spec.Images))
	for _, image := range w.list.Spec.Images {
		names[w.nameFor(image)] = image
	}
	images := sets.New(w.list.Spec.Images...)
	for i := range jobs {
		job := &jobs[i]
		if !metav1.IsControlledBy(job, w.list) || job.DeletionTimestamp != nil {
			continue
		}
		does, image := job.Spec.ImagePullJobTemplate, job.Spec.Image
		does.CompletionPolicy.TTLSecondsAfterFinished = nil
		of, isOurs := names[job.Name]
		isWanted := images.Has(image) && apiequality.Semantic.DeepEqual(&does, w.template) && (!isOurs || of == image)
		if isWanted && w.byImage[image] == nil {
			w.byImage[image] = job
		} else {
			others = append(others, job)
		}
	}
	return others
}

func (w *wanted) newJob(image string) *appsv1beta1.ImagePullJob {
	return &appsv1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.list.Namespace, Name: w.nameFor(image),
			Labels:          map[string]string{appsv1.ControllerRevisionHashLabelKey: shortHash(w.text)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.list, appsv1beta1.ImageListPullJobKind)},
		},
		Spec: appsv1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: *w.template.DeepCopy()},
	}
}

// shortHash tells texts apart in names and labels.
func shortHash(texts ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(hash[:])[:10]
}

// patchStatus writes how far the jobs of a list are. Images that have no job at the deadline have
// failed.
func (r *ListReconciler) patchStatus(ctx context.Context, w *wanted, requeue *workload.Requeue) error {
	list, now := w.list, metav1.NewTime(r.clock.Now())
	before := list.DeepCopy()
	if list.Status.StartTime == nil {
		list.Status.StartTime = &now
	}
	isLate := false
	if deadline := list.Spec.CompletionPolicy.ActiveDeadlineSeconds; deadline != nil {
		left := list.Status.StartTime.Add(time.Duration(*deadline) * time.Second).Sub(now.Time)
		isLate = left <= 0
		requeue.Within(left)
	}
	w.sum(isLate)
	if list.Status.Completed == list.Status.Desired && !list.Spec.CompletionPolicy.IsEndless() {
		list.Status.CompletionTime = &now
	}
	_, err := workload.PatchStatus(ctx, r.client, before, list)
	return err
}

// sum counts the jobs of a list in its status, in the order of the images.
func (w *wanted) sum(isLate bool) {
	status := appsv1beta1.ImageListPullJobStatus{
		ObservedGeneration: w.list.Generation, StartTime: w.list.Status.StartTime, CompletionTime: w.list.Status.CompletionTime,
		Desired: int32(len(w.list.Spec.Images)),
	}
	for _, image := range w.list.Spec.Images {
		job := w.byImage[image]
		failed := appsv1beta1.FailedImageStatus{Name: image, Message: w.refused}
		isOver := isLate
		if job != nil {
			failed.ImagePullJob, failed.Message = job.Name, whyFailed(&job.Status)
			isOver = isEnded(job)
			if job.Status.Active > 0 {
				status.Active++
			}
		}
		if failed.Message != "" {
			status.FailedImageStatuses = append(status.FailedImageStatuses, failed)
		}
		if isOver {
			status.Completed++
		}
		if isOver && job != nil && job.Status.Desired == job.Status.Succeeded && job.Status.Message != deadlineMessage {
			status.Succeeded++
		}
	}
	w.list.Status = status
}

// isEnded reports whether each node of a job has succeeded or failed.
func isEnded(job *appsv1beta1.ImagePullJob) bool {
	status := &job.Status
	return status.CompletionTime != nil ||
		job.Spec.CompletionPolicy.IsEndless() && status.Image == job.Spec.Image && status.Desired == status.Failed+status.Succeeded
}

// whyFailed says which nodes have not pulled an image, or that it cannot be told which are to; it is
// empty if nothing is amiss.
func whyFailed(status *appsv1beta1.ImagePullJobStatus) string {
	switch {
	case status.Failed > 0:
		return fmt.Sprintf("%d of %d nodes cannot pull it, %s", status.Failed, status.Desired, cmp.Or(status.LastFailure, status.Message))
	case status.StartTime != nil && status.Image == "" && status.ObservedGeneration > 0:
		return status.Message
	default:
		return ""
	}
}
