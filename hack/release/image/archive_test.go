// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

func anImage(t *testing.T, program string) v1.Image {
	t.Helper()
	image, err := Single(description(), platforms(program)[0])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return image
}

// An archive holds the image under the name that container runtimes look for.
func TestArchive(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "new", "image.tar")

	g.Expect(Archive(file, "insitu-dev/insitu:dev", anImage(t, "program"))).To(Succeed())

	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest).To(HaveLen(1))
	g.Expect(manifest[0].RepoTags).To(Equal([]string{"insitu-dev/insitu:dev"}))
	found, err := tarball.ImageFromPath(file, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(found)).To(Succeed())
	config, err := found.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{config.OS, config.Architecture, config.Config.User}).To(Equal([]string{"linux", "amd64", User}))
	g.Expect(config.Config.Entrypoint).To(Equal([]string{"/insitu"}))
}

func TestArchiveRefuses(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "image.tar")
	g.Expect(Archive(file, "insitu-dev/insitu", anImage(t, "program"))).To(MatchError(ContainSubstring("it has no tag, accepted is NAME:TAG")))
	g.Expect(file).NotTo(BeAnExistingFile())
	_, err := Single(Description{}, platforms("program")[0])
	g.Expect(err).To(MatchError(ContainSubstring("describe image")))
}

// An image that is no release is pushed again under the same tag.
func TestPushSingle(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/you/insitu:dev"
	for _, program := range []string{"one", "two"} {
		want, err := anImage(t, program).Digest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(PushSingle(t.Context(), anImage(t, program), tag)).To(Equal(want))
		pushed, err := name.NewTag(tag)
		g.Expect(err).NotTo(HaveOccurred())
		found, err := remote.Head(pushed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Digest).To(Equal(want))
	}
	_, err := PushSingle(t.Context(), anImage(t, "one"), strings.TrimPrefix(server.URL, "http://")+"/you/insitu")
	g.Expect(err).To(MatchError(ContainSubstring("it has no tag")))
}
