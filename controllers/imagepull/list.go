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
}

// NewListReconciler returns a ListReconciler, see [NewReconciler].
func NewListReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *ListReconciler {
	return &ListReconciler{client: c, recorder: recorder, clock: clock}
}

// Reconcile sees to it that there is a job for each image of a list, and sums up how far they are.
func (r *ListReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	list := &appsv1beta1.ImageListPullJob{}
	if err := r.client.Get(ctx, request.NamespacedName, list); err != nil {
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
// writes how far the others are.
func (r *ListReconciler) advance(ctx context.Context, list *appsv1beta1.ImageListPullJob, requeue *workload.Requeue) error {
	jobs := &appsv1beta1.ImagePullJobList{}
	if err := r.client.List(ctx, jobs, client.InNamespace(list.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ImagePullJobs in namespace %s: %w", list.Namespace, err)
	}
	template := templateOf(list)
	byImage, others := assign(list, template, jobs.Items)
	var errs []error
	for _, job := range others {
		errs = append(errs, client.IgnoreNotFound(r.client.Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID})))
	}
	refused := ""
	for _, image := range list.Spec.Images {
		if byImage[image] != nil || refused != "" {
			continue
		}
		job, err := newJob(list, template, image)
		if err == nil {
			err = r.client.Create(ctx, job)
		}
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case executor.IsRefusal(err):
			refused = executor.Shorten(fmt.Sprintf("the API server does not take the job for %s: %s", image, executor.ServerWords(err)))
			requeue.Within(refusalPeriod)
		default:
			errs = append(errs, fmt.Errorf("create ImagePullJob for %s: %w", image, err))
		}
	}
	if refused != "" {
		r.recorder.Eventf(list, nil, corev1.EventTypeWarning, appsv1beta1.ReasonFailedCreate, workload.ActionCreate, "%s", refused)
	}
	return errors.Join(append(errs, r.patchStatus(ctx, list, byImage))...)
}

// templateOf returns what the jobs of a list have beside their image. They go with the list.
func templateOf(list *appsv1beta1.ImageListPullJob) *appsv1beta1.ImagePullJobTemplate {
	template := list.Spec.ImagePullJobTemplate.DeepCopy()
	template.CompletionPolicy.TTLSecondsAfterFinished = nil
	return template
}

// assign returns the jobs that do what a list says, by image, and those of the list that do not.
// Both may be of OpenKruise, whose jobs have other names.
func assign(
	list *appsv1beta1.ImageListPullJob, template *appsv1beta1.ImagePullJobTemplate, jobs []appsv1beta1.ImagePullJob,
) (byImage map[string]*appsv1beta1.ImagePullJob, others []*appsv1beta1.ImagePullJob) {
	byImage = make(map[string]*appsv1beta1.ImagePullJob, len(list.Spec.Images))
	images := sets.New(list.Spec.Images...)
	for i := range jobs {
		job := &jobs[i]
		if !metav1.IsControlledBy(job, list) || job.DeletionTimestamp != nil {
			continue
		}
		does := job.Spec.ImagePullJobTemplate
		does.CompletionPolicy.TTLSecondsAfterFinished = nil
		if image := job.Spec.Image; images.Has(image) && byImage[image] == nil && apiequality.Semantic.DeepEqual(&does, template) {
			byImage[image] = job
		} else {
			others = append(others, job)
		}
	}
	return byImage, others
}

// newJob returns the job of an image. Its name tells what it does, so that it is made once, and
// another template makes another job.
func newJob(list *appsv1beta1.ImageListPullJob, template *appsv1beta1.ImagePullJobTemplate, image string) (*appsv1beta1.ImagePullJob, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("write template of ImageListPullJob %s/%s: %w", list.Namespace, list.Name, err)
	}
	const longest = 240
	prefix := strings.TrimRight(list.Name[:min(len(list.Name), longest)], "-.")
	return &appsv1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: list.Namespace, Name: prefix + "-" + shortHash(string(list.UID), image, string(text)),
			Labels:          map[string]string{appsv1.ControllerRevisionHashLabelKey: shortHash(string(text))},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, appsv1beta1.ImageListPullJobKind)},
		},
		Spec: appsv1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: *template.DeepCopy()},
	}, nil
}

// shortHash tells texts apart in names and labels.
func shortHash(texts ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(hash[:])[:10]
}

// patchStatus writes how far the jobs of a list are.
func (r *ListReconciler) patchStatus(ctx context.Context, list *appsv1beta1.ImageListPullJob, byImage map[string]*appsv1beta1.ImagePullJob) error {
	before := list.DeepCopy()
	sum(list, byImage)
	now := metav1.NewTime(r.clock.Now())
	if list.Status.StartTime == nil {
		list.Status.StartTime = &now
	}
	if list.Status.Completed == list.Status.Desired && !list.Spec.CompletionPolicy.IsEndless() {
		list.Status.CompletionTime = &now
	}
	if apiequality.Semantic.DeepEqual(before, list) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, list, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of ImageListPullJob %s/%s: %w", list.Namespace, list.Name, err)
	}
	return nil
}

// sum counts the jobs of a list in its status, in the order of the images.
func sum(list *appsv1beta1.ImageListPullJob, byImage map[string]*appsv1beta1.ImagePullJob) {
	status := appsv1beta1.ImageListPullJobStatus{
		ObservedGeneration: list.Generation, StartTime: list.Status.StartTime, CompletionTime: list.Status.CompletionTime,
		Desired: int32(len(list.Spec.Images)),
	}
	for _, image := range list.Spec.Images {
		job := byImage[image]
		if job == nil || job.Status.StartTime == nil { // not seen yet
			continue
		}
		count := &job.Status
		if count.Active > 0 {
			status.Active++
		}
		if count.Failed > 0 {
			status.FailedImageStatuses = append(status.FailedImageStatuses, appsv1beta1.FailedImageStatus{
				ImagePullJob: job.Name, Name: image,
				Message: fmt.Sprintf("%d of %d nodes cannot pull it, %s", count.Failed, count.Desired, cmp.Or(count.LastFailure, count.Message)),
			})
		}
		isOver := count.CompletionTime != nil || job.Spec.CompletionPolicy.IsEndless() && count.Desired == count.Failed+count.Succeeded
		if isOver {
			status.Completed++
		}
		if isOver && count.Desired == count.Succeeded {
			status.Succeeded++
		}
	}
	list.Status = status
}
