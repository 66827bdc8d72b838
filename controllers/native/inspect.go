// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/insitu-dev/insitu/controllers/workload"
)

// Inspection is what a reconciliation of a held workload decides.
type Inspection struct {
	workloads.Inspection
	// Others are the names of the pods of a Deployment that are not updated: they go when the
	// update has ended.
	Others sets.Set[string]
	// Ending says why the hold ends now; empty if it goes on.
	Ending string
	// Invalid says which options are not as accepted; nil if all are.
	Invalid error
}

// Inspect returns what a reconciliation of a held workload decides. Nothing is written.
// ahead is true for a workload that is not what the API server has: its template may be
// one that Kubernetes has made no revision for.
func Inspect(ctx context.Context, eyes workloads.Eyes, kind Kind, obj client.Object, ahead bool) Inspection {
	r := NewReconciler(kind, eyes.Client, eyes.Live, workloads.SilentRecorder(), eyes.Clock)
	r.executor.PullAs(eyes.Pulling)
	obj, _ = obj.DeepCopyObject().(client.Object)
	s := newScope(obj, kind, eyes.Clock.Now())
	s.CannotResize, s.ahead = !eyes.Capabilities.CanResize(ctx), ahead
	failure := r.advance(ctx, s)
	found := Inspection{Inspection: s.Inspection(failure), Others: sets.New[string](), Invalid: s.invalid}
	found.History = s.history
	for i, facts := range s.pods {
		if s.isOfOther(i) {
			found.Others.Insert(facts.Pod.Name)
		}
	}
	if s.ending != nil {
		found.Ending = s.ending.note
	}
	if s.target != nil {
		found.Update = s.target.Name
	}
	return found
}

// Released returns a held workload of a kind with the spec that it has when its hold ends.
func Released(kind Kind, obj client.Object) (client.Object, error) {
	patch, err := json.Marshal(map[string]any{"spec": workloadOf(obj).unheld()})
	if err != nil {
		return nil, err
	}
	held, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(held, patch)
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", obj.GetName(), err)
	}
	released := kind.newObject()
	if err := json.Unmarshal(merged, released); err != nil {
		return nil, fmt.Errorf("release %s: %w", obj.GetName(), err)
	}
	return released, nil
}
