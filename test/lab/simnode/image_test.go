// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/random"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/insitu-dev/insitu/test/lab/images"
)

// pullAs pulls references in order and returns what the last one is.
func pullAs(t *testing.T, store *imageStore, refs ...string) (image Image, err error) {
	t.Helper()
	for _, ref := range refs {
		store.pull(t.Context(), ref)
		image, err = store.image(ref)
	}
	return image, err
}

func TestImagesAreNamedAsContainerdDoes(t *testing.T) {
	latest := "sha256:" + hexHash("docker.io/library/nginx:latest")
	for name, test := range map[string]struct {
		refs []string
		want Image
	}{
		"tag":          {[]string{"nginx:latest"}, Image{"docker.io/library/nginx:latest", "docker.io/library/nginx@" + latest}},
		"no tag":       {[]string{"nginx"}, Image{"docker.io/library/nginx:latest", "docker.io/library/nginx@" + latest}},
		"same digest":  {[]string{"nginx:stable"}, Image{"docker.io/library/nginx:stable", "docker.io/library/nginx@" + latest}},
		"first name":   {[]string{"nginx:stable", "nginx:latest", "nginx:stable"}, Image{"docker.io/library/nginx:latest", "docker.io/library/nginx@" + latest}},
		"by digest":    {[]string{"nginx:latest", "nginx@" + latest}, Image{"docker.io/library/nginx:latest", "docker.io/library/nginx@" + latest}},
		"tag, digest":  {[]string{"nginx:x@" + latest}, Image{"sha256:" + hexHash(latest), "docker.io/library/nginx@" + latest}},
		"other source": {[]string{"nginx:latest", "quay.io/copy/nginx@" + latest}, Image{"docker.io/library/nginx:latest", "docker.io/library/nginx@" + latest}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := newImageStore(Options{SameDigest: map[string]string{"nginx:stable": "nginx:latest"}}.withDefaults())
			g.Expect(pullAs(t, store, test.refs...)).To(Equal(test.want))
		})
	}
}

func TestImagesOfARegistry(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	handler, err := images.NewRegistry(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(handler)
	defer server.Close()
	image, err := random.Image(64, 1)
	g.Expect(err).NotTo(HaveOccurred())
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	now := clocktesting.NewFakeClock(time.Now())
	store := newImageStore(Options{Registry: server.URL, Clock: now}.withDefaults())

	_, err = pullAs(t, store, "nginx:alpine")
	g.Expect(err).To(MatchError(ContainSubstring("docker.io/library/nginx:alpine: not found")))
	g.Expect(images.Load(ctx, server.URL, "nginx:alpine", image)).To(Succeed())
	now.Step(resolveAgain)
	want := Image{"docker.io/library/nginx:alpine", "docker.io/library/nginx@" + digest.String()}
	g.Expect(pullAs(t, store, "nginx:alpine")).To(Equal(want))
	g.Expect(pullAs(t, store, "nginx@"+digest.String())).To(Equal(want))
	_, err = pullAs(t, store, "nginx@sha256:"+strings.Repeat("0", 64))
	g.Expect(err).To(MatchError(ContainSubstring("not found")))

	server.Close()
	now.Step(resolveAgain)
	_, err = pullAs(t, store, "nginx:latest")
	g.Expect(err).To(MatchError(And(ContainSubstring("code = Unknown"), ContainSubstring("connection refused"))))
}

func TestImageNamesThatAreNone(t *testing.T) {
	g := NewWithT(t)
	_, err := pullAs(t, newImageStore(Options{}.withDefaults()), "Nginx:UPPER/case")
	g.Expect(err).To(MatchError(ContainSubstring(`failed to parse reference "Nginx:UPPER/case"`)))
}
