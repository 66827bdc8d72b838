// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/observe"
)

// settings say what to measure.
type settings struct {
	// kind is a key of kinds, change one of changes.
	kind, change string
	pods         int
	// lab is the folder of the lab, manager the path of the manager's binary.
	lab, manager string
	// service puts the pods behind a Service, so that the manager has to wait for
	// its EndpointSlices.
	service bool
}

// budgets are the values that are measured, in this order: of maxUnavailable, or
// for resizes of maxConcurrent.
var budgets = []string{"10%", "100%"}

const (
	// quiet is how long a rollout's events and last status writes may take; they
	// count as part of it, but for its time.
	quiet = 5 * time.Second
	// patience is how long 1000 pods may take.
	patience = 5 * time.Minute
	// pollInterval is how exactly the end of a rollout is known.
	pollInterval = 50 * time.Millisecond
)

// rollouts is how many there are, by the manager and by the minimal client.
var rollouts = 2 * len(budgets)

// bench is a measurement in progress.
type bench struct {
	settings
	kind     kind
	change   change
	admin    *rest.Config
	api      client.Client
	programs []process
	workload client.Object
	// before are the pods before the first rollout.
	before  []observe.Pod
	result  result
	windows []window
}

// measure runs all rollouts of one workload, first by the manager, then by the
// minimal client.
func measure(ctx context.Context, admin *rest.Config, s settings) (*result, error) {
	b, err := newBench(admin, s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, s.pods/1000))*patience*time.Duration(rollouts))
	defer cancel()
	if err := b.withManager(ctx); err != nil {
		return nil, err
	}
	if err := b.withMinimal(ctx); err != nil {
		return nil, err
	}
	if err := b.checkPods(ctx); err != nil {
		return nil, err
	}
	return &b.result, b.countRequests()
}

func newBench(admin *rest.Config, s settings) (*bench, error) {
	k, err := kindNamed(s.kind)
	if err != nil {
		return nil, err
	}
	c, err := changeNamed(s.change)
	if err != nil {
		return nil, err
	}
	if s.lab, err = filepath.Abs(s.lab); err != nil {
		return nil, fmt.Errorf("find the lab: %w", err)
	}
	programs, err := labProcesses(s.lab)
	if err != nil {
		return nil, err
	}
	api, err := newAPI(admin)
	if err != nil {
		return nil, err
	}
	workload := k.build(s.pods)
	parts := k.parts(workload)
	if s.change == "resize" && parts.inPlace == nil {
		return nil, fmt.Errorf("change %s of kind %q cannot be measured", s.change, s.kind)
	}
	tolerateSimulation(parts.pod)
	c.set(&parts.pod.Containers[0], 0)
	return &bench{
		settings: s, kind: k, change: c, admin: admin, api: api, programs: programs, workload: workload,
		result: result{Kind: s.kind, Change: s.change, Pods: s.pods, Service: s.service, Machine: thisMachine()},
	}, nil
}

// newAPI returns a client of an administrator, without limits.
func newAPI(admin *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	admin.QPS = -1
	api, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return api, nil
}

func (b *bench) observePods(ctx context.Context) ([]observe.Pod, error) {
	kube, err := kubernetes.NewForConfig(b.admin)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return observe.Pods(ctx, kube, namespace, selector)
}

// checkPods makes sure that what was measured has happened: every rollout has
// changed every pod in place.
func (b *bench) checkPods(ctx context.Context) error {
	after, err := b.observePods(ctx)
	if err != nil {
		return err
	}
	if differences := observe.Differences(b.before, after, b.change.restarts*int32(rollouts)); len(differences) > 0 {
		return fmt.Errorf("%d pods are not as they should be, for example %s", len(differences), differences[0])
	}
	return nil
}

// countRequests reads from the audit log what each rollout asked for.
func (b *bench) countRequests() error {
	requests, err := readAudit(filepath.Join(b.lab, "logs", "audit.log"), managerAccount.user(), minimalAccount.user())
	if err != nil {
		return err
	}
	for i, w := range b.windows {
		b.result.Rollouts[i].Requests = w.count(requests)
	}
	return nil
}
