// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

const (
	mebibyte = 1 << 20
	// defaultBytes is the size of a volume that may have any.
	defaultBytes = 1 << 30
	// smallestBytes is what a file system needs.
	smallestBytes = 16 * mebibyte
)

// Freezer stops writing to the volume on the node, until thaw is called.
type Freezer func(ctx context.Context, node, volume string) (thaw func(), err error)

// Controller is the CSI service for what is done to volumes from outside of
// nodes.
type Controller struct {
	csi.UnimplementedControllerServer

	store  Store
	freeze Freezer
	clock  clock.PassiveClock
	// devices is loopDevices but for tests.
	devices func(image string) ([]string, error)
}

// NewController returns a Controller of what is in the store.
func NewController(store Store, freeze Freezer) *Controller {
	return &Controller{store: store, freeze: freeze, clock: clock.RealClock{}, devices: loopDevices}
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (*Controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, each := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: each}},
		})
	}
	return response, nil
}

// CreateVolume implements csi.ControllerServer. The name of the volume becomes
// its ID.
func (c *Controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	desired, modify, err := desiredVolume(request)
	if err != nil {
		return nil, err
	}
	class, err := parseClass(desired.Parameters, desired.Claim)
	if err != nil {
		return nil, err
	}
	if err := class.provision.fail(ctx, "make volume %s", desired.ID); err != nil {
		return nil, err
	}
	if err := modify.fail(ctx, "give volume %s its attributes", desired.ID); err != nil {
		return nil, err
	}
	unlock, err := c.store.volumes().make(desired.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	existing, err := c.store.volumes().read(desired.ID)
	switch {
	case err == nil && !fits(existing, desired, request.GetCapacityRange()):
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is there already, with %d bytes and source %v",
			existing.ID, existing.CapacityBytes, existing.Source)
	case err == nil:
		return &csi.CreateVolumeResponse{Volume: answer(existing)}, nil
	case status.Code(err) != codes.NotFound:
		return nil, err
	}
	if err := c.fill(ctx, desired); err != nil {
		return nil, err
	}
	if err := c.store.volumes().write(desired.ID, desired); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: answer(desired)}, nil
}

// desiredVolume returns what the request asks for, and how giving it its
// attributes fails.
func desiredVolume(request *csi.CreateVolumeRequest) (*Volume, fault, error) {
	if request.GetName() == "" {
		return nil, fault{}, status.Error(codes.InvalidArgument, "the volume has no name")
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return nil, fault{}, err
	}
	capacity, err := capacityFor(request.GetCapacityRange())
	if err != nil {
		return nil, fault{}, err
	}
	parameters := request.GetParameters()
	volume := &Volume{
		ID:            request.GetName(),
		CapacityBytes: capacity,
		Namespace:     parameters[claimNamespace],
		Claim:         parameters[claimName],
		Parameters:    maps.Clone(parameters),
		Source:        sourceOf(request.GetVolumeContentSource()),
	}
	maps.DeleteFunc(volume.Parameters, func(name, _ string) bool { return strings.HasPrefix(name, metadataPrefix) })
	attributes, modify, err := parseAttributes(request.GetMutableParameters(), volume.Claim)
	volume.Attributes = attributes
	return volume, modify, err
}

// capacityFor returns the size of a new volume: whole mebibytes.
func capacityFor(wanted *csi.CapacityRange) (int64, error) {
	bytes := wanted.GetRequiredBytes()
	if bytes == 0 {
		bytes = defaultBytes
		if limit := wanted.GetLimitBytes(); limit > 0 {
			bytes = min(bytes, limit/mebibyte*mebibyte)
		}
	}
	bytes = max(roundUp(bytes), smallestBytes)
	if limit := wanted.GetLimitBytes(); limit > 0 && bytes > limit {
		return 0, status.Errorf(codes.OutOfRange, "no size from %d to %d bytes can be had: the next is %d", wanted.GetRequiredBytes(), limit, bytes)
	}
	return bytes, nil
}

func roundUp(bytes int64) int64 { return (bytes + mebibyte - 1) / mebibyte * mebibyte }

// checkCapabilities returns an error if a volume cannot be what is asked for.
func checkCapabilities(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return status.Error(codes.InvalidArgument, "no capabilities of the volume are asked for")
	}
	for _, each := range all {
		if each.GetBlock() != nil {
			return status.Error(codes.InvalidArgument, "volumeMode Block is not offered, use Filesystem")
		}
		if kind := each.GetMount().GetFsType(); kind != "" && kind != fileSystem {
			return status.Errorf(codes.InvalidArgument, "file system %q is not offered, use %s", kind, fileSystem)
		}
		switch mode := each.GetAccessMode().GetMode(); mode {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s is not offered, use ReadWriteOnce", mode)
		}
	}
	return nil
}

func sourceOf(source *csi.VolumeContentSource) *Source {
	if source == nil {
		return nil
	}
	return &Source{Snapshot: source.GetSnapshot().GetSnapshotId(), Volume: source.GetVolume().GetVolumeId()}
}

// fits reports whether the volume is what a repeated request asks for. It may
// have grown since.
func fits(existing, desired *Volume, wanted *csi.CapacityRange) bool {
	limit := wanted.GetLimitBytes()
	same := existing.Source == nil && desired.Source == nil ||
		existing.Source != nil && desired.Source != nil && *existing.Source == *desired.Source
	grown := existing.Grown != nil && existing.CapacityBytes >= desired.CapacityBytes
	return same && (existing.CapacityBytes == desired.CapacityBytes || grown) && (limit == 0 || existing.CapacityBytes <= limit)
}

func answer(volume *Volume) *csi.Volume {
	answer := &csi.Volume{VolumeId: volume.ID, CapacityBytes: volume.CapacityBytes}
	switch {
	case volume.Source == nil:
	case volume.Source.Snapshot != "":
		answer.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: volume.Source.Snapshot},
		}}
	default:
		answer.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.Source.Volume},
		}}
	}
	return answer
}

// DeleteVolume implements csi.ControllerServer.
func (c *Controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := request.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is named")
	}
	volume, unlock, err := c.store.volumes().open(id)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	if staged, err := c.isStaged(volume); err != nil || staged {
		return nil, inUse(volume, err)
	}
	return &csi.DeleteVolumeResponse{}, c.store.volumes().remove(id)
}

// isStaged reports whether a node has the volume.
func (c *Controller) isStaged(volume *Volume) (bool, error) {
	devices, err := c.devices(c.store.volumes().image(volume.ID))
	return len(devices) > 0, err
}

// inUse returns the error, or without one that a node has the volume.
func inUse(volume *Volume, err error) error {
	if err != nil {
		return err
	}
	node := "a node"
	if volume.Staged != nil {
		node = volume.Staged.Node
	}
	return status.Errorf(codes.FailedPrecondition, "volume %s is in use on %s", volume.ID, node)
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (c *Controller) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no volume is named, or no capabilities")
	}
	if _, err := c.store.volumes().read(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil //nolint:nilerr // It is the answer.
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      request.GetVolumeContext(),
		VolumeCapabilities: request.GetVolumeCapabilities(),
		Parameters:         request.GetParameters(),
	}}, nil
}

// fail returns the error that the fault causes, if any: at the deadline of the
// caller if it is a stall.
func (f fault) fail(ctx context.Context, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if f.stall {
		<-ctx.Done()
		return status.Errorf(status.FromContextError(ctx.Err()).Code(), "%s: it takes longer", what)
	}
	if f.code != codes.OK {
		return status.Errorf(f.code, "%s: its class says that this fails", what)
	}
	return nil
}

// now is the time as it is recorded.
func (c *Controller) now() *time.Time {
	now := c.clock.Now().UTC()
	return &now
}
