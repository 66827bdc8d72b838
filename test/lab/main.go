// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command lab brings up a real Kubernetes on one machine. Called by the name
// of a Kubernetes program, such as etcd or kubectl, it is that program.
package main

import (
	"os"
	"path/filepath"

	"github.com/insitu-dev/insitu/test/lab/components"
	"github.com/insitu-dev/insitu/test/lab/verbs"
)

func main() {
	if name := filepath.Base(os.Args[0]); components.Has(name) {
		os.Exit(components.Run(name))
	}
	os.Exit(verbs.Run())
}
