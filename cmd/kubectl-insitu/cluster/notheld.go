// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonNotHeld is the reason of the events by which the manager tells that a workload would
// not be held, see controllers/native.
const ReasonNotHeld = "NotHeld"

// notHeldFor is how old what the manager said may be: it tries every ten minutes.
const notHeldFor = 15 * time.Minute

// NotHeld returns what the manager has said in the last minutes of workloads of a namespace
// that would not be held; of all namespaces, if the name is empty. To a user who may not
// read events, nothing was said.
func (c *Cluster) NotHeld(ctx context.Context, namespace string, now time.Time) ([]string, error) {
	list := &corev1.EventList{}
	err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"reason": ReasonNotHeld})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, Explain(fmt.Errorf("list events: %w", err))
	}
	said := sets.New[string]()
	for i := range list.Items {
		if at, _ := LastTime(&list.Items[i]); now.Sub(at) < notHeldFor {
			said.Insert(list.Items[i].Message)
		}
	}
	return sets.List(said), nil
}

// LastTime returns when what an event tells has happened last, and how often it has. The two
// libraries for events note that in different fields.
func LastTime(event *corev1.Event) (time.Time, int32) {
	at, count := event.LastTimestamp.Time, event.Count
	if event.Series != nil {
		at, count = event.Series.LastObservedTime.Time, event.Series.Count
	}
	if at.IsZero() {
		at = event.EventTime.Time
	}
	return at, count
}
