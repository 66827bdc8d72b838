// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission tests the sample policies of config/samples/admission on a real API
// server: what they refuse, what they let through, and what Insitu makes of it, by the
// requests that its engine really sends.
package admission
