// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path/filepath"

	"github.com/insitu-dev/insitu/test/lab/host"
	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// Names of a node's programs.
const (
	containerd = "containerd"
	kubelet    = "kubelet"
)

// Folders that each node has for itself under a fixed name. The kubelet has
// sockets in its own, whose paths must not be as long as a lab's folder may
// be, and drivers of storage expect it there; the name of the other is
// compiled into containerd.
const (
	kubeletRoot = "/var/lib/kubelet"
	cniRoot     = "/var/lib/cni"
)

// kubeletHealthPort is the port of /healthz at the node's address.
const kubeletHealthPort = 10248

// supervisor is the node as a program of the lab: the first process of the
// node's namespaces, which keeps the node's programs running.
func (n Node) supervisor() supervise.Process {
	return supervise.Process{
		Name:       n.Name(),
		Path:       selfPath(),
		Args:       []string{"lab", "--dir", n.lab.Dir, "supervise", "--node", n.Name()},
		Log:        n.lab.Log(n.Name()),
		Ready:      &supervise.Probe{Unix: n.ControlSocket()},
		Attributes: host.NodeAttributes(),
	}
}

// programs returns what runs on the node. The kubelet needs the API server
// too, but that is beyond this supervisor, and the kubelet waits for it.
func (n Node) programs() []supervise.Process {
	kubelet := n.lab.program(kubelet, n.kubeletArgs(),
		&supervise.Probe{URL: fmt.Sprintf("http://%s:%d/healthz", n.address(), kubeletHealthPort)}, containerd)
	kubelet.Log = n.lab.Log(n.Name() + "-kubelet")
	return []supervise.Process{
		{
			Name:  containerd,
			Path:  containerdPath(),
			Args:  []string{containerd, "--config", n.state("config", containerdConfig)},
			Log:   n.lab.Log(n.Name() + "-containerd"),
			Ready: &supervise.Probe{Unix: n.containerdSocket()},
		},
		kubelet,
		n.storage(),
	}
}

func (n Node) containerdSocket() string { return n.run("containerd.sock") }

func (n Node) kubeletArgs() []string {
	return []string{
		"--config=" + n.state("config", kubeletConfig),
		"--kubeconfig=" + n.lab.config(n.Name()+".kubeconfig"),
		"--root-dir=" + kubeletRoot,
		"--cert-dir=" + filepath.Join(kubeletRoot, "pki"),
		"--hostname-override=" + n.Name(),
		"--node-ip=" + n.address().String(),
	}
}

// mounts is what the node sees differently from the host.
func (n Node) mounts() host.Mounts {
	return host.Mounts{
		Keep: []string{n.lab.run()},
		Replace: map[string]string{
			kubeletRoot: n.state(kubelet),
			cniRoot:     n.state("cni"),
			"/var/log":  n.state("log"),
		},
		// What the kubelet would set for the whole machine, and leave so.
		Values: map[string]string{
			"/proc/sys/vm/overcommit_memory":      "1",
			"/proc/sys/vm/panic_on_oom":           "0",
			"/proc/sys/kernel/panic":              "10",
			"/proc/sys/kernel/panic_on_oops":      "1",
			"/proc/sys/kernel/keys/root_maxkeys":  "1000000",
			"/proc/sys/kernel/keys/root_maxbytes": "25000000",
		},
	}
}
