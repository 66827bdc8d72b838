// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Whoever counts what the operator asks for needs all of it; of the cluster's own
// components only writes to workloads are of interest.
func TestAuditPolicyNotesAllThatTheOperatorAsksFor(t *testing.T) {
	g := NewWithT(t)
	policy, err := auditpolicy.LoadPolicyFromFile(written(t).config(auditPolicy))
	g.Expect(err).NotTo(HaveOccurred())
	evaluator := auditpolicy.NewPolicyRuleEvaluator(policy)
	for _, test := range []struct {
		verb, group, resource, subresource string
		operator, others                   auditinternal.Level
	}{
		{"patch", "", "pods", "status", auditinternal.LevelRequest, auditinternal.LevelRequest},
		{"patch", "apps.kruise.io", "statefulsets", "status", auditinternal.LevelRequest, auditinternal.LevelRequest},
		{"create", "apps.kruise.io", "containerrecreaterequests", "", auditinternal.LevelRequest, auditinternal.LevelRequest},
		{"patch", "apps", "deployments", "", auditinternal.LevelMetadata, auditinternal.LevelMetadata},
		{"watch", "", "pods", "", auditinternal.LevelMetadata, auditinternal.LevelNone},
		{"create", "events.k8s.io", "events", "", auditinternal.LevelMetadata, auditinternal.LevelNone},
		{"update", "coordination.k8s.io", "leases", "", auditinternal.LevelMetadata, auditinternal.LevelNone},
	} {
		level := func(namespace string) auditinternal.Level {
			return evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
				User: serviceaccount.UserInfo(namespace, "account", ""), Verb: test.verb,
				APIGroup: test.group, Resource: test.resource, Subresource: test.subresource, ResourceRequest: true,
			}).Level
		}
		g.Expect(level("insitu-system")).To(Equal(test.operator), "%+v", test)
		g.Expect(level("kube-system")).To(Equal(test.others), "%+v", test)
	}
}
