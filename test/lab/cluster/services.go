// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// domain is the DNS domain of the cluster.
const domain = "cluster.local"

// Ports of programs that only isolated labs have.
const (
	dnsPort          = 53
	coreDNSReadyPort = 8181
	proxyHealthPort  = 10256
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
	return append(all,
		l.program(proxy, []string{"--config=" + l.config(proxyConfig)},
			&supervise.Probe{URL: fmt.Sprintf("http://%s:%d/livez", loopback, proxyHealthPort)}, apiServer),
		l.program(coreDNS, []string{"-conf", l.config(corefile)},
			&supervise.Probe{URL: fmt.Sprintf("http://%s:%d/ready", loopback, coreDNSReadyPort)}, apiServer),
	)
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
