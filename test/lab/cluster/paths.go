// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// Logs returns the folder with one log per program, and the audit log.
func (l *Lab) Logs() string { return filepath.Join(l.Dir, "logs") }

// Log returns the log of a program.
func (l *Lab) Log(name string) string { return filepath.Join(l.Logs(), name+".log") }

// AuditLog returns the path of the API server's audit log, one JSON object a line.
func (l *Lab) AuditLog() string { return l.Log("audit") }

// state is the folder of all that is lost when the lab goes down.
func (l *Lab) state(elements ...string) string {
	return filepath.Join(append([]string{l.Dir, "state"}, elements...)...)
}

func (l *Lab) pki(name string) string { return l.state("pki", name) }

func (l *Lab) config(name string) string { return l.state("config", name) }

// run is the folder of sockets, short enough for their paths.
func (l *Lab) run() string {
	if l.Isolated() {
		return host.DefaultSlots.Folder(l.Slot)
	}
	return plainRun(l.Dir)
}

// plainRun is the folder of sockets of a lab that has no slot. It is below /tmp whatever
// TMPDIR says: who takes the lab down may have another TMPDIR than who brought it up, and
// one may be too long for the path of a socket.
func plainRun(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return plainRunPrefix() + hex.EncodeToString(sum[:4])
}

// plainRunPrefix is what the folders of sockets of this user's labs begin with.
func plainRunPrefix() string { return fmt.Sprintf("/tmp/insitu-lab-%d-", os.Getuid()) }

// ControlSocket is where the supervisor of the lab answers.
func (l *Lab) ControlSocket() string { return filepath.Join(l.run(), "control.sock") }

// Node is a real node of a lab.
type Node struct {
	lab   *Lab
	index int // from 0
}

// RealNodes returns the lab's real nodes, node-1 first.
func (l *Lab) RealNodes() []Node {
	nodes := make([]Node, 0, l.Nodes)
	for i := range l.Nodes {
		nodes = append(nodes, Node{lab: l, index: i})
	}
	return nodes
}

// Node returns the real node of that name, or an error that lists them.
func (l *Lab) Node(name string) (Node, error) {
	names := make([]string, 0, l.Nodes)
	for _, node := range l.RealNodes() {
		if node.Name() == name {
			return node, nil
		}
		names = append(names, node.Name())
	}
	return Node{}, fmt.Errorf("no real node %q in the lab, there are %v", name, names)
}

// Name returns the node's name, such as "node-1".
func (n Node) Name() string { return fmt.Sprintf("node-%d", n.index+1) }

// ControlSocket is where the supervisor of the node answers.
func (n Node) ControlSocket() string { return n.run("control.sock") }

func (n Node) state(elements ...string) string {
	return n.lab.state(append([]string{"nodes", n.Name()}, elements...)...)
}

func (n Node) run(name string) string { return filepath.Join(n.lab.run(), n.Name(), name) }

// Cgroup is the control group of all that runs in an isolated lab.
func (l *Lab) Cgroup() string { return fmt.Sprintf("/insitu-lab-%d", l.Slot) }

// systemCgroup is the control group of the lab's own programs. Processes are
// only in leaves, as cgroup v2 demands.
func (l *Lab) systemCgroup() string { return l.Cgroup() + "/system" }

// cgroup is the control group of all that runs on the node.
func (n Node) cgroup() string { return n.lab.Cgroup() + "/" + n.Name() }

func (n Node) systemCgroup() string { return n.cgroup() + "/system" }

// writeFile writes a file in one step, making its folder.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
