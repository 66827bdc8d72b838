// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// foreignSettings say what of a cluster is not opted in.
type foreignSettings struct {
	// pods is how many pods there are, ten of each Deployment.
	pods int
	// lab is the folder of the lab, manager the path of the manager's binary.
	lab, manager string
}

const (
	podsPerDeployment = 10
	// emptyPerDeployment is how many empty ReplicaSets each has, which is what
	// revisionHistoryLimit keeps by default.
	emptyPerDeployment = 10
	// collected is when a manager at rest has collected its garbage: Go does so at
	// least every two minutes.
	collected = 130 * time.Second
	creators  = 16
)

// footprint is what a manager takes that has nothing to do. The field names are
// those of .out/bench-foreign.json: sizes are in bytes.
type footprint struct {
	Machine     machine `json:"machine"`
	Pods        int     `json:"pods"`
	ReplicaSets int     `json:"replicaSets"`
	Empty       int     `json:"emptyReplicaSets"`
	// Nothing is without workloads, WithPods with all pods and the ReplicaSets that
	// have them, WithHistory with the empty ReplicaSets, too.
	Nothing     use `json:"nothing"`
	WithPods    use `json:"withPods"`
	WithHistory use `json:"withHistory"`
}

// use is the memory of a manager at rest.
type use struct {
	HeapBytes     uint64 `json:"heapBytes"`
	ResidentBytes uint64 `json:"residentBytes"`
	// PeakBytes is the most that it had since its start.
	PeakBytes uint64 `json:"peakBytes"`
}

// foreign measures the memory of managers that are started in a cluster whose
// workloads are none of their business.
func foreign(ctx context.Context, admin *rest.Config, s foreignSettings) (*footprint, error) {
	api, err := newAPI(admin)
	if err != nil {
		return nil, err
	}
	if s.lab, err = filepath.Abs(s.lab); err != nil {
		return nil, fmt.Errorf("find the lab: %w", err)
	}
	count := s.pods / podsPerDeployment
	f := &footprint{Machine: thisMachine(), Pods: count * podsPerDeployment, ReplicaSets: count, Empty: count * emptyPerDeployment}
	if f.Nothing, err = s.atRest(ctx, admin, api); err != nil {
		return nil, err
	}
	say("creating %d pods", f.Pods)
	deployments, err := createForeign(ctx, api, count)
	if err != nil {
		return nil, err
	}
	if f.WithPods, err = s.atRest(ctx, admin, api); err != nil {
		return nil, err
	}
	say("creating %d empty ReplicaSets", f.Empty)
	if err := createHistory(ctx, api, deployments); err != nil {
		return nil, err
	}
	f.WithHistory, err = s.atRest(ctx, admin, api)
	return f, err
}

// atRest starts a manager and measures it when it has been at rest for a while.
func (s foreignSettings) atRest(ctx context.Context, admin *rest.Config, api client.Client) (use, error) {
	folder, err := os.MkdirTemp("", "insitu-bench-")
	if err != nil {
		return use{}, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	connection, err := managerAccount.connection(ctx, api, admin)
	if err != nil {
		return use{}, err
	}
	m, err := startManager(ctx, api, managerOptions{
		binary: s.manager, log: filepath.Join(s.lab, "logs", "insitu.log"), folder: folder, connection: connection,
	})
	if err != nil {
		return use{}, err
	}
	ctx, cancel := m.during(ctx)
	defer cancel()
	pause(ctx, collected)
	var u use
	metrics, err := scrape(ctx, m.metrics)
	if err == nil {
		u.HeapBytes = uint64(metrics[heapAllocated])
		u.ResidentBytes, u.PeakBytes, err = m.memory()
	}
	return u, errors.Join(err, context.Cause(ctx), m.stop())
}

// heapAllocated is a metric: what of the heap is in use.
const heapAllocated = "go_memstats_heap_alloc_bytes"

//go:embed foreign.yaml
var foreignManifest []byte

// createForeign creates Deployments and waits until all their pods are available.
func createForeign(ctx context.Context, api client.Client, count int) ([]*appsv1.Deployment, error) {
	deployments := make([]*appsv1.Deployment, count)
	err := inParallel(ctx, count, func(i int) error {
		deployments[i] = &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict(foreignManifest, deployments[i]); err != nil {
			return err
		}
		labels := map[string]string{"app": "shop-" + strconv.Itoa(i)}
		deployments[i].Name = labels["app"]
		template := &deployments[i].Spec.Template
		template.Labels["app"] = labels["app"]
		tolerateSimulation(&template.Spec)
		deployments[i].Spec.Replicas = ptr.To[int32](podsPerDeployment)
		deployments[i].Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		return api.Create(ctx, deployments[i])
	})
	if err != nil {
		return nil, fmt.Errorf("create Deployments: %w", err)
	}
	return deployments, awaitDeployments(ctx, api, count)
}

func awaitDeployments(ctx context.Context, api client.Client, count int) error {
	limit := time.Duration(1+count*podsPerDeployment/1000) * patience
	err := wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(ctx context.Context) (bool, error) {
		list := &appsv1.DeploymentList{}
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		available := 0
		for i := range list.Items {
			available += int(list.Items[i].Status.AvailableReplicas)
		}
		return available >= count*podsPerDeployment, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the pods of %d Deployments: %w", count, err)
	}
	return nil
}

// createHistory gives each Deployment the ReplicaSets of earlier revisions.
func createHistory(ctx context.Context, api client.Client, deployments []*appsv1.Deployment) error {
	err := inParallel(ctx, len(deployments)*emptyPerDeployment, func(i int) error {
		return api.Create(ctx, earlierRevision(deployments[i/emptyPerDeployment], i%emptyPerDeployment))
	})
	if err != nil {
		return fmt.Errorf("create ReplicaSets: %w", err)
	}
	return nil
}

// earlierRevision returns the empty ReplicaSet of a revision of a Deployment.
func earlierRevision(deployment *appsv1.Deployment, revision int) *appsv1.ReplicaSet {
	hash := "earlier" + strconv.Itoa(revision)
	template := deployment.Spec.Template.DeepCopy()
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	template.Spec.Containers[0].Image += "-rc" + strconv.Itoa(revision)
	selected := map[string]string{"app": deployment.Name, appsv1.DefaultDeploymentUniqueLabelKey: hash}
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")

	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: deployment.Name + "-" + hash, Labels: template.Labels,
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": strconv.Itoa(revision)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, kind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: *template,
		},
	}
}

// inParallel does something so many times.
func inParallel(ctx context.Context, count int, do func(i int) error) error {
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, creators, count, func(i int) { errs[i] = do(i) })
	return errors.Join(errors.Join(errs...), ctx.Err())
}

// table says what was measured.
func (f *footprint) table() string {
	row := func(what string, u use) string {
		return fmt.Sprintf("  %-44s %6.1f MB %8.1f MB %8.1f MB\n", what, mega(u.HeapBytes), mega(u.ResidentBytes), mega(u.PeakBytes))
	}
	return fmt.Sprintf("%s, %d cores, %s\n\n  %-44s %9s %11s %11s\n", f.Machine.CPU, f.Machine.Cores, f.Machine.Go,
		"a manager at rest in a cluster with", "heap", "resident", "peak") +
		row("no workloads", f.Nothing) +
		row(fmt.Sprintf("%d pods and their %d ReplicaSets", f.Pods, f.ReplicaSets), f.WithPods) +
		row(fmt.Sprintf("and %d empty ReplicaSets", f.Empty), f.WithHistory) +
		fmt.Sprintf("\n  %-44s %6.1f MB\n", "per 1000 pods, with their 100 ReplicaSets", perThousand(f.Nothing, f.WithPods, f.Pods)) +
		fmt.Sprintf("  %-44s %6.1f MB\n", "per 1000 empty ReplicaSets", perThousand(f.WithPods, f.WithHistory, f.Empty))
}

// perThousand returns what of the heap a thousand objects take, in MB.
func perThousand(without, with use, objects int) float64 {
	return (mega(with.HeapBytes) - mega(without.HeapBytes)) * 1000 / float64(objects)
}

func mega(bytes uint64) float64 { return float64(bytes) / 1e6 }
