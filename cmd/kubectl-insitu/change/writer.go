// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// DryRun says who is asked what would come of a change.
type DryRun string

// The ways to try a change.
const (
	// NoDryRun makes the change.
	NoDryRun DryRun = "none"
	// ClientDryRun tells what the change would be, without asking the API server.
	ClientDryRun DryRun = "client"
	// ServerDryRun has the API server judge the change, and keep nothing of it.
	ServerDryRun DryRun = "server"
)

// Outcome is what an edit comes to.
type Outcome struct {
	// Done says what was done, such as "paused". Nothing says instead why there is
	// nothing to do, such as "already paused".
	Done, Nothing string
	// Notes say what the user may not expect of what was done.
	Notes []string
}

// Edit changes a workload that was read a moment ago. It is called again with the newer
// object if another client has written it meanwhile.
type Edit func(ctx context.Context, w *Workload) (Outcome, error)

// Result is what became of a workload.
type Result struct {
	// Object is as the API server answered; with ClientDryRun as it would be sent.
	Object *unstructured.Unstructured
	// Changed is false if there was nothing to do.
	Changed bool
	// Words say what was done, or that there was nothing to do.
	Words string
	Notes []string
}

// Read reads a workload.
func Read(ctx context.Context, reader client.Reader, kind kinds.Kind, key client.ObjectKey) (*Workload, error) {
	w := &Workload{Kind: kind, Unstructured: &unstructured.Unstructured{}}
	w.SetGroupVersionKind(kind.GroupVersionKind)
	if err := reader.Get(ctx, key, w.Unstructured); err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", kind, key.Name, err)
	}
	return w, nil
}

// Writer writes changes.
type Writer struct {
	Client client.Client
	// FieldManager is whom the API server notes as the owner of what is changed.
	FieldManager string
	DryRun       DryRun
}

// Write reads a workload, edits it, and writes what differs. It tries again if another
// client writes the workload meanwhile.
func (wr *Writer) Write(ctx context.Context, kind kinds.Kind, key client.ObjectKey, edit Edit) (Result, error) {
	var result Result
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var err error
		result, err = wr.write(ctx, kind, key, edit)
		return err
	})
	if apierrors.IsConflict(err) {
		return result, fmt.Errorf("%s/%s is written again and again by another client; it stays as it is, try again: %w", kind, key.Name, err)
	}
	return result, err
}

func (wr *Writer) write(ctx context.Context, kind kinds.Kind, key client.ObjectKey, edit Edit) (Result, error) {
	w, err := Read(ctx, wr.Client, kind, key)
	if err != nil {
		return Result{}, err
	}
	edited := &Workload{Kind: kind, Unstructured: w.DeepCopy()}
	outcome, err := edit(ctx, edited)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", w, err)
	}
	operations := difference("", w.Object, edited.Object)
	if len(operations) == 0 {
		return Result{Object: w.Unstructured, Words: outcome.Nothing + ": nothing to do"}, nil
	}
	result := Result{Object: edited.Unstructured, Changed: true, Words: outcome.Done, Notes: outcome.Notes}
	if wr.DryRun == ClientDryRun {
		return result, nil
	}
	if err := wr.patch(ctx, edited.Unstructured, operations); err != nil {
		return Result{}, fmt.Errorf("change %s: %w", w, err)
	}
	return result, nil
}

// patch writes the operations if the object still is the one that was read. The object
// becomes what the API server answers.
func (wr *Writer) patch(ctx context.Context, read *unstructured.Unstructured, operations []operation) error {
	operations = append(operations, operation{"replace", "/metadata/resourceVersion", read.GetResourceVersion()})
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.FieldOwner(wr.FieldManager)}
	if wr.DryRun == ServerDryRun {
		options = append(options, client.DryRunAll)
	}
	return wr.Client.Patch(ctx, read, client.RawPatch(types.JSONPatchType, body), options...)
}
