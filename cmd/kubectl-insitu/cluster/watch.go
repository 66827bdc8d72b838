// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// Watcher watches the workloads of a namespace, or of all, and what belongs to them.
type Watcher struct {
	cluster *Cluster
	reader  client.Client
	changed chan struct{}
}

// Watch watches a namespace, or all if it is empty, until ctx ends. It fails where the
// user lacks the right to list and watch what reports are made of.
func (c *Cluster) Watch(ctx context.Context, namespace string) (*Watcher, error) {
	options := cache.Options{
		Scheme: c.Client.Scheme(), Mapper: c.Client.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: podcache.TrimNode}},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	watched, err := cache.New(c.config, options)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	if err := podcache.AddIndexes(ctx, watched); err != nil {
		return nil, err
	}
	reader, err := client.New(c.config, client.Options{
		Scheme: c.Client.Scheme(), Mapper: c.Client.RESTMapper(),
		Cache: &client.CacheOptions{Reader: watched, DisableFor: c.unwatched(ctx)},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := &Watcher{cluster: c, reader: newLenient(reader), changed: make(chan struct{}, 1)}
	if err := w.subscribe(ctx, c.Client, watched, namespace); err != nil {
		return nil, err
	}
	go func() { _ = watched.Start(ctx) }() // it ends with ctx, and without an error then
	if !watched.WaitForCacheSync(ctx) {
		return nil, errors.New("watch the cluster: interrupted before everything was read")
	}
	return w, nil
}

// unwatched returns what is read from the API server each time.
func (c *Cluster) unwatched(ctx context.Context) []client.Object {
	// Few of them, and not every user may watch them.
	objects := []client.Object{&storagev1.StorageClass{}, &storagev1.VolumeAttributesClass{}}
	if err := c.Client.List(ctx, &corev1.NodeList{}, client.Limit(1)); err != nil {
		objects = append(objects, &corev1.Node{}) // a watch that is not allowed would be tried for ever
	}
	return objects
}

// subscribe watches every kind that reports are made of, and that the cluster serves.
func (w *Watcher) subscribe(ctx context.Context, live client.Client, watched cache.Cache, namespace string) error {
	lists := []client.ObjectList{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{},
		&appsv1.ReplicaSetList{}, &discoveryv1.EndpointSliceList{},
	}
	objects := []client.Object{
		&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, &appsv1.ReplicaSet{}, &discoveryv1.EndpointSlice{},
	}
	for _, kind := range kinds.All() {
		lists, objects = append(lists, kind.NewList()), append(objects, kind.New())
	}
	for i, object := range objects {
		// A watch that is not allowed would be tried for ever.
		err := live.List(ctx, lists[i], client.InNamespace(namespace), client.Limit(1))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return Explain(fmt.Errorf("list %T: %w", object, err))
		}
		informer, err := watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(w.handler()); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

func (w *Watcher) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.notify() },
		UpdateFunc: func(any, any) { w.notify() },
		DeleteFunc: func(any) { w.notify() },
	}
}

func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default: // it is known already that something has changed
	}
}

// Changed gets a value when something has changed since the last one was taken.
func (w *Watcher) Changed() <-chan struct{} {
	return w.changed
}

// Report returns what is to be told of a workload now. One that is gone is an error that
// is not found.
func (w *Watcher) Report(ctx context.Context, found Found) (report.Workload, error) {
	object := found.Kind.New()
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(found.Object), object); err != nil {
		return report.Workload{}, fmt.Errorf("read %s: %w", found, err)
	}
	return w.cluster.observer(w.reader).report(ctx, Found{found.Kind, object})
}

// List is as that of Cluster.
func (w *Watcher) List(ctx context.Context, namespace string) ([]report.Workload, error) {
	return w.cluster.observer(w.reader).list(ctx, namespace)
}
