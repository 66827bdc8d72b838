// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/insitu-dev/insitu/config/rbac"
)

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func TestLoad(t *testing.T) {
	g := NewWithT(t)

	rules, err := rbac.Load()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules.Workloads).To(ContainElement(rule("apps.kruise.io", []string{
		"clonesets/status", "containerrecreaterequests/status", "daemonsets/status", "imagelistpulljobs/status", "imagepulljobs/status", "statefulsets/status",
	}, []string{"patch"})))
	g.Expect(rules.Own).To(ContainElement(rule("coordination.k8s.io", []string{"leases"}, []string{"create", "get", "update"})))
}

func TestNamespaced(t *testing.T) {
	g := NewWithT(t)
	named := rule("", []string{"serviceaccounts"}, []string{"patch"})
	named.ResourceNames = []string{"one"}

	got := rbac.Namespaced([]rbacv1.PolicyRule{
		named,
		rule("", []string{"pods", "persistentvolumeclaims"}, []string{"get", "delete"}),
		rule("", []string{"resourcequotas", "pods"}, []string{"list"}),
		rule("", []string{"persistentvolumes", "nodes"}, []string{"get"}),
		rule("", []string{"configmaps", "persistentvolumeclaims"}, []string{"list"}),
		rule("snapshot.storage.k8s.io", []string{"volumesnapshots", "volumesnapshotclasses"}, []string{"get"}),
		rule("storage.k8s.io", []string{"storageclasses", "csistoragecapacities"}, []string{"list"}),
		rule("apps", []string{"statefulsets", "deployments"}, []string{"watch", "get"}),
	})

	g.Expect(got).To(Equal([]rbacv1.PolicyRule{
		rule("", []string{"configmaps"}, []string{"list"}),
		rule("", []string{"persistentvolumeclaims", "pods"}, []string{"delete", "get", "list"}),
		rule("apps", []string{"deployments", "statefulsets"}, []string{"get", "watch"}),
		named,
	}), "the other snapshots are of no use without their classes")
}
