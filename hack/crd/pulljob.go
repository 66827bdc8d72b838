// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"

	"github.com/distribution/reference"
)

// imageLength is that of the longest image: its name, a tag and a digest.
const imageLength = reference.RepositoryNameTotalLengthMax + 128 + 256

// refineImage accepts what names an image, and nothing else.
func refineImage(root *schemaProps, path string) error {
	return edit(root, path, minLength(1), maxLength(imageLength), rule(
		"self.matches("+strconv.Quote(reference.ReferenceRegexp.String())+")",
		`'must name an image, such as registry.example/shop/web:1.2; found "' + self + '"'`))
}

// refinePullJob checks the selectors of a job that pulls images, and the labels of its pods.
func refinePullJob(root *schemaProps) error {
	return errors.Join(
		refineSelector(root, "spec.podSelector"),
		refineSelector(root, "spec.selector"),
		refineLabels(root, "spec.sandboxConfig.labels"),
		edit(root, "spec.sandboxConfig.annotations", maxProperties(maxLabels)),
	)
}
