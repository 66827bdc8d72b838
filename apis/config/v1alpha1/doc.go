// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the configuration file of the manager, group
// config.insitu.dev.
//
// [Load] reads a file strictly: unknown and duplicate fields are errors, absent
// fields get their defaults, and every remaining mistake is reported at once.
//
// +kubebuilder:object:generate=true
// +groupName=config.insitu.dev
package v1alpha1
