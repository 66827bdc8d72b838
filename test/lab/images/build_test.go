// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	. "github.com/onsi/gomega"
)

const helloSource = "package main\n\nfunc main() { println(\"hello\", word) }\n\nvar word = \"world\"\n"

// helloModule writes a module with one program and returns its folder.
func helloModule(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "hello")
	g.Expect(os.Mkdir(dir, 0o755)).To(Succeed())
	g.Expect(writeModule(dir, "hello", helloSource)).To(Succeed())
	return dir
}

// entries returns the headers of an image's files by name, and the content of
// its regular files.
func entries(t *testing.T, image v1.Image) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	g := NewWithT(t)
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }()
	archive := tar.NewReader(flat)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		g.Expect(err).NotTo(HaveOccurred())
		headers[header.Name], contents[header.Name] = header, string(content)
	}
}

// unpack writes an image's files below a new folder, as a snapshotter does.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }()
	cmd := exec.Command("tar", "-x", "-C", root)
	cmd.Stdin = flat
	output, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	return root
}

func TestFromGoIsTheSameForTheSameInput(t *testing.T) {
	g := NewWithT(t)
	here := helloModule(t)
	digest := func(opts GoOptions) string {
		image, err := FromGo(t.Context(), opts)
		g.Expect(err).NotTo(HaveOccurred())
		return digestOf(t, image)
	}
	g.Expect(digest(GoOptions{Dir: here})).To(Equal(digest(GoOptions{Dir: here, Package: "."})))
	g.Expect(digest(GoOptions{Dir: here})).NotTo(Equal(digest(GoOptions{Dir: here, LDFlags: "-X main.word=moon"})))
}

// TestSourceFolderIsTheSame: an image of the lab that is made again has the same digest,
// even if two labs make it at the same time.
func TestSourceFolderIsTheSame(t *testing.T) {
	g := NewWithT(t)
	const program = "package main\n\nfunc main() {}\n"
	cacheDir := t.TempDir()
	folders := make(chan string, 4)
	for range cap(folders) {
		go func() {
			folder, err := sourceFolder(cacheDir, "some", program)
			if err != nil {
				folder = err.Error()
			}
			folders <- folder
		}()
	}
	first := <-folders
	for range cap(folders) - 1 {
		g.Expect(<-folders).To(Equal(first))
	}

	g.Expect(os.ReadFile(filepath.Join(first, "main.go"))).To(BeEquivalentTo(program))
	other, err := sourceFolder(cacheDir, "some", program+"// More.\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).NotTo(Equal(first))
	g.Expect(filepath.Glob(filepath.Join(cacheDir, "source", ".*"))).To(BeEmpty(), "what was left behind")
}

func TestFromGoMakesAProgramThatRuns(t *testing.T) {
	g := NewWithT(t)
	image, err := FromGo(t.Context(), GoOptions{
		Dir:    helloModule(t),
		Config: Config{Cmd: []string{"-v"}, Env: []string{"A=b"}, Ports: []int{8080}},
	})
	g.Expect(err).NotTo(HaveOccurred())

	file, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Config.Entrypoint).To(Equal([]string{"/hello"}))
	g.Expect(file.Config.Cmd).To(Equal([]string{"-v"}))
	g.Expect(file.Config.Env).To(Equal([]string{"A=b"}))
	g.Expect(file.Config.User).To(Equal("65532:65532"))
	g.Expect(file.Config.ExposedPorts).To(HaveKey("8080/tcp"))
	g.Expect(file.Created.IsZero()).To(BeTrue())

	headers, contents := entries(t, image)
	g.Expect(contents["etc/passwd"]).To(ContainSubstring("nonroot:x:65532:65532:"))
	g.Expect(headers["tmp"].Mode).To(BeEquivalentTo(0o1777))
	g.Expect(headers["hello"].FileInfo().Mode()).To(Equal(fs.FileMode(0o755)))
	for name, header := range headers {
		g.Expect(header.ModTime.Unix()).To(BeZero(), name)
	}

	output, err := exec.Command(filepath.Join(unpack(t, image), "hello")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(output)).To(Equal("hello world\n"))
}

func TestFromGoGivesTheWordsOfTheCompiler(t *testing.T) {
	for name, test := range map[string]struct {
		source, pkg string
		want        string
	}{
		"does not compile": {"package main\n\nfunc main() { undefinedName() }\n", ".", "undefined: undefinedName"},
		"no such package":  {helloSource, "./cmd/missing", "cmd/missing"},
		"not a program":    {"package hello\n", ".", "no main packages to build"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := helloModule(t)
			g.Expect(writeModule(dir, "hello", test.source)).To(Succeed())
			_, err := FromGo(t.Context(), GoOptions{Dir: dir, Package: test.pkg})
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err).To(MatchError(ContainSubstring(dir)))
		})
	}
}

func TestLayerRefusesWhatItCannotPack(t *testing.T) {
	g := NewWithT(t)
	_, err := layerOf(File{Path: "relative"})
	g.Expect(err).To(MatchError(ContainSubstring(`path is "relative", want an absolute path`)))
	_, err = layerOf(File{Path: "/dev/null", Mode: fs.ModeDevice})
	g.Expect(err).To(MatchError(ContainSubstring("want a file, directory or symbolic link")))
}

func TestCacheKeepsOneImagePerKey(t *testing.T) {
	g := NewWithT(t)
	kept := cache{dir: t.TempDir()}
	one, two := anImage(t), anImage(t)
	_, err := kept.put("one", one)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = kept.put("two", two)
	g.Expect(err).NotTo(HaveOccurred())

	found, ok := kept.get("one")
	g.Expect(ok).To(BeTrue())
	g.Expect(digestOf(t, found)).To(Equal(digestOf(t, one)))
	_, ok = kept.get("three")
	g.Expect(ok).To(BeFalse())
}

func TestCacheBuildsAgainWhatIsBroken(t *testing.T) {
	g := NewWithT(t)
	kept := cache{dir: t.TempDir()}
	g.Expect(os.Mkdir(filepath.Join(kept.dir, "one"), 0o755)).To(Succeed())
	_, ok := kept.get("one")
	g.Expect(ok).To(BeFalse())

	image := anImage(t)
	_, err := kept.put("one", image)
	g.Expect(err).NotTo(HaveOccurred())
	found, ok := kept.get("one")
	g.Expect(ok).To(BeTrue())
	g.Expect(digestOf(t, found)).To(Equal(digestOf(t, image)))
}

func TestKeyDependsOnEveryInput(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, recipe := range slices.Concat(recipes("unused"), extraRecipes("unused")) {
		name, err := key(recipe.inputs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).NotTo(HaveKey(name), strings.Join(recipe.refs, " "))
		seen[name] = true
	}
}
