// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// A claim is deleted only to be recreated, after its own snapshot is ready to use and
// its volume is set to be kept. That is the one thing that the operator writes to
// volumes: the reclaim policy, who may claim it, and its own marks.
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;create;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=get;patch
//
// What tells before a pod is stopped that its claim could not be recreated, and
// that nothing writes to its volume any more.
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=list
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities;volumeattachments,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=get
//
// Why a driver makes no volume is in the events of the claim only.
// +kubebuilder:rbac:groups="",resources=events,verbs=list

// pollPeriod is after how long it is looked again at what is not watched, at first: see
// patience.
const pollPeriod = 2 * time.Second

// recentPeriod is how long it is believed, before anything is begun, that a volume is
// what it was.
const recentPeriod = 30 * time.Second

// missingPeriod is after how long it is looked again for what a user has to do where that
// is not watched, and waitsForUser are the reasons of the steps that wait for it.
const missingPeriod = 10 * time.Second

var waitsForUser = sets.New(recreate.ReasonRestoreMissing, recreate.ReasonRestoreInvalid, recreate.ReasonHeldForAnother)

// notPermittedPeriod is after how long a claim is looked at again that may not be made.
const notPermittedPeriod = time.Minute

// notPermitted says why nothing can be made from snapshots and volumes.
const notPermitted = "this manager has rights in namespaces only (scope Namespace), and volumes belong to the cluster"

// maxSteps is how many writes are made for one claim in a row.
const maxSteps = 16

// Recreator recreates claims of one kind of workloads.
type Recreator struct {
	// Metrics count what becomes of claims; nothing does, if they are nil. They are set
	// before the first session.
	Metrics *Metrics

	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	// recent are volumes that were read a moment ago, by name.
	recent *cache.Expiring
}

// New returns a Recreator that reads from the API server by live. The client reads
// from a cache that shows its own writes.
func New(c client.Client, live client.Reader, recorder events.EventRecorder) *Recreator {
	return &Recreator{client: c, live: live, recorder: recorder, recent: cache.NewExpiring()}
}

// Claim is a claim that a pod of a workload has, or is to have.
type Claim struct {
	// Template is the claim as it would be made if there were no other before it.
	Template *corev1.PersistentVolumeClaim
	// Found is the claim as the cache has it; nil if there is none.
	Found *corev1.PersistentVolumeClaim
	// Ordinal is that of the pod, and Pod the pod; nil if there is none.
	Ordinal int
	Pod     *corev1.Pod
	// Foreign is true if the claim belongs to another controller.
	Foreign bool
	// Failed is the name of another claim of the template for which the same has
	// failed; empty if there is none.
	Failed string
}

// Result is what has come of a claim for now.
type Result struct {
	recreate.Step
	// Again is when to look again; zero if a change of the claim or its pod tells.
	Again time.Time
	// Bound: the claim has its volume.
	Bound bool
}

// Session is one reconciliation of a workload. What is read for all of its claims is
// read once.
type Session struct {
	// NotPermitted: volumes may not be read or written, and no claim can be recreated. It
	// is set before anything is done.
	NotPermitted bool

	*Recreator
	owner    workload.Owner
	strategy appsv1beta1.VolumeClaimUpdateStrategy
	now      time.Time

	held            *memory[[]corev1.PersistentVolume]
	users           *memory[[]corev1.Pod]
	snapshotClasses *memory[*snapshotv1.VolumeSnapshotClassList]
	quotas          *memory[[]corev1.ResourceQuota]
	capacities      *memory[[]storagev1.CSIStorageCapacity]
	attachments     *memory[[]storagev1.VolumeAttachment]
	drivers         map[string]bool
	classes         map[string]*storagev1.StorageClass
}

// memory is what was read once.
type memory[T any] struct {
	value T
	known bool
}

func (m *memory[T]) read(load func() (T, error)) (T, error) {
	if m.known {
		return m.value, nil
	}
	value, err := load()
	if err == nil {
		m.value, m.known = value, true
	}
	return value, err
}

// Open begins the reconciliation of a workload.
func (r *Recreator) Open(owner workload.Owner, strategy appsv1beta1.VolumeClaimUpdateStrategy, now time.Time) *Session {
	return &Session{
		Recreator: r, owner: owner, strategy: strategy, now: now,
		held: &memory[[]corev1.PersistentVolume]{}, users: &memory[[]corev1.Pod]{},
		snapshotClasses: &memory[*snapshotv1.VolumeSnapshotClassList]{},
		quotas:          &memory[[]corev1.ResourceQuota]{}, capacities: &memory[[]storagev1.CSIStorageCapacity]{},
		attachments: &memory[[]storagev1.VolumeAttachment]{}, drivers: map[string]bool{},
		classes: map[string]*storagev1.StorageClass{},
	}
}

// Advance takes all the steps of a claim that can be taken now, and returns the one
// that it waits with. What another client changed meanwhile is looked at again the
// next time.
func (s *Session) Advance(ctx context.Context, claim Claim) (Result, error) {
	if s.NotPermitted {
		return Result{
			Step:  recreate.Step{Action: recreate.Wait, Reason: recreate.ReasonRecreateNotPermitted, Message: "it is not made: " + notPermitted, PodMayRun: claim.Pod != nil},
			Again: s.now.Add(notPermittedPeriod),
		}, nil
	}
	users, err := s.usersOf(ctx, claim.Template, nil, stoppedSince(claim))
	if err != nil {
		return Result{}, err
	}
	seen := s.seen(claim, users)
	result, isEarly := s.lastWait(claim, seen)
	if !isEarly {
		if result, err = s.advance(ctx, claim); err != nil {
			return Result{}, err
		}
		result = s.rememberWait(claim, seen, result)
	}
	if at := s.now.Add(pollPeriod); isStopped(claim) && at.Before(result.Again) {
		result.Again = at
	}
	return result, nil
}

// advance takes steps until one waits.
func (s *Session) advance(ctx context.Context, claim Claim) (Result, error) {
	refused, overQuota := "", false
	for range maxSteps {
		facts, err := s.observe(ctx, claim)
		if err != nil {
			return Result{}, err
		}
		facts.Refused, facts.OverQuota = refused, overQuota
		step := recreate.Next(facts, s.now)
		if step.Action == recreate.None || step.Action == recreate.Wait {
			result := s.result(step)
			result.Bound = facts.Claim != nil && facts.Claim.Status.Phase == corev1.ClaimBound && volumes.RecordOf(facts.Claim).Recreate == nil
			return result, nil
		}
		err = s.write(ctx, facts, step)
		s.held = &memory[[]corev1.PersistentVolume]{} // it may have been one of them
		s.recent.Delete(keptKey{s.owner.GetUID()})
		if step.Action != recreate.CreateClaim { // that ends nothing
			s.recent.Set(looksKey{s.owner.GetUID()}, s.now, requestsPeriod)
		}
		switch {
		case err == nil:
			s.report(claim, facts.Claim, step)
			s.Metrics.count(step)
		case executor.IsRefusal(err) && (step.Action == recreate.CreateClaim || step.Action == recreate.CreateTrialClaim):
			// The planner says what comes of it.
			refused, overQuota = executor.Shorten(executor.ServerWords(err)), executor.IsOfQuota(err)
			s.refused(claim, step, err)
		case executor.IsRefusal(err):
			return s.refused(claim, step, err), nil
		case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
			return s.result(recreate.Step{Action: recreate.Wait, Reason: step.Reason, Message: step.Message, PodMayRun: step.PodMayRun}), nil
		default:
			return Result{}, fmt.Errorf("recreate claim %s/%s: %w", claim.Template.Namespace, claim.Template.Name, err)
		}
	}
	return s.result(recreate.Step{Action: recreate.Wait, Reason: recreate.ReasonClaimRecreating, Message: "it is being recreated"}), nil
}

// result returns when to look again at a step that waits.
func (s *Session) result(step recreate.Step) Result {
	result := Result{Step: step, Again: step.Until}
	if step.Action == recreate.Wait && !step.Watched {
		period := pollPeriod
		if step.Reason == volumes.ReasonClaimRefused {
			period = refusedPeriod
		}
		if waitsForUser.Has(step.Reason) {
			period = missingPeriod
		}
		if at := s.now.Add(period); result.Again.IsZero() || at.Before(result.Again) {
			result.Again = at
		}
	}
	return result
}

// refused returns the step of a claim that waits since the API server refuses a write.
func (s *Session) refused(claim Claim, step recreate.Step, err error) Result {
	message := fmt.Sprintf("the API server refuses to %s: %s", verbs[step.Action], executor.ServerWords(err))
	s.recorder.Eventf(s.owner.Object, claim.Template, corev1.EventTypeWarning, volumes.ReasonClaimRefused, workload.ActionUpdate,
		"%s", executor.Shorten("claim "+claim.Template.Name+": "+message))
	return s.result(recreate.Step{Action: recreate.Wait, Reason: volumes.ReasonClaimRefused, Message: message})
}

// refusedPeriod is after how long a write is tried again that the API server refuses, at
// first.
const refusedPeriod = 5 * time.Second

// report says in an event what was done. Events that differ in their text only would be
// counted as one: each action has its reason, and each claim is another one.
func (s *Session) report(claim Claim, found *corev1.PersistentVolumeClaim, step recreate.Step) {
	kind, reason := corev1.EventTypeNormal, reasons[step.Action]
	if step.Failed {
		kind, reason = corev1.EventTypeWarning, step.Reason
	}
	if reason == "" {
		return
	}
	if found == nil {
		found = claim.Template
	}
	message := executor.Shorten("claim " + claim.Template.Name + ": " + step.Message)
	s.recorder.Eventf(s.owner.Object, found, kind, reason, workload.ActionUpdate, "%s", message)
}

// reasons are those of the events of actions. Notes on a claim are told by what follows.
var reasons = map[recreate.Action]string{
	recreate.CreateSnapshot: appsv1beta1.ReasonTakingSnapshot,
	recreate.DeleteSnapshot: appsv1beta1.ReasonDeletingSnapshot,
	recreate.HoldVolume:     appsv1beta1.ReasonHoldingVolume,
	recreate.ReleaseVolume:  appsv1beta1.ReasonReleasingVolume,
	recreate.FreeVolume:     appsv1beta1.ReasonGivingVolumeBack,
	recreate.DiscardVolume:  appsv1beta1.ReasonDiscardingVolume,
	recreate.DeleteClaim:    appsv1beta1.ReasonDeletingClaim,
	recreate.CreateClaim:    appsv1beta1.ReasonRecreatingClaim,

	recreate.CreateTrialClaim: appsv1beta1.ReasonTryingRestore,
}
