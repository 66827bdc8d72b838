// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

// serve starts a registry on dir and returns its URL and a function that ends it.
func serve(t *testing.T, dir string) (string, func()) {
	t.Helper()
	g := NewWithT(t)
	handler, err := NewRegistry(dir)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, server.Close
}

// anImage returns a small image that no other call returns.
func anImage(t *testing.T) v1.Image {
	t.Helper()
	g := NewWithT(t)
	image, err := random.Image(1024, 2)
	g.Expect(err).NotTo(HaveOccurred())
	return image
}

func digestOf(t *testing.T, image v1.Image) string {
	t.Helper()
	g := NewWithT(t)
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

func TestRegistryServesWhatWasPushedAfterARestart(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	dir := t.TempDir()
	first, second := anImage(t), anImage(t)

	url, stop := serve(t, dir)
	g.Expect(Load(ctx, url, "nginx:alpine", first)).To(Succeed())
	g.Expect(Load(ctx, url, "docker.io/library/nginx", second)).To(Succeed())
	stop()

	url, _ = serve(t, dir)
	g.Expect(Digest(ctx, url, "library/nginx:alpine")).To(Equal(digestOf(t, first)))
	g.Expect(Digest(ctx, url, "nginx:latest")).To(Equal(digestOf(t, second)))

	tag, err := address(url, "nginx:alpine")
	g.Expect(err).NotTo(HaveOccurred())
	pulled, err := remote.Image(tag)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(mutate.Extract(pulled))
	g.Expect(err).NotTo(HaveOccurred())
	want, err := io.ReadAll(mutate.Extract(first))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(Equal(want))
}

func TestRegistryServesADigestAfterItsTagMovedOn(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	dir := t.TempDir()
	old, current := anImage(t), anImage(t)

	url, stop := serve(t, dir)
	g.Expect(Load(ctx, url, "insitu-dev/sleeper:v1", old)).To(Succeed())
	g.Expect(Load(ctx, url, "insitu-dev/sleeper:v1", current)).To(Succeed())
	stop()

	url, _ = serve(t, dir)
	g.Expect(Digest(ctx, url, "insitu-dev/sleeper:v1")).To(Equal(digestOf(t, current)))
	g.Expect(Digest(ctx, url, "insitu-dev/sleeper:v1@"+digestOf(t, old))).To(Equal(digestOf(t, old)))
}

func TestRegistryForgetsWhatWasDeleted(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	dir := t.TempDir()

	url, stop := serve(t, dir)
	g.Expect(Load(ctx, url, "a/b:c", anImage(t))).To(Succeed())
	tag, err := address(url, "a/b:c")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Delete(tag)).To(Succeed())
	stop()

	url, _ = serve(t, dir)
	_, err = Digest(ctx, url, "a/b:c")
	g.Expect(IsNotFound(err)).To(BeTrue(), "%v", err)
}

func TestRegistryRestoresIndexesOfImages(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	index, err := random.Index(64, 1, 3)
	g.Expect(err).NotTo(HaveOccurred())

	url, stop := serve(t, dir)
	tag, err := address(url, "library/aaa:index")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.WriteIndex(tag, index)).To(Succeed())
	stop()

	url, _ = serve(t, dir)
	tag, err = address(url, "library/aaa:index")
	g.Expect(err).NotTo(HaveOccurred())
	restored, err := remote.Index(tag)
	g.Expect(err).NotTo(HaveOccurred())
	want, err := index.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(restored.Digest()).To(Equal(want))
}

// containerd names the registry that it wants the mirror of in a query.
func TestRegistryAnswersAsAMirror(t *testing.T) {
	g := NewWithT(t)
	image := anImage(t)
	url, _ := serve(t, t.TempDir())
	g.Expect(Load(t.Context(), url, "nginx:alpine", image)).To(Succeed())

	for path, want := range map[string]int{
		"/v2/?ns=docker.io": http.StatusOK,
		"/v2/library/nginx/manifests/alpine?ns=docker.io":                     http.StatusOK,
		"/v2/library/nginx/manifests/" + digestOf(t, image) + "?ns=docker.io": http.StatusOK,
		"/v2/library/nginx/manifests/missing?ns=docker.io":                    http.StatusNotFound,
	} {
		response, err := http.Head(url + path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(want), path)
	}
}

// Nodes, which say whose mirror they ask, get private images with the password only.
func TestRegistryKeepsPrivateImagesFromNodes(t *testing.T) {
	g := NewWithT(t)
	url, _ := serve(t, t.TempDir())
	g.Expect(Load(t.Context(), url, "private/app:1", anImage(t))).To(Succeed())
	g.Expect(Load(t.Context(), url, "insitu-dev/app:1", anImage(t))).To(Succeed())
	for _, asked := range []struct {
		path, user, password string
		want                 int
	}{
		{"/v2/private/app/manifests/1?ns=docker.io", "", "", http.StatusUnauthorized},
		{"/v2/private/app/manifests/1?ns=docker.io", PrivateUser, "wrong", http.StatusUnauthorized},
		{"/v2/private/app/manifests/1?ns=docker.io", PrivateUser, PrivatePassword, http.StatusOK},
		{"/v2/insitu-dev/app/manifests/1?ns=docker.io", "", "", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+asked.path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		if asked.user != "" {
			req.SetBasicAuth(asked.user, asked.password)
		}
		answer, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Body.Close()).To(Succeed())
		g.Expect(answer.StatusCode).To(Equal(asked.want), "%+v", asked)
	}
}

func TestRegistryRefusesABrokenFolder(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "manifests", "library%2Fnginx", "alpine")
	g.Expect(os.MkdirAll(filepath.Dir(broken), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(broken, []byte("{"), 0o644)).To(Succeed())

	_, err := NewRegistry(dir)
	g.Expect(err).To(MatchError(ContainSubstring(broken)))
}

func TestRegistryRefusesAManifestThatIsTooLarge(t *testing.T) {
	g := NewWithT(t)
	url, _ := serve(t, t.TempDir())
	body := strings.NewReader(strings.Repeat(" ", maxManifestBytes+1))
	request, err := http.NewRequest(http.MethodPut, url+"/v2/a/manifests/b", body)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
}

// The lab's registry is the mirror of every other one: names of all are served, and an image can
// have several.
func TestImagesOfAnyRegistry(t *testing.T) {
	g := NewWithT(t)
	url, _ := serve(t, t.TempDir())
	image := anImage(t)
	g.Expect(Load(t.Context(), url, "quay.io/coreos/etcd:v3", image)).To(Succeed())
	g.Expect(Digest(t.Context(), url, "quay.io/coreos/etcd:v3")).To(Equal(digestOf(t, image)))
	response, err := http.Head(url + "/v2/coreos/etcd/manifests/v3?ns=quay.io")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))

	g.Expect(Alias(t.Context(), url, "quay.io/coreos/etcd:v3", "registry.example.com:5000/etcd:new")).To(Succeed())
	g.Expect(Digest(t.Context(), url, "registry.example.com:5000/etcd:new")).To(Equal(digestOf(t, image)))
	g.Expect(Alias(t.Context(), url, "quay.io/coreos/none:v3", "a:1")).To(MatchError(ContainSubstring("read image quay.io/coreos/none:v3")))
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	url, _ := serve(t, t.TempDir())
	for name, test := range map[string]struct {
		registry, ref string
		want          string
	}{
		"capital letters": {url, "Nginx:alpine", `read image reference "Nginx:alpine"`},
		"no repository":   {url, ":alpine", `read image reference ":alpine"`},
		"digest":          {url, "nginx@sha256:" + strings.Repeat("0", 64), "want [registry/]repository[:tag]"},
		"no scheme":       {"127.0.0.1:5000", "nginx", `read registry "127.0.0.1:5000": want a URL`},
		"none there":      {"http://127.0.0.1:1", "nginx", "push image nginx to http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Load(t.Context(), test.registry, test.ref, anImage(t))
			g.Expect(IsNotFound(err)).To(BeFalse())
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
