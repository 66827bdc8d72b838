// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// measure is how much of something there is.
type measure struct{ total, used, free int64 }

// NodeExpandVolume implements csi.NodeServer. It makes the file system as large
// as the volume is.
func (n *Node) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	path := request.GetVolumePath()
	if request.GetVolumeId() == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path")
	}
	volume, unlock, err := n.store.volumes().open(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if mounted, err := n.mounter.IsMountPoint(path); err != nil || !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s", volume.ID, path)
	}
	class, err := parseClass(volume.Parameters, volume.Claim)
	if err != nil {
		return nil, err
	}
	if err := class.node.fail(ctx, "grow the file system of volume %s", volume.ID); err != nil {
		return nil, err
	}
	if class.nodeOffline {
		// A device is as large as the image was when it was mounted.
		if grown, err := hasGrown(n.store.volumes().image(volume.ID)); err != nil || !grown {
			return nil, inUse(volume, err)
		}
	}
	if err := growFileSystem(ctx, path); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: volume.CapacityBytes}, nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (n *Node) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	path := request.GetVolumePath()
	if request.GetVolumeId() == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no path")
	}
	if _, err := n.store.volumes().read(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if mounted, err := n.mounter.IsMountPoint(path); err != nil || !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s", request.GetVolumeId(), path)
	}
	bytes, files, err := usage(path)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		bytes.in(csi.VolumeUsage_BYTES), files.in(csi.VolumeUsage_INODES),
	}}, nil
}

func (m measure) in(unit csi.VolumeUsage_Unit) *csi.VolumeUsage {
	return &csi.VolumeUsage{Unit: unit, Total: m.total, Used: m.used, Available: m.free}
}
