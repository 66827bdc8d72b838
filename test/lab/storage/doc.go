// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage is the lab's CSI driver. A volume is a sparse file with a
// file system in it, which a node mounts through a loop device, so that
// all that grows really grows, and a full volume is full. All nodes of a lab
// share the folder of the files: any of them can have a volume, but only one at
// a time.
//
// A Controller runs beside the control plane and a Node in the namespaces of
// each node. They have no other state than the files of the Store, which they
// change under its locks, and what the kernel knows of loop devices and mounts.
// So it does not matter when any of them ends: the loop device of a volume goes
// with its last mount, and that with the namespaces of its node.
//
// # Parameters
//
// How a volume behaves is chosen by the parameters of its StorageClass:
//
//	provisionError   name of the gRPC code, such as "Internal", that CreateVolume fails with
//	provisionStall   "true": CreateVolume does not answer before its deadline
//	expand           "online" (default), or "offline": it grows only while no node has it
//	nodeExpand       "online" (default), or "offline": its file system grows only when it is mounted again
//	expandLimit      size, such as "3Gi", beyond which it cannot grow: OutOfRange
//	expandError      name of the gRPC code that ControllerExpandVolume fails with;
//	                 together with expandLimit: beyond that
//	expandStall      "true": ControllerExpandVolume does not answer before its deadline; likewise
//	nodeExpandError  name of the gRPC code that NodeExpandVolume fails with
//	coolDownSeconds  time after a change of size or attributes in which no other is accepted: Internal
//	claims           regular expression: the first two and the five above are for claims only whose name
//	                 matches somewhere
//
// of its VolumeAttributesClass:
//
//	iops         number above 0, which is recorded and has no effect
//	modifyError  name of the gRPC code that ControllerModifyVolume fails with
//	modifyStall  "true": ControllerModifyVolume does not answer before its deadline
//	claims       as above, for the two above
//
// and those of a snapshot by its VolumeSnapshotClass:
//
//	snapshotError  name of the gRPC code that CreateSnapshot fails with
//	snapshotStall  "true": the snapshot never becomes ready to use
//	claims         as above, for the two above
package storage
