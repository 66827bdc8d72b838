// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command floor is etcd and kube-apiserver of the oldest Kubernetes release
// that is supported, in one binary: called by the name of one of them, it is
// that program. The API server suites run against it with make test-floor. It
// is a module of its own, because one build can hold one Kubernetes release
// only.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "floor: found name %q, expected etcd or kube-apiserver: call it through a link of that name\n", name)
		os.Exit(2)
	}
}
