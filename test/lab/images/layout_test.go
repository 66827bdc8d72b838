// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

// What a layout holds is served with the digest that it has there, also after a restart.
func TestLoadLayout(t *testing.T) {
	g := NewWithT(t)
	index, err := random.Index(1024, 1, 2)
	g.Expect(err).NotTo(HaveOccurred())
	several, err := layout.Write(filepath.Join(t.TempDir(), "several"), empty.Index)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(several.AppendIndex(index)).To(Succeed())
	want, err := index.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	single, err := layout.Write(filepath.Join(t.TempDir(), "single"), empty.Index)
	g.Expect(err).NotTo(HaveOccurred())
	image := anImage(t)
	g.Expect(single.AppendImage(image)).To(Succeed())

	dir := t.TempDir()
	url, stop := serve(t, dir)
	g.Expect(LoadLayout(t.Context(), url, "insitu-dev/insitu:1.2.3", string(several))).To(Equal(want.String()))
	g.Expect(LoadLayout(t.Context(), url, "insitu-dev/single:1", string(single))).To(Equal(digestOf(t, image)))
	stop()

	url, _ = serve(t, dir)
	g.Expect(Digest(t.Context(), url, "insitu-dev/insitu:1.2.3")).To(Equal(want.String()))
	tag, err := address(url, "insitu-dev/insitu:1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	served, err := remote.Index(tag)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(served)).To(Succeed())
}

func TestLoadLayoutRefuses(t *testing.T) {
	g := NewWithT(t)
	_, err := LoadLayout(t.Context(), "http://127.0.0.1:1", "a:1", filepath.Join(t.TempDir(), "missing"))
	g.Expect(err).To(MatchError(ContainSubstring("missing")))
	none, err := layout.Write(t.TempDir(), empty.Index)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = LoadLayout(t.Context(), "http://127.0.0.1:1", "a:1", string(none))
	g.Expect(err).To(MatchError(ContainSubstring("found 0 images, want one")))
}

// An image of an archive is served as it is; a file that holds none is named.
func TestFromArchive(t *testing.T) {
	g := NewWithT(t)
	image, err := random.Image(100, 2)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "image.tar")
	tag, err := name.NewTag("insitu-dev/insitu:dev")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tarball.WriteToFile(file, tag, image)).To(Succeed())

	found, err := FromArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(found)).To(Succeed())
	want, err := image.ConfigName()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.ConfigName()).To(Equal(want))

	_, err = FromArchive(filepath.Join(t.TempDir(), "missing.tar"))
	g.Expect(err).To(MatchError(And(ContainSubstring("read image archive"), ContainSubstring("missing.tar"))))
}
