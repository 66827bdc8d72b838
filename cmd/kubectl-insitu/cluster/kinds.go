// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
}

// Kinds are the kinds that the plugin knows, those of ours first.
func Kinds() []Kind {
	ours, native := appsv1beta1.GroupVersion, appsv1.SchemeGroupVersion
	return []Kind{
		{
			ours.WithKind("StatefulSet"), "statefulsets", []string{"statefulset", "sts", "asts"},
			func() client.Object { return &appsv1beta1.StatefulSet{} }, func() client.ObjectList { return &appsv1beta1.StatefulSetList{} },
		},
		{
			ours.WithKind("CloneSet"), "clonesets", []string{"cloneset", "clone"},
			func() client.Object { return &appsv1beta1.CloneSet{} }, func() client.ObjectList { return &appsv1beta1.CloneSetList{} },
		},
		{
			native.WithKind("Deployment"), "deployments", []string{"deployment", "deploy"},
			func() client.Object { return &appsv1.Deployment{} }, func() client.ObjectList { return &appsv1.DeploymentList{} },
		},
		{
			native.WithKind("StatefulSet"), "statefulsets", []string{"statefulset", "sts"},
			func() client.Object { return &appsv1.StatefulSet{} }, func() client.ObjectList { return &appsv1.StatefulSetList{} },
		},
		{
			native.WithKind("DaemonSet"), "daemonsets", []string{"daemonset", "ds"},
			func() client.Object { return &appsv1.DaemonSet{} }, func() client.ObjectList { return &appsv1.DaemonSetList{} },
		},
	}
}

// String returns how the kind is spelled where it must not be taken for another one:
// statefulset.apps.kruise.io.
func (k Kind) String() string {
	return strings.ToLower(k.Kind) + "." + k.Group
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

// kindsCalled returns the kinds that a word of the command line may mean.
func kindsCalled(word string) ([]Kind, error) {
	var found []Kind
	for _, kind := range Kinds() {
		if kind.isCalled(word) {
			found = append(found, kind)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("found kind %q: accepted are %s", word, strings.Join(spellings(Kinds()), ", "))
	}
	return found, nil
}

func spellings(kinds []Kind) []string {
	words := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		words = append(words, kind.String())
	}
	return words
}
