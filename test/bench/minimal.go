// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/insitu-dev/insitu/controllers/executor"
)

// minimal is what the manager is compared with: a client that updates pods in
// place and does nothing else. It makes the manager's writes to each pod, as many
// at a time, and between them waits for the kubelet, by one watch of all pods. It
// trusts that all goes well: it reads no EndpointSlices, proves nothing, tries
// nothing first, keeps no record, reports nothing, and when it dies, no other
// client can continue.
type minimal struct {
	kube     kubernetes.Interface
	pods     corelisters.PodNamespaceLister
	queue    workqueue.TypedRateLimitingInterface[string]
	steps    steps
	finished chan struct{}

	mu sync.Mutex
	// waiting are the pods whose turn has not come; begun has the others.
	waiting []string
	begun   map[string]*minimalPod
	left    int
}

// newMinimal returns a client whose watch has begun.
func newMinimal(ctx context.Context, kube kubernetes.Interface, steps steps) (*minimal, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace),
		informers.WithTransform(ctrlcache.TransformStripManagedFields()),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	pods := factory.Core().V1().Pods()
	m := &minimal{
		kube: kube, steps: steps, pods: pods.Lister().Pods(namespace), finished: make(chan struct{}), begun: map[string]*minimalPod{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, pod any) { m.look(pod.(*corev1.Pod).Name) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		return nil, errors.New("watch pods: the cache did not sync")
	}
	return m, nil
}

// update makes all steps with all pods, so many pods at once. It is called once.
func (m *minimal) update(ctx context.Context, atOnce int) error {
	pods, err := m.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, pod := range pods {
		m.waiting = append(m.waiting, pod.Name)
	}
	slices.Sort(m.waiting)
	m.left = len(m.waiting)
	for range min(atOnce, m.left) {
		m.beginNext()
	}
	for range executor.DefaultParallelism {
		go m.work(ctx)
	}
	defer m.queue.ShutDown()
	select {
	case <-m.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *minimal) beginNext() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		return
	}
	next := m.waiting[0]
	m.waiting, m.begun[next] = m.waiting[1:], &minimalPod{}
	m.queue.Add(next)
}

// look lets a worker look at a pod that changed, if its turn has come.
func (m *minimal) look(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun[name] != nil {
		m.queue.Add(name)
	}
}

func (m *minimal) work(ctx context.Context) {
	for {
		name, shutdown := m.queue.Get()
		if shutdown {
			return
		}
		m.mu.Lock()
		state := m.begun[name]
		m.mu.Unlock()
		if err := m.advance(ctx, name, state); err != nil {
			m.queue.AddRateLimited(name)
		}
		m.queue.Done(name)
	}
}

// advance makes the next step with a pod if what it waits for has come.
func (m *minimal) advance(ctx context.Context, name string, state *minimalPod) error {
	if state.steps == len(m.steps) {
		return nil
	}
	pod, err := m.pods.Get(name)
	if err != nil {
		return err
	}
	next := m.steps[state.steps]
	if next.when != nil && !next.when(pod, state) {
		return nil
	}
	for _, write := range next.writes {
		body := write.body(pod)
		written, err := m.kube.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, write.to...)
		if err != nil {
			return err
		}
		state.generation = written.Generation
	}
	state.container = pod.Status.ContainerStatuses[0].ContainerID
	state.steps++
	if state.steps == len(m.steps) {
		m.finish()
	}
	return nil
}

// finish counts a pod that is done, and lets another have its turn.
func (m *minimal) finish() {
	m.beginNext()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	if m.left == 0 {
		close(m.finished)
	}
}
