// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package volumes is pure too.
package volumes

import _ "context" // want: a decision needs no cancellation
