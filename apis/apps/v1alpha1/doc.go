// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the older served version of group apps.kruise.io.
//
// Its types are those of v1beta1 under the older name, and the API server
// serves both from one schema: what is written through one version is read
// through the other with nothing lost.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
