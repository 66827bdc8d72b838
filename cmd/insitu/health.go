// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// syncProbeTimeout is less than the timeout of a kubelet's probe, 1 s.
const syncProbeTimeout = 500 * time.Millisecond

// syncWaiter is the part of a cache that knows whether it has synced.
type syncWaiter interface {
	WaitForCacheSync(ctx context.Context) bool
}

// cachesSynced succeeds when the cache holds all that is watched. Replicas that
// wait to be the leader sync as well, so that they can take over at once.
func cachesSynced(cache syncWaiter) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), syncProbeTimeout)
		defer cancel()
		if !cache.WaitForCacheSync(ctx) {
			return errors.New("caches have not synced")
		}

		return nil
	}
}
