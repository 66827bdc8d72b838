// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strconv"
	"strings"
)

// Pods says how many pods there are: "1 pod", "3 pods".
func Pods[N int | int32](count N) string {
	if count == 1 {
		return "1 pod"
	}
	return strconv.Itoa(int(count)) + " pods"
}

// PodsThat is Pods with a verb, as it is of one and as it is of more: "1 pod is", "3 pods are".
func PodsThat[N int | int32](count N, one, more string) string {
	if count == 1 {
		return Pods(count) + " " + one
	}
	return Pods(count) + " " + more
}

// WhenDeleted says how many pods get the new revision by their deletion.
func WhenDeleted[N int | int32](count N) string {
	if count == 1 {
		return "1 pod gets the new revision when it is deleted"
	}
	return Pods(count) + " get the new revision when they are deleted"
}

// Withheld says how many pods are missing that scaleStrategy.maxUnavailable does not allow yet.
func Withheld(count int) string {
	return PodsThat(count, "is", "are") + " created when others are available: scaleStrategy.maxUnavailable"
}

// Scaling says how many pods exist of those that are wanted, and how many others are to be deleted.
func Scaling(exist, wanted, leaving int) string {
	var words []string
	switch {
	case exist > wanted:
		words = append(words, fmt.Sprintf("%s, %d are wanted", PodsThat(exist, "exists", "exist"), wanted))
	case exist < wanted || leaving == 0:
		words = append(words, fmt.Sprintf("%d of %d pods exist", exist, wanted))
	}
	if leaving > 0 {
		words = append(words, PodsThat(leaving, "is", "are")+" to be deleted")
	}
	return strings.Join(words, ", ")
}
