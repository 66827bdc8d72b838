// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
)

// ErrDead is what a manager gets that was killed: nothing it asks for happens
// any more.
var ErrDead = errors.New("the manager was killed")

// Manager is the client of the reconciler under test. It notes each write,
// can refuse some, and can die after some.
type Manager struct {
	client.Client

	mutex sync.Mutex
	// log holds the writes that succeeded, e.g. "patch Pod/status sample-0".
	log []string
	// dryRuns holds the pods whose change was tried with a dry run.
	dryRuns []string
	// Rewrite, if set, is what admission makes of the images of a patch.
	Rewrite func(image string) string
	// Lives is how many more writes succeed before the manager is dead;
	// negative for ever.
	Lives int
	// Before is called before each write; an error is what the write returns.
	// It may change what the write meets.
	Before func(write string, obj client.Object) error
}

// NewManager returns a manager that lives for ever.
func NewManager(c client.Client) *Manager {
	return &Manager{Client: c, Lives: -1}
}

// IsDead reports whether it was killed.
func (m *Manager) IsDead() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.Lives == 0
}

// write carries out one write and notes it.
func (m *Manager) write(verb, subresource string, obj client.Object, do func() error) error {
	gvk, err := apiutil.GVKForObject(obj, m.Scheme())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s %s%s %s", verb, gvk.Kind, subresource, obj.GetName())
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.Lives == 0 {
		return ErrDead
	}
	if m.Before != nil {
		if err := m.Before(name, obj); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	m.log = append(m.log, name)
	if m.Lives > 0 {
		m.Lives--
	}
	return nil
}

// Writes returns the writes so far that begin with a prefix.
func (m *Manager) Writes(prefix string) []string {
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

// Forget forgets the writes so far.
func (m *Manager) Forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.log, m.dryRuns = nil, nil
}

// Tries returns the pods whose change was tried with a dry run so far.
func (m *Manager) Tries() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.dryRuns)
}

// tryPatch is a dry run: nothing is written. To Before, it is a write like the
// one that it stands for, as it is to admission.
func (m *Manager) tryPatch(obj client.Object, do func() error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.Lives == 0 {
		return ErrDead
	}
	m.dryRuns = append(m.dryRuns, obj.GetName())
	if m.Before != nil {
		if err := m.Before("dry-run patch Pod "+obj.GetName(), obj); err != nil {
			return err
		}
	}
	return do()
}

// Get reads an object, while the manager lives.
func (m *Manager) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m.IsDead() {
		return ErrDead
	}
	return m.Client.Get(ctx, key, obj, opts...)
}

// List reads objects, while the manager lives.
func (m *Manager) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if m.IsDead() {
		return ErrDead
	}
	return m.Client.List(ctx, list, opts...)
}

// Create notes that an object was created. A dry run is none.
func (m *Manager) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if options := (&client.CreateOptions{}).ApplyOptions(opts); len(options.DryRun) > 0 {
		if m.IsDead() {
			return ErrDead
		}
		return m.Client.Create(ctx, obj, opts...)
	}
	return m.write("create", "", obj, func() error { return m.Client.Create(ctx, obj, opts...) })
}

// Delete notes that an object was deleted.
func (m *Manager) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return m.write("delete", "", obj, func() error { return m.Client.Delete(ctx, obj, opts...) })
}

// Patch notes that an object was patched, or tried to be.
func (m *Manager) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if m.Rewrite != nil {
		patch = rewriteImages(obj, patch, m.Rewrite)
	}
	if options := (&client.PatchOptions{}).ApplyOptions(opts); slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
		return m.tryPatch(obj, func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
	}
	return m.write("patch", "", obj, func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
}

// rewriteImages changes a patch of a pod on its way, as mutating admission does.
func rewriteImages(obj client.Object, patch client.Patch, rewrite func(string) string) client.Patch {
	raw, err := patch.Data(obj)
	body := map[string]any{}
	if _, isPod := obj.(*corev1.Pod); !isPod || err != nil || json.Unmarshal(raw, &body) != nil {
		return patch
	}
	spec, _ := body["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		container, _ := c.(map[string]any)
		container["image"] = rewrite(fmt.Sprint(container["image"]))
	}
	if raw, err = json.Marshal(body); err != nil {
		return patch
	}
	return client.RawPatch(patch.Type(), raw)
}

// Objects of the cache are trimmed and must never be written back whole.

// Update always fails.
func (m *Manager) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return fmt.Errorf("unexpected update of %T %s", obj, obj.GetName())
}

// Apply always fails.
func (m *Manager) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errors.New("unexpected apply")
}

// DeleteAllOf always fails.
func (m *Manager) DeleteAllOf(_ context.Context, obj client.Object, _ ...client.DeleteAllOfOption) error {
	return fmt.Errorf("unexpected deletion of all of %T", obj)
}

// Status returns the writer of statuses, whose patches are noted, too.
func (m *Manager) Status() client.SubResourceWriter {
	return &managerStatus{SubResourceWriter: m.Client.Status(), m: m}
}

type managerStatus struct {
	client.SubResourceWriter
	m *Manager
}

func (s *managerStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts); len(options.DryRun) > 0 {
		if s.m.IsDead() {
			return ErrDead
		}
		return s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	}
	return s.m.write("patch", "/status", obj, func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

func (s *managerStatus) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return fmt.Errorf("unexpected update of the status of %T %s", obj, obj.GetName())
}

// RecordedEvent is an event as a user sees it.
type RecordedEvent struct {
	Kind, Name, Type, Reason, Note string
}

// Recorder keeps events.
type Recorder struct {
	mutex sync.Mutex
	// Scheme knows the objects that events are about.
	Scheme *runtime.Scheme
	// All are the events so far.
	All []RecordedEvent
}

// Eventf implements events.EventRecorder.
//
//nolint:revive // the interface wants so many arguments
func (r *Recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	event := RecordedEvent{Type: eventType, Reason: reason, Note: fmt.Sprintf(note, args...)}
	if obj, ok := regarding.(client.Object); ok {
		event.Name = obj.GetName()
		if gvk, err := apiutil.GVKForObject(obj, r.Scheme); err == nil {
			event.Kind = gvk.Kind
		}
	}
	r.All = append(r.All, event)
}

// Events returns the events so far with a reason.
func (r *Recorder) Events(reason string) []RecordedEvent {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := []RecordedEvent{}
	for _, event := range r.All {
		if event.Reason == reason {
			found = append(found, event)
		}
	}
	return found
}

// NoPulls is how a manager pulls images that leaves that to kubelets: there are no nodes that say
// which they have.
func NoPulls() *executor.Pulling {
	return &executor.Pulling{Policy: appsv1beta1.NoImagePull}
}
