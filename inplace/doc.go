// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inplace decides how the pods of a workload are changed in place.
//
// It is pure: facts go in, a decision comes out. It holds no client, no clock,
// no logger and no state, so every decision can be made again, from the objects
// alone, by a manager that was started a moment ago.
//
// It is read in this order:
//
//   - Template is a pod template as the user wrote it.
//   - Compare tells what separates a live pod from a target revision: a Change
//     that can be made in place, or a Refusal that names the first field that
//     cannot.
//   - Observe tells whether the last change made to a pod has taken effect.
//   - Next tells the next step of one pod. What only the API server can tell,
//     that it refuses the change, is a fact: PodFacts.Refused.
//     The ways of a step have their files: lifecycle (held by a hook), drain (taken
//     out of service), restart (given another spelling of its image), batch (one
//     container after the other), resize (given other sizes; sizes tells which),
//     finish (back into service).
//   - Priorities tells which pods of an unordered update go first; order holds back the
//     others until those have started.
//   - MakePlan tells which pods of a workload may take their next step now,
//     within the budget, and what the others wait for.
package inplace
