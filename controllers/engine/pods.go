// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Common makes a phase of a kind of what is the same for all kinds.
func Common[S Set](phase func(context.Context, *Round) error) Phase[S] {
	return func(ctx context.Context, s S) error { return phase(ctx, s.Base()) }
}

// Adopt takes over pods and revisions without a controller that selector, the one in the spec,
// selects: of the pods those that isOwn is true of. It returns the names of the pods that the
// API server refuses to have adopted.
func (c *Core) Adopt(ctx context.Context, r *Round, selector *metav1.LabelSelector, isOwn func(*corev1.Pod) bool) (sets.Set[string], error) {
	var err error
	if r.Selector, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return nil, workload.SpecError{Err: fmt.Errorf("read spec.selector of %s: %w", r.Owner, err)}
	}
	orphans, err := workload.ListOrphans(ctx, c.Client, c.Live, r.Owner, workload.Own{Selector: r.Selector, IsPod: isOwn})
	if err != nil {
		return nil, err
	}
	left, failures, err := workload.Adopt(ctx, c.Client, c.Live, r.Owner, orphans)
	r.Updating.Join(failures)
	return left, err
}

// ObservePods reads the pods that the workload controls and that isOwn is true of. Those that
// its selector selects are its Pods, the others its Strays, both by name: a cache lists them in
// another order each time, and what goes wrong with several is reported in theirs. Those that pull
// images are its Pullers. Another client may have given its owner reference to a pod that is not
// its own: such a pod is left alone.
func (c *Core) ObservePods(ctx context.Context, r *Round, isOwn func(*corev1.Pod) bool) error {
	list := &corev1.PodList{}
	// Pods are only read: what is written to one is a patch, and its answer goes
	// elsewhere.
	if err := podcache.ByOwner(ctx, c.Client, r.Owner, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case inplace.IsPuller(pod):
			r.Pullers = append(r.Pullers, pod)
		case !isOwn(pod):
		case workload.IsStray(pod, r.Selector):
			r.Strays = append(r.Strays, pod)
		default:
			r.Pods = append(r.Pods, pod)
		}
	}
	byName := func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(r.Pods, byName)
	slices.SortFunc(r.Strays, byName)
	return nil
}

// Release releases the strays. They were not observed as pods of the workload, so none of them
// is counted or changed, also if its release fails.
func (c *Core) Release(ctx context.Context, r *Round) error {
	r.Updating.Join(workload.Release(ctx, c.Client, r.Owner, r.Strays))
	return nil
}
