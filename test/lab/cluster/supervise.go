// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/insitu-dev/insitu/test/lab/host"
	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// Supervise is the life of the lab's first process, which "up" starts.
func (l *Lab) Supervise(ctx context.Context) error {
	pipe := os.NewFile(handshakeFD, "handshake")
	if _, err := pipe.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("wait to be received: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if _, err := pipe.Read(make([]byte, 1)); err != nil {
			klog.FromContext(ctx).Info("Ending, because the command that started the lab ended before the lab was ready")
			cancel()
		}
		_ = pipe.Close()
	}()

	processes := append(l.controlPlane(), l.services()...)
	for _, node := range l.RealNodes() {
		processes = append(processes, node.supervisor())
	}
	if l.Isolated() {
		if err := (host.Mounts{Keep: []string{l.run()}}).Apply(l.state()); err != nil {
			return err
		}
		if err := l.link().Settle(); err != nil {
			return err
		}
	} else {
		alive := os.NewFile(aliveFD, "alive")
		for i := range processes {
			processes[i].Inherit = []*os.File{alive}
		}
	}
	return superviseAll(ctx, processes, l.ControlSocket())
}

// SuperviseNode is the life of the first process of a node.
func (l *Lab) SuperviseNode(ctx context.Context, name string) error {
	node, err := l.Node(name)
	if err != nil {
		return err
	}
	cgroups, err := host.DetectCgroups()
	if err != nil {
		return err
	}
	// An earlier life of the node may have left control groups; all their
	// processes died with it.
	if err := cgroups.Remove(node.cgroup()); err != nil {
		return err
	}
	if err := cgroups.Create(node.systemCgroup()); err != nil {
		return err
	}
	if err := cgroups.Join(node.systemCgroup(), 0); err != nil {
		return err
	}
	if err := node.mounts().Apply(node.state("config")); err != nil {
		return err
	}
	return superviseAll(ctx, node.programs(), node.ControlSocket())
}

// superviseAll keeps the processes running until the context ends.
func superviseAll(ctx context.Context, processes []supervise.Process, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return fmt.Errorf("make folder of control socket: %w", err)
	}
	supervisor, err := supervise.New(processes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- supervisor.Serve(ctx, socket)
		cancel() // No client could reach it any more.
	}()
	err = supervisor.Run(ctx)
	cancel()
	return errors.Join(err, <-served)
}
