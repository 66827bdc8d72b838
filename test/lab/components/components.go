// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package components holds the Kubernetes programs of the lab, all linked into
// the lab's one binary. A component is chosen by name, see Run.
package components

import (
	"context"
	"os"

	etcd "go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps the name of a component to its main function. Each reads its
// flags from os.Args[1:] and returns the exit code.
var programs = map[string]func() int{
	"etcd": func() int {
		etcd.Main(os.Args)
		return 0
	},
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 func() int { return cli.Run(kubectl.NewDefaultKubectlCommand()) },
	"coredns": func() int {
		runCoreDNS()
		return 0
	},
	"metrics-server": runMetricsServer,
}

// Has reports whether name is a component of the lab's binary.
func Has(name string) bool {
	_, ok := programs[name]
	return ok
}

// Run runs the named component as if it were a program of its own, with
// os.Args as its arguments, and returns its exit code.
func Run(name string) int {
	return programs[name]()
}
