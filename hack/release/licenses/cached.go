// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"sync"

	"github.com/google/go-licenses/v2/licenses"
)

// cached remembers what files are: most are the same on every system, and to compare
// one with all known licenses takes a while. It may be used by several at a time.
type cached struct {
	classifier licenses.Classifier
	known      sync.Map
}

// Identify implements licenses.Classifier.
func (c *cached) Identify(path string) ([]licenses.License, error) {
	if known, ok := c.known.Load(path); ok {
		names, _ := known.([]licenses.License)

		return names, nil
	}
	names, err := c.classifier.Identify(path)
	if err != nil {
		return nil, err
	}
	c.known.Store(path, names)

	return names, nil
}
