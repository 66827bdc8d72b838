// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// equivalentImages returns the references that name the same content as image
// and are spelled otherwise, the nearest to image first. A kubelet compares
// spellings, so a container that is given another one is restarted, and runs what
// it ran.
//
// imageID is what the container's status shows. It counts only if it is a digest
// of the repository that image names: what was loaded into a node by hand has
// none. Where the kubelet pulls at every start, what the tag names by then is
// wanted, so the tag is kept and no digest is added.
//
// It is empty for an image that cannot be spelled otherwise: with a tag that is
// pulled at every start, that is any image of a registry other than Docker Hub.
func equivalentImages(image, imageID string, policy corev1.PullPolicy) []string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil
	}
	r := spelling{repository: image, named: named}
	if digested, ok := named.(reference.Digested); ok {
		r.digest = "@" + digested.Digest().String()
		r.repository = strings.TrimSuffix(r.repository, r.digest)
	} else if policy != corev1.PullAlways {
		r.digest = digestOf(imageID, named)
	}
	if tagged, ok := named.(reference.Tagged); ok {
		r.tag = ":" + tagged.Tag()
		r.repository = strings.TrimSuffix(r.repository, r.tag)
	}
	others := slices.Concat(r.withDigest(), r.withTag())
	others = slices.DeleteFunc(others, func(other string) bool { return other == image })
	return slices.Compact(others)
}

// spells reports whether a reference may be another spelling of an image: it has the repository, and
// the tag if it has one.
func spells(other, image string) bool {
	a, errA := reference.ParseNormalizedNamed(other)
	b, errB := reference.ParseNormalizedNamed(image)
	if errA != nil || errB != nil {
		return other == image
	}
	if a.Name() != b.Name() {
		return false
	}
	digest, isDigested := a.(reference.Digested)
	if with, isToo := b.(reference.Digested); isDigested && isToo && digest.Digest() != with.Digest() {
		return false
	}
	_, isTagged := a.(reference.Tagged)
	return isDigested && !isTagged || tagOf(a) == tagOf(b)
}

// tagOf returns the tag of a reference: latest, if it has none.
func tagOf(named reference.Named) string {
	if tagged, ok := named.(reference.Tagged); ok {
		return tagged.Tag()
	}
	return "latest"
}

// spelling is an image reference in its parts. tag and digest hold their
// separators; they are empty for a part that there is not.
type spelling struct {
	// repository is spelled as the user did.
	repository, tag, digest string
	named                   reference.Named
}

func (s spelling) withDigest() []string {
	if s.digest == "" {
		return nil
	}
	others := []string{s.repository + s.digest}
	if s.tag != "" {
		others = []string{s.repository + s.tag + s.digest, s.repository + s.digest}
	}
	for _, repository := range s.repositories() {
		others = append(others, repository+s.digest)
	}
	return others
}

// withTag returns spellings that leave it to the tag what they name. Without a
// tag, latest is meant.
func (s spelling) withTag() []string {
	if _, digested := s.named.(reference.Digested); digested {
		return nil
	}
	tag := s.tag
	var others []string
	switch tag {
	case "":
		tag = ":latest"
		others = append(others, s.repository+tag)
	case ":latest":
		others = append(others, s.repository)
	}
	for _, repository := range s.repositories() {
		others = append(others, repository+tag)
	}
	return others
}

// repositories returns the other spellings of the repository: Docker Hub may be
// named or not.
func (s spelling) repositories() []string {
	full, familiar := s.named.Name(), reference.FamiliarName(s.named)
	return slices.DeleteFunc([]string{full, familiar}, func(name string) bool { return name == s.repository })
}

// digestOf returns the digest in an image ID, with its separator, if it is one of
// the repository.
func digestOf(imageID string, repository reference.Named) string {
	named, err := reference.ParseNormalizedNamed(imageID)
	if err != nil || named.Name() != repository.Name() {
		return ""
	}
	digested, ok := named.(reference.Digested)
	if !ok {
		return ""
	}
	return "@" + digested.Digest().String()
}
