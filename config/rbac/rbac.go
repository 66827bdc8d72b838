// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbac holds the generated permissions of the manager, for those who have to
// know them in Go: the chart, and the manager itself when it looks whether it has them.
package rbac

import (
	"bytes"
	_ "embed" // of role.yaml
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

//go:embed role.yaml
var manifest []byte

// Rules are the permissions of a manager.
type Rules struct {
	// Workloads are the rules for what it does with workloads: in the whole cluster, or
	// in each of its namespaces.
	Workloads []rbacv1.PolicyRule
	// Own are the rules for the namespace that it runs in.
	Own []rbacv1.PolicyRule
}

// ofCluster are the resources that no Role can grant: they belong to no namespace, or are
// listed in all of them, as the capacities that a driver notes in its own.
var ofCluster = sets.New(
	schema.GroupResource{Resource: "nodes"},
	schema.GroupResource{Resource: "persistentvolumes"},
	schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotclasses"},
	schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "csidrivers"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "csistoragecapacities"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
)

// forRecreation are the verbs that serve nothing but to recreate claims. That takes
// rights to volumes, which belong to the cluster: without those, these are of no use. To
// delete claims is not among them: where the admission plugin
// OwnerReferencesPermissionEnforcement is on, setting owners of claims takes it.
var forRecreation = map[schema.GroupResource]sets.Set[string]{
	{Resource: "events"}:         sets.New("list"),
	{Resource: "resourcequotas"}: sets.New("list"),
	{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots"}: sets.New("create", "delete", "get", "list"),
}

// Load returns the permissions of a manager that acts in the whole cluster.
func Load() (Rules, error) {
	var rules Rules
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var role rbacv1.ClusterRole // a Role has the fields that are read here
		if err := yaml.Unmarshal(document, &role); err != nil {
			return Rules{}, fmt.Errorf("read the permissions of the manager: %w", err)
		}
		switch role.Kind {
		case "ClusterRole":
			rules.Workloads = role.Rules
		case "Role":
			rules.Own = role.Rules
		default:
			return Rules{}, fmt.Errorf("read the permissions of the manager: found kind %q: accepted is ClusterRole or Role", role.Kind)
		}
	}
	if len(rules.Workloads) == 0 || len(rules.Own) == 0 {
		return Rules{}, fmt.Errorf("read the permissions of the manager: found %d rules of a ClusterRole and %d of a Role: accepted are some of both",
			len(rules.Workloads), len(rules.Own))
	}
	return rules, nil
}

// OfCluster reports whether a resource takes rights in the whole cluster.
func OfCluster(resource schema.GroupResource) bool {
	return ofCluster.Has(resource)
}

// Namespaced returns the rules of a manager that acts in some namespaces only: those that
// a Role can grant, without what is of no use there. Each is of one API group and one set
// of verbs, but for those that name objects, which stay as they are.
func Namespaced(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs := map[schema.GroupResource]sets.Set[string]{}
	var named []rbacv1.PolicyRule
	for _, rule := range rules {
		if len(rule.ResourceNames) > 0 {
			named = append(named, rule)
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := schema.GroupResource{Group: group, Resource: resource}
				granted := sets.New(rule.Verbs...).Difference(forRecreation[key])
				if !ofCluster.Has(key) && granted.Len() > 0 {
					verbs[key] = granted.Union(verbs[key])
				}
			}
		}
	}
	var namespaced []rbacv1.PolicyRule
	for _, key := range slices.SortedFunc(maps.Keys(verbs), byGroupAndResource) {
		rule := rbacv1.PolicyRule{APIGroups: []string{key.Group}, Resources: []string{key.Resource}, Verbs: sets.List(verbs[key])}
		if i := slices.IndexFunc(namespaced, func(other rbacv1.PolicyRule) bool {
			return other.APIGroups[0] == key.Group && slices.Equal(other.Verbs, rule.Verbs)
		}); i >= 0 {
			namespaced[i].Resources = append(namespaced[i].Resources, key.Resource)
			continue
		}
		namespaced = append(namespaced, rule)
	}
	return append(namespaced, named...)
}

func byGroupAndResource(a, b schema.GroupResource) int {
	return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
}
