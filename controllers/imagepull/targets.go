// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	nodeutil "k8s.io/component-helpers/node/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

// unreadableNodes is why a manager cannot tell which nodes a job means.
const unreadableNodes = "the operator has no right to read nodes, it acts in namespaces only: name the nodes in selector.names, or select pods"

// targets returns the nodes of a job in the order in which they begin: those that are ready first,
// then by name. If the spec does not tell them, it returns why.
func (r *Reconciler) targets(ctx context.Context, job *appsv1beta1.ImagePullJob, pods []*corev1.Pod) (targets []target, why string, err error) {
	selector, named, err := r.selection(ctx, job, pods)
	if apierrors.IsInvalid(err) {
		return nil, executor.ServerWords(err), nil
	}
	switch {
	case err != nil:
		return nil, "", err
	case r.namespaceScope && named == nil:
		return nil, unreadableNodes, nil
	case r.namespaceScope:
		for _, name := range sets.List(named) {
			targets = append(targets, target{name: name, isReady: true})
		}
		return targets, "", nil
	}
	nodes := &corev1.NodeList{}
	// What is listed here is only read, so it need not be a copy.
	if err := r.client.List(ctx, nodes, client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.DeletionTimestamp == nil && !inplace.IsVirtual(node) && (named == nil || named.Has(node.Name)) {
			targets = append(targets, target{node.Name, isReady(node), corev1.OSName(node.Labels[corev1.LabelOSStable])})
		}
	}
	slices.SortFunc(targets, byReadinessAndName)
	return targets, "", nil
}

// selection returns the labels of the nodes of a job, and their names, if it is those that say which:
// nil otherwise. A node that pulls is one until that is over, also if the pod moves for which it does.
func (r *Reconciler) selection(ctx context.Context, job *appsv1beta1.ImagePullJob, pods []*corev1.Pod) (labels.Selector, sets.Set[string], error) {
	if names := job.Spec.GetNodeNames(); len(names) > 0 {
		return labels.Everything(), sets.New(names...), nil
	}
	if job.Spec.PodSelector != nil {
		selector, err := selectorIn(job, job.Spec.PodSelector, "podSelector")
		if err != nil {
			return nil, nil, err
		}
		named, err := r.nodesOfPods(ctx, job.Namespace, selector)
		for _, pod := range pods {
			isOurs := strings.HasPrefix(pod.Name, pullOn(job, pod.Spec.NodeName).PullerName(job)+"-")
			if state := stateOf(pod); isOurs && (state == inplace.PullUnderWay || state == inplace.PullUnanswered) {
				named.Insert(pod.Spec.NodeName)
			}
		}
		return labels.Everything(), named, err
	}
	if job.Spec.Selector == nil {
		return labels.Everything(), nil, nil
	}
	selector, err := selectorIn(job, &job.Spec.Selector.LabelSelector, "selector")
	return selector, nil, err
}

// selectorIn returns what a selector in the spec of a job selects. The API server does not know of
// all mistakes in it.
func selectorIn(job *appsv1beta1.ImagePullJob, said *metav1.LabelSelector, name string) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(said)
	if err != nil {
		return nil, apierrors.NewInvalid(appsv1beta1.ImagePullJobKind.GroupKind(), job.Name, field.ErrorList{field.Invalid(field.NewPath("spec", name), said, err.Error())})
	}
	return selector, nil
}

func byReadinessAndName(a, b target) int {
	if a.isReady != b.isReady {
		if a.isReady {
			return -1
		}
		return 1
	}
	return strings.Compare(a.name, b.name)
}

func isReady(node *corev1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// nodesOfPods returns the nodes on which the pods run that a selector selects.
func (r *Reconciler) nodesOfPods(ctx context.Context, namespace string, selector labels.Selector) (sets.Set[string], error) {
	nodes, pods := sets.New[string](), &corev1.PodList{}
	// What is listed here is only read, so it need not be a copy.
	err := r.client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nodes, fmt.Errorf("list pods that podSelector selects: %w", err)
	}
	for i := range pods.Items {
		if runs(&pods.Items[i]) {
			nodes.Insert(pods.Items[i].Spec.NodeName)
		}
	}
	return nodes, nil
}

// runs reports whether a pod makes its node one of those where images are to be.
func runs(pod *corev1.Pod) bool {
	isOver := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !isOver && !inplace.IsPuller(pod)
}
