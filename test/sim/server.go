// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespace is where everything lives.
const namespace = "default"

// server is an API server with one namespace. What it holds is never changed,
// only replaced, so that caches can share it.
type server struct {
	clock   clock.PassiveClock
	version int64
	uids    int
	objects map[objectKey]client.Object
	// log holds what was written, by kind, the oldest first.
	log map[string][]event
	// admit is asked before a pod is updated; nil admits everything.
	admit func(before, after *corev1.Pod) error
	// budget is asked before a pod is evicted.
	budget *budget
	// sizes is what it knows of the sizes of pods.
	sizes sizeAdmission
	// storage is asked what becomes of claims; nil if they have their volumes at once.
	storage *storage
	// collectsAt is when the garbage collector acts next.
	collectsAt time.Time
	// admission is asked before anything is created.
	admission admission
	// drains is the policy that keeps drained pods out of service.
	drains drainPolicy
}

type objectKey struct{ kind, name string }

// event is one write. The object is nil when it was removed.
type event struct {
	version int64
	name    string
	object  client.Object
	// trimmed is the object as caches keep it, made when the first one reads it.
	trimmed client.Object
}

func newServer(clock clock.PassiveClock) *server {
	return &server{clock: clock, admission: admission{clock: clock}, objects: map[objectKey]client.Object{}, log: map[string][]event{}}
}

func resourceOf(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: kind}
}

func notFound(key objectKey) error {
	return apierrors.NewNotFound(resourceOf(key.kind), key.name)
}

// get returns what is there under a name; it must not be changed.
func get[T client.Object](s *server, name string) (T, bool) {
	var none T
	obj, ok := s.objects[objectKey{kindOf(none), name}].(T)
	return obj, ok
}

// all returns everything of a kind, by name; it must not be changed.
func all[T client.Object](s *server) map[string]T {
	var none T
	found := map[string]T{}
	for key, obj := range s.objects {
		if typed, ok := obj.(T); ok && key.kind == kindOf(none) {
			found[key.name] = typed
		}
	}
	return found
}

// create creates an object, and writes into it what the server filled in.
func (s *server) create(obj client.Object) error {
	key := objectKey{kindOf(obj), obj.GetName()}
	if _, exists := s.objects[key]; exists {
		return apierrors.NewAlreadyExists(resourceOf(key.kind), key.name)
	}
	s.uids++
	if err := s.admitCreation(obj); err != nil {
		return err
	}
	if !isClusterWide(key.kind) {
		obj.SetNamespace(namespace)
	}
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	obj.SetGeneration(1)
	obj.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	prepareForCreate(obj)
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && s.storage != nil {
		s.storage.prepare(claim)
	}
	s.store(key, obj)
	return nil
}

// admitCreation refuses what may not be created now.
func (s *server) admitCreation(obj client.Object) error {
	if err := s.admission.admitCreation(obj); err != nil {
		return err
	}
	return s.storage.admitCreation(obj)
}

// store makes an object what the server holds. The caller keeps the object.
func (s *server) store(key objectKey, obj client.Object) {
	s.version++
	obj.SetResourceVersion(strconv.FormatInt(s.version, 10))
	held := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	s.objects[key] = held
	s.log[key.kind] = append(s.log[key.kind], event{version: s.version, name: key.name, object: held})
}

// remove removes an object for good.
func (s *server) remove(key objectKey) {
	held, exists := s.objects[key]
	if !exists {
		return
	}
	delete(s.objects, key)
	s.version++
	s.log[key.kind] = append(s.log[key.kind], event{version: s.version, name: key.name})
	if pv, ok := held.(*corev1.PersistentVolume); ok {
		s.storage.left(pv)
	}
}

// mutate changes an object as those do who are not under test: it never fails,
// and does nothing where there is no such object.
func mutate[T client.Object](s *server, name string, change func(T)) {
	var none T
	mutateAt(s, objectKey{kindOf(none), name}, func(obj client.Object) {
		change(obj.(T)) //nolint:forcetypeassert // the kind says which type it has
	})
}

// mutateAt changes an object as mutate does.
func mutateAt(s *server, key objectKey, change func(client.Object)) {
	held, ok := s.objects[key]
	if !ok {
		return
	}
	obj := copyOf(held)
	change(obj)
	s.drains.admit(held, obj)
	if apiequality.Semantic.DeepEqual(held, obj) {
		return
	}
	bumpGeneration(held, obj)
	s.store(key, obj)
	if deleted := obj.GetDeletionTimestamp(); deleted != nil && ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 1) == 0 {
		s.finish(key) // nothing but finalizers may hold it
	}
	s.removeUnheld(key)
}

// patchRequest is a PATCH as a client sends it.
type patchRequest struct {
	key  objectKey
	body []byte
	kind types.PatchType
	// subresource is "status", "resize" or empty.
	subresource string
	dryRun      bool
	// manager is the name of the writer among the owners of fields.
	manager string
}

// patch applies a patch and returns what the object is then.
func (s *server) patch(request patchRequest) (client.Object, error) {
	held, ok := s.objects[request.key]
	if !ok {
		return nil, notFound(request.key)
	}
	if err := checkPatchPreconditions(held, request); err != nil {
		return nil, err
	}
	obj, err := applyPatch(held, request)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(held.GetResourceVersion())
	switch request.subresource {
	case statusSubresource:
		keepSpec(held, obj)
		s.drains.admit(held, obj)
	case resizeSubresource:
		keepAllButSizes(held, obj)
	default:
		keepStatus(held, obj)
		admitNative(held, obj)
		if pod, ok := obj.(*corev1.Pod); ok {
			s.admission.rewrites.moveImages(pod, images(held.(*corev1.Pod))) //nolint:forcetypeassert // the type of obj
		}
	}
	bumpGeneration(held, obj)
	if err := s.validateUpdate(held, obj, request.subresource); err != nil {
		return nil, err
	}
	if request.dryRun || apiequality.Semantic.DeepEqual(held, obj) {
		return obj, nil
	}
	if request.subresource == resizeSubresource {
		s.own(held, obj, request.manager)
	}
	s.store(request.key, obj)
	s.removeUnheld(request.key)
	return obj, nil
}

// checkPatchPreconditions refuses a patch that was made for another object, or
// another state of it, in the words of the real server.
func checkPatchPreconditions(held client.Object, request patchRequest) error {
	wanted := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.body, &wanted); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if wanted.ResourceVersion != "" && wanted.ResourceVersion != held.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(request.key.kind), request.key.name, errors.New("the object has been modified"))
	}
	if wanted.UID != "" && wanted.UID != held.GetUID() {
		return apierrors.NewInvalid(schema.GroupKind{Kind: request.key.kind}, request.key.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), wanted.UID, "field is immutable"),
		})
	}
	return nil
}

func applyPatch(held client.Object, request patchRequest) (client.Object, error) {
	before, err := json.Marshal(held)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch request.kind {
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, request.body, held)
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, request.body)
	default:
		err = fmt.Errorf("unexpected patch type %s", request.kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj := reflect.New(reflect.TypeOf(held).Elem()).Interface().(client.Object) //nolint:forcetypeassert // the type of held
	if err := json.Unmarshal(after, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, nil
}

// delete starts the deletion of an object. Pods on a node end gracefully, others
// are removed at once.
func (s *server) delete(key objectKey, preconditions *metav1.Preconditions) error {
	held, ok := s.objects[key]
	if !ok {
		return notFound(key)
	}
	if err := checkPreconditions(held, key, preconditions); err != nil {
		return err
	}
	pod, isPod := held.(*corev1.Pod)
	if !isPod || pod.Spec.NodeName == "" || key.kind == pullerKind {
		s.finish(key)
		return nil
	}
	if pod.DeletionTimestamp == nil {
		s.markDeleted(pod)
	}
	return nil
}

// checkPreconditions refuses the deletion of another object than was meant.
func checkPreconditions(held client.Object, key objectKey, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	sameUID := preconditions.UID == nil || *preconditions.UID == held.GetUID()
	sameVersion := preconditions.ResourceVersion == nil || *preconditions.ResourceVersion == held.GetResourceVersion()
	if !sameUID || !sameVersion {
		return apierrors.NewConflict(resourceOf(key.kind), key.name, errors.New("precondition failed"))
	}
	return nil
}

// finish removes an object that is deleted, or leaves it to those who hold it with
// finalizers.
func (s *server) finish(key objectKey) {
	held, exists := s.objects[key]
	if !exists {
		return
	}
	if len(held.GetFinalizers()) == 0 {
		s.remove(key)
		return
	}
	pod, isPod := held.(*corev1.Pod)
	if !isPod && held.GetDeletionTimestamp() == nil {
		deleted := held.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
		deleted.SetDeletionTimestamp(&metav1.Time{Time: s.clock.Now()})
		s.store(key, deleted)
		return
	}
	if !isPod || pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return
	}
	ended := pod.DeepCopy()
	if ended.DeletionTimestamp == nil {
		ended.DeletionTimestamp = &metav1.Time{Time: s.clock.Now()}
		ended.Generation++
	}
	ended.DeletionGracePeriodSeconds = ptr.To[int64](0)
	s.store(key, ended)
}
