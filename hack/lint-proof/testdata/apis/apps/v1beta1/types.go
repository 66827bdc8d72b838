// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 imports upwards.
package v1beta1

import (
	_ "k8s.io/client-go"               // want: importing a type must not import a client
	_ "sigs.k8s.io/controller-runtime" // want: importing a type must not import a framework

	_ "github.com/insitu-dev/insitu/volumes" // want: imports point down
)
