// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package storage

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	. "github.com/onsi/gomega"
)

// TestSanity runs the tests that every CSI driver has to pass. It needs root
// and loop devices.
func TestSanity(t *testing.T) {
	dir := t.TempDir()
	store := Store{Dir: filepath.Join(dir, "store")}
	node := NewNode(store, "node-1")
	socket := filepath.Join(dir, "csi.sock")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, socket, NewController(store, node.Freeze), node) }()

	config := sanity.NewTestConfig()
	config.Address = socket
	config.TargetPath = filepath.Join(dir, "target")
	config.StagingPath = filepath.Join(dir, "staging")
	config.TestVolumeSize = 16 * mebibyte
	config.TestVolumeExpandSize = 32 * mebibyte
	config.TestVolumeMutableParameters = map[string]string{"iops": "100"}
	sanity.Test(t, config)

	cancel()
	NewWithT(t).Expect(<-served).To(Succeed())
}
