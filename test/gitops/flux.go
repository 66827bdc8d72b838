// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gitops judges workloads as Flux and Argo CD do.
//
// Flux is asked by the library that it uses, and a health script of ours by the Lua
// interpreter that Argo CD uses, with the libraries that it opens. What Argo CD finds
// by itself is not to be had as a library: it is made again here, from what it reads.
package gitops

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What Flux says of an object.
const (
	Current     = status.CurrentStatus
	InProgress  = status.InProgressStatus
	Failed      = status.FailedStatus
	Terminating = status.TerminatingStatus
)

// Kstatus returns what Flux says of an object.
func Kstatus(obj *unstructured.Unstructured) (status.Status, error) {
	result, err := status.Compute(obj)
	if err != nil {
		return "", err
	}
	return result.Status, nil
}
