// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Images that behave in a way of their own.
const (
	missingImage = "app:missing"
	crashImage   = "app:crash"
	// sameImage has the content of bImage.
	bImage    = "app:b"
	sameImage = "app:b-again"
)

const dockerHub = "docker.io/library/"

// nameIn returns the name in an image reference as the templates spell it, and
// the digest; empty for what is not there. One name has several spellings.
func nameIn(image string) (name, digest string) {
	name, digest, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(image, dockerHub), mirror), "@")
	return name, digest
}

func digestOf(name string) string {
	if name == sameImage {
		name = bImage
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
}

// contentOf returns the digest of what an image reference names.
func contentOf(image string) string {
	name, digest := nameIn(image)
	if digest != "" {
		return digest
	}
	return digestOf(name)
}

// isImage reports whether a reference names the content of an image.
func isImage(reference, image string) bool {
	return contentOf(reference) == contentOf(image)
}

// means reports whether a reference stands for an image: it has its name and its
// content, however it is spelled; or its content alone.
func means(reference, image string) bool {
	name, digest := nameIn(reference)
	wanted, _ := nameIn(image)
	repository, _, _ := strings.Cut(wanted, ":")
	return isImage(reference, image) && (name == wanted || name == repository && digest != "")
}

// imageID returns the ID of an image as a container's status shows it.
func imageID(image string) string {
	name, _ := nameIn(image)
	repository, _, _ := strings.Cut(name, ":")
	return dockerHub + repository + "@" + contentOf(image)
}
