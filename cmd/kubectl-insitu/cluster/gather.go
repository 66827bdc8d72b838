// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Report returns what is to be told of a workload.
func (c *Cluster) Report(ctx context.Context, found Found) (report.Workload, error) {
	return c.observer(newSnapshot(newLenient(c.Client))).report(ctx, found)
}

// observer makes reports from what a reader with the indexes of package podcache shows.
type observer struct {
	reader client.Client
	live   *attentive
	eyes   workload.Eyes
	now    time.Time
}

// observer returns one that reads by a client with the indexes of package podcache.
func (c *Cluster) observer(reader client.Client) observer {
	now, attentively := clock.RealClock{}, &attentive{Reader: c.Client}
	return observer{
		reader: reader, live: attentively, now: now.Now(),
		eyes: workload.Eyes{Client: workload.Withhold(reader, nil), Live: attentively, Clock: now, Capabilities: c.capabilities},
	}
}

func (o observer) report(ctx context.Context, found Found) (report.Workload, error) {
	view, err := kinds.Read(found.Object)
	if err != nil {
		return report.Workload{}, err
	}
	facts := report.Facts{Kind: found.Kind.GroupVersionKind, Object: found.Object, Now: o.now}
	if facts.Pods, err = o.pods(ctx, found); err != nil {
		return report.Workload{}, err
	}
	if facts.Claims, err = o.claims(ctx, facts.Pods); err != nil {
		return report.Workload{}, err
	}
	o.live.failed.Store(false)
	facts.Inspection = o.inspect(ctx, found, view)
	facts.Partial = o.live.failed.Load()
	if facts.Revisions, facts.RevisionOf, err = o.revisions(ctx, found, view, facts.Inspection); err != nil {
		return report.Workload{}, err
	}
	return report.New(facts), nil
}

// inspect returns what the operator would decide. A workload that is being deleted, and one
// that Kubernetes drives, has no plan.
func (o observer) inspect(ctx context.Context, found Found, view kinds.View) workload.Inspection {
	if found.Object.GetDeletionTimestamp() != nil {
		return workload.Inspection{}
	}
	eyes := o.eyes
	eyes.Pulling = o.pulling(ctx, found, view)
	return view.Inspect(ctx, eyes)
}

// pulling returns how the operator pulls images for a workload. What it is configured to do where a
// workload does not say it shows by the pods that pull, and by what it has reported.
func (o observer) pulling(ctx context.Context, found Found, view kinds.View) *executor.Pulling {
	pulling, list := &executor.Pulling{Policy: appsv1beta1.NoImagePull}, &corev1.PodList{}
	err := podcache.Pullers(ctx, o.reader, found.Object, list)
	isReported := slices.ContainsFunc(view.Blockers, func(b appsv1beta1.Blocker) bool {
		return b.Reason == inplace.ReasonImagePull || b.Reason == inplace.ReasonImageNotPullable
	})
	if err == nil && len(list.Items) > 0 || isReported {
		pulling.Policy = appsv1beta1.RequireImagePull
	}
	return pulling
}

// pods returns the pods that a workload owns, itself or through ReplicaSets, but for those that
// pull images.
func (o observer) pods(ctx context.Context, found Found) ([]*corev1.Pod, error) {
	owners := []client.Object{found.Object}
	if found.Kind.ThroughReplicaSets {
		list := &appsv1.ReplicaSetList{}
		if err := podcache.ByOwner(ctx, o.reader, found.Object, list); err != nil {
			return nil, Explain(err)
		}
		owners = nil
		for i := range list.Items {
			owners = append(owners, &list.Items[i])
		}
	}
	var pods []*corev1.Pod
	for _, owner := range owners {
		list := &corev1.PodList{}
		if err := podcache.ByOwner(ctx, o.reader, owner, list); err != nil {
			return nil, Explain(err)
		}
		for i := range list.Items {
			if !inplace.IsPuller(&list.Items[i]) {
				pods = append(pods, &list.Items[i])
			}
		}
	}
	return pods, nil
}

// claims returns the claims that pods use, by name.
func (o observer) claims(ctx context.Context, pods []*corev1.Pod) (map[string]*corev1.PersistentVolumeClaim, error) {
	found := map[string]*corev1.PersistentVolumeClaim{}
	for _, pod := range pods {
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim == nil {
				continue
			}
			claim := &corev1.PersistentVolumeClaim{}
			key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
			exists, err := workload.Find(ctx, o.reader, key, claim)
			if err != nil {
				return nil, Explain(err)
			}
			if exists {
				found[claim.Name] = claim
			}
		}
	}
	return found, nil
}

// List returns reports on all workloads of a namespace that the operator drives, or could:
// those of ours, and those of Kubernetes with the label that opts in. An empty namespace
// means all.
func (c *Cluster) List(ctx context.Context, namespace string) ([]report.Workload, error) {
	return c.observer(newSnapshot(newLenient(c.Client))).list(ctx, namespace)
}

func (o observer) list(ctx context.Context, namespace string) ([]report.Workload, error) {
	var reports []report.Workload
	var errs []error
	for _, kind := range kinds.All() {
		objects, err := o.objects(ctx, kind, namespace)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			told, err := o.report(ctx, Found{kind, object})
			errs = append(errs, err)
			if err == nil {
				reports = append(reports, told)
			}
		}
	}
	if len(reports) == 0 {
		return nil, errors.Join(errs...)
	}
	return reports, nil
}

// objects returns the workloads of a kind. A kind that the cluster does not serve has none.
func (o observer) objects(ctx context.Context, kind kinds.Kind, namespace string) ([]client.Object, error) {
	list := kind.NewList()
	options := []client.ListOption{client.InNamespace(namespace)}
	if !kind.IsOurs() {
		options = append(options, client.HasLabels{nativeapi.UpdatePolicyLabel})
	}
	if err := o.reader.List(ctx, list, options...); err != nil && !meta.IsNoMatchError(err) {
		return nil, Explain(fmt.Errorf("list %s: %w", kind, err))
	}
	return itemsOf(list)
}

// itemsOf returns the objects of a list.
func itemsOf(list client.ObjectList) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("read %T: %w", list, err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Names returns the workloads that List reports on. What cannot be read is left out.
func (c *Cluster) Names(ctx context.Context, namespace string) []report.Ref {
	o := c.observer(newSnapshot(c.Client))
	var names []report.Ref
	for _, kind := range kinds.All() {
		objects, err := o.objects(ctx, kind, namespace)
		if err != nil {
			continue
		}
		for _, object := range objects {
			names = append(names, report.RefOf(kind.GroupVersionKind, object))
		}
	}
	return names
}
