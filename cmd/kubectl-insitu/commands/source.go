// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// source is what the dashboard reads from a cluster.
type source struct {
	cluster   *cluster.Cluster
	watcher   *cluster.Watcher
	namespace string

	mu     sync.Mutex
	probed time.Time
}

// probeInterval is how often the dashboard makes sure that the cluster answers.
const probeInterval = 5 * time.Second

// newSource connects the dashboard with the cluster.
func (e *environment) newSource(ctx context.Context, namespace string) (dashboard.Source, error) {
	c, _, err := e.connect()
	if err != nil {
		return nil, err
	}
	watcher, err := c.Watch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return &source{cluster: c, watcher: watcher, namespace: namespace}, nil
}

// List implements dashboard.Source. It fails where the API server does not answer: what
// is watched would go on saying what it last was.
func (s *source) List(ctx context.Context) ([]report.Workload, error) {
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	return s.watcher.List(ctx, s.namespace)
}

// probe reads one pod from the API server, unless that went well a moment ago.
func (s *source) probe(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.probed) < probeInterval {
		return nil
	}
	if err := s.cluster.Client.List(ctx, &corev1.PodList{}, client.InNamespace(s.namespace), client.Limit(1)); err != nil {
		return err
	}
	s.probed = time.Now()
	return nil
}

// Changed implements dashboard.Source.
func (s *source) Changed() <-chan struct{} {
	return s.watcher.Changed()
}

// Events implements dashboard.Source.
func (s *source) Events(ctx context.Context, ref report.Ref) ([]dashboard.Event, error) {
	found, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	told, err := s.watcher.Report(ctx, found)
	if err != nil {
		return nil, err
	}
	pods := map[string]string{}
	for i := range told.Pods {
		pods[string(told.Pods[i].UID)] = told.Pods[i].Name
	}
	list, err := s.cluster.Events(ctx, ref.Namespace, sets.KeySet(pods).Insert(string(told.UID)))
	if err != nil {
		return nil, err
	}
	events := make([]dashboard.Event, 0, len(list))
	for i := range list {
		events = append(events, newEvent(&list[i], pods[string(list[i].InvolvedObject.UID)]))
	}
	return events, nil
}

func newEvent(event *corev1.Event, pod string) dashboard.Event {
	told := dashboard.Event{
		Pod: pod, Warning: event.Type == corev1.EventTypeWarning,
		Reason: event.Reason, Message: event.Message, Reporter: event.ReportingController,
	}
	told.Time, told.Count = cluster.LastTime(event)
	if told.Reporter == "" {
		told.Reporter = event.Source.Component
	}
	return told
}

// Plan implements dashboard.Source.
func (s *source) Plan(ctx context.Context, ref report.Ref, wanted dashboard.Change) (report.Plan, error) {
	found, err := s.find(ctx, ref)
	if err != nil {
		return report.Plan{}, err
	}
	var edits []change.Edit
	for _, c := range wanted.Containers {
		if c.Image != "" {
			images, err := change.ParseImages([]string{c.Name + "=" + c.Image})
			if err != nil {
				return report.Plan{}, err
			}
			edits = append(edits, change.SetImages(images))
		}
		if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
			edits = append(edits, change.SetResources(change.Resources{
				Containers: c.Name, Requests: c.Resources.Requests, Limits: c.Resources.Limits,
			}))
		}
	}
	return planEdit(ctx, s.cluster, found, change.All(edits...), s.cluster.Plan)
}

// find returns the workload that the page names.
func (s *source) find(ctx context.Context, ref report.Ref) (cluster.Found, error) {
	all := kinds.All()
	i := slices.IndexFunc(all, func(kind kinds.Kind) bool {
		return kind.Kind == ref.Kind && kind.GroupVersion().String() == ref.APIVersion
	})
	if i < 0 {
		return cluster.Found{}, fmt.Errorf("%s %s: %w", ref.APIVersion, ref.Kind, dashboard.ErrNotFound)
	}
	found, err := s.cluster.Get(ctx, all[i], ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", dashboard.ErrNotFound, err)
	}
	return found, err
}
