// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// Eyes are what a workload is inspected with. What an inspection decides is never
// written.
type Eyes struct {
	// Client reads; it has the indexes of package podcache. It writes nothing, see
	// Withhold.
	Client client.Client
	// Live reads what decides on data from the API server.
	Live client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
	// Capabilities tells what the API server can do; everything, if it is nil.
	Capabilities *Capabilities
	// Pulling is how the operator pulls images before pods are updated. If it is nil, the
	// inspection is as if all images were there.
	Pulling *executor.Pulling
}

// Inspection is what a reconciliation of a workload decides.
type Inspection struct {
	// Workload is what the planner was told, Plan what it made of that.
	Workload inplace.Workload
	Plan     inplace.Plan
	// Planned is false where no plan was made: Failure says why, or the workload has
	// nothing to be planned.
	Planned bool
	Failure error
	// Failed holds the errors of moves, by pod name.
	Failed map[string]error
	// History holds the revisions of the workload. Update is the name of the one that
	// pods get to, Current of the one that those have which are kept.
	History         *history.History
	Update, Current string
}
