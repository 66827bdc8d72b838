// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leader looks whether a manager leads: one that renews the Lease while it is looked at.
// The clocks of the two may differ, and say nothing. It is given the time in which
// another replica takes over from one that has died.
func (c *checker) leader(ctx context.Context) []finding {
	election := c.config.LeaderElection
	f := finding{subject: "leader"}
	if !*election.Enabled {
		f.found = "leader election is off, and was not looked at"
		return []finding{f}
	}
	if c.namespace == "" {
		f.found, f.advice = "nobody knows the namespace of its Lease, outside a cluster", "set leaderElection.resourceNamespace in the configuration"
		return []finding{f}
	}
	key := client.ObjectKey{Namespace: c.namespace, Name: election.ResourceName}
	look := "see what its pods do, kubectl -n " + key.Namespace + " get pods, and what they say, kubectl -n " + key.Namespace +
		" logs -l app.kubernetes.io/component=manager --all-containers"
	var first, last *coordinationv1.Lease
	period := 2*election.LeaseDuration.Duration + election.RetryPeriod.Duration
	err := wait.PollUntilContextTimeout(ctx, election.RetryPeriod.Duration/4, period, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		err := c.client.Get(ctx, key, lease)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		last = lease
		if first == nil {
			first = lease
		}
		return isHeld(lease) && !lease.Spec.RenewTime.Equal(first.Spec.RenewTime), nil
	})
	switch {
	case err == nil:
		f.found = fmt.Sprintf("%s renews Lease %s", *last.Spec.HolderIdentity, key)
	case !errors.Is(err, context.DeadlineExceeded):
		f.found, f.advice = fmt.Sprintf("Lease %s cannot be read: %v", key, err), "grant the account the Role insitu-manager of the chart, or see whether the API server is well"
	case last == nil:
		f.found, f.advice = fmt.Sprintf("there is no Lease %s, so no manager has ever led", key), look
	case !isHeld(last):
		f.found, f.advice = fmt.Sprintf("nobody holds Lease %s", key), look
	default:
		f.found = fmt.Sprintf("Lease %s is held by %s, who last renewed it at %s, and not in the %s since", key,
			*last.Spec.HolderIdentity, renewed(last), period)
		f.advice = look
	}
	return []finding{f}
}

func isHeld(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") != ""
}

func renewed(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).UTC().Format(time.RFC3339)
}
