// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/mount-utils"
)

// Node is the CSI service for what is done to volumes on a node. It must be in
// the mount namespace of the node's kubelet.
type Node struct {
	csi.UnimplementedNodeServer

	store   Store
	name    string
	mounter mount.Interface
}

// NewNode returns the Node of that name for what is in the store.
func NewNode(store Store, name string) *Node {
	return &Node{store: store, name: name, mounter: newMounter()}
}

// NodeGetInfo implements csi.NodeServer.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (*Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, each := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: each}},
		})
	}
	return response, nil
}

// NodeStageVolume implements csi.NodeServer. It mounts the volume, which must
// not be staged anywhere else.
func (n *Node) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path := request.GetStagingTargetPath()
	if request.GetVolumeId() == "" || path == "" || request.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path, or no capability")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	volume, unlock, err := n.store.volumes().open(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	image := n.store.volumes().image(volume.ID)
	devices, err := loopDevices(image)
	if err != nil {
		return nil, err
	}
	want := Staging{Node: n.name, Path: path}
	if len(devices) > 0 {
		return &csi.NodeStageVolumeResponse{}, n.checkStaged(volume, want)
	}
	if err := n.mount(image, path, request.GetVolumeCapability().GetMount().GetMountFlags()); err != nil {
		return nil, err
	}
	if volume.Source != nil && volume.Grown == nil {
		// A copy may have been made larger than the original.
		if err := growFileSystem(ctx, path); err != nil {
			return nil, errors.Join(err, n.mounter.Unmount(path))
		}
	}
	volume.Staged = &want
	return &csi.NodeStageVolumeResponse{}, n.store.volumes().write(volume.ID, volume)
}

// checkStaged returns nil if a volume that has a device is staged as wanted. It
// cannot be staged elsewhere: two kernels' worth of caches would write to it.
func (n *Node) checkStaged(volume *Volume, want Staging) error {
	if volume.Staged == nil {
		return status.Errorf(codes.FailedPrecondition, "volume %s is in use, and it is not known where", volume.ID)
	}
	if volume.Staged.Node != n.name {
		return status.Errorf(codes.FailedPrecondition, "volume %s is staged on %s, and can be on one node at a time", volume.ID, volume.Staged.Node)
	}
	if mounted, err := n.mounter.IsMountPoint(want.Path); err != nil || *volume.Staged != want || !mounted {
		return status.Errorf(codes.FailedPrecondition, "volume %s is staged on this node at %s already", volume.ID, volume.Staged.Path)
	}
	return nil
}

// mount mounts the file system in the image.
func (n *Node) mount(image, path string, flags []string) error {
	device, err := attach(image)
	if err != nil {
		return err
	}
	defer device.Close() // Then only the mount holds it.
	if err := os.MkdirAll(path, 0o750); err != nil {
		return fmt.Errorf("make folder to mount at: %w", err)
	}
	// A copy has the same UUID as the original.
	options := append(slices.Clone(flags), "nouuid")
	if err := n.mounter.Mount(device.Name(), path, fileSystem, options); err != nil {
		return fmt.Errorf("mount %s: %w", image, err)
	}
	return nil
}

// NodeUnstageVolume implements csi.NodeServer.
func (n *Node) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	path := request.GetStagingTargetPath()
	if request.GetVolumeId() == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path")
	}
	volume, unlock, err := n.store.volumes().open(request.GetVolumeId())
	if status.Code(err) == codes.NotFound {
		// It is not there to be protected.
		return &csi.NodeUnstageVolumeResponse{}, n.unmount(path)
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := n.unmount(path); err != nil {
		return nil, err
	}
	if volume.Staged != nil && *volume.Staged == (Staging{Node: n.name, Path: path}) {
		volume.Staged = nil
		return &csi.NodeUnstageVolumeResponse{}, n.store.volumes().write(volume.ID, volume)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. It shows the staged volume at
// the path that a pod has it at.
func (n *Node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	path, staging := request.GetTargetPath(), request.GetStagingTargetPath()
	if request.GetVolumeId() == "" || path == "" || staging == "" || request.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path, or no capability")
	}
	if _, err := n.store.volumes().read(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if mounted, err := n.mounter.IsMountPoint(staging); err != nil || !mounted {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %s", request.GetVolumeId(), staging)
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("make folder to mount at: %w", err)
	}
	if mounted, err := n.mounter.IsMountPoint(path); err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, err
	}
	options := []string{"bind"}
	if request.GetReadonly() {
		options = append(options, "ro")
	}
	return &csi.NodePublishVolumeResponse{}, n.mounter.Mount(staging, path, "", options)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (n *Node) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path")
	}
	return &csi.NodeUnpublishVolumeResponse{}, n.unmount(request.GetTargetPath())
}

// unmount unmounts what is at the path, if anything, and removes the folder.
func (n *Node) unmount(path string) error {
	const evenIfBound = true
	return mount.CleanupMountPoint(path, n.mounter, evenIfBound)
}

// Recover lets writing go on that an earlier process of this node, or an earlier
// life of the node, had stopped.
func (n *Node) Recover(ctx context.Context) error {
	all, err := n.store.volumes().list()
	if err != nil {
		return err
	}
	for _, volume := range all {
		if volume.Staged == nil || volume.Staged.Node != n.name {
			continue
		}
		devices, err := loopDevices(n.store.volumes().image(volume.ID))
		if err != nil {
			return err
		}
		for _, device := range devices {
			if err := thawUnmounted(device); err != nil {
				klog.FromContext(ctx).Error(err, "A volume may be frozen", "volume", volume.ID)
			}
		}
	}
	return nil
}

// has reports whether the volume is mounted here.
func (n *Node) has(volume *Volume) bool {
	if volume.Staged == nil || volume.Staged.Node != n.name {
		return false
	}
	mounted, err := n.mounter.IsMountPoint(volume.Staged.Path)
	return err == nil && mounted
}
