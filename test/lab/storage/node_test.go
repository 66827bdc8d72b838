// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package storage

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// machine is a driver with nodes, which need root and loop devices. They are
// told apart by their names only: all mounts are those of the test.
type machine struct {
	*driver
	t     *testing.T
	dir   string
	nodes map[string]*Node
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{driver: newDriver(t), t: t, dir: t.TempDir(), nodes: map[string]*Node{}}
	for _, name := range []string{"node-1", "node-2"} {
		m.nodes[name] = NewNode(m.store, name)
	}
	return m
}

func (m *machine) controller() *Controller {
	return NewController(m.store, func(ctx context.Context, node, volume string) (func(), error) {
		return m.nodes[node].Freeze(ctx, node, volume)
	})
}

func (m *machine) path(node, volume, what string) string {
	return filepath.Join(m.dir, node, volume, what)
}

func (m *machine) stage(node, volume string) error {
	path := m.path(node, volume, "staged")
	_, err := m.nodes[node].NodeStageVolume(m.ctx, &csi.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: path, VolumeCapability: request("", nil).GetVolumeCapabilities()[0],
	})
	m.t.Cleanup(func() { _ = unix.Unmount(path, 0) }) // It may be unmounted already.
	return err
}

func (m *machine) unstage(node, volume string) {
	_, err := m.nodes[node].NodeUnstageVolume(m.ctx, &csi.NodeUnstageVolumeRequest{
		VolumeId: volume, StagingTargetPath: m.path(node, volume, "staged"),
	})
	m.Expect(err).NotTo(HaveOccurred())
}

func (m *machine) nodeExpand(node, volume string) error {
	_, err := m.nodes[node].NodeExpandVolume(m.ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: volume, VolumePath: m.path(node, volume, "staged"),
	})
	return err
}

// mebibytes is the size that a process sees, but for what the file system needs
// for itself.
func (m *machine) mebibytes(node, volume string) int64 {
	bytes, _, err := usage(m.path(node, volume, "staged"))
	m.Expect(err).NotTo(HaveOccurred())
	return bytes.total / mebibyte
}

func TestVolumeIsOnOneNodeAtATime(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", nil))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	m.Expect(m.stage("node-1", "v")).To(Succeed(), "once more")
	m.Expect(m.stage("node-2", "v")).To(failWith(codes.FailedPrecondition, "volume v is staged on node-1, and can be on one node at a time"))
	m.unstage("node-2", "v")
	m.Expect(m.stage("node-2", "v")).To(failWith(codes.FailedPrecondition, "is staged on node-1"), "it was not node-2's to give up")
	m.unstage("node-1", "v")
	m.Expect(m.stage("node-2", "v")).To(Succeed())

	// A node that dies says nothing, but its mounts go.
	m.Expect(unix.Unmount(m.path("node-2", "v", "staged"), 0)).To(Succeed())
	m.Expect(m.store.volumes().read("v")).To(HaveField("Staged.Node", "node-2"))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	m.unstage("node-1", "v")
	m.Expect(loopDevices(m.store.volumes().image("v"))).To(BeEmpty())
}

func TestPodsKeepAVolume(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", nil))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	target := m.path("node-1", "v", "pod")
	publish := &csi.NodePublishVolumeRequest{
		VolumeId: "v", StagingTargetPath: m.path("node-1", "v", "staged"), TargetPath: target,
		VolumeCapability: request("", nil).GetVolumeCapabilities()[0], Readonly: true,
	}
	_, err := m.nodes["node-1"].NodePublishVolume(m.ctx, publish)
	m.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = unix.Unmount(target, 0) })
	m.Expect(os.WriteFile(filepath.Join(target, "file"), nil, 0o644)).To(MatchError(unix.EROFS))
	m.unstage("node-1", "v")
	m.Expect(m.stage("node-2", "v")).To(failWith(codes.FailedPrecondition, "volume v is in use"))
	_, err = m.nodes["node-1"].NodeUnpublishVolume(m.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: target})
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(m.stage("node-2", "v")).To(Succeed())
}

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		parameters map[string]string
		mounted    int64 // size after growth while it is mounted
		again      int64 // and after it was mounted again
	}{
		"online":       {nil, 64, 64},
		"node fails":   {map[string]string{"nodeExpandError": "Internal"}, 32, 32},
		"node offline": {map[string]string{"nodeExpand": "offline"}, 32, 64},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.create(request("v", c.parameters))
			m.Expect(m.stage("node-1", "v")).To(Succeed())
			m.Expect(m.expand("v", 64)).To(BeEquivalentTo(64))
			m.Expect(m.nodeExpand("node-1", "v") == nil).To(Equal(c.mounted == 64))
			m.Expect(m.mebibytes("node-1", "v")).To(BeNumerically("~", c.mounted, 10))
			m.unstage("node-1", "v")
			m.Expect(m.stage("node-1", "v")).To(Succeed())
			m.Expect(m.nodeExpand("node-1", "v") == nil).To(Equal(c.again == 64))
			m.Expect(m.mebibytes("node-1", "v")).To(BeNumerically("~", c.again, 10))
		})
	}
}

func TestOfflineGrowth(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", map[string]string{"expand": "offline"}))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	expand := &csi.ControllerExpandVolumeRequest{VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mebibyte}}
	_, err := m.controller().ControllerExpandVolume(m.ctx, expand)
	m.Expect(err).To(failWith(codes.FailedPrecondition, "volume v is in use on node-1"))
	m.unstage("node-1", "v")
	_, err = m.controller().ControllerExpandVolume(m.ctx, expand)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(m.stage("node-2", "v")).To(Succeed())
	m.Expect(m.nodeExpand("node-2", "v")).To(Succeed())
	m.Expect(m.mebibytes("node-2", "v")).To(BeNumerically("~", 64, 10))
}

func TestCopiesHoldWhatWasWritten(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", nil))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	file := filepath.Join(m.path("node-1", "v", "staged"), "file")
	// Not written to disk yet: the copy sees to that.
	m.Expect(os.WriteFile(file, []byte("first"), 0o644)).To(Succeed())
	_, err := m.controller().CreateSnapshot(m.ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(os.WriteFile(file, []byte("second"), 0o644)).To(Succeed(), "writing goes on")

	restored, cloned := request("restored", nil), request("cloned", nil)
	restored.CapacityRange.RequiredBytes = 64 * mebibyte
	restored.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "s"},
	}}
	cloned.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "v"},
	}}
	for _, c := range []struct {
		request *csi.CreateVolumeRequest
		content string
		size    int
	}{{restored, "first", 64}, {cloned, "second", 32}} {
		_, err := m.controller().CreateVolume(m.ctx, c.request)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(m.stage("node-2", c.request.GetName())).To(Succeed(), "beside the original")
		m.Expect(os.ReadFile(filepath.Join(m.path("node-2", c.request.GetName(), "staged"), "file"))).To(BeEquivalentTo(c.content))
		m.Expect(m.mebibytes("node-2", c.request.GetName())).To(BeNumerically("~", c.size, 10))
	}
}

func TestFreezesEnd(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", nil))
	m.Expect(m.stage("node-1", "v")).To(Succeed())
	node, socket := m.nodes["node-1"], filepath.Join(m.dir, "freeze.sock")
	ctx, cancel := context.WithCancel(m.ctx)
	served := make(chan error, 1)
	go func() { served <- node.ServeFreezes(ctx, socket) }()
	over := FreezeOver(func(string) string { return socket })
	var thaw func()
	m.Eventually(func() (err error) { thaw, err = over(m.ctx, "node-1", "v"); return err }).Should(Succeed())
	// What is frozen cannot be frozen.
	frozen := func() error {
		thaw, err := node.Freeze(m.ctx, "node-1", "v")
		if err == nil {
			thaw()
		}
		return err
	}
	m.Expect(frozen()).To(MatchError(unix.EBUSY))
	thaw()
	m.Eventually(frozen).Should(Succeed())

	_, err := over(m.ctx, "node-1", "w")
	m.Expect(err).To(MatchError(ContainSubstring(`there is no "w"`)))
	cancel()
	m.Expect(<-served).To(Succeed())

	_, err = node.Freeze(m.ctx, "node-1", "v")
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(NewNode(m.store, "node-1").Recover(m.ctx)).To(Succeed())
	m.Expect(frozen()).To(Succeed(), "a node process that was killed left it frozen, and its successor thawed it")
}

func TestWhatDiesFrozenIsReleased(t *testing.T) {
	for name, release := range map[string]func(*machine) error{
		"when the node is back": func(m *machine) error { return NewNode(m.store, "node-1").Recover(m.ctx) },
		"when the lab goes":     func(m *machine) error { return m.store.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.create(request("v", nil))
			m.Expect(m.stage("node-1", "v")).To(Succeed())
			_, err := m.nodes["node-1"].Freeze(m.ctx, "node-1", "v")
			m.Expect(err).NotTo(HaveOccurred())
			m.Expect(unix.Unmount(m.path("node-1", "v", "staged"), 0)).To(Succeed())
			m.Expect(loopDevices(m.store.volumes().image("v"))).To(HaveLen(1), "frozen, it outlives its mounts")
			m.Expect(release(m)).To(Succeed())
			m.Eventually(func() ([]string, error) { return loopDevices(m.store.volumes().image("v")) }).Should(BeEmpty())
		})
	}
}

func TestMountOptions(t *testing.T) {
	m := newMachine(t)
	m.create(request("v", nil))
	path := m.path("node-1", "v", "staged")
	capability := request("", nil).GetVolumeCapabilities()[0]
	capability.GetMount().MountFlags = []string{"noatime"}
	_, err := m.nodes["node-1"].NodeStageVolume(m.ctx, &csi.NodeStageVolumeRequest{
		VolumeId: "v", StagingTargetPath: path, VolumeCapability: capability,
	})
	m.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = unix.Unmount(path, 0) })
	var mounted unix.Statfs_t
	m.Expect(unix.Statfs(path, &mounted)).To(Succeed())
	m.Expect(mounted.Flags & unix.ST_NOATIME).NotTo(BeZero())
}
