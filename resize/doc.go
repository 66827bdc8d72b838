// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package resize decides how the cpu and memory of live pods are changed through
// the subresource pods/resize (KEP-1287, for the pod level KEP-5419).
//
// It is pure: facts go in, a decision comes out. It is read in this order:
//
//   - Amounts are the sizes that a pod or a template names, field by field.
//   - Compare tells which of them are to be changed on a live pod, or why the API
//     server would never accept that.
//   - Change.Split tells what of it comes before, with and after other changes of
//     the pod.
//   - Written tells which amounts of a pod the operator wrote last, and when.
//   - Observe tells what became of that on the node.
//   - Policy tells what to do when the node or the API server refuses.
package resize
