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
// image by: "nginx" gives "library/nginx" and "latest". A digest is refused,
// since nothing can be pushed under a digest that it may not have, and so is
// any registry but docker.io, because the lab mirrors no other.
func canonical(ref string) (repository, tag string, err error) {
	parsed, err := name.NewTag(ref)
	if err != nil {
		return "", "", fmt.Errorf("read image reference %q: want [docker.io/]repository[:tag]: %w", ref, err)
	}
	if registry := parsed.RegistryStr(); registry != name.DefaultRegistry {
		return "", "", fmt.Errorf("read image reference %q: registry %s is not served, only docker.io is", ref, registry)
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
	context := parsed.Context()
	if registry := context.RegistryStr(); registry != name.DefaultRegistry {
		return "", "", fmt.Errorf("read image reference %q: registry %s is not served, only docker.io is", ref, registry)
	}
	return context.RepositoryStr(), parsed.Identifier(), nil
}
