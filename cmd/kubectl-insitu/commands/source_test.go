// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
)

// What is watched goes on answering when the API server does not.
func TestTheDashboardIsToldThatTheClusterDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	lists, failure := 0, errors.New("connection refused")
	s := &source{cluster: &cluster.Cluster{Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists++
			return failure
		},
	}).Build()}}
	_, err := s.List(t.Context())
	g.Expect(err).To(MatchError("connection refused"))
	g.Expect(s.probe(t.Context())).NotTo(Succeed(), "it is asked again until it answers")
	failure = nil
	g.Expect(s.probe(t.Context())).To(Succeed())
	g.Expect(s.probe(t.Context())).To(Succeed())
	g.Expect(lists).To(Equal(3), "it is not asked each time")
}
