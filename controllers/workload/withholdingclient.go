// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
)

// Withhold returns a client that reads as c does, and takes every write for done without
// making it. Dry runs go to asks, where that is not nil: they change nothing,
// and their answers are what the API server says to the change. Those of subresources that
// are named as unasked do not.
func Withhold(c, asks client.Client, unasked ...string) client.Client {
	return withheld{Client: c, asks: asks, unasked: unasked}
}

// SilentRecorder returns a recorder that records nothing.
func SilentRecorder() events.EventRecorder {
	return silentRecorder{}
}

type silentRecorder struct{}

func (silentRecorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
}

type withheld struct {
	client.Client
	asks    client.Client
	unasked []string
}

// Create asks about an object without a name: one that would take the place of another.
// What is to be made in any case is not asked about. It returns executor.ErrNotAsked where it
// may not ask.
func (w withheld) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	asked := (&client.CreateOptions{}).ApplyOptions(options)
	switch {
	case len(asked.DryRun) == 0 || obj.GetName() != "":
		return nil
	case w.asks == nil:
		return executor.ErrNotAsked
	}
	return w.asks.Create(ctx, obj, options...)
}

func (w withheld) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }

func (w withheld) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

func (w withheld) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return nil
}

func (w withheld) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

func (w withheld) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	asked := (&client.PatchOptions{}).ApplyOptions(options)
	if w.asks == nil || len(asked.DryRun) == 0 {
		return nil
	}
	return w.asks.Patch(ctx, obj, patch, options...)
}

func (w withheld) Status() client.SubResourceWriter {
	return w.SubResource("status")
}

func (w withheld) SubResource(name string) client.SubResourceClient {
	asks := w.asks
	if slices.Contains(w.unasked, name) {
		asks = nil
	}
	return withheldSubResource{SubResourceClient: w.Client.SubResource(name), name: name, asks: asks}
}

type withheldSubResource struct {
	client.SubResourceClient
	name string
	asks client.Client
}

func (w withheldSubResource) Create(
	ctx context.Context, obj client.Object, subResource client.Object, options ...client.SubResourceCreateOption,
) error {
	asked := (&client.SubResourceCreateOptions{}).ApplyOptions(options)
	if w.asks == nil || len(asked.DryRun) == 0 {
		return nil
	}
	return w.asks.SubResource(w.name).Create(ctx, obj, subResource, options...)
}

func (w withheldSubResource) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

func (w withheldSubResource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	asked := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	if w.asks == nil || len(asked.DryRun) == 0 {
		return nil
	}
	return w.asks.SubResource(w.name).Patch(ctx, obj, patch, options...)
}

func (w withheldSubResource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return nil
}
