// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// errDead is what a manager gets that was killed.
var errDead = errors.New("the manager was killed")

// fate is what becomes of a write.
type fate int

const (
	// succeeds: it is carried out.
	succeeds fate = iota
	// conflicts: the server refuses it, though nothing has changed.
	conflicts
	// failed: the server fails before it has done anything.
	failed
	// unanswered: the server does it, the answer is lost.
	unanswered
	// killedBefore, killedAfter: the manager dies just before or just after it.
	killedBefore
	killedAfter
	// strays: the manager dies, and its request arrives some time later.
	strays
)

// write is one write as the manager sends it.
type write struct {
	// words say what is written: "patch Pod/status sample-0".
	words string
	// obj is what it is written to; for a creation the whole object.
	obj client.Object
	// before is what was there before; nil for a creation.
	before client.Object
	// owners tells who had set the sizes of a pod before.
	owners map[sizeKey]owner
	// body is the patch; nil for others.
	body []byte
	do   func() error
	// unheard: the manager does not get to know that it was carried out.
	unheard bool
}

// managerClient is the client of a manager: it reads from the cache, which has
// always seen what this client has written.
type managerClient struct {
	client.Client // nil: any other method panics

	server  *server
	cache   *cache
	indexes indexes
	scheme  *runtime.Scheme

	dead bool
	// written is the version of the last own write, by kind.
	written map[string]int64
	// fateOf decides what becomes of a write; stray takes a write that is to
	// arrive later; done is told of every write that was carried out.
	fateOf func(write) fate
	stray  func(write)
	done   func(write)
	// turnedDown is told of every write that came to nothing.
	turnedDown func(write, error)
	// listed is told what the reconciliation gets to see.
	listed func(client.ObjectList)
}

func (c *managerClient) Scheme() *runtime.Scheme { return c.scheme }

func (c *managerClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.dead {
		return errDead
	}
	kind := kindOf(obj)
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("%s %s is read from a cache that there is not", kind, key.Name)
	}
	if !(&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		c.cache.deliverUpTo(kind, c.written[kind])
	}
	found, ok := c.cache.objects[objectKey{kind, key.Name}]
	if !ok {
		return notFound(objectKey{kind, key.Name})
	}
	copyInto(obj, found)
	return nil
}

func (c *managerClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.dead {
		return errDead
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := kindOf(list)
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("%s are read from a cache that there is not", kind)
	}
	listed := c.cache.list
	if kind == "Pod" {
		listed = func(kind string) []client.Object { return append(c.cache.list(kind), c.cache.list(pullerKind)...) }
	}
	if !options.DisableReadYourWritesConsistency {
		c.cache.deliverUpTo(kind, c.written[kind])
		c.cache.deliverUpTo(pullerKind, c.written[pullerKind])
	}
	var found []runtime.Object
	for _, obj := range listed(kind) {
		matches, err := c.indexes.matches(obj, options.FieldSelector)
		if err != nil {
			return err
		}
		if matches && (options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels()))) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, found); err != nil {
		return err
	}
	if c.listed != nil && !isOfPullers(options) {
		c.listed(list)
	}
	return nil
}

// isOfPullers reports whether a list is of pods that pull images: it tells nothing of the others.
func isOfPullers(options *client.ListOptions) bool {
	return options.LabelSelector != nil && strings.HasPrefix(options.LabelSelector.String(), appsv1beta1.PullerLabel) ||
		options.FieldSelector != nil && strings.HasPrefix(options.FieldSelector.String(), podcache.PullerIndex)
}

func (c *managerClient) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	if len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
		if c.dead {
			return errDead
		}
		return c.server.admitCreation(obj)
	}
	return c.write(write{words: "create " + describe(obj), obj: obj, do: func() error { return c.server.create(obj) }})
}

func (c *managerClient) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	obj = c.server.named(obj)
	key := objectKey{kindOf(obj), obj.GetName()}
	if err := checkNamesUID(key, options.Preconditions); err != nil {
		return err
	}
	return c.write(write{words: "delete " + describe(obj), obj: obj, do: func() error {
		return c.server.delete(key, options.Preconditions)
	}})
}

// checkNamesUID asserts invariant 5.
func checkNamesUID(key objectKey, preconditions *metav1.Preconditions) error {
	if preconditions == nil || preconditions.UID == nil {
		return fmt.Errorf("invariant 5: %s %s is deleted without the UID as precondition", key.kind, key.name)
	}
	return nil
}

func (c *managerClient) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.patch(obj, patch, patchRequest{dryRun: len(options.DryRun) > 0})
}

// patch sends a patch, and reads into obj what the server answers.
func (c *managerClient) patch(obj client.Object, patch client.Patch, request patchRequest) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	request.key, request.body, request.kind = objectKey{kindOf(obj), obj.GetName()}, body, patch.Type()
	subresource := ""
	if request.subresource != "" {
		subresource = "/" + request.subresource
	}
	words := fmt.Sprintf("patch %s%s %s", request.key.kind, subresource, request.key.name)
	send := func() error {
		after, err := c.server.patch(request)
		if err == nil {
			copyInto(obj, after)
		}
		return err
	}
	if request.dryRun {
		if c.dead {
			return errDead
		}
		return send()
	}
	return c.write(write{words: words, obj: obj, body: body, do: send})
}

// write carries out a write, as its fate will have it.
func (c *managerClient) write(w write) error {
	if c.dead {
		return errDead
	}
	err := c.meet(w, c.fateOf(w))
	if err != nil {
		c.turnedDown(w, err)
	}
	return err
}

// meet lets a write meet its fate.
func (c *managerClient) meet(w write, f fate) error {
	switch f {
	case conflicts:
		return apierrors.NewConflict(resourceOf(kindOf(w.obj)), w.obj.GetName(), errors.New("injected"))
	case failed:
		return apierrors.NewInternalError(errors.New("injected"))
	case unanswered:
		if err := c.carryOut(w, false); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("injected: the answer was lost", 0)
	case killedBefore:
		c.dead = true
		return errDead
	case killedAfter:
		err := c.carryOut(w, false)
		c.dead = true
		return errors.Join(errDead, err)
	case strays:
		c.dead = true
		c.stray(w)
		return errDead
	case succeeds:
		return c.carryOut(w, true)
	default:
		return c.carryOut(w, true)
	}
}

// carryOut sends a write. If the answer is heard, later reads show the write.
func (c *managerClient) carryOut(w write, heard bool) error {
	w.before = c.server.objects[objectKey{kindOf(w.obj), w.obj.GetName()}]
	if pod, ok := w.before.(*corev1.Pod); ok {
		w.owners = c.server.sizes.owners[pod.UID]
	}
	if err := w.do(); err != nil {
		return err
	}
	w.unheard = !heard
	if heard {
		c.written[kindOf(w.obj)] = c.server.version
	}
	c.done(w)
	return nil
}

func (c *managerClient) Status() client.SubResourceWriter {
	return &statusClient{c: c}
}

// statusClient writes the status subresource.
type statusClient struct {
	client.SubResourceWriter // nil: any other method panics

	c *managerClient
}

func (s *statusClient) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return s.c.patch(obj, patch, patchRequest{subresource: statusSubresource, dryRun: len(options.DryRun) > 0})
}

func (c *managerClient) SubResource(name string) client.SubResourceClient {
	switch name {
	case "eviction":
		return &evictionClient{c: c}
	case resizeSubresource:
		return &resizeClient{c: c}
	default:
		return nil
	}
}

// resizeClient changes the sizes of pods.
type resizeClient struct {
	client.SubResourceClient // nil: any other method panics

	c *managerClient
}

func (r *resizeClient) Patch(_ context.Context, pod client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return r.c.patch(pod, patch, patchRequest{
		subresource: resizeSubresource, dryRun: len(options.DryRun) > 0, manager: options.FieldManager,
	})
}

// evictionClient evicts pods.
type evictionClient struct {
	client.SubResourceClient // nil: any other method panics

	c *managerClient
}

func (e *evictionClient) Create(_ context.Context, pod, sub client.Object, opts ...client.SubResourceCreateOption) error {
	options := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	eviction, ok := sub.(*policyv1.Eviction)
	if !ok || eviction.DeleteOptions == nil {
		return errors.New("an eviction without options")
	}
	key := objectKey{"Pod", pod.GetName()}
	if err := checkNamesUID(key, eviction.DeleteOptions.Preconditions); err != nil {
		return err
	}
	send := func(dryRun bool) error {
		return e.c.server.budget.evict(key.name, eviction.DeleteOptions.Preconditions, dryRun)
	}
	if len(options.DryRun) > 0 {
		if e.c.dead {
			return errDead
		}
		return send(true)
	}
	return e.c.write(write{words: "evict " + describe(pod), obj: pod, do: func() error { return send(false) }})
}

// liveReader reads from the server.
type liveReader struct {
	server *server
	// listed, if set, is told what is read by a list.
	listed func(client.ObjectList)
}

func (r *liveReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if key.Name == "" {
		return fmt.Errorf("get %s: resource name may not be empty", kindOf(obj))
	}
	if err := r.server.storage.checkServed(kindOf(obj)); err != nil {
		return err
	}
	found, ok := r.server.objects[objectKey{kindOf(obj), key.Name}]
	if !ok {
		return notFound(objectKey{kindOf(obj), key.Name})
	}
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.SetUID(found.GetUID())
		partial.SetGeneration(found.GetGeneration())
		partial.SetDeletionTimestamp(found.GetDeletionTimestamp())
		return nil
	}
	if whole, ok := obj.(*unstructured.Unstructured); ok {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
		whole.Object = fields
		return err
	}
	copyInto(obj, found)
	return nil
}

// List lists everything of a kind that has the labels.
func (r *liveReader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if err := r.server.storage.checkServed(kindOf(list)); err != nil {
		return err
	}
	var found []runtime.Object
	for _, key := range r.server.keys() {
		obj := r.server.objects[key]
		if key.kind == kindOf(list) && (options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels()))) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, found); err != nil || r.listed == nil {
		return err
	}
	r.listed(list)
	return nil
}

// copyInto makes dst a copy of src, which has the same type.
func copyInto(dst, src client.Object) {
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src.DeepCopyObject()).Elem())
}

func describe(obj client.Object) string {
	return kindOf(obj) + " " + obj.GetName()
}

// isAbout reports whether a write is to a kind, e.g. "patch Pod".
func (w write) isAbout(verbAndKind string) bool {
	return strings.HasPrefix(w.words, verbAndKind+" ")
}
