// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// Part is a program of a lab, or of one of its nodes.
type Part struct {
	// Node is the name of the real node that the program runs on, "" for the
	// lab's own.
	Node string
	supervise.Status
}

// Status returns the state of every program. Programs of a node that does not
// answer are left out; the node itself is among the lab's own programs.
func (l *Lab) Status(ctx context.Context) ([]Part, error) {
	alive, err := l.confinement().alive()
	if err != nil || !alive {
		return nil, err
	}
	own, err := supervise.Client{Socket: l.ControlSocket()}.Status(ctx)
	if err != nil {
		return nil, err
	}
	parts := asParts("", own)
	for _, node := range l.RealNodes() {
		of, err := supervise.Client{Socket: node.ControlSocket()}.Status(ctx)
		if err == nil {
			parts = append(parts, asParts(node.Name(), of)...)
		}
	}
	return parts, nil
}

func asParts(node string, all []supervise.Status) []Part {
	parts := make([]Part, 0, len(all))
	for _, status := range all {
		parts = append(parts, Part{Node: node, Status: status})
	}
	return parts
}
