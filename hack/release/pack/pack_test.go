// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	committed = time.Unix(1_800_000_000, 0)
	files     = []File{
		{Name: "kubectl-insitu", Executable: true, Content: []byte("binary")},
		{Name: "LICENSE", Content: []byte("license")},
		{Name: "a/b.yaml", Content: []byte("b: 1")},
	}
)

func TestArchivesAreTheSame(t *testing.T) {
	for name, packed := range map[string]func([]File, time.Time) ([]byte, error){"tar": Tar, "tar.gz": TarGz} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			one, err := packed(files, committed)
			g.Expect(err).NotTo(HaveOccurred())

			// In another order, elsewhere, in another time zone.
			t.Chdir(t.TempDir())
			reversed := slices.Clone(files)
			slices.Reverse(reversed)
			two, err := packed(reversed, committed.In(time.FixedZone("there", 7200)).Add(time.Nanosecond))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(SHA256(two)).To(Equal(SHA256(one)))

			// What goes in shows.
			later, err := packed(files, committed.Add(time.Second))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(SHA256(later)).NotTo(Equal(SHA256(one)))
		})
	}
}

func TestArchiveHoldsWhatWasPacked(t *testing.T) {
	g := NewWithT(t)
	packed, err := TarGz(files, committed)
	g.Expect(err).NotTo(HaveOccurred())

	plain, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plain.ModTime.IsZero()).To(BeTrue())
	archive, modes := tar.NewReader(plain), map[string]int64{}
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(header.ModTime).To(BeTemporally("==", committed))
		g.Expect(header.Uid + header.Gid).To(BeZero())
		g.Expect(header.Uname + header.Gname).To(BeEmpty())
		modes[header.Name] = header.Mode
	}
	g.Expect(modes).To(Equal(map[string]int64{"LICENSE": 0o644, "a/b.yaml": 0o644, "kubectl-insitu": 0o755}))
}

func TestArchiveRefusesNames(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"", "/etc/passwd", "../up", "a/../../up", "a//b", "./a"} {
		_, err := Tar([]File{{Name: name}}, committed)
		g.Expect(err).To(MatchError(ContainSubstring("want a clean relative path")), name)
	}
	_, err := Tar([]File{{Name: "a"}, {Name: "a"}}, committed)
	g.Expect(err).To(MatchError(`pack "a": there are two files of this name`))
	_, err = Tar(nil, committed)
	g.Expect(err).To(MatchError(ContainSubstring("no files")))
}

// The file is what sha256sum makes, and what it checks.
func TestChecksums(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for name, content := range map[string]string{"b": "two", "a": "one"} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)).To(Succeed())
	}
	g.Expect(os.Mkdir(filepath.Join(dir, "folder"), 0o755)).To(Succeed())

	sums, err := Checksums(dir)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sums).To(Equal("7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a\n" +
		"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b\n"))
	g.Expect(os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(sums), 0o644)).To(Succeed())
	check := exec.Command("sha256sum", "--strict", "-c", "checksums.txt")
	check.Dir = dir
	output, err := check.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(output)).To(Equal("a: OK\nb: OK\n"))
}

func TestChecksumsRefuse(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	_, err := Checksums(dir)
	g.Expect(err).To(MatchError(ContainSubstring("there are no files")))
	g.Expect(os.WriteFile(filepath.Join(dir, "a"), nil, 0o644)).To(Succeed())
	_, err = Checksums(dir)
	g.Expect(err).To(MatchError("sum up a: the file is empty"))
	_, err = Checksums(filepath.Join(dir, "missing"))
	g.Expect(err).To(MatchError(ContainSubstring("missing")))
}

func TestEnsureNoPaths(t *testing.T) {
	g := NewWithT(t)
	folders := []string{"", "/", "/tmp", "/home/jane/src/insitu/"}
	g.Expect(EnsureNoPaths("binary", []byte("\x00/tmp/x\x00github.com/insitu-dev/insitu/cmd\x00"), folders)).To(Succeed())
	err := EnsureNoPaths("binary", []byte("\x00/home/jane/src/insitu/cmd/insitu/main.go\x00"), folders)
	g.Expect(err).To(MatchError(ContainSubstring(`binary names a folder of this machine at byte 1: "/home/jane/src/insitu/cmd/insitu/main.go`)))
}

// Folders with short names are the ends of many paths that are no folders of the machine.
func TestEnsureNoPathsOfShortFolders(t *testing.T) {
	g := NewWithT(t)
	folders := []string{"/insitu", "/cache", "/pkg/mod"}
	for _, fine := range []string{
		`"Entrypoint":["/insitu"]`, "github.com/insitu-dev/insitu/cmd/build", "k8s.io/client-go/tools/cache/index.go", "$(GOPATH)/pkg/mod/x", "v1.2.3/cache/x",
		"a-/insitu/", "/insitu2/x",
	} {
		g.Expect(EnsureNoPaths("binary", []byte("\x00"+fine+"\x00"), folders)).To(Succeed(), fine)
	}
	for _, found := range []string{
		"/insitu/cmd/insitu/main.go", "tools/cache/index.go\x00/insitu/main.go", "-o=/cache/x", `"/cache/x"`, "file:///insitu/x", "in /pkg/mod",
	} {
		g.Expect(EnsureNoPaths("binary", []byte(found), folders)).To(MatchError(ContainSubstring("binary names a folder of this machine")), found)
	}
}
