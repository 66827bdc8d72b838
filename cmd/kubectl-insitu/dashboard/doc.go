// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves a local web page that shows workloads, their pods by step,
// what they wait for and what has become of them, as it happens.
//
// It is for one user on one machine: it listens on 127.0.0.1 only, answers only to an
// address with a secret in it, and writes nothing to the cluster. The page is plain
// HTML, CSS and JavaScript modules, embedded as they are.
package dashboard
