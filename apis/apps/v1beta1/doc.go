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
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
