// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inplace breaks the rules of the pure packages, one per line.
package inplace

import (
	_ "context"      // want: a decision needs no cancellation
	_ "log/slog"     // want: pure packages return the reason
	_ "math/rand/v2" // want: the same facts give the same decision
	_ "net/http"     // want: pure packages talk to no server
	_ "os"           // want: not the environment

	_ "github.com/go-logr/logr"        // want: pure packages return the reason
	_ "k8s.io/client-go"               // want: pure packages hold no client
	_ "k8s.io/klog/v2"                 // want: pure packages return the reason
	_ "k8s.io/utils/clock"             // want: pure packages are told the time
	_ "sigs.k8s.io/controller-runtime" // want: pure packages hold no client, log nothing

	_ "github.com/insitu-dev/insitu/controllers" // want: imports point down
	_ "github.com/insitu-dev/insitu/test"        // want: the product does not import its tests
)
