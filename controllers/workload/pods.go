// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

// Actions of events.
const (
	ActionCreate = "Create"
	ActionDelete = "Delete"
	ActionUpdate = "Update"
)

// MaxCreations is how many pods are created in one reconciliation.
const MaxCreations = 512

// MaxFailures is how many pods may fail to be created before the others are left
// for the next try: what refuses three refuses three hundred.
const MaxFailures = 3

// NewPod is a pod to create, with the claims that it needs before.
type NewPod struct {
	Pod *corev1.Pod
	// MadeUp: the pod has a name at random, and another one the next time that it is tried.
	MadeUp bool
	Claims []*corev1.PersistentVolumeClaim
	// MayMake tells of the name of a claim whether it may be made; nil makes all.
	MayMake func(string) bool
}

// Pods makes and deletes pods of workloads, and says so in events.
type Pods struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Parallelism is how many pods are created at the same time.
	Parallelism int

	// failed holds the names of pods that could not be created when they were last tried,
	// by the UID of their workload, and of claims whose owners could not be set, by
	// claimsOf. It is forgotten with the manager, or when there are many others: then they
	// are tried first once more.
	failed *lru.Cache
}

// NewPods returns Pods that write with the given client.
func NewPods(c client.Client, recorder events.EventRecorder) *Pods {
	return &Pods{Client: c, Recorder: recorder, Parallelism: executor.DefaultParallelism, failed: lru.New(1024)}
}

// Create creates pods, until too many have failed: one at a time until one succeeds, then
// a batch at a time. The events of the first pods cause the next reconciliation, which
// goes on. Pods that failed before are tried last: what is wrong with them alone does not
// keep the others away.
func (p *Pods) Create(ctx context.Context, owner Owner, pods []NewPod) []error {
	if len(pods) == 0 {
		return nil
	}
	var failed []error
	nameOf := func(wanted NewPod) string { return wanted.Pod.Name }
	before := failedBefore(p.failed, owner.GetUID(), pods, nameOf)
	rest, size := inTurn(pods, before, nameOf), 1
	rest = rest[:min(len(rest), MaxCreations)]
	for len(rest) > 0 && len(failed) < MaxFailures {
		batch := rest[:min(len(rest), size)]
		errs := make([]error, len(batch))
		workqueue.ParallelizeUntil(ctx, p.Parallelism, len(batch), func(i int) {
			errs[i] = p.create(ctx, owner, batch[i])
		})
		for i, err := range errs {
			if err == nil {
				size = p.Parallelism
				continue
			}
			failed = append(failed, err)
			before.Insert(batch[i].Pod.Name)
		}
		rest = rest[len(batch):]
	}
	p.failed.Add(owner.GetUID(), before)
	return failed
}

// failedBefore returns the names of those objects that failed when they were last tried, as
// known says under a key; none when that is all of them.
func failedBefore[T any](known *lru.Cache, key any, objects []T, nameOf func(T) string) sets.Set[string] {
	names, before := sets.New[string](), sets.New[string]()
	if found, ok := known.Get(key); ok {
		before, _ = found.(sets.Set[string])
	}
	for _, object := range objects {
		names.Insert(nameOf(object))
	}
	if before.IsSuperset(names) {
		return sets.New[string]()
	}
	return names.Intersection(before)
}

// inTurn returns the objects that did not fail before, and then the others.
func inTurn[T any](objects []T, failed sets.Set[string], nameOf func(T) string) []T {
	hasFailed := func(object T) bool { return failed.Has(nameOf(object)) }
	first := slices.DeleteFunc(slices.Clone(objects), hasFailed)
	last := slices.DeleteFunc(slices.Clone(objects), func(object T) bool { return !hasFailed(object) })
	return append(first, last...)
}

// create creates a pod and, before it, its claims. If there are claims to make, the API
// server is asked by a dry run whether it accepts the pod: each claim is a volume, and is
// made for nothing if the pod is refused.
func (p *Pods) create(ctx context.Context, owner Owner, wanted NewPod) error {
	pod := wanted.Pod
	makes, err := makesClaims(ctx, p.Client, wanted)
	if err == nil && makes {
		err = explainTaken(p.tryCreate(ctx, pod), pod.Name)
	}
	if err == nil {
		err = EnsureClaims(ctx, p.Client, owner, wanted.Claims, wanted.MayMake)
	}
	if err == nil {
		err = explainTaken(p.Client.Create(ctx, pod), pod.Name)
	}
	if err != nil {
		name := pod.Name
		if wanted.MadeUp {
			name = owner.Object.GetName() + "-…"
			err = &renamedError{err, pod.Name, name}
		}
		p.Recorder.Eventf(owner.Object, nil, corev1.EventTypeWarning, appsv1beta1.ReasonFailedCreate, ActionCreate, "create pod %s: %v", name, err)
		return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, name, err)
	}
	p.Recorder.Eventf(owner.Object, pod, corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulCreate, ActionCreate,
		"created pod %s at revision %s", pod.Name, inplace.RevisionOf(pod))
	return nil
}

// renamedError says an error about a pod whose name was made up without that name: it would be
// another error, another event and another status each time.
type renamedError struct {
	error
	madeUp, name string
}

func (e *renamedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.madeUp, e.name) }

func (e *renamedError) Unwrap() error { return e.error }

// tryCreate asks the API server whether it accepts a pod. Where an admission webhook takes
// no part in dry runs, nothing speaks against it.
func (p *Pods) tryCreate(ctx context.Context, pod *corev1.Pod) error {
	err := p.Client.Create(ctx, pod.DeepCopy(), client.DryRunAll, client.DisableReadYourWritesConsistency)
	if executor.IsNoDryRun(err) {
		return nil
	}
	return err
}

// explainTaken says what to do about a pod that has the name of one to create
// and does not belong to the set; other errors stay as they are.
func explainTaken(err error, name string) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return fmt.Errorf("the name is taken by a pod that is not part of the set; delete pod %s, "+
		"or give it the labels of spec.selector to have it taken over: %w", name, err)
}

// Remove removes a pod that is not wanted any more: it is deleted, when the hook
// preDelete of its workload does not hold it. A pod that changed meanwhile is
// reported as a conflict.
func (p *Pods) Remove(ctx context.Context, owner Owner, pod *corev1.Pod, target inplace.Target, now time.Time) error {
	step := inplace.Remove(pod, target, now)
	switch step.Action {
	case inplace.Recreate:
		return p.Delete(ctx, owner, pod)
	case inplace.SetLifecycle:
		if err := executor.SetLifecycle(ctx, p.Client, pod, step, now); err != nil {
			return client.IgnoreNotFound(err)
		}
		p.Recorder.Eventf(owner.Object, pod, corev1.EventTypeNormal, string(step.Lifecycle), ActionDelete,
			"pod %s is held before its deletion", pod.Name)
		return nil
	case inplace.Wait, inplace.MarkNotReady, inplace.MarkReady, inplace.Patch:
		return nil
	default:
		return nil
	}
}

// Delete deletes a pod if it still is as it was read. A conflict is for the caller
// to look again; a pod that is gone is no error.
func (p *Pods) Delete(ctx context.Context, owner Owner, pod *corev1.Pod) error {
	err := executor.DeletePod(ctx, p.Client, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		p.Recorder.Eventf(owner.Object, pod, corev1.EventTypeWarning, appsv1beta1.ReasonFailedDelete, ActionDelete,
			"delete pod %s: %v", pod.Name, err)
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	p.Recorder.Eventf(owner.Object, pod, corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulDelete, ActionDelete, "deleted pod %s", pod.Name)
	return nil
}
