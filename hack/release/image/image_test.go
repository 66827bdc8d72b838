// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/hack/release/pack"
)

func description() Description {
	return Description{
		Title: "insitu", Text: "Does things", Version: "1.2.3", Revision: "0123abc",
		Source: "https://github.com/insitu-dev/insitu", License: "Apache-2.0", Created: time.Unix(1_800_000_000, 0),
	}
}

func platforms(program string) []Platform {
	beside := []pack.File{{Name: "LICENSE", Content: []byte("license")}}

	return []Platform{
		{Architecture: "amd64", Program: []byte(program + " amd64"), Beside: beside},
		{Architecture: "arm64", Program: []byte(program + " arm64"), Beside: beside},
	}
}

func anIndex(t *testing.T, program string) v1.ImageIndex {
	t.Helper()
	index, err := Index(description(), platforms(program)...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return index
}

// layoutOf writes a layout somewhere and returns its files with their contents.
func layoutOf(t *testing.T, index v1.ImageIndex) map[string]string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "layout")
	g.Expect(Write(dir, "1.2.3", index)).To(Succeed())
	contents := map[string]string{}
	g.Expect(filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		contents[strings.TrimPrefix(path, dir)] = string(content)

		return err
	})).To(Succeed())

	return contents
}

func TestLayoutsAreTheSame(t *testing.T) {
	g := NewWithT(t)
	one := layoutOf(t, anIndex(t, "program"))
	t.Setenv("TZ", "Asia/Tokyo")
	two := layoutOf(t, anIndex(t, "program"))

	g.Expect(two).To(Equal(one))
	g.Expect(layoutOf(t, anIndex(t, "other"))).NotTo(Equal(one))
	g.Expect(one).To(HaveKey("/oci-layout"))
	g.Expect(one["/index.json"]).To(ContainSubstring(`"org.opencontainers.image.ref.name": "1.2.3"`))
}

func TestImageSaysWhatItIs(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "layout")
	g.Expect(Write(dir, "1.2.3", anIndex(t, "program"))).To(Succeed())
	index, err := Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(index)).To(Succeed())

	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.MediaType).To(Equal(types.OCIImageIndex))
	g.Expect(manifest.Annotations).To(HaveKeyWithValue("org.opencontainers.image.version", "1.2.3"))
	g.Expect(manifest.Manifests).To(HaveLen(2))
	for i, arch := range []string{"amd64", "arm64"} {
		g.Expect(manifest.Manifests[i].Platform.String()).To(Equal("linux/" + arch))
		image, err := index.Image(manifest.Manifests[i].Digest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(image)).To(Succeed())
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Architecture).To(Equal(arch))
		g.Expect(config.Created.Time).To(BeTemporally("==", description().Created))
		g.Expect(config.Config.User).To(Equal("65532:65532"))
		g.Expect(config.Config.Entrypoint).To(Equal([]string{"/insitu"}))
		g.Expect(config.Config.Labels).To(HaveLen(8))
		g.Expect(config.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.revision", "0123abc"))
		g.Expect(config.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.created", "2027-01-15T08:00:00Z"))
		flat, err := io.ReadAll(mutate.Extract(image))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(flat)).To(And(ContainSubstring("program "+arch), ContainSubstring("license")))
	}
}

func TestIndexRefuses(t *testing.T) {
	g := NewWithT(t)
	incomplete := description()
	incomplete.Revision = ""
	_, err := Index(incomplete, platforms("program")...)
	g.Expect(err).To(MatchError("describe image: org.opencontainers.image.revision is empty"))
	timeless := description()
	timeless.Created = time.Time{}
	_, err = Index(timeless, platforms("program")...)
	g.Expect(err).To(MatchError(ContainSubstring("time of its creation")))
	_, err = Index(description())
	g.Expect(err).To(MatchError(ContainSubstring("no platforms")))
	_, err = Index(description(), Platform{Architecture: "amd64"})
	g.Expect(err).To(MatchError(ContainSubstring("linux/amd64: want an architecture and a program")))
}

func TestReadRefuses(t *testing.T) {
	g := NewWithT(t)
	_, err := Read(filepath.Join(t.TempDir(), "missing"))
	g.Expect(err).To(MatchError(ContainSubstring("missing")))
	dir := filepath.Join(t.TempDir(), "cut")
	g.Expect(Write(dir, "1.2.3", anIndex(t, "program"))).To(Succeed())
	g.Expect(os.RemoveAll(filepath.Join(dir, "blobs"))).To(Succeed())
	index, err := Read(dir)
	if err == nil {
		_, err = index.IndexManifest()
	}
	g.Expect(err).To(HaveOccurred())
}

// What is pushed has the digest that the release names, and a release stays what it is.
func TestPush(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/insitu-dev/insitu:1.2.3"
	dir := filepath.Join(t.TempDir(), "layout")
	g.Expect(Write(dir, "1.2.3", anIndex(t, "program"))).To(Succeed())
	index, err := Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	want, err := anIndex(t, "program").Digest()
	g.Expect(err).NotTo(HaveOccurred())

	for range 2 { // the second time, it is there
		digest, err := Push(t.Context(), index, tag)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(digest).To(Equal(want))
	}
	reference, err := name.ParseReference(tag)
	g.Expect(err).NotTo(HaveOccurred())
	served, err := remote.Index(reference)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(served)).To(Succeed())

	_, err = Push(t.Context(), anIndex(t, "other"), tag)
	g.Expect(err).To(MatchError(ContainSubstring("a release is never replaced")))
	server.Close()
	_, err = Push(t.Context(), index, tag)
	g.Expect(err).To(MatchError(ContainSubstring("look for " + tag)))
}

// roundTripper answers requests in the place of the network.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// The chart names no registry: what container runtimes take for that is where it is pushed.
func TestPushOfTheChartsName(t *testing.T) {
	g := NewWithT(t)
	values, err := os.ReadFile("../../../charts/insitu/values.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var chart struct {
		Image struct {
			Repository string `json:"repository"`
		} `json:"image"`
	}
	g.Expect(yaml.Unmarshal(values, &chart)).To(Succeed())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	var hosts sync.Map
	network := remote.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		hosts.Store(req.URL.Host, true)
		redirected := req.Clone(req.Context())
		redirected.URL.Scheme, redirected.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		response, err := http.DefaultTransport.RoundTrip(redirected)
		if err == nil {
			response.Request = req
		}

		return response, err
	}))
	index := anIndex(t, "program")

	digest, err := Push(t.Context(), index, chart.Image.Repository+":1.2.3", network)

	g.Expect(err).NotTo(HaveOccurred())
	hosts.Range(func(host, _ any) bool {
		g.Expect(host).To(Equal(name.DefaultRegistry))

		return true
	})
	tag, err := name.NewTag("docker.io/" + chart.Image.Repository + ":1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	served, err := remote.Head(tag, network)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(served.Digest).To(Equal(digest))
}

func TestPushWantsATag(t *testing.T) {
	index := anIndex(t, "program")
	for _, tag := range []string{"insitu-dev/insitu", "127.0.0.1:5000/insitu-dev/insitu", "latest", ""} {
		_, err := Push(t.Context(), index, tag)
		NewWithT(t).Expect(err).To(MatchError(HavePrefix(fmt.Sprintf("read %q: ", tag))))
	}
}
