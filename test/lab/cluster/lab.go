// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// MaxNodes is how many real nodes a lab may have.
const MaxNodes = 8

// recordFile keeps the Lab in its folder.
const recordFile = "lab.json"

// ErrNoLab is returned by Load if there is no lab in the folder.
var ErrNoLab = errors.New("no lab")

// Spec is what a user chooses.
type Spec struct {
	// Nodes is the number of real nodes, 0 to MaxNodes.
	Nodes int `json:"nodes"`
	// SimulatedNodes is the number of nodes without a kubelet.
	SimulatedNodes int `json:"simulatedNodes"`
}

// Validate returns an error that names the field that cannot be.
func (s Spec) Validate() error {
	if s.Nodes < 0 || s.Nodes > MaxNodes {
		return fmt.Errorf("nodes: %d is not possible, 0 to %d are", s.Nodes, MaxNodes)
	}
	if s.SimulatedNodes < 0 {
		return fmt.Errorf("simulated nodes: %d is not possible, 0 and more are", s.SimulatedNodes)
	}
	return nil
}

// Lab says where everything of a lab is. It is recorded in the lab's folder
// when the lab first comes up, and does not change until it is taken down.
type Lab struct {
	Spec
	// Dir is the lab's folder, an absolute path.
	Dir string `json:"-"`
	// Complete says that the lab was ready once. Before that, no user has
	// it yet, and an attempt to bring it up that failed leaves nothing.
	Complete bool `json:"complete"`
	// Slot is the lab's slot, see package host, if it is isolated.
	Slot int `json:"slot"`
	// Ports are the ports on 127.0.0.1 if it is not isolated.
	Ports *Ports `json:"ports,omitempty"`
}

// Isolated reports whether the lab lives in namespaces of its own.
func (l *Lab) Isolated() bool { return l.Ports == nil }

// Ports are the ports that the control plane listens on.
type Ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeers         int `json:"etcdPeers"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Registry          int `json:"registry"`
}

// usualPorts are the ports of an isolated lab, which has all to itself.
var usualPorts = Ports{
	Etcd:              2379,
	EtcdPeers:         2380,
	APIServer:         6443,
	ControllerManager: 10257,
	Scheduler:         10259,
	Registry:          5000,
}

// freePorts returns ports on which nothing listens at the moment.
func freePorts(ctx context.Context) (*Ports, error) {
	ports := &Ports{}
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for _, port := range []*int{
		&ports.Etcd, &ports.EtcdPeers, &ports.APIServer, &ports.ControllerManager, &ports.Scheduler, &ports.Registry,
	} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		listeners = append(listeners, listener)
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func (l *Lab) ports() Ports {
	if l.Ports != nil {
		return *l.Ports
	}
	return usualPorts
}

// Load reads the record of the lab in dir, or returns ErrNoLab.
func Load(dir string) (*Lab, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoLab
	}
	if err != nil {
		return nil, fmt.Errorf("read record of the lab: %w", err)
	}
	lab := &Lab{}
	if err := json.Unmarshal(data, lab); err != nil {
		return nil, fmt.Errorf("read record of the lab %s: %w", filepath.Join(dir, recordFile), err)
	}
	lab.Dir = dir
	return lab, lab.Validate()
}

// save writes the record.
func (l *Lab) save() error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("write record of the lab: %w", err)
	}
	return writeFile(filepath.Join(l.Dir, recordFile), append(data, '\n'), 0o644)
}
