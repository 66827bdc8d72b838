// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
)

// Kinds returns the kinds of Kubernetes whose pods are updated in place.
func Kinds() []Kind { return []Kind{Deployment, StatefulSet, DaemonSet} }

// newList returns an empty list of objects of the kind.
func (k Kind) newList() client.ObjectList {
	switch k {
	case StatefulSet:
		return &appsv1.StatefulSetList{}
	case DaemonSet:
		return &appsv1.DaemonSetList{}
	case Deployment:
		return &appsv1.DeploymentList{}
	default:
		return &appsv1.DeploymentList{}
	}
}

// OnePerNamespace returns of each namespace an opted-in workload of a kind whose changes are
// held if the policies act there. The reader is asked with the given options.
func OnePerNamespace(ctx context.Context, reader client.Reader, kind Kind, options ...client.ListOption) ([]client.Object, error) {
	return onePerNamespace(ctx, reader, kind, isHeldIfChanged, options...)
}

// onePerNamespace returns of each namespace one opted-in workload of a kind that is as asked.
func onePerNamespace(
	ctx context.Context, reader client.Reader, kind Kind, isOne func(client.Object) bool, options ...client.ListOption,
) ([]client.Object, error) {
	list := kind.newList()
	if err := reader.List(ctx, list, append(options, client.HasLabels{native.UpdatePolicyLabel})...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	var found []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok && isOne(object) {
			found = append(found, object)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return slices.CompactFunc(found, func(a, b client.Object) bool { return a.GetNamespace() == b.GetNamespace() }), err
}

// isHeldIfChanged reports whether a change of the template of a workload is held if the
// policies act on it: it is not held yet, Kubernetes would roll the change out by itself, and
// there are pods.
func isHeldIfChanged(object client.Object) bool {
	if object.GetDeletionTimestamp() != nil || object.GetLabels()[native.HeldLabel] != "" {
		return false
	}
	switch typed := object.(type) {
	case *appsv1.Deployment:
		return typed.Status.Replicas > 0 && !typed.Spec.Paused && typed.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType &&
			typed.Spec.Template.Labels[native.PartOfLabel] == ""
	case *appsv1.StatefulSet:
		return typed.Status.Replicas > 0 && typed.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
			typed.Spec.Template.Labels[native.PartOfLabel] == ""
	case *appsv1.DaemonSet:
		return typed.Status.CurrentNumberScheduled > 0 && typed.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType &&
			typed.Spec.Template.Labels[native.PartOfLabel] == ""
	default:
		return false
	}
}

// WouldBeHeld has the API server say by a dry run whether it holds a change of the template
// of a workload. Nothing is written.
func WouldBeHeld(ctx context.Context, c client.Writer, kind Kind, object client.Object) (bool, error) {
	answer, err := dryRun(ctx, c, kind, object, map[string]any{
		"metadata": map[string]any{"uid": object.GetUID()},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{"insitu.dev/check": "dry-run"}}}},
	})
	return err == nil && answer.Labels[native.HeldLabel] != "", err
}

// HeldPerNamespace returns of each namespace a held workload of a kind.
func HeldPerNamespace(ctx context.Context, reader client.Reader, kind Kind, options ...client.ListOption) ([]client.Object, error) {
	return onePerNamespace(ctx, reader, kind, func(object client.Object) bool {
		return object.GetDeletionTimestamp() == nil && object.GetLabels()[native.HeldLabel] == native.Held
	}, options...)
}

// WouldBeReleased has the API server say by a dry run whether it ends the hold of a workload
// that asks for it. Nothing is written.
func WouldBeReleased(ctx context.Context, c client.Writer, kind Kind, object client.Object) (bool, error) {
	answer, err := dryRun(ctx, c, kind, object, map[string]any{
		"metadata": map[string]any{"uid": object.GetUID(), "labels": map[string]string{native.HeldLabel: native.Release}},
	})
	return err == nil && answer.Labels[native.HeldLabel] == "", err
}

// dryRun returns what the API server would make of a workload by a merge patch.
func dryRun(ctx context.Context, c client.Writer, kind Kind, object client.Object, fields map[string]any) (*metav1.PartialObjectMetadata, error) {
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	answer.SetGroupVersionKind(kind.groupVersionKind())
	err = c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("try a change of %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return answer, nil
}

const (
	// reasonNotHeld: the API server would not hold a change of the workload, so that
	// Kubernetes would recreate its pods.
	reasonNotHeld = "NotHeld"
	// actionTry is what was done to find it, in events.
	actionTry = "Try"
)

const (
	// holdWatchDelay is when the manager tries holds first: an installation brings policies
	// that the API server has to see.
	holdWatchDelay = time.Minute
	// holdWatchPeriod is how often it tries them again.
	holdWatchPeriod = 10 * time.Minute
	// holdWatchPause is between two tries of which both have to fail.
	holdWatchPause = 5 * time.Second
)

// holdWatch tells of workloads that are opted in and would not be held. The policies may act
// in some namespaces only, or be gone, without an event on any workload.
type holdWatch struct {
	// client reads from the cache.
	client       client.Client
	recorder     events.EventRecorder
	clock        clock.Clock
	metrics      *workloads.Metrics
	capabilities *workloads.Capabilities
	// notHeld are the namespaces of each kind in which a workload would not be held.
	notHeld map[Kind]sets.Set[string]
}

func newHoldWatch(c client.Client, recorder events.EventRecorder, m *workloads.Metrics, capabilities *workloads.Capabilities) *holdWatch {
	return &holdWatch{
		client: c, recorder: recorder, clock: clock.RealClock{}, metrics: m, capabilities: capabilities, notHeld: map[Kind]sets.Set[string]{},
	}
}

// NeedLeaderElection says that one replica tells of it.
func (h *holdWatch) NeedLeaderElection() bool { return true }

// Start looks every ten minutes, until ctx ends.
func (h *holdWatch) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-h.clock.After(holdWatchDelay):
		wait.UntilWithContext(ctx, h.look, holdWatchPeriod)
	}
	return nil
}

// look tries one workload of each kind and namespace. Those that would not be held are tried
// a second time. Where the API server has no such policies, it holds nothing, and need not.
func (h *holdWatch) look(ctx context.Context) {
	if !h.capabilities.HasMutatingPolicies(ctx) {
		return
	}
	suspects := map[Kind][]client.Object{}
	for _, kind := range Kinds() {
		objects, err := OnePerNamespace(ctx, h.client, kind)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to look for workloads that would not be held")
			continue
		}
		suspects[kind] = h.try(ctx, kind, objects)
	}
	select {
	case <-ctx.Done():
		return
	case <-h.clock.After(holdWatchPause):
	}
	for kind, objects := range suspects {
		for _, object := range h.try(ctx, kind, h.again(ctx, objects)) {
			h.recorder.Eventf(object, nil, corev1.EventTypeWarning, reasonNotHeld, actionTry,
				"a change of the template would not be held: Kubernetes would recreate the pods of each %s of namespace %s", kind, object.GetNamespace())
		}
		h.metrics.NotHeld(kind.groupVersionKind(), sets.List(h.notHeld[kind]))
	}
}

// try tries workloads, notes which of their namespaces hold none, and returns those that would
// not be held. What the API server does not answer is not known: what was known stays.
func (h *holdWatch) try(ctx context.Context, kind Kind, objects []client.Object) []client.Object {
	before, now := h.notHeld[kind], sets.New[string]()
	var notHeld []client.Object
	for _, object := range objects {
		held, err := WouldBeHeld(ctx, h.client, kind, object)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(1).Info("Could not try a hold", "kind", kind, "workload", klog.KObj(object), "err", err)
			if before.Has(object.GetNamespace()) {
				now.Insert(object.GetNamespace())
			}
		case !held:
			now.Insert(object.GetNamespace())
			notHeld = append(notHeld, object)
		}
	}
	h.notHeld[kind] = now
	return notHeld
}

// again returns of some workloads those that are still to be held.
func (h *holdWatch) again(ctx context.Context, objects []client.Object) []client.Object {
	var still []client.Object
	for _, object := range objects {
		now, _ := object.DeepCopyObject().(client.Object)
		err := h.client.Get(ctx, client.ObjectKeyFromObject(object), now)
		if _, isOptedIn := now.GetLabels()[native.UpdatePolicyLabel]; err == nil && isOptedIn && isHeldIfChanged(now) {
			still = append(still, now)
		}
	}
	return still
}
