// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package check looks whether a manager has what it needs: its definitions and its rights,
// a leader, and policies that hold workloads. It is what insitu --check prints.
package check

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/config/rbac"
	"github.com/insitu-dev/insitu/resize"
)

// finding is what one check has found.
type finding struct {
	// subject is what was looked at, and found what there is.
	subject, found string
	// advice is what to do; empty if all is well.
	advice string
}

func (f finding) String() string {
	if f.advice == "" {
		return "ok    " + f.subject + ": " + f.found
	}
	return "FAIL  " + f.subject + ": " + f.found + ": " + f.advice
}

// checker looks whether a manager with this account and this configuration has what it
// needs. It writes nothing but dry runs and questions about its own rights.
type checker struct {
	config    *configv1alpha1.InsituConfiguration
	client    client.Client
	discovery discovery.ServerResourcesInterfaceWithContext
	// namespace is that of the Lease.
	namespace string
}

// failedChecksError says that something is amiss. What it is has been printed.
type failedChecksError struct{ failed, all int }

func (e *failedChecksError) Error() string {
	return fmt.Sprintf("%d of %d checks failed", e.failed, e.all)
}

// Run prints a line for each check of a manager with this connection and configuration, and
// fails if one of them does. The scheme has the types of the manager.
func Run(ctx context.Context, connection *rest.Config, scheme *runtime.Scheme, config *configv1alpha1.InsituConfiguration, out io.Writer) error {
	c, err := newChecker(connection, scheme, config)
	if err != nil {
		return err
	}
	rules, err := rbac.Load()
	if err != nil {
		return err
	}
	failed, all := 0, 0
	for _, look := range []func(context.Context) []finding{
		c.definitions,
		func(ctx context.Context) []finding { return c.rights(ctx, rules) },
		c.leader,
		c.holdPolicies,
	} {
		for _, f := range look(ctx) {
			fmt.Fprintln(out, f)
			all++
			if f.advice != "" {
				failed++
			}
		}
	}
	if failed > 0 {
		return &failedChecksError{failed: failed, all: all}
	}
	return nil
}

func newChecker(connection *rest.Config, scheme *runtime.Scheme, config *configv1alpha1.InsituConfiguration) (*checker, error) {
	c, err := client.New(connection, client.Options{Scheme: scheme, FieldOwner: resize.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	return &checker{config: config, client: c, discovery: served, namespace: config.LeaderElection.ResourceNamespace}, nil
}

// definitions looks whether the API server serves the kinds of Insitu.
func (c *checker) definitions(ctx context.Context) []finding {
	const install = "install or upgrade the CustomResourceDefinitions, helm upgrade with crds.install=true or kubectl apply --server-side -k config/crd"
	version := appsv1beta1.GroupVersion.String()
	var findings []finding
	for _, resource := range []string{"clonesets", "containerrecreaterequests", "daemonsets", "imagelistpulljobs", "imagepulljobs", "statefulsets"} {
		f := finding{subject: resource + "." + appsv1beta1.GroupVersion.Group, found: "served as " + version}
		isServed, err := c.serves(ctx, version, resource)
		switch {
		case err != nil:
			f.found, f.advice = "it cannot be seen whether they are served as "+version+": "+err.Error(), "see whether the API server is well, and try again"
		case !isServed:
			f.found, f.advice = "not served as "+version, install
		}
		findings = append(findings, f)
	}
	return findings
}
