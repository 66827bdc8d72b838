// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the stored version of group apps.kruise.io.
//
// It holds the wire types, the names of labels, annotations, conditions and
// reasons, and the accessors that read a spec with its defaults applied.
// Callers outside this package never interpret an absent field themselves:
// they ask the accessor, so that both served versions and objects written by
// older releases mean the same thing.
//
// # Templates
//
// Pod templates and claim templates have their full schema, without
// descriptions and without defaults: what a user wrote is what is stored. The
// one exception is the protocol of a port, which the API server needs to tell
// the ports of a container apart. An unquoted number (cpu: 0.5) and an explicit
// null are accepted as in native workloads.
//
// A field of a newer Kubernetes that this release does not know is refused
// under strict field validation, which is the default of kubectl. A client that
// switches strict validation off gets a warning that names each field that was
// dropped. A list in which items are told apart by a name (containers, env,
// ports) refuses duplicates, also where a native workload only warns.
//
// # Two spellings
//
// A CloneSet has an update strategy that v1alpha1 writes flat and v1beta1
// nested. One schema holds both, and the API server converts nothing, so both
// are accepted in both versions; see CloneSetUpdateStrategy.
//
// # Rules
//
// Everything that can be decided from the object alone is refused when it is
// written, in both versions, with an error that names the field; a volume that is
// mounted and nowhere by the admission policy insitu-templates, where it is
// installed. What only the API server can tell about a pod (label keys of the
// template) shows when the pod is created, in the condition FailedCreatePod of a
// StatefulSet and FailedScale of a CloneSet.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
