// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package volumes decides how the claims of a workload follow their templates: how
// they grow, and how they get another VolumeAttributesClass.
//
// It is pure: facts go in, a decision comes out. It is read in this order:
//
//   - Compare tells how far a claim is what its template says.
//   - Record is what the operator noted on a claim when it changed it.
//   - Next tells the next step of one claim. The parts of it have their files:
//     growth (its size), attributes (its VolumeAttributesClass), trouble (what the
//     driver reports), detach (that its pod has to go, and is kept away).
//   - Claims sums up the steps of the claims of one pod: what they ask of it.
//
// A claim never shrinks: one that is larger than its template is what it should
// be. So a rollback has nothing to wait for.
//
// Source of what is known of claims: the CSI drivers' sidecar external-resizer and
// the kubelet write status.capacity, allocatedResources, allocatedResourceStatuses,
// modifyVolumeStatus and conditions (KEP-1790, KEP-3751).
package volumes
