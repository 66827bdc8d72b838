// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Options configures the controller of a kind.
type Options struct {
	// MaxConcurrentReconciles is how many workloads of a kind are reconciled at the
	// same time; at least 1.
	MaxConcurrentReconciles int

	// NamespaceScope: there are rights in namespaces only, and none to what belongs to the
	// cluster.
	NamespaceScope bool

	// Capabilities tells what the API server can do; everything, if it is nil.
	Capabilities *workload.Capabilities

	// Turns are those that the kinds of a manager share; if it is nil, the kind has its own.
	Turns *executor.Turns

	// Pulling is how the kinds of a manager pull images; if it is nil, each does as by default.
	Pulling *executor.Pulling

	// Metrics are what is measured; nothing is by those that are nil.
	Metrics metrics.Metrics
}
