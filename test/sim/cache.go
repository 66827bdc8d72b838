// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// kinds are what the manager caches.
var kinds = append(namesOf(setKinds),
	"Deployment", nativeStatefulSet, nativeDaemonSet, "ReplicaSet",
	"Node", "Pod", pullerKind, "PersistentVolumeClaim", "ControllerRevision", "EndpointSlice", "StorageClass", "VolumeAttributesClass",
)

func namesOf(kinds []setKind) []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name()
	}
	return names
}

// cache is what a manager sees of the server: of each kind the state after some
// write, never an earlier one than it showed before. A new cache begins with what
// is there: the initial list of an informer is a consistent read.
type cache struct {
	server  *server
	trim    *trimmer
	objects map[objectKey]client.Object
	// read is how many events of each kind were delivered.
	read map[string]int
	// observe is told of what is delivered; before and after may be nil.
	observe func(kind string, before, after client.Object)
}

func newCache(s *server, trim *trimmer) *cache {
	c := &cache{server: s, trim: trim, objects: map[objectKey]client.Object{}, read: map[string]int{}}
	for _, kind := range kinds {
		for i := range s.log[kind] {
			c.apply(kind, &s.log[kind][i])
		}
		c.read[kind] = len(s.log[kind])
	}
	return c
}

// behind returns how many events of a kind were not delivered yet.
func (c *cache) behind(kind string) int {
	return len(c.server.log[kind]) - c.read[kind]
}

// deliver delivers the next events of a kind. What lies between the first and
// the last is not seen: a watch that broke and was started again skips it.
func (c *cache) deliver(kind string, n int) {
	log := c.server.log[kind]
	from := c.read[kind]
	c.read[kind] = from + n
	if kind == "Pod" && n > 0 {
		// See docs/invariants.md: the EndpointSlices are not behind the pods.
		c.deliverUpTo("EndpointSlice", log[from+n-1].version)
	}
	last := map[string]int{}
	for i := from; i < from+n; i++ {
		last[log[i].name] = i
	}
	for _, i := range slices.Sorted(maps.Values(last)) {
		before, after := c.apply(kind, &log[i])
		if c.observe != nil && (before != nil || after != nil) {
			c.observe(kind, before, after)
		}
	}
}

// deliverUpTo delivers all events of a kind up to a version.
func (c *cache) deliverUpTo(kind string, version int64) {
	n := 0
	for _, e := range c.server.log[kind][c.read[kind]:] {
		if e.version > version {
			break
		}
		n++
	}
	if n > 0 {
		c.deliver(kind, n)
	}
}

func (c *cache) apply(kind string, e *event) (before, after client.Object) {
	key := objectKey{kind, e.name}
	before = c.objects[key]
	if e.object == nil {
		delete(c.objects, key)
		return before, nil
	}
	if c.trim == nil {
		c.objects[key] = e.object
		return before, e.object
	}
	if selector := c.trim.selectors[kind]; selector != nil && !selector.Matches(labels.Set(e.object.GetLabels())) {
		delete(c.objects, key) // a watch tells of it as of one that was deleted
		return before, nil
	}
	if e.trimmed == nil {
		e.trimmed = c.trim.of(e.object)
	}
	c.objects[key] = e.trimmed
	return before, e.trimmed
}

// list returns the objects of a kind in the order of their names, as the cache
// holds them.
func (c *cache) list(kind string) []client.Object {
	var found []client.Object
	for key, obj := range c.objects {
		if key.kind == kind {
			found = append(found, obj)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	return found
}

// trimmer trims objects as the manager's cache does, and selects those that are in it, both by kind.
type trimmer struct {
	transforms map[string]toolscache.TransformFunc
	selectors  map[string]labels.Selector
}

func newTrimmer() *trimmer {
	t := &trimmer{map[string]toolscache.TransformFunc{}, map[string]labels.Selector{}}
	for obj, options := range podcache.Options(nil).ByObject {
		t.transforms[kindOf(obj)], t.selectors[kindOf(obj)] = options.Transform, options.Label
	}
	t.transforms[pullerKind] = t.transforms["Pod"]
	return t
}

func (t *trimmer) of(obj client.Object) client.Object {
	transform := t.transforms[kindOf(obj)]
	if transform == nil {
		return obj
	}
	trimmed, err := transform(obj.DeepCopyObject())
	if result, ok := trimmed.(client.Object); err == nil && ok {
		return result
	}
	return obj
}

// indexes holds the manager's index functions, by kind and name.
type indexes map[[2]string]client.IndexerFunc

func newIndexes(ctx context.Context) (indexes, error) {
	i := indexes{}
	return i, podcache.AddIndexes(ctx, i)
}

// IndexField implements client.FieldIndexer.
func (i indexes) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i[[2]string{kindOf(obj), field}] = extract
	return nil
}

// matches reports whether an object is found by a selector of index values.
func (i indexes) matches(obj client.Object, selector fields.Selector) (bool, error) {
	if selector == nil {
		return true, nil
	}
	for _, requirement := range selector.Requirements() {
		kind := kindOf(obj)
		if kind == pullerKind {
			kind = "Pod"
		}
		extract, ok := i[[2]string{kind, requirement.Field}]
		if !ok {
			return false, fmt.Errorf("%s has no index %s", kindOf(obj), requirement.Field)
		}
		if !slices.Contains(extract(obj), requirement.Value) {
			return false, nil
		}
	}
	return true, nil
}
