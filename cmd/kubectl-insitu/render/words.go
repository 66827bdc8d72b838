// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
)

// phaseStyle returns how the word for a phase looks.
func phaseStyle(phase report.Phase) style {
	switch phase {
	case report.Healthy:
		return good
	case report.Progressing:
		return busy
	case report.Paused:
		return calm
	case report.Stalled:
		return bad
	case report.Unknown:
		return busy
	default:
		return plain
	}
}

// stateStyle returns how the word for the state of a pod looks.
func stateStyle(state string) style {
	switch inplace.State(state) {
	case inplace.Settled:
		return good
	case inplace.Stuck:
		return bad
	case inplace.Waiting:
		return faint
	case inplace.HookHeld:
		return calm
	default:
		return busy
	}
}

// age says how long ago something was; "" if it is not known when.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(at), 0))
}

// count says how many things there are: 1 pod, 2 pods.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// list joins those words that are not empty.
func list(separator string, words ...string) string {
	var said []string
	for _, word := range words {
		if word != "" {
			said = append(said, word)
		}
	}
	return strings.Join(said, separator)
}

func when(condition bool, word string) string {
	if condition {
		return word
	}
	return ""
}
