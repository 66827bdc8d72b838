// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package recreate decides how a claim is recreated from a snapshot of itself, where
// Kubernetes changes no claim: another storage class, other access modes. It also
// decides how a claim gets the volume back that it had before, and what a new claim
// is restored from.
//
// It is pure: facts go in, a decision comes out. It is read in this order:
//
//   - Preflight tells, before anything is stopped, whether it can be done.
//   - Next tells the next step. Its parts have their files: attempt (until the claim
//     is deleted), renewal (from then on), holding (what becomes of the old volume).
//   - Restore tells which snapshot a new claim of a template starts from.
//
// # What tells where a recreation is
//
// Nothing is remembered but in the objects themselves. While the claim exists, the
// attempt is noted on it (Record.Recreate). A claim that is gone says nothing: so
// its volume is held before, which is to keep the volume (reclaim policy Retain) and to
// mark it with all that is needed to make the claim again, in one write. As long
// as such a volume is not proved, it decides what a claim of that name is made
// from. So no empty claim ever takes the place of one that is being recreated.
//
// Until the claim is deleted, all can be taken back: the pod returns to its claim.
// From then on there are two ways forward, the new volume and the old one. A claim
// that was bound is never deleted again without another snapshot, or an explicit
// request.
package recreate
