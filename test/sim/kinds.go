// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/daemonset"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/sim/pool"
)

// setKind is a kind of sets that the operator drives. What the kinds have in common, users and
// laws read and change in the shape of a StatefulSet.
type setKind interface {
	// name is that of the kind, as it is in keys.
	name() string
	// object returns a set at a revision.
	object(s settings, r revision) client.Object
	// view shows a set in the shape of a StatefulSet; it shares what it points to. put makes a
	// set say what a view says; what a StatefulSet does not have stays as it is.
	view(set client.Object) *appsv1beta1.StatefulSet
	put(view *appsv1beta1.StatefulSet, set client.Object)
	// reconciler returns the reconciler of the kind.
	reconciler(m *manager, live client.Reader, recorder events.EventRecorder) reconciler
}

// countedKind is a kind whose pods are counted, whatever their names are.
type countedKind interface {
	setKind
	// clones shows a set in the shape of a CloneSet; it shares what it points to.
	clones(set client.Object) *appsv1beta1.CloneSet
	// isPlain: its pods have neither claims, hooks nor an identity, and none is beyond replicas.
	isPlain() bool
}

// setKinds are the kinds of sets that there are.
var setKinds = []setKind{statefulSets{}, cloneSets{}, daemonSets{}, pools{}}

// reconciler is what a manager runs.
type reconciler interface {
	reconcile.Reconciler
	Measure(m metrics.Metrics)
	WriteInOrder()
	PullAs(pulling *executor.Pulling)
}

// kind returns the kind of the set.
func (s settings) kind() setKind {
	switch {
	case s.daemons.on:
		return daemonSets{}
	case s.clones.is():
		return s.clones.of
	default:
		return statefulSets{}
	}
}

// kindOfSet returns the kind of an object; nil if it is no set.
func kindOfSet(object client.Object) setKind {
	for _, kind := range setKinds {
		if object != nil && kind.name() == kindOf(object) {
			return kind
		}
	}
	return nil
}

// isSet reports whether objects of a kind are sets.
func isSet(name string) bool {
	for _, kind := range setKinds {
		if kind.name() == name {
			return true
		}
	}
	return false
}

// shown returns a set in the shape of a StatefulSet; nil for none.
func shown(set client.Object) *appsv1beta1.StatefulSet {
	kind := kindOfSet(set)
	if kind == nil {
		return nil
	}
	return kind.view(set)
}

// counted returns a set in the shape of a CloneSet; nil if its pods are not counted.
func counted(set client.Object) *appsv1beta1.CloneSet {
	kind, is := kindOfSet(set).(countedKind)
	if !is {
		return nil
	}
	return kind.clones(set)
}

type statefulSets struct{}

func (statefulSets) name() string { return "StatefulSet" }

func (statefulSets) object(s settings, r revision) client.Object { return s.set(r) }

func (statefulSets) view(set client.Object) *appsv1beta1.StatefulSet {
	return set.(*appsv1beta1.StatefulSet) //nolint:forcetypeassert // it is of this kind
}

func (statefulSets) put(*appsv1beta1.StatefulSet, client.Object) {} // a view is the set

func (statefulSets) reconciler(m *manager, live client.Reader, recorder events.EventRecorder) reconciler {
	return statefulset.NewReconciler(m.client, live, recorder, m.world.clock)
}

type cloneSets struct{}

func (cloneSets) name() string { return "CloneSet" }

func (cloneSets) object(s settings, r revision) client.Object { return s.cloneSet(r) }

func (k cloneSets) view(set client.Object) *appsv1beta1.StatefulSet { return viewOf(k.clones(set)) }

func (k cloneSets) put(view *appsv1beta1.StatefulSet, set client.Object) {
	put(view, &k.clones(set).Spec)
}

func (cloneSets) clones(set client.Object) *appsv1beta1.CloneSet {
	return set.(*appsv1beta1.CloneSet) //nolint:forcetypeassert // it is of this kind
}

func (cloneSets) isPlain() bool { return false }

func (cloneSets) reconciler(m *manager, live client.Reader, recorder events.EventRecorder) reconciler {
	return cloneset.NewReconciler(m.client, live, recorder, m.world.clock, m.world.newID)
}

type daemonSets struct{}

func (daemonSets) name() string { return "DaemonSet" }

func (daemonSets) object(s settings, r revision) client.Object { return s.daemonSet(r) }

func (daemonSets) view(set client.Object) *appsv1beta1.StatefulSet {
	return viewOfDaemons(daemonsOf(set))
}

func (daemonSets) put(view *appsv1beta1.StatefulSet, set client.Object) {
	putDaemons(view, &daemonsOf(set).Spec)
}

func (daemonSets) reconciler(m *manager, live client.Reader, recorder events.EventRecorder) reconciler {
	return daemonset.NewReconciler(m.client, live, recorder, m.world.clock, m.world.newID)
}

func daemonsOf(set client.Object) *appsv1beta1.DaemonSet {
	return set.(*appsv1beta1.DaemonSet) //nolint:forcetypeassert // it is of this kind
}

// pools are a kind of the test's own, the smallest one that there is.
type pools struct{}

func (pools) name() string { return pool.Kind.Kind }

func (pools) object(s settings, r revision) client.Object {
	set := s.cloneSet(r)
	return &pool.Pool{ObjectMeta: set.ObjectMeta, Spec: set.Spec}
}

func (k pools) view(set client.Object) *appsv1beta1.StatefulSet {
	view := viewOf(k.clones(set))
	view.Status = *poolOf(set).Status.DeepCopy()
	view.Status.CurrentReplicas = view.Status.Replicas // it does not count these
	return view
}

func (pools) put(view *appsv1beta1.StatefulSet, set client.Object) { put(view, &poolOf(set).Spec) }

func (pools) clones(set client.Object) *appsv1beta1.CloneSet { return poolOf(set).CloneSet() }

func (pools) isPlain() bool { return true }

func (pools) reconciler(m *manager, live client.Reader, recorder events.EventRecorder) reconciler {
	return pool.NewReconciler(m.client, live, recorder, m.world.clock, m.world.newID)
}

func poolOf(set client.Object) *pool.Pool {
	return set.(*pool.Pool) //nolint:forcetypeassert // it is of this kind
}

// kindsOfTypes are the names of all kinds, by the types of their objects and lists.
var kindsOfTypes = func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for kind, of := range scheme.AllKnownTypes() {
		names[of] = strings.TrimSuffix(kind.Kind, "List")
		if kind.Group == "apps" && isSet(names[of]) {
			names[of] += "." + kind.Group // see nativeStatefulSet
		}
	}
	return names
}()

// kindOf returns the kind of an object or of a list of such objects.
func kindOf(obj any) string {
	switch typed := obj.(type) {
	case *unstructured.Unstructured:
		return typed.GetKind()
	case *metav1.PartialObjectMetadata:
		return typed.Kind
	case *corev1.Pod:
		if typed != nil && inplace.IsPuller(typed) {
			return pullerKind
		}
		return "Pod"
	default:
		return kindsOfTypes[reflect.TypeOf(obj).Elem()]
	}
}
