// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// errDead is what a manager gets that was killed: nothing it asks for happens
// any more.
var errDead = errors.New("the manager was killed")

// managerClient is the client of the reconciler under test. It notes each write,
// can refuse some, and can die after some.
type managerClient struct {
	client.Client

	mutex sync.Mutex
	// log holds the writes that succeeded, e.g. "patch Pod/status sample-0".
	log []string
	// dryRuns holds the pods whose change was tried with a dry run.
	dryRuns []string
	// rewrite, if set, is what admission makes of the images of a patch.
	rewrite func(image string) string
	// lives is how many more writes succeed before the manager is dead;
	// negative for ever.
	lives int
	// before is called before each write; an error is what the write returns.
	// It may change what the write meets.
	before func(write string, obj client.Object) error
}

func newManagerClient(c client.Client) *managerClient {
	return &managerClient{Client: c, lives: -1}
}

func (m *managerClient) isDead() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.lives == 0
}

// write carries out one write and notes it.
func (m *managerClient) write(verb, subresource string, obj client.Object, do func() error) error {
	gvk, err := apiutil.GVKForObject(obj, m.Scheme())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s %s%s %s", verb, gvk.Kind, subresource, obj.GetName())
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.lives == 0 {
		return errDead
	}
	if m.before != nil {
		if err := m.before(name, obj); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	m.log = append(m.log, name)
	if m.lives > 0 {
		m.lives--
	}
	return nil
}

// writes returns the writes so far that begin with a prefix.
func (m *managerClient) writes(prefix string) []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := []string{}
	for _, write := range m.log {
		if strings.HasPrefix(write, prefix) {
			found = append(found, write)
		}
	}
	return found
}

// forget forgets the writes so far.
func (m *managerClient) forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.log, m.dryRuns = nil, nil
}

// tries returns the pods whose change was tried with a dry run so far.
func (m *managerClient) tries() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.dryRuns)
}

// tryPatch is a dry run: nothing is written. To before, it is a write like the
// one that it stands for, as it is to admission.
func (m *managerClient) tryPatch(obj client.Object, do func() error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.lives == 0 {
		return errDead
	}
	m.dryRuns = append(m.dryRuns, obj.GetName())
	if m.before != nil {
		if err := m.before("dry-run patch Pod "+obj.GetName(), obj); err != nil {
			return err
		}
	}
	return do()
}

func (m *managerClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m.isDead() {
		return errDead
	}
	return m.Client.Get(ctx, key, obj, opts...)
}

func (m *managerClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if m.isDead() {
		return errDead
	}
	return m.Client.List(ctx, list, opts...)
}

func (m *managerClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return m.write("create", "", obj, func() error { return m.Client.Create(ctx, obj, opts...) })
}

func (m *managerClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return m.write("delete", "", obj, func() error { return m.Client.Delete(ctx, obj, opts...) })
}

func (m *managerClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if m.rewrite != nil {
		patch = rewriteImages(obj, patch, m.rewrite)
	}
	if options := (&client.PatchOptions{}).ApplyOptions(opts); slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
		return m.tryPatch(obj, func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
	}
	return m.write("patch", "", obj, func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
}

// Objects of the cache are trimmed and must never be written back whole.

func (m *managerClient) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return fmt.Errorf("unexpected update of %T %s", obj, obj.GetName())
}

func (m *managerClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errors.New("unexpected apply")
}

func (m *managerClient) DeleteAllOf(_ context.Context, obj client.Object, _ ...client.DeleteAllOfOption) error {
	return fmt.Errorf("unexpected deletion of all of %T", obj)
}

func (m *managerClient) Status() client.SubResourceWriter {
	return &managerStatus{SubResourceWriter: m.Client.Status(), m: m}
}

type managerStatus struct {
	client.SubResourceWriter
	m *managerClient
}

func (s *managerStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.m.write("patch", "/status", obj, func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

func (s *managerStatus) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return fmt.Errorf("unexpected update of the status of %T %s", obj, obj.GetName())
}

// recordedEvent is an event as a user sees it.
type recordedEvent struct {
	Kind, Name, Type, Reason, Note string
}

// recorder keeps events.
type recorder struct {
	mutex  sync.Mutex
	scheme *runtime.Scheme
	all    []recordedEvent
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	event := recordedEvent{Type: eventType, Reason: reason, Note: fmt.Sprintf(note, args...)}
	if obj, ok := regarding.(client.Object); ok {
		event.Name = obj.GetName()
		if gvk, err := apiutil.GVKForObject(obj, r.scheme); err == nil {
			event.Kind = gvk.Kind
		}
	}
	r.all = append(r.all, event)
}

// events returns the events so far with a reason.
func (r *recorder) events(reason string) []recordedEvent {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := []recordedEvent{}
	for _, event := range r.all {
		if event.Reason == reason {
			found = append(found, event)
		}
	}
	return found
}
