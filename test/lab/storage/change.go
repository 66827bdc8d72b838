// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// coalescing is the time in which a new size and new attributes count as one
// change, as drivers with a cool-down do it.
const coalescing = 2 * time.Second

// ControllerExpandVolume implements csi.ControllerServer.
func (c *Controller) ControllerExpandVolume(
	ctx context.Context, request *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no size")
	}
	// Without the lock, or a volume that stalls could not be used.
	volume, err := c.store.volumes().read(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	class, err := parseClass(volume.Parameters, volume.Claim)
	if err != nil {
		return nil, err
	}
	wanted := roundUp(request.GetCapacityRange().GetRequiredBytes())
	if limit := request.GetCapacityRange().GetLimitBytes(); limit > 0 && wanted > limit {
		return nil, status.Errorf(codes.OutOfRange, "volume %s cannot have a size from %d to %d bytes: the next is %d",
			volume.ID, request.GetCapacityRange().GetRequiredBytes(), limit, wanted)
	}
	if wanted > max(volume.CapacityBytes, class.limit) {
		if err := class.controller.fail(ctx, "grow volume %s to %d bytes", volume.ID, wanted); err != nil {
			return nil, err
		}
	}
	volume, unlock, err := c.store.volumes().open(volume.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if wanted > volume.CapacityBytes {
		if err := c.grow(volume, wanted, class.expansion); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: volume.CapacityBytes, NodeExpansionRequired: true}, nil
}

// grow makes the volume larger, its file system excepted.
func (c *Controller) grow(volume *Volume, bytes int64, how expansion) error {
	if how.limit > 0 && bytes > how.limit {
		return status.Errorf(codes.OutOfRange, "volume %s can grow to %d bytes, not to %d", volume.ID, how.limit, bytes)
	}
	if how.offline {
		if staged, err := c.isStaged(volume); err != nil || staged {
			return inUse(volume, err)
		}
	}
	if err := c.coolDown(volume, how.coolDown, volume.Grown, volume.Modified); err != nil {
		return err
	}
	if err := os.Truncate(c.store.volumes().image(volume.ID), bytes); err != nil {
		return fmt.Errorf("grow image: %w", err)
	}
	volume.CapacityBytes = bytes
	volume.Grown = c.now()
	return c.store.volumes().write(volume.ID, volume)
}

// ControllerModifyVolume implements csi.ControllerServer.
func (c *Controller) ControllerModifyVolume(
	ctx context.Context, request *csi.ControllerModifyVolumeRequest,
) (*csi.ControllerModifyVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named")
	}
	volume, err := c.store.volumes().read(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	attributes, modify, err := parseAttributes(request.GetMutableParameters(), volume.Claim)
	if err != nil {
		return nil, err
	}
	if err := modify.fail(ctx, "give volume %s its attributes", volume.ID); err != nil {
		return nil, err
	}
	class, err := parseClass(volume.Parameters, volume.Claim)
	if err != nil {
		return nil, err
	}
	volume, unlock, err := c.store.volumes().open(volume.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if maps.Equal(volume.Attributes, attributes) {
		return &csi.ControllerModifyVolumeResponse{}, nil
	}
	if err := c.coolDown(volume, class.coolDown, volume.Modified, volume.Grown); err != nil {
		return nil, err
	}
	volume.Attributes = attributes
	volume.Modified = c.now()
	return &csi.ControllerModifyVolumeResponse{}, c.store.volumes().write(volume.ID, volume)
}

// coolDown returns an error while the volume takes no change, after one of the
// same kind and one of the other.
func (c *Controller) coolDown(volume *Volume, length time.Duration, same, other *time.Time) error {
	left := time.Duration(0)
	if same != nil {
		left = length - c.clock.Since(*same)
	}
	if other != nil && c.clock.Since(*other) > coalescing {
		left = max(left, length-c.clock.Since(*other))
	}
	if length == 0 || left <= 0 {
		return nil
	}
	return status.Errorf(codes.Internal, "volume %s was changed less than %s ago, try again in %s", volume.ID, length, left.Round(time.Second))
}
