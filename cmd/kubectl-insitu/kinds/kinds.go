// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Kind is a kind of workload that the plugin knows.
type Kind struct {
	schema.GroupVersionKind
	// resource is its plural name, names are what else it is called on a command line.
	resource string
	names    []string
	// New returns an empty object, NewList an empty list of the kind.
	New     func() client.Object
	NewList func() client.ObjectList
	// ThroughReplicaSets: the workload owns ReplicaSets, which own its pods and are its
	// revisions.
	ThroughReplicaSets bool
	// NamesRevisions: the status names the revisions of the pods.
	NamesRevisions bool
	// KubectlPauses: kubectl rollout pause and resume know the kind.
	KubectlPauses bool
	// spelling puts the words of the kind in the place of those that most kinds of ours have;
	// nil for one that has the same.
	spelling *strings.Replacer
	// read returns the view of an object; false if the object is of another kind.
	read func(client.Object) (View, bool)
}

// All returns the kinds that the plugin knows, those of ours first.
func All() []Kind {
	return []Kind{
		statefulSet(),
		cloneSet(),
		daemonSet(),
		deployment(),
		nativeStatefulSet(),
		nativeDaemonSet(),
	}
}

// Read returns what the plugin reads of a workload. It fails for an object that is none.
func Read(object client.Object) (View, error) {
	for _, kind := range All() {
		if view, ok := kind.read(object); ok {
			view.Kind = kind
			return view, nil
		}
	}
	return View{}, fmt.Errorf("%T is no workload", object)
}

// Of returns the kind that an object of a manifest names, and false if the plugin does not
// know it. The version does not matter.
func Of(object runtime.Object) (Kind, bool) {
	return Named(object.GetObjectKind().GroupVersionKind().GroupKind())
}

// Named returns the kind of a group and a name, and false if the plugin does not know it.
func Named(name schema.GroupKind) (Kind, bool) {
	for _, kind := range All() {
		if kind.GroupKind() == name {
			return kind, true
		}
	}
	return Kind{}, false
}

// Called returns the kinds that a word of the command line may mean.
func Called(word string) ([]Kind, error) {
	var found []Kind
	for _, kind := range All() {
		if kind.isCalled(word) {
			found = append(found, kind)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("found kind %q: accepted are %s", word, Spellings())
	}
	return found, nil
}

// Spellings returns how the kinds are spelled.
func Spellings() string {
	all := All()
	words := make([]string, 0, len(all))
	for _, kind := range all {
		words = append(words, kind.String())
	}
	return strings.Join(words, ", ")
}

// String returns how the kind is spelled where it must not be taken for another one:
// statefulset.apps.kruise.io.
func (k Kind) String() string {
	return strings.ToLower(k.Kind) + "." + k.Group
}

// IsOurs reports whether the kind is one of Insitu, and not of Kubernetes.
func (k Kind) IsOurs() bool {
	return k.Group == appsv1beta1.GroupVersion.Group
}

// Spell returns a text that names fields of our kinds, in the words of the kind: with the fields,
// labels and annotations that it has.
func (k Kind) Spell(text string) string {
	if k.spelling == nil {
		return text
	}
	return k.spelling.Replace(text)
}

// isCalled reports whether a word names the kind, as in sts, statefulsets,
// StatefulSet.apps, statefulsets.v1beta1.apps.kruise.io.
func (k Kind) isCalled(word string) bool {
	name, rest, _ := strings.Cut(strings.ToLower(word), ".")
	if name != k.resource && !slices.Contains(k.names, name) {
		return false
	}
	if rest == "" || rest == k.Group {
		return true
	}
	version, group, _ := strings.Cut(rest, ".")
	return group == k.Group && slices.Contains([]string{"v1", "v1alpha1", "v1beta1"}, version)
}
