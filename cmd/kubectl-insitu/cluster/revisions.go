// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	deploymentutil "k8s.io/kubectl/pkg/util/deployment"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// revisions returns the revisions of a workload, the newest first, and how to tell which
// of them a pod has.
func (o observer) revisions(
	ctx context.Context, found Found, view kinds.View, inspection workload.Inspection,
) ([]report.Revision, func(*corev1.Pod) string, error) {
	if found.Kind.ThroughReplicaSets {
		return o.replicaSets(ctx, found, view, inspection)
	}
	list := &appsv1.ControllerRevisionList{}
	if err := podcache.ByOwner(ctx, o.reader, found.Object, list); err != nil {
		return nil, nil, Explain(err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	update, current := marks(view, list.Items, inspection)
	read, err := history.Read(list.Items)
	if err != nil {
		return nil, nil, err
	}
	byLabel := map[string]string{}
	revisions := make([]report.Revision, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		hash := item.Labels[appsv1.ControllerRevisionHashLabelKey]
		byLabel[item.Name], byLabel[hash] = item.Name, item.Name
		told := report.Revision{
			Name: item.Name, Number: item.Revision, CreationTimestamp: item.CreationTimestamp,
			IsUpdate: item.Name == update || hash == update, IsCurrent: item.Name == current,
		}
		if revision := read.Get(item.Name); revision != nil {
			for _, container := range revision.Template.Containers() {
				told.Images = append(told.Images, container.Image)
			}
		}
		revisions = append(revisions, told)
	}
	return revisions, func(pod *corev1.Pod) string {
		return byLabel[pod.Labels[appsv1.ControllerRevisionHashLabelKey]]
	}, nil
}

// marks returns the names of the revisions that pods get to, and that kept ones have.
func marks(view kinds.View, items []appsv1.ControllerRevision, inspection workload.Inspection) (update, current string) {
	switch {
	case view.Kind.IsOurs() && inspection.Update != "":
		return inspection.Update, inspection.Current
	case view.Kind.NamesRevisions:
		return view.UpdateRevision, view.CurrentRevision
	case inspection.Update != "":
		return inspection.Update, ""
	case len(items) > 0:
		return items[0].Name, "" // the newest
	default:
		return "", ""
	}
}

// replicaSets returns the ReplicaSets of a workload as its revisions and, while it is held,
// the revision that its pods are updated to.
func (o observer) replicaSets(
	ctx context.Context, found Found, view kinds.View, inspection workload.Inspection,
) ([]report.Revision, func(*corev1.Pod) string, error) {
	list := &appsv1.ReplicaSetList{}
	if err := podcache.ByOwner(ctx, o.reader, found.Object, list); err != nil {
		return nil, nil, Explain(err)
	}
	number := func(set *appsv1.ReplicaSet) int64 {
		n, _ := strconv.ParseInt(set.Annotations[deploymentutil.RevisionAnnotation], 10, 64)
		return n
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int { return int(number(&b) - number(&a)) })
	isHeld := kinds.IsHeld(found.Object) && inspection.Update != ""
	var revisions []report.Revision
	if isHeld {
		revisions = append(revisions, report.Revision{
			Name: found.Object.GetName() + "-" + inspection.Update, IsUpdate: true, Images: imagesOf(&view.Template.Spec),
		})
	}
	names := map[string]string{}
	for i := range list.Items {
		set := &list.Items[i]
		names[string(set.UID)] = set.Name
		revisions = append(revisions, report.Revision{
			Name: set.Name, Number: number(set), Images: imagesOf(&set.Spec.Template.Spec), CreationTimestamp: set.CreationTimestamp,
			IsUpdate: !isHeld && i == 0,
		})
	}
	updated := map[string]bool{}
	for _, pod := range inspection.Plan.Pods {
		updated[pod.Pod.Name] = pod.Updated
	}
	return revisions, func(pod *corev1.Pod) string {
		if isHeld && updated[pod.Name] {
			return revisions[0].Name
		}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			return names[string(owner.UID)]
		}
		return ""
	}, nil
}

func imagesOf(spec *corev1.PodSpec) []string {
	images := make([]string, 0, len(spec.Containers))
	for i := range spec.Containers {
		images = append(images, spec.Containers[i].Image)
	}
	return images
}
