// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of objects that storage is told by, and how the API server treats them.

// isClusterWide reports whether objects of a kind are in no namespace.
func isClusterWide(kind string) bool {
	return slices.Contains([]string{
		"PersistentVolume", "VolumeSnapshotContent", "VolumeSnapshotClass", "VolumeAttachment", "CSIDriver", "StorageClass", "VolumeAttributesClass", "Node",
	}, kind)
}

// checkServed refuses what the API server does not serve.
func (s *storage) checkServed(kind string) error {
	if s != nil && s.unserved && strings.HasPrefix(kind, "VolumeSnapshot") {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: snapshotv1.GroupName, Kind: kind}, SearchedVersions: []string{"v1"}}
	}
	return nil
}

// admitCreation refuses what cannot be created.
func (s *storage) admitCreation(obj client.Object) error {
	if s == nil {
		return nil
	}
	if err := s.checkServed(kindOf(obj)); err != nil {
		return err
	}
	return s.admit(obj)
}
