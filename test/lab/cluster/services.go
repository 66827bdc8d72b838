// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/insitu-dev/insitu/test/lab/simnode"
	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// domain is the DNS domain of the cluster.
const domain = "cluster.local"

// Ports of programs that only isolated labs have.
const (
	dnsPort          = 53
	coreDNSReadyPort = 8181
	proxyHealthPort  = 10256
	metricsPort      = 4443
)

// services returns the programs that serve nodes, real or simulated.
func (l *Lab) services() []supervise.Process {
	all := []supervise.Process{
		l.verb(registry, l.Registry()+"/v2/"),
	}
	if l.SimulatedNodes > 0 {
		all = append(all, l.verb(simulatedNodes, "", apiServer, registry))
	}
	if l.Nodes == 0 {
		return all
	}
	return append(append(all,
		l.program(proxy, []string{"--config=" + l.config(proxyConfig)},
			&supervise.Probe{URL: fmt.Sprintf("http://%s:%d/livez", loopback, proxyHealthPort)}, apiServer),
		l.program(coreDNS, []string{"-conf", l.config(corefile)},
			&supervise.Probe{URL: fmt.Sprintf("http://%s:%d/ready", loopback, coreDNSReadyPort)}, apiServer),
		// Not /readyz, which waits for a node to be measured.
		l.program(metricsServer, l.metricsServerArgs(), l.secure(metricsPort, "/livez"), apiServer),
	), l.storage()...)
}

func (l *Lab) metricsServerArgs() []string {
	kubeconfig := l.config(metricsServer + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + l.bind(),
		fmt.Sprintf("--secure-port=%d", metricsPort),
		"--cert-dir=" + l.state(metricsServer),
		"--tls-cert-file=" + l.pki(metricsServing+".crt"),
		"--tls-private-key-file=" + l.pki(metricsServing+".key"),
		// What it would look up in the cluster, and end if it could not yet.
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + l.pki(clusterCA+".crt"),
		"--requestheader-client-ca-file=" + l.pki(frontProxyCA+".crt"),
		"--requestheader-allowed-names=" + frontProxy,
		"--kubelet-preferred-address-types=InternalIP",
		// Simulated nodes have no kubelet that could be asked.
		"--node-selector=" + simnode.SimulatedKey + "!=true",
		// The shortest there is, so that autoscalers notice soon.
		"--metric-resolution=10s",
		"--kubelet-request-timeout=5s",
	}
}

// verb is a program that is a hidden verb of the lab's command.
func (l *Lab) verb(name, readyURL string, after ...string) supervise.Process {
	process := supervise.Process{
		Name:  name,
		Path:  selfPath(),
		Args:  []string{"lab", "--dir", l.Dir, name},
		Log:   l.Log(name),
		After: after,
	}
	if readyURL != "" {
		process.Ready = &supervise.Probe{URL: readyURL}
	}
	return process
}
