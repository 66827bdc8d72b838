// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package supervise keeps a set of programs running: it starts them in the
// order in which they need each other, writes what they print into log files,
// starts them again when they die, and reaps whatever they leave behind, so
// that a supervisor may be the first process of a PID namespace.
//
// A supervisor is asked and told what to do through a Unix socket, see Client.
package supervise
