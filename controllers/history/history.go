// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// Owner is the workload whose revisions are kept.
type Owner struct {
	client.Object
	Kind schema.GroupVersionKind
	// Labels are put on new revisions, so that they can be listed by label.
	Labels map[string]string
	// ByHash: its pods have the hash of their revision in the controller-revision-hash label,
	// as those of DaemonSets, and not its name.
	ByHash bool
	// Collisions is the collision count of the workload's status.
	Collisions int32
}

// Revision is a ControllerRevision that was read.
type Revision struct {
	Content
	object *appsv1.ControllerRevision
}

// Name returns the name of the revision.
func (r *Revision) Name() string {
	return r.object.Name
}

// Hash returns the hash in the name of the revision.
func (r *Revision) Hash() string {
	return r.object.Labels[appsv1beta1.ControllerRevisionHashLabel]
}

// Object returns the ControllerRevision. It must not be changed.
func (r *Revision) Object() *appsv1.ControllerRevision {
	return r.object
}

// InPlace returns the revision as the planner knows it, by the name that pods say.
func (r *Revision) InPlace(name string) inplace.Revision {
	revision := inplace.Revision{Name: name, Template: r.Template}
	if r.Claims != nil {
		revision.ClaimTemplates = make([]string, 0, len(r.Claims))
	}
	for i := range r.Claims {
		revision.ClaimTemplates = append(revision.ClaimTemplates, r.Claims[i].Name)
	}
	return revision
}

// History is the revisions of one workload, the oldest first.
type History struct {
	revisions []*Revision
}

// Read reads the ControllerRevisions of a workload. One that cannot be read is
// an error that names it: what its pods run would not be known.
func Read(objects []appsv1.ControllerRevision) (*History, error) {
	return read(objects, Decode)
}

func read(objects []appsv1.ControllerRevision, decode func(*appsv1.ControllerRevision) (Content, error)) (*History, error) {
	h := &History{}
	for i := range objects {
		content, err := decode(&objects[i])
		if err != nil {
			return nil, err
		}
		h.revisions = append(h.revisions, &Revision{Content: content, object: &objects[i]})
	}
	h.sort()
	return h, nil
}

// Get returns the revision of that name, nil if it is not in the history.
func (h *History) Get(name string) *Revision {
	i := slices.IndexFunc(h.revisions, func(r *Revision) bool { return r.object.Name == name })
	if i < 0 {
		return nil
	}
	return h.revisions[i]
}

// GetByHash returns the newest revision with that hash, nil if there is none.
func (h *History) GetByHash(hash string) *Revision {
	for _, r := range slices.Backward(h.revisions) {
		if r.Hash() == hash {
			return r
		}
	}
	return nil
}

// Find returns the newest revision whose template is equal to the given one, nil if
// there is none.
func (h *History) Find(template *inplace.Template) *Revision {
	for _, r := range slices.Backward(h.revisions) {
		if r.Template.Equal(template) {
			return r
		}
	}
	return nil
}

// Newest returns the revision with the highest number, nil if there is none.
func (h *History) Newest() *Revision {
	if len(h.revisions) == 0 {
		return nil
	}
	return h.revisions[len(h.revisions)-1]
}

// HasYounger reports whether another revision was created when this one was there
// already, or in the same second.
func (h *History) HasYounger(than *Revision) bool {
	return slices.ContainsFunc(h.revisions, func(r *Revision) bool {
		return r != than && !r.object.CreationTimestamp.Before(&than.object.CreationTimestamp)
	})
}

// HasBetween reports whether a revision was the newest after the first of the two was,
// and before the second.
func (h *History) HasBetween(first, second *Revision) bool {
	return slices.ContainsFunc(h.revisions, func(r *Revision) bool {
		return r.object.Revision > first.object.Revision && r.object.Revision < second.object.Revision
	})
}

// Keeper reads and writes revisions.
type Keeper struct {
	client client.Client
	memory memory
}

// NewKeeper returns a Keeper that reads and writes with the given client.
func NewKeeper(c client.Client) *Keeper {
	return &Keeper{client: c, memory: newMemory()}
}

// List returns the ControllerRevisions of a workload.
func (k *Keeper) List(ctx context.Context, owner Owner) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := podcache.ByOwner(ctx, k.client, owner, list)
	return list.Items, err
}

// Read is [Read], and parses what it has read before only once.
func (k *Keeper) Read(objects []appsv1.ControllerRevision) (*History, error) {
	return read(objects, k.memory.decode)
}

// Ensure returns the revision with the given content, and the collision count
// to put into the workload's status. It makes the revision if there is none, and
// makes it the newest if it is an old one that the user went back to. A settled
// workload costs no write.
func (k *Keeper) Ensure(ctx context.Context, owner Owner, h *History, content Content) (*Revision, int32, error) {
	// Of several equal ones, the newest is the one that pods were made from last.
	equal := len(h.revisions) - 1
	for equal >= 0 && !content.Equal(h.revisions[equal].Content) {
		equal--
	}
	if equal < 0 {
		return k.create(ctx, owner, h, content)
	}
	found := h.revisions[equal]
	if equal < len(h.revisions)-1 {
		if err := k.makeNewest(ctx, found, h.next()); err != nil {
			return nil, owner.Collisions, err
		}
		h.sort()
	}
	return found, owner.Collisions, nil
}

func (k *Keeper) create(ctx context.Context, owner Owner, h *History, content Content) (*Revision, int32, error) {
	raw, err := content.encode()
	if err != nil {
		return nil, owner.Collisions, fmt.Errorf("encode revision of %s/%s: %w", owner.GetNamespace(), owner.GetName(), err)
	}
	for collisions := owner.Collisions; ; collisions++ {
		revision, taken, err := k.tryCreate(ctx, owner, newRevision(owner, raw, hash(raw, collisions), h.next()), content)
		if err != nil {
			return nil, collisions, err
		}
		if !taken {
			h.revisions = append(h.revisions, revision)
			return revision, collisions, nil
		}
	}
}

// tryCreate creates a revision, and reports whether its name is taken by other
// content.
func (k *Keeper) tryCreate(ctx context.Context, owner Owner, object *appsv1.ControllerRevision, content Content) (*Revision, bool, error) {
	err := k.client.Create(ctx, object)
	if err == nil {
		return &Revision{Content: content, object: object}, false, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, fmt.Errorf("create ControllerRevision %s/%s: %w", object.Namespace, object.Name, err)
	}
	existing := &appsv1.ControllerRevision{}
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return nil, false, fmt.Errorf("get ControllerRevision %s/%s: %w", object.Namespace, object.Name, err)
	}
	if !metav1.IsControlledBy(existing, owner) {
		return nil, true, nil
	}
	theirs, err := decode(existing.Data.Raw)
	if err != nil {
		return nil, false, fmt.Errorf("read ControllerRevision %s/%s: %w", existing.Namespace, existing.Name, err)
	}
	return &Revision{Content: theirs, object: existing}, !content.Equal(theirs), nil
}

// changeCause is the annotation that kubectl rollout history shows.
const changeCause = "kubernetes.io/change-cause"

func newRevision(owner Owner, raw []byte, hashed string, number int64) *appsv1.ControllerRevision {
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            owner.GetName() + "-" + hashed,
			Namespace:       owner.GetNamespace(),
			Labels:          map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.Kind)},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: number,
	}
	maps.Copy(revision.Labels, owner.Labels)
	revision.Labels[appsv1beta1.ControllerRevisionHashLabel] = hashed
	if cause, ok := owner.GetAnnotations()[changeCause]; ok {
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, changeCause, cause)
	}
	return revision
}

func (k *Keeper) makeNewest(ctx context.Context, r *Revision, number int64) error {
	object := r.object.DeepCopy()
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"revision":%d}`, object.UID, number)
	if err := k.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("renumber ControllerRevision %s/%s: %w", object.Namespace, object.Name, err)
	}
	r.object = object
	return nil
}

// Truncate deletes the oldest revisions that are not in use, beyond limit.
func (k *Keeper) Truncate(ctx context.Context, h *History, inUse sets.Set[string], limit int) error {
	var unused []*Revision
	for _, r := range h.revisions {
		if !inUse.Has(r.object.Name) {
			unused = append(unused, r)
		}
	}
	for _, r := range unused[:max(len(unused)-limit, 0)] {
		err := k.client.Delete(ctx, r.object, client.Preconditions{UID: &r.object.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ControllerRevision %s/%s: %w", r.object.Namespace, r.object.Name, err)
		}
	}
	return nil
}

// next returns the number of the next revision.
func (h *History) next() int64 {
	if len(h.revisions) == 0 {
		return 1
	}
	return h.revisions[len(h.revisions)-1].object.Revision + 1
}

func (h *History) sort() {
	slices.SortStableFunc(h.revisions, func(a, b *Revision) int {
		return cmp.Or(
			cmp.Compare(a.object.Revision, b.object.Revision),
			a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time),
			cmp.Compare(a.object.Name, b.object.Name),
		)
	})
}
