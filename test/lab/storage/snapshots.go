// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// fill makes the image of a new volume: empty, or a copy.
func (c *Controller) fill(ctx context.Context, volume *Volume) error {
	image := c.store.volumes().image(volume.ID)
	switch source := volume.Source; {
	case source == nil:
		return makeImage(ctx, image, volume.CapacityBytes)
	case source.Snapshot != "":
		snapshot, unlock, err := c.store.snapshots().open(source.Snapshot)
		if err != nil {
			return err
		}
		defer unlock()
		if err := checkCopy(volume, snapshot.CapacityBytes); err != nil {
			return err
		}
		if err := copyImage(ctx, c.store.snapshots().image(snapshot.ID), image); err != nil {
			return err
		}
	default:
		original, unlock, err := c.store.volumes().open(source.Volume)
		if err != nil {
			return err
		}
		defer unlock()
		if err := checkCopy(volume, original.CapacityBytes); err != nil {
			return err
		}
		if err := c.copyFrozen(ctx, original, image); err != nil {
			return err
		}
	}
	return os.Truncate(image, volume.CapacityBytes)
}

func checkCopy(volume *Volume, bytes int64) error {
	if volume.CapacityBytes < bytes {
		return status.Errorf(codes.OutOfRange, "volume %s cannot have %d bytes: what it is a copy of has %d", volume.ID, volume.CapacityBytes, bytes)
	}
	return nil
}

// copyFrozen copies the image of a volume that is locked, as it is at one
// moment.
func (c *Controller) copyFrozen(ctx context.Context, volume *Volume, to string) error {
	staged, err := c.isStaged(volume)
	if err != nil {
		return err
	}
	if staged && volume.Staged != nil {
		thaw, err := c.freeze(ctx, volume.Staged.Node, volume.ID)
		if err != nil {
			return status.Errorf(codes.Unavailable, "stop writing to volume %s: %v", volume.ID, err)
		}
		defer thaw()
	}
	return copyImage(ctx, c.store.volumes().image(volume.ID), to)
}

// CreateSnapshot implements csi.ControllerServer. The name of the snapshot
// becomes its ID.
func (c *Controller) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	id, source := request.GetName(), request.GetSourceVolumeId()
	if id == "" || source == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot has no name, or no volume is named")
	}
	unlock, err := c.store.snapshots().make(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	existing, err := c.store.snapshots().read(id)
	switch {
	case err == nil && existing.Volume != source:
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is there already, of volume %s", id, existing.Volume)
	case err == nil:
		return &csi.CreateSnapshotResponse{Snapshot: existing.answer()}, nil
	case status.Code(err) != codes.NotFound:
		return nil, err
	}
	snapshot, err := c.takeSnapshot(ctx, id, source, request.GetParameters())
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: snapshot.answer()}, c.store.snapshots().write(id, snapshot)
}

func (c *Controller) takeSnapshot(ctx context.Context, id, source string, parameters map[string]string) (*Snapshot, error) {
	volume, unlock, err := c.store.volumes().open(source)
	if err != nil {
		return nil, err
	}
	defer unlock()
	create, err := parseSnapshot(parameters, volume.Claim)
	if err != nil {
		return nil, err
	}
	ready := !create.stall
	if err := (fault{code: create.code}).fail(ctx, "make snapshot %s of volume %s", id, source); err != nil {
		return nil, err
	}
	created := *c.now()
	if err := c.copyFrozen(ctx, volume, c.store.snapshots().image(id)); err != nil {
		return nil, err
	}
	return &Snapshot{ID: id, Volume: source, CapacityBytes: volume.CapacityBytes, Created: created, Ready: ready}, nil
}

func (s *Snapshot) answer() *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:     s.ID,
		SourceVolumeId: s.Volume,
		SizeBytes:      s.CapacityBytes,
		CreationTime:   timestamppb.New(s.Created),
		ReadyToUse:     s.Ready,
	}
}

// DeleteSnapshot implements csi.ControllerServer.
func (c *Controller) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := request.GetSnapshotId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "no snapshot is named")
	}
	_, unlock, err := c.store.snapshots().open(id)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	return &csi.DeleteSnapshotResponse{}, c.store.snapshots().remove(id)
}
