// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// replicaSet is a ReplicaSet, and its template as that of its Deployment.
type replicaSet struct {
	*appsv1.ReplicaSet
	template *inplace.Template
}

// isOf reports whether the controller of Deployments takes the ReplicaSet for that of
// a template. It looks closer than we do: {} is another security context than none.
func (rs *replicaSet) isOf(template *corev1.PodTemplateSpec) bool {
	a, b := rs.Spec.Template.DeepCopy(), template.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(a, b)
}

// failure returns what says that a ReplicaSet cannot make the pods that it lacks: a
// quota, a policy or a webhook refuses them. It is nil for others.
func (rs *replicaSet) failure() *appsv1.ReplicaSetCondition {
	i := slices.IndexFunc(rs.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
	})
	if i < 0 || rs.Status.Replicas >= ptr.Deref(rs.Spec.Replicas, 1) {
		return nil // there are too many pods, and one cannot be deleted
	}
	return &rs.Status.Conditions[i]
}

// replicaSets returns ReplicaSets with their templates.
func replicaSets(objects []appsv1.ReplicaSet) ([]*replicaSet, error) {
	found := make([]*replicaSet, 0, len(objects))
	for i := range objects {
		template, err := inplace.NewTemplate(objects[i].Spec.Template)
		if err != nil {
			return nil, fmt.Errorf("read template of ReplicaSet %s/%s: %w", objects[i].Namespace, objects[i].Name, err)
		}
		found = append(found, &replicaSet{ReplicaSet: &objects[i], template: template.Native()})
	}
	return found, nil
}

// readPromoted reads the ReplicaSet that is being promoted from the API server, if its
// pods were taken off meanwhile: the cache does not have its template then.
func readPromoted(ctx context.Context, live client.Reader, objects []appsv1.ReplicaSet) error {
	for i := range objects {
		rs := &replicaSet{ReplicaSet: &objects[i]}
		if !rs.isPromoted() || podcache.HasTemplate(rs.ReplicaSet) {
			continue
		}
		if err := live.Get(ctx, client.ObjectKeyFromObject(rs), rs.ReplicaSet); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
	}
	return nil
}

// liveReplicaSets returns those that have pods, or are to have some, and the one that
// is being promoted.
func liveReplicaSets(objects []appsv1.ReplicaSet) ([]*replicaSet, error) {
	live := slices.DeleteFunc(objects, func(rs appsv1.ReplicaSet) bool {
		return !isLive(&rs) && (!(&replicaSet{ReplicaSet: &rs}).isPromoted() || rs.DeletionTimestamp != nil)
	})
	return replicaSets(live)
}

// lastNumber returns the highest number that a ReplicaSet has in the history.
func lastNumber(objects []appsv1.ReplicaSet) int {
	last := 0
	for i := range objects {
		if number, err := strconv.Atoi(objects[i].Annotations[revisionAnnotation]); err == nil {
			last = max(last, number)
		}
	}
	return last
}

// countNumbers returns how many ReplicaSets have each number in the history.
func countNumbers(objects []appsv1.ReplicaSet) map[string]int {
	counts := map[string]int{}
	for i := range objects {
		counts[objects[i].Annotations[revisionAnnotation]]++
	}
	return counts
}

func isLive(rs *appsv1.ReplicaSet) bool {
	return rs.DeletionTimestamp == nil && (ptr.Deref(rs.Spec.Replicas, 1) > 0 || rs.Status.Replicas > 0)
}

// chooseKeeper returns the ReplicaSet whose pods stay: one that is being promoted, or
// the one that the Deployment takes for that of its template or, if there is neither,
// the one with the most pods. Where a hold makes a pod more, that is of the template, and the
// others are to stay: that choice is made once in a hold, since scaling shares pods out. It is
// nil if none is to have pods.
func chooseKeeper(live []*replicaSet, target *corev1.PodTemplateSpec, surges bool) *replicaSet {
	wanted := slices.DeleteFunc(slices.Clone(live), func(rs *replicaSet) bool {
		return ptr.Deref(rs.Spec.Replicas, 1) == 0 && !rs.isPromoted()
	})
	if len(wanted) == 0 {
		return nil
	}
	slices.SortStableFunc(wanted, func(a, b *replicaSet) int {
		bySize := cmp.Compare(ptr.Deref(b.Spec.Replicas, 1), ptr.Deref(a.Spec.Replicas, 1))
		if surges {
			bySize = cmp.Or(workloads.CompareBools(a.isSurge(), b.isSurge()), bySize)
		}
		byTemplate := compareEqual(a, b, target)
		first, second := byTemplate, bySize
		if surges {
			first, second = bySize, byTemplate
		}
		return cmp.Or(
			workloads.CompareBools(b.isPromoted(), a.isPromoted()), workloads.CompareBools(surges && b.isKeeper(), surges && a.isKeeper()),
			first, second, compareAge(a, b),
		)
	})
	return wanted[0]
}

// compareEqual orders those with the template first, the older one of two such.
func compareEqual(a, b *replicaSet, target *corev1.PodTemplateSpec) int {
	switch isA, isB := a.isOf(target), b.isOf(target); {
	case isA && isB:
		return compareAge(a, b)
	case isA:
		return -1
	case isB:
		return 1
	default:
		return 0
	}
}

// compareAge orders as the controller of Deployments does when it looks for the
// ReplicaSet of a template.
func compareAge(a, b *replicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
