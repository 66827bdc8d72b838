// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

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

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// maxTakeoverPeriod is a minute less than activeDeadlineSeconds of the pod of the chart.
const maxTakeoverPeriod = 2 * time.Minute

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
		f.found, f.advice = "outside a cluster, the namespace of its Lease is not known", "set leaderElection.resourceNamespace in the configuration"
		return []finding{f}
	}
	key := client.ObjectKey{Namespace: c.namespace, Name: election.ResourceName}
	look := "see what its pods do, kubectl -n " + key.Namespace + " get pods, and what they say, kubectl -n " + key.Namespace +
		" logs -l app.kubernetes.io/component=manager --all-containers"
	period := takeoverPeriod(election)
	last, isRenewed, err := c.watchLease(ctx, key, election.RetryPeriod.Duration/4, period)
	switch {
	case isRenewed:
		f.found = fmt.Sprintf("%s renews Lease %s", *last.Spec.HolderIdentity, key)
	case apierrors.IsForbidden(err):
		f.found, f.advice = fmt.Sprintf("Lease %s cannot be read: %v", key, err), "grant the account the Role insitu-manager of the chart"
	case err != nil:
		f.found, f.advice = fmt.Sprintf("Lease %s cannot be read: %v", key, err), "see whether the API server is well, and try again"
	case last == nil:
		f.found, f.advice = fmt.Sprintf("there is no Lease %s, so no manager has ever led", key), look
	case !isHeld(last):
		f.found, f.advice = fmt.Sprintf("no manager holds Lease %s", key), look
	default:
		f.found = fmt.Sprintf("Lease %s is held by %s, who last renewed it at %s, and not in the %s since", key,
			*last.Spec.HolderIdentity, renewed(last), period)
		f.advice = look
	}
	return []finding{f}
}

// watchLease reads a Lease until its holder renews it, it may not be read, or a period is
// over. It returns the Lease as it was read last, and why the last read failed; both are
// nil if it does not exist.
func (c *checker) watchLease(ctx context.Context, key client.ObjectKey, interval, period time.Duration) (*coordinationv1.Lease, bool, error) {
	var first, last *coordinationv1.Lease
	failed := errors.New("the API server does not answer")
	err := wait.PollUntilContextTimeout(ctx, interval, period, true, func(ctx context.Context) (bool, error) {
		lease, err := c.readLease(ctx, key)
		switch {
		case apierrors.IsForbidden(err):
			failed = err
			return false, err
		case err == nil:
			last, failed = lease, nil
		case ctx.Err() == nil:
			failed = err // for a moment, perhaps. One that the end of the period cuts off says nothing
		}
		if first == nil {
			first = last
		}
		return last != nil && isHeld(last) && !last.Spec.RenewTime.Equal(first.Spec.RenewTime), nil
	})
	if err != nil && ctx.Err() != nil {
		failed = ctx.Err() // the user ended the check
	}
	return last, err == nil, failed
}

// readLease returns a Lease; nil if it does not exist.
func (c *checker) readLease(ctx context.Context, key client.ObjectKey) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.client.Get(ctx, key, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

// takeoverPeriod is how long another replica is given to take over: twice as long as it
// may take, and no longer than the pod of the chart may run, with time to begin.
func takeoverPeriod(election configv1alpha1.LeaderElectionConfiguration) time.Duration {
	return min(2*election.LeaseDuration.Duration+election.RetryPeriod.Duration, maxTakeoverPeriod)
}

func isHeld(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") != ""
}

func renewed(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).UTC().Format(time.RFC3339)
}
