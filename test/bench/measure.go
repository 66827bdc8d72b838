// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// settings say what to measure.
type settings struct {
	// kind is a key of kinds.
	kind string
	pods int
	// lab is the folder of the lab, manager the path of the manager's binary.
	lab, manager string
	// service puts the pods behind a Service, so that the manager has to wait for
	// its EndpointSlices.
	service bool
}

// budgets are the values of maxUnavailable that are measured, in this order.
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

// bench is a measurement in progress.
type bench struct {
	settings
	kind     kind
	admin    *rest.Config
	api      client.Client
	programs []process
	workload client.Object
	result   result
	windows  []window
}

// measure runs all rollouts of one workload, first by the manager, then by the
// minimal client.
func measure(ctx context.Context, admin *rest.Config, s settings) (*result, error) {
	b, err := newBench(admin, s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, s.pods/1000))*patience*time.Duration(2*len(budgets)))
	defer cancel()
	if err := b.withManager(ctx); err != nil {
		return nil, err
	}
	if err := b.withMinimal(ctx); err != nil {
		return nil, err
	}
	return &b.result, b.countRequests()
}

func newBench(admin *rest.Config, s settings) (*bench, error) {
	k, err := kindNamed(s.kind)
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
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	admin.QPS = -1
	api, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &bench{
		settings: s, kind: k, admin: admin, api: api, programs: programs, workload: k.build(s.pods),
		result: result{Kind: s.kind, Pods: s.pods, Service: s.service, Machine: thisMachine()},
	}, nil
}

// withManager creates the workload and measures the rollouts of the manager.
func (b *bench) withManager(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "insitu-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	connection, err := managerAccount.connection(ctx, b.api, b.admin)
	if err != nil {
		return err
	}
	m, err := startManager(ctx, b.api, managerOptions{
		binary: b.manager, log: filepath.Join(b.lab, "logs", "insitu.log"), folder: folder, connection: connection,
	})
	if err != nil {
		return err
	}
	defer func() { _ = m.stop() }()
	if err := b.populate(ctx, m); err != nil {
		return err
	}
	for i, budget := range budgets {
		if err := b.measureManager(ctx, m, image(i+1), budget); err != nil {
			return err
		}
	}
	return m.stop()
}

// populate notes the memory of the manager without pods, and creates them.
func (b *bench) populate(ctx context.Context, m *manager) error {
	pause(ctx, quiet)
	var err error
	if b.result.EmptyBytes, _, err = m.memory(); err != nil {
		return err
	}
	say("creating %d pods", b.pods)
	if b.service {
		if err := b.api.Create(ctx, newService()); err != nil {
			return fmt.Errorf("create Service: %w", err)
		}
	}
	if err := b.api.Create(ctx, b.workload); err != nil {
		return fmt.Errorf("create workload: %w", err)
	}
	return b.awaitRolledOut(ctx)
}

func (b *bench) measureManager(ctx context.Context, m *manager, image, budget string) error {
	before, err := scrape(ctx, m.metrics)
	if err != nil {
		return err
	}
	r := rollout{By: byManager, MaxUnavailable: budget}
	err = b.observe(ctx, &r, m.process, managerAccount, func(ctx context.Context) error {
		key := client.ObjectKeyFromObject(b.workload)
		if err := b.api.Get(ctx, key, b.workload); err != nil {
			return fmt.Errorf("read workload: %w", err)
		}
		base := b.workload.DeepCopyObject().(client.Object)
		b.kind.update(b.workload, image, intstr.FromString(budget))
		if err := b.api.Patch(ctx, b.workload, client.MergeFrom(base)); err != nil {
			return fmt.Errorf("update workload: %w", err)
		}
		return b.awaitRolledOut(ctx)
	})
	if err != nil {
		return err
	}
	after, err := scrape(ctx, m.metrics)
	if err != nil {
		return err
	}
	r.Reconciliations = int(after[reconcileTotal] - before[reconcileTotal])
	r.ReconcileSeconds = after[reconcileSeconds] - before[reconcileSeconds]
	r.HeapBytes = uint64(after[heapInUse])
	b.result.Rollouts = append(b.result.Rollouts, r)
	return nil
}

// Metrics of the manager.
const (
	reconcileTotal   = "controller_runtime_reconcile_total"
	reconcileSeconds = "controller_runtime_reconcile_time_seconds"
	heapInUse        = "go_memstats_heap_inuse_bytes"
)

// withMinimal measures the same rollouts by the minimal client.
func (b *bench) withMinimal(ctx context.Context) error {
	if err := createMinimalAccount(ctx, b.api); err != nil {
		return err
	}
	connection, err := minimalAccount.connection(ctx, b.api, b.admin)
	if err != nil {
		return err
	}
	// What the manager's client uses for pods.
	connection.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	self, err := newProcess("minimal client", os.Getpid())
	if err != nil {
		return err
	}
	for i, budget := range budgets {
		m, err := newMinimal(ctx, kube)
		if err != nil {
			return err
		}
		r := rollout{By: byMinimal, MaxUnavailable: budget}
		maxUnavailable, err := intstr.GetScaledValueFromIntOrPercent(&intstr.IntOrString{Type: intstr.String, StrVal: budget}, b.pods, false)
		if err != nil {
			return fmt.Errorf("read budget: %w", err)
		}
		err = b.observe(ctx, &r, self, minimalAccount, func(ctx context.Context) error {
			return m.update(ctx, image(len(budgets)+i+1), maxUnavailable)
		})
		if err != nil {
			return err
		}
		b.result.Rollouts = append(b.result.Rollouts, r)
	}
	return nil
}

// observe measures what a rollout takes: its time, and until it is quiet again,
// the CPU time and the memory of who does it, and the CPU time of the cluster.
func (b *bench) observe(ctx context.Context, r *rollout, by process, account account, do func(context.Context) error) error {
	before, err := cpuOf(append(b.programs, by))
	if err != nil {
		return err
	}
	if err := by.resetPeak(); err != nil {
		return err
	}
	start := time.Now()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s, maxUnavailable %s: %w", r.By, r.MaxUnavailable, err)
	}
	r.Seconds = time.Since(start).Seconds()
	say("%s, maxUnavailable %s: %.1f s", r.By, r.MaxUnavailable, r.Seconds)
	pause(ctx, quiet)
	after, err := cpuOf(append(b.programs, by))
	if err != nil {
		return err
	}
	r.CPUSeconds = map[string]float64{}
	for name, spent := range after {
		r.CPUSeconds[name] = math.Round((spent-before[name]).Seconds()*100) / 100
	}
	_, r.PeakBytes, err = by.memory()
	b.windows = append(b.windows, window{user: account.user(), from: start, to: time.Now()})
	return err
}

func cpuOf(processes []process) (map[string]time.Duration, error) {
	spent := map[string]time.Duration{}
	for _, p := range processes {
		var err error
		if spent[p.name], err = p.cpu(); err != nil {
			return nil, err
		}
	}
	return spent, nil
}

// awaitRolledOut waits until all pods are available at the update revision.
func (b *bench) awaitRolledOut(ctx context.Context) error {
	last := 0
	told := time.Now()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := b.api.Get(ctx, client.ObjectKeyFromObject(b.workload), b.workload); err != nil {
			return false, fmt.Errorf("read workload: %w", err)
		}
		p := b.kind.progress(b.workload)
		if time.Since(told) > quiet && p.available != last {
			say("%d of %d pods available at the update revision", p.available, b.pods)
			told, last = time.Now(), p.available
		}
		return p.observed && p.settled && p.available == b.pods, nil
	})
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

// say tells how far the measurement is.
func say(format string, args ...any) {
	fmt.Printf("  %s\n", fmt.Sprintf(format, args...))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
