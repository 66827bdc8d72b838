// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package resize is pure too.
package resize

import _ "k8s.io/client-go" // want: pure packages hold no client
