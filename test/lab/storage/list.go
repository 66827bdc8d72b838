// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ListVolumes implements csi.ControllerServer.
func (c *Controller) ListVolumes(_ context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all, err := c.store.volumes().list()
	if err != nil {
		return nil, err
	}
	some, next, err := page(all, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, volume := range some {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: answer(volume)})
	}
	return response, nil
}

// ListSnapshots implements csi.ControllerServer.
func (c *Controller) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all, err := c.store.snapshots().list()
	if err != nil {
		return nil, err
	}
	id, volume := request.GetSnapshotId(), request.GetSourceVolumeId()
	all = slices.DeleteFunc(all, func(each *Snapshot) bool {
		return id != "" && each.ID != id || volume != "" && each.Volume != volume
	})
	some, next, err := page(all, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, snapshot := range some {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: snapshot.answer()})
	}
	return response, nil
}

// page returns up to count of all from the token on, and the token of the next
// page, which is the number of those before it.
func page[T any](all []T, token string, count int32) (some []T, next string, err error) {
	start := 0
	if token != "" {
		if start, err = strconv.Atoi(token); err != nil || start < 0 || start > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "no page begins at %q", token)
		}
	}
	end := len(all)
	if count > 0 && start+int(count) < end {
		end = start + int(count)
		next = strconv.Itoa(end)
	}
	return all[start:end], next, nil
}
