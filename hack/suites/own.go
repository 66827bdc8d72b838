// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// own runs a command, writes what it took into a file, and returns the status that it
// exited with, or 1 if it left processes behind that did not end in time.
func own(file string, patience time.Duration, args []string) (int, error) {
	wait, err := start(args, patience)
	if err != nil {
		return 1, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	status, used := wait()
	raw, err := json.Marshal(used)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if len(used.Left) > 0 {
		status = max(status, 1)
	}

	return status, err
}
