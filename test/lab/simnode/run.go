// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Run registers the nodes and acts as their kubelets until ctx is done, then
// returns nil. It returns an error if the options are wrong or a node cannot be
// registered.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return err
	}
	client, err := newClient(cfg)
	if err != nil {
		return err
	}
	s, err := newSimulation(client, opts)
	if err != nil {
		return err
	}
	if err := s.registerNodes(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// newClient returns a client that is limited by the server only.
func newClient(cfg *rest.Config) (kubernetes.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	rest.AddUserAgent(cfg, "simnode")
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return client, nil
}

// simulation is all nodes of one run and their pods.
type simulation struct {
	opts   Options
	client kubernetes.Interface
	images *imageStore
	podIPs *addresses
	nodes  map[string]string // IPs by name
	queue  workqueue.TypedDelayingInterface[cache.ObjectName]
	lister corelisters.PodLister

	mu   sync.Mutex
	pods map[cache.ObjectName]*simulatedPod
}

func newSimulation(client kubernetes.Interface, opts Options) (*simulation, error) {
	podIPs, err := newAddresses(opts.PodCIDR)
	if err != nil {
		return nil, err
	}
	nodeIPs, err := newAddresses(opts.NodeCIDR)
	if err != nil {
		return nil, err
	}
	s := &simulation{
		opts:   opts,
		client: client,
		images: newImageStore(opts),
		podIPs: podIPs,
		nodes:  map[string]string{},
		pods:   map[cache.ObjectName]*simulatedPod{},
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{
			Clock: opts.Clock,
			Name:  "simnode",
		}),
	}
	for i := 1; i <= opts.Nodes; i++ {
		if s.nodes[nodeName(i)], err = nodeIPs.take(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *simulation) registerNodes(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(s.nodes))
	errs := make([]error, len(names))
	workqueue.ParallelizeUntil(ctx, s.opts.Workers, len(names), func(i int) {
		errs[i] = register(ctx, s.client, newNode(names[i], s.nodes[names[i]], s.opts))
	})
	return errors.Join(errs...)
}

// run starts the heartbeats, the informer and the workers, and waits until all
// have ended.
func (s *simulation) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}),
		informers.WithTransform(withoutManagedFields))
	pods := factory.Core().V1().Pods()
	s.lister = pods.Lister()
	if _, err := pods.Informer().AddEventHandler(s.handler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		s.queue.ShutDown()
		return nil
	}
	s.holdAddresses(pods.Informer())

	var group sync.WaitGroup
	for name := range s.nodes {
		group.Go(func() { heartbeat(ctx, s.client, name, s.opts) })
	}
	for range s.opts.Workers {
		group.Go(func() { s.work(ctx) })
	}
	<-ctx.Done()
	s.queue.ShutDown()
	group.Wait()
	return nil
}

// handler puts the pods of the simulated nodes into the queue.
func (s *simulation) handler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok && s.nodes[pod.Spec.NodeName] != "" {
			s.queue.Add(cache.MetaObjectToName(pod))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	}
}

func (s *simulation) work(ctx context.Context) {
	for {
		name, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if err := s.process(ctx, name); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to simulate pod", "Pod", name)
			s.queue.AddAfter(name, s.opts.Timing.Resync)
		}
		s.queue.Done(name)
	}
}

// holdAddresses keeps the addresses of pods from an earlier run from being
// handed out again.
func (s *simulation) holdAddresses(informer cache.SharedIndexInformer) {
	for _, obj := range informer.GetStore().List() {
		if pod, ok := obj.(*corev1.Pod); ok && s.nodes[pod.Spec.NodeName] != "" {
			s.podIPs.hold(pod.Status.PodIP)
		}
	}
}

func withoutManagedFields(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}
