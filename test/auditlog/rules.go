// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// What the API server's authorizer notes beside a request. The status alone does not
// tell: admission refuses with the code 403, too.
const (
	decision = "authorization.k8s.io/decision"
	forbid   = "forbid"
)

// Forbidden describes the requests that the authorizer refused, each once.
func Forbidden(events []auditv1.Event) []string {
	found := map[string]bool{}
	for i := range events {
		if events[i].Annotations[decision] == forbid {
			found[Describe(&events[i])] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Unused returns what rules allow and no request asked for, each as "verb resource" or,
// outside the core group, "verb resource.group": "patch pods/status" and "watch
// clonesets.apps.kruise.io". What is watched may also be read and listed: that tells
// no more, and the list is what a client asks for where the API server does not begin
// its watches with one.
func Unused(rules []rbacv1.PolicyRule, events []auditv1.Event) []string {
	granted := map[string]bool{}
	for _, rule := range rules {
		for _, grant := range grants(&rule) {
			granted[grant] = true
		}
	}
	for i := range events {
		ref := events[i].ObjectRef
		if ref == nil {
			continue
		}
		verbs := []string{events[i].Verb}
		if events[i].Verb == "watch" {
			verbs = append(verbs, "get", "list")
		}
		for _, verb := range verbs {
			delete(granted, grant(verb, ref.APIGroup, join(ref.Resource, ref.Subresource)))
		}
	}
	return slices.Sorted(maps.Keys(granted))
}

// grants returns all that a rule allows, which has no wildcards.
func grants(rule *rbacv1.PolicyRule) []string {
	var all []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, grant(verb, group, resource))
			}
		}
	}
	return all
}

func grant(verb, group, resource string) string {
	if group == "" {
		return verb + " " + resource
	}
	return verb + " " + resource + "." + group
}

// BoundTo returns the names of the bindings that give something to a service account,
// by its name or by a group that it is in: those of all service accounts, of those in its
// namespace, and of all who are authenticated. It expects ClusterRoleBindings and, in
// the form of those, RoleBindings.
func BoundTo(namespace, name string, bindings []rbacv1.ClusterRoleBinding) []string {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	user := "system:serviceaccount:" + namespace + ":" + name
	var found []string
	for _, binding := range bindings {
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			switch s.Kind {
			case rbacv1.ServiceAccountKind:
				return s.Namespace == namespace && s.Name == name
			case rbacv1.GroupKind:
				return slices.Contains(groups, s.Name)
			default:
				return s.Name == user
			}
		}) {
			found = append(found, binding.Name)
		}
	}
	slices.Sort(found)
	return found
}
