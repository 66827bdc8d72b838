// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// scope is what one reconciliation knows of a DaemonSet.
type scope struct {
	engine.Round
	set *appsv1beta1.DaemonSet

	// nodes are those that run a pod, are to run one or had one, by name. known holds the
	// objects of those that there are.
	nodes []nodeFacts
	known map[string]*corev1.Node
	// isInferred: the status does not say which revision is the current one.
	isInferred bool
	// desired is how many nodes are to run a pod.
	desired int
	// selector selects the nodes whose pods are updated.
	selector labels.Selector

	// placed is what was decided on the number of pods.
	placed placePlan
	// turns are the nodes that are to run a pod, in the order of updates, of which the first
	// released ones get to the update revision.
	turns    []turn
	released int
	// counts is what came of the plan, and pending and kept of the pods that are not updated.
	counts        engine.Counts
	pending, kept int
}

func newScope(set *appsv1beta1.DaemonSet, now time.Time) *scope {
	return &scope{Round: engine.Round{Owner: workload.Owner{Object: set, Kind: kind, MarksByHash: true}, Now: now}, set: set}
}

// mayServe ends the round of a manager that may not look at nodes.
func (r *Reconciler) mayServe(_ context.Context, s *scope) error {
	if !r.NamespaceScope {
		return nil
	}
	return reconcile.TerminalError(workload.SpecError{Reason: appsv1beta1.ReasonNotServed, Err: fmt.Errorf(
		"DaemonSet %s/%s is not served: this manager has rights in namespaces only (scope Namespace), and nodes belong to the cluster", s.set.Namespace, s.set.Name)})
}

// adopt takes over pods and revisions without a controller that selector selects. A pod that has
// ended is left with its logs.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	_, err := r.Adopt(ctx, &s.Round, s.set.Spec.Selector, func(pod *corev1.Pod) bool { return !inplace.HasEnded(pod) })
	return err
}

// observe reads the pods of the set and the nodes, and says which pods are where.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	var err error
	if s.selector, err = nodesOf(s.set); err != nil {
		return workload.SpecError{Err: err}
	}
	if err := r.ObservePods(ctx, &s.Round, func(pod *corev1.Pod) bool { return targetOf(pod) != "" }); err != nil {
		return err
	}
	list := &corev1.NodeList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	s.locate(list.Items)
	return nil
}

// locate says what each node is to the set, and which of its pods are there.
func (s *scope) locate(nodes []corev1.Node) {
	s.known = make(map[string]*corev1.Node, len(nodes))
	selected, found := selectionOf(&s.set.Spec.Template.Spec), map[string]nodeFacts{}
	for i := range nodes {
		node := &nodes[i]
		s.known[node.Name] = node
		if placement := selected.of(node); placement.keeps {
			found[node.Name] = nodeFacts{name: node.Name, placement: placement}
			if placement.runs {
				s.desired++
			}
		}
	}
	for _, pod := range s.Pods {
		name := targetOf(pod)
		facts := found[name]
		facts.name, facts.gone, facts.pods = name, s.known[name] == nil, append(facts.pods, pod)
		found[name] = facts
	}
	s.nodes = slices.SortedFunc(maps.Values(found), func(a, b nodeFacts) int { return cmp.Compare(a.name, b.name) })
}

// nodesOf returns what selects the nodes whose pods are updated.
func nodesOf(set *appsv1beta1.DaemonSet) (labels.Selector, error) {
	selector := set.GetRollingUpdate().Selector
	if selector == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("read spec.updateStrategy.rollingUpdate.selector of DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return parsed, nil
}

func (r *Reconciler) ensureRevisions(ctx context.Context, s *scope) error {
	content, err := s.ContentOf(s.set.Spec.Template, nil)
	if err != nil {
		return err
	}
	status := commonStatus(s.set)
	if err := r.EnsureRevisions(ctx, &s.Round, content, s.set.Spec.Template.Labels, status); err != nil {
		return err
	}
	if s.Revisions.Get(*status.CurrentRevision) == nil {
		s.Revisions.Current, s.isInferred = s.inferCurrent(), true
	}
	return nil
}

// inferCurrent returns the revision of most pods that are not updated, and the update revision if
// all are. The status of a DaemonSet of OpenKruise does not say it.
func (s *scope) inferCurrent() *history.Revision {
	current, most, pods := s.Revisions.Update, 0, map[*history.Revision]int{}
	for _, pod := range s.Pods {
		revision := s.Revisions.Of(pod)
		if revision == nil || revision == s.Revisions.Update {
			continue
		}
		pods[revision]++
		if pods[revision] > most {
			current, most = revision, pods[revision]
		}
	}
	return current
}

func (r *Reconciler) truncateHistory(ctx context.Context, s *scope) error {
	r.TruncateHistory(ctx, &s.Round, s.set.GetRevisionHistoryLimit())
	return nil
}

// isStopped reports whether no pod may start its update.
func (s *scope) isStopped() bool {
	return s.set.IsPaused() || s.set.IsOnDelete()
}

func (s *scope) target() inplace.Target {
	target := workload.TargetOf(s.set.GetInPlaceUpdateStrategy(), s.set.Annotations, s.desired)
	target.Revision = s.Revisions.InPlace(s.Revisions.Update)
	target.CannotResize = s.CannotResize
	target.Policy, target.PolicyField = s.set.GetPodUpdatePolicy(), "rollingUpdateType"
	target.Lifecycle = s.set.Spec.Lifecycle.OrNil()
	return target
}
