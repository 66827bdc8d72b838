// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func request(verb, group, resource, subresource string) auditv1.Event {
	return auditv1.Event{Verb: verb, ObjectRef: &auditv1.ObjectReference{
		APIGroup: group, Resource: resource, Subresource: subresource, Namespace: "shop", Name: "web",
	}}
}

// annotated is a patch that was answered with 403.
func annotated(user, decided string) auditv1.Event {
	event := request("patch", "", "pods", "")
	event.User.Username = user
	event.ResponseStatus = &metav1.Status{Code: 403}
	event.Annotations = map[string]string{decision: decided}
	return event
}

func TestForbiddenIsWhatTheAuthorizerRefused(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Forbidden([]auditv1.Event{
		annotated("refused by admission", "allow"), annotated("zoe", forbid), annotated("adam", forbid), annotated("zoe", forbid), {},
	})).To(Equal([]string{"patch pods shop/web by adam", "patch pods shop/web by zoe"}))
}

func TestUnusedIsWhatNoRequestAskedFor(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"clonesets"}, Verbs: []string{"watch"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	for text, test := range map[string]struct {
		asked  []auditv1.Event
		unused []string
	}{
		"nothing was asked for": {
			unused: []string{"get pods", "get pods/status", "patch pods", "patch pods/status", "watch clonesets.apps.kruise.io"},
		},
		"the subresource is another resource": {
			asked:  []auditv1.Event{request("patch", "", "pods", "status"), request("get", "", "pods", "")},
			unused: []string{"get pods/status", "patch pods", "watch clonesets.apps.kruise.io"},
		},
		"the same name in another group is another resource": {
			asked:  []auditv1.Event{request("watch", "apps", "clonesets", ""), request("watch", "", "clonesets", "")},
			unused: []string{"get pods", "get pods/status", "patch pods", "patch pods/status", "watch clonesets.apps.kruise.io"},
		},
		"a watch tells what get and list do, of the same resource": {
			asked:  []auditv1.Event{request("watch", "", "pods", "")},
			unused: []string{"get pods/status", "patch pods", "patch pods/status", "watch clonesets.apps.kruise.io"},
		},
		"everything was": {
			asked: []auditv1.Event{
				request("get", "", "pods", ""), request("patch", "", "pods", ""), request("get", "", "pods", "status"),
				request("patch", "", "pods", "status"), request("watch", "apps.kruise.io", "clonesets", ""), {Verb: "get", RequestURI: "/metrics"},
			},
		},
	} {
		t.Run(text, func(t *testing.T) {
			NewWithT(t).Expect(Unused(rules, test.asked)).To(HaveExactElements(test.unused))
		})
	}
}

func TestBindingsOfAnAccountAreThoseOfItsGroupsToo(t *testing.T) {
	binding := func(name string, subject rbacv1.Subject) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "jane"}, subject}}
	}
	NewWithT(t).Expect(BoundTo("insitu-system", "insitu-manager", []rbacv1.ClusterRoleBinding{
		binding("own", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "insitu-system", Name: "insitu-manager"}),
		binding("as a user", rbacv1.Subject{Kind: rbacv1.UserKind, Name: operator}),
		binding("all", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}),
		binding("accounts", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}),
		binding("neighbors", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:insitu-system"}),
		binding("another namespace", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "insitu-manager"}),
		binding("another account", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "insitu-system", Name: "default"}),
		binding("another group", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:kube-system"}),
	})).To(Equal([]string{"accounts", "all", "as a user", "neighbors", "own"}))
}
