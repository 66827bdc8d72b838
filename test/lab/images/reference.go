// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
)

// PauseRef is the image of the pod sandbox, as BuildSet builds it.
const PauseRef = "insitu-dev/pause:v1"

// canonical returns the repository and tag that the lab's registry knows an
// image by: "nginx" gives "library/nginx" and "latest". The registry of the name does not
// count: the lab's is the mirror of all, so quay.io/a/b and ghcr.io/a/b are one image. A digest
// is refused, since nothing can be pushed under a digest that it may not have.
func canonical(ref string) (repository, tag string, err error) {
	parsed, err := name.NewTag(ref)
	if err != nil {
		return "", "", fmt.Errorf("read image reference %q: want [registry/]repository[:tag]: %w", ref, err)
	}
	return parsed.RepositoryStr(), parsed.TagStr(), nil
}

// canonicalReference is canonical for reading: ref may be by digest, and target
// is then that digest, whatever tag ref has besides.
func canonicalReference(ref string) (repository, target string, err error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", "", fmt.Errorf("read image reference %q: %w", ref, err)
	}
	return parsed.Context().RepositoryStr(), parsed.Identifier(), nil
}
