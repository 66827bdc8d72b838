// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var (
	someDigest  = "@sha256:" + strings.Repeat("a", 64)
	otherDigest = "@sha256:" + strings.Repeat("b", 64)
)

func TestEquivalentImages(t *testing.T) {
	const cached, always = corev1.PullIfNotPresent, corev1.PullAlways
	hub, private := "docker.io/library/nginx"+someDigest, "registry.example.com:5000/team/app"+someDigest
	for name, tc := range map[string]struct {
		image, imageID string
		policy         corev1.PullPolicy
		want           []string
	}{
		"of Docker Hub": {"nginx:alpine", hub, cached, []string{
			"nginx:alpine" + someDigest, "nginx" + someDigest, "docker.io/library/nginx" + someDigest, "docker.io/library/nginx:alpine",
		}},
		"of a registry with a port": {"registry.example.com:5000/team/app:v1", private, cached, []string{
			"registry.example.com:5000/team/app:v1" + someDigest, "registry.example.com:5000/team/app" + someDigest,
		}},
		"without a tag": {"registry.example.com:5000/team/app", private, cached, []string{
			"registry.example.com:5000/team/app" + someDigest, "registry.example.com:5000/team/app:latest",
		}},
		"tagged latest": {"registry.example.com:5000/team/app:latest", private, cached, []string{
			"registry.example.com:5000/team/app:latest" + someDigest, "registry.example.com:5000/team/app" + someDigest,
			"registry.example.com:5000/team/app",
		}},
		"with tag and digest":          {"team/app:v1" + someDigest, "docker.io/team/app" + otherDigest, cached, []string{"team/app" + someDigest, "docker.io/team/app" + someDigest}},
		"with a digest alone":          {"registry.example.com:5000/team/app" + someDigest, private, cached, []string{}},
		"loaded by hand":               {"registry.example.com:5000/team/app:v1", "sha256:" + strings.Repeat("a", 64), cached, []string{}},
		"from a mirror":                {"registry.example.com:5000/team/app:v1", hub, cached, []string{}},
		"not started yet":              {"registry.example.com:5000/team/app:v1", "", cached, []string{}},
		"pulled always":                {"registry.example.com:5000/team/app:v1", private, always, []string{}},
		"pulled always of Docker Hub":  {"nginx:alpine", hub, always, []string{"docker.io/library/nginx:alpine"}},
		"pulled always, fully spelled": {"docker.io/library/nginx:alpine", hub, always, []string{"nginx:alpine"}},
		"pulled always with a digest":  {"nginx:alpine" + someDigest, hub, always, []string{"nginx" + someDigest, "docker.io/library/nginx" + someDigest}},
		"no reference":                 {"Not An Image", hub, cached, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := equivalentImages(tc.image, tc.imageID, tc.policy)
			if len(tc.want) == 0 {
				NewWithT(t).Expect(got).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}
