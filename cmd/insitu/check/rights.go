// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/config/rbac"
)

// everywhere is the namespace of a question about all namespaces.
const everywhere = ""

// rights looks whether this account may do all that the rules of the manager grant.
func (c *checker) rights(ctx context.Context, rules rbac.Rules) []finding {
	workloads, advice := rules.Workloads, "grant it the ClusterRole of the chart (rbac.create=true) or of config/rbac"
	if c.config.Scope == configv1alpha1.NamespaceScope {
		workloads, advice = rbac.Namespaced(workloads), "grant it the Role of the chart (rbac.create=true) or of config/namespaced in that namespace"
	}
	namespaces := c.config.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{everywhere}
	}
	var findings []finding
	for _, namespace := range namespaces {
		findings = append(findings, c.mayAll(ctx, workloads, namespace, advice))
	}
	if *c.config.LeaderElection.Enabled {
		findings = append(findings, c.mayAll(ctx, rules.Own, c.namespace, "grant it the Role insitu-manager of the chart (rbac.create=true) or of config/rbac"))
	}
	return findings
}

// mayAll asks for every right of some rules in a namespace. Those to what belongs to the
// cluster are asked for there.
func (c *checker) mayAll(ctx context.Context, rules []rbacv1.PolicyRule, namespace, advice string) finding {
	place := "in namespace " + namespace
	if namespace == everywhere {
		place = "in all namespaces"
	}
	f := finding{subject: "rights " + place}
	count := 0
	var missing []string
	for _, attributes := range attributesOf(rules, namespace) {
		allowed, err := c.may(ctx, attributes)
		if err != nil {
			f.found, f.advice = "they cannot be asked for: "+err.Error(), "let the account create selfsubjectaccessreviews, as the ClusterRole system:basic-user does"
			return f
		}
		count++
		if !allowed {
			missing = append(missing, words(attributes))
		}
	}
	f.found = fmt.Sprintf("all %d that the manager needs", count)
	if len(missing) > 0 {
		f.found, f.advice = fmt.Sprintf("%d of %d are missing, to %s", len(missing), count, strings.Join(missing, ", ")), advice
	}
	return f
}

// attributesOf returns one question for each verb and resource of some rules, and for each
// object that a rule names.
func attributesOf(rules []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource, subresource, _ := strings.Cut(name, "/")
				place := namespace
				if rbac.OfCluster(schema.GroupResource{Group: group, Resource: resource}) {
					place = everywhere
				}
				objects := rule.ResourceNames
				if len(objects) == 0 {
					objects = []string{""}
				}
				for _, verb := range rule.Verbs {
					for _, object := range objects {
						all = append(all, authorizationv1.ResourceAttributes{
							Namespace: place, Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: object,
						})
					}
				}
			}
		}
	}
	return all
}

func (c *checker) may(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	if err := c.client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// words says a right as kubectl auth can-i takes it.
func words(attributes authorizationv1.ResourceAttributes) string {
	resource := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}.String()
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	if attributes.Name != "" {
		resource += "/" + attributes.Name
	}
	return attributes.Verb + " " + resource
}

// serves reports whether the API server serves a resource of a group and version.
func (c *checker) serves(ctx context.Context, version, resource string) (bool, error) {
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, version)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, served := range list.APIResources {
		if served.Name == resource {
			return true, nil
		}
	}
	return false, nil
}
