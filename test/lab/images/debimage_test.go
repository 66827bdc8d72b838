// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// requireDebian skips a test where there are no Debian packages to be had.
func requireDebian(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Fatal("apt-get is not installed: the lab makes images of Debian packages")
	}
}

func TestFromDebPacksAProgramWithWhatItNeeds(t *testing.T) {
	requireDebian(t)
	g := NewWithT(t)
	ctx := t.Context()
	cacheDir := t.TempDir()
	opts := DebOptions{
		Packages: []string{"hello"},
		CacheDir: cacheDir,
		Files:    []File{{Path: "/etc/motd", Content: []byte("good morning")}},
		Config:   Config{Entrypoint: []string{"/usr/bin/hello"}},
	}
	image, err := FromDeb(ctx, opts)
	g.Expect(err).NotTo(HaveOccurred())

	headers, contents := entries(t, image)
	g.Expect(headers).To(HaveKey("usr/bin/hello"))
	g.Expect(headers).To(HaveKey("usr/share/doc/hello/copyright"))
	g.Expect(headers).NotTo(HaveKey("usr/share/man/man1/hello.1.gz"))
	g.Expect(headers["lib64"].Linkname).To(Equal("usr/lib64"))
	g.Expect(contents["etc/motd"]).To(Equal("good morning"))
	for name, header := range headers {
		g.Expect(header.ModTime.Unix()).To(BeZero(), name)
	}
	if os.Geteuid() == 0 { // the program and its C library are complete
		output, err := exec.Command("chroot", unpack(t, image), "/usr/bin/hello").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))
		g.Expect(string(output)).To(Equal("Hello, world!\n"))
	}

	g.Expect(os.RemoveAll(filepath.Join(cacheDir, "layers"))).To(Succeed())
	again, err := FromDeb(ctx, opts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(digestOf(t, again)).To(Equal(digestOf(t, image)))
}

func TestFromDebNamesAPackageThatIsNotThere(t *testing.T) {
	requireDebian(t)
	g := NewWithT(t)
	_, err := FromDeb(t.Context(), DebOptions{Packages: []string{"no-such-program"}, CacheDir: t.TempDir()})
	g.Expect(err).To(MatchError(And(
		ContainSubstring("resolve no-such-program"),
		ContainSubstring("Unable to locate package no-such-program"))))
}

func TestFromDebNeedsAPackage(t *testing.T) {
	g := NewWithT(t)
	_, err := FromDeb(t.Context(), DebOptions{CacheDir: t.TempDir()})
	g.Expect(err).To(MatchError(ContainSubstring("Packages is empty")))
}

// archive writes a tar file as dpkg-deb prints it.
func archive(t *testing.T, headers ...tar.Header) *os.File {
	t.Helper()
	g := NewWithT(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "files.tar"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = file.Close() })
	w := tar.NewWriter(file)
	for _, header := range headers {
		header.Size = 0
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(header.Name))
		}
		g.Expect(w.WriteHeader(&header)).To(Succeed())
		if header.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, header.Name)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	g.Expect(w.Close()).To(Succeed())
	_, err = file.Seek(0, io.SeekStart)
	g.Expect(err).NotTo(HaveOccurred())
	return file
}

func TestArchivesAreMergedSortedUnderUsr(t *testing.T) {
	g := NewWithT(t)
	index := debIndex{}
	g.Expect(index.add(archive(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir},
		tar.Header{Name: "./lib/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./lib/b.so", Typeflag: tar.TypeReg, Uname: "jane"},
		tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar},
	))).To(Succeed())
	g.Expect(index.add(archive(t,
		tar.Header{Name: "./usr/lib/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "./lib/a.so", Typeflag: tar.TypeLink, Linkname: "./lib/b.so"},
		tar.Header{Name: "./usr/share/man/man1/a.1", Typeflag: tar.TypeReg},
		tar.Header{Name: "./usr/share/doc/a/copyright", Typeflag: tar.TypeReg},
	))).To(Succeed())

	merged, err := os.Create(filepath.Join(t.TempDir(), "merged.tar"))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = merged.Close() }()
	g.Expect(index.writeTo(merged)).To(Succeed())
	_, err = merged.Seek(0, io.SeekStart)
	g.Expect(err).NotTo(HaveOccurred())

	var names []string
	reader := tar.NewReader(merged)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		names = append(names, header.Name)
		g.Expect(header.Uname).To(BeEmpty())
		switch header.Name {
		case "usr/lib/": // the first archive's
			g.Expect(header.Mode).To(BeEquivalentTo(0o755))
		case "usr/lib/a.so":
			g.Expect(header.Linkname).To(Equal("usr/lib/b.so"))
		case "usr/lib/b.so":
			g.Expect(io.ReadAll(reader)).To(BeEquivalentTo("./lib/b.so"))
		}
	}
	g.Expect(names).To(Equal([]string{"usr/lib/", "usr/lib/b.so", "usr/share/doc/a/copyright", "usr/lib/a.so"}))
}
