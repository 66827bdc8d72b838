// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inplace decides how the pods of a workload are changed in place.
//
// It is pure: facts go in, a decision comes out. It holds no client, no clock,
// no logger and no state, so every decision can be made again, from the objects
// alone, by a manager that was started a moment ago.
//
// Read these files first, in this order, each from top to bottom:
//
//   - step: what can be done to a pod next, and the states that an update passes.
//   - facts: what is known of a pod, and the Target that it is to come to.
//   - situation: both together, and the moment. What decides about one pod are its methods.
//   - next: the stages of a pod that is to come to the target. The first that returns a step
//     wins. What only the API server can tell, that it refuses the change, is a fact:
//     PodFacts.Refused.
//   - finish: the stages of a pod that stays at its revision, until it serves.
//   - plan: MakePlan tells which pods of a workload may take their next step now, within the
//     budget, and what the others wait for.
//   - view: a pod as the planner sees it.
//
// The others are read when a stage leads there:
//
//   - template is a pod template as the user wrote it; change, eligibility and difference
//     compare a live pod with a target revision: a Change that can be made in place, or a
//     Refusal that names the first field that cannot.
//   - observed and completion tell whether the last change made to a pod has taken effect,
//     by what record has kept in the pod.
//   - lifecycle gives a pod to its hooks, drain takes it out of service, restart gives a
//     container another spelling of its image, batch changes one container after the other,
//     resize gives a pod other sizes (sizes tells which), claims waits for its volumes.
//   - patch and resizepatch are what is written for a step.
//   - priority tells which pods of an unordered update go first; order holds back the others
//     until those have started.
package inplace
