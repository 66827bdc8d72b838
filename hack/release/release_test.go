// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/hack/release/licenses"
	"github.com/insitu-dev/insitu/hack/release/pack"
)

// checkout makes a small repository with one commit.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	all := map[string]string{
		"charts/insitu/Chart.yaml":  "name: insitu\nversion: 1.2.3\nappVersion: 1.2.3\nhome: https://example.org\ndescription: Does things\n",
		"charts/insitu/values.yaml": "image:\n  repository: example/insitu\n",
		".gitignore":                "*.swp\n",
	}
	maps.Copy(all, files)
	for name, content := range all {
		path := filepath.Join(root, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "one"}} {
		command := exec.Command("git", args...)
		command.Dir = root
		command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=1800000000 +0100", "GIT_AUTHOR_DATE=1800000000 +0100", "GIT_CONFIG_GLOBAL=/dev/null")
		output, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))
	}

	return root
}

func TestReadSource(t *testing.T) {
	g := NewWithT(t)
	root := checkout(t, nil)
	for _, version := range []string{"", "1.2.3", "v1.2.3"} {
		found, err := readSource(t.Context(), root, sourceOptions{version: version})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.version + " " + found.repository).To(Equal("1.2.3 example/insitu"))
		g.Expect(found.time).To(Equal(time.Unix(1_800_000_000, 0).UTC()))
		g.Expect(found.commit).To(MatchRegexp("^[0-9a-f]{40}$"))
	}
	found, err := readSource(t.Context(), root, sourceOptions{epoch: "1700000000"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.time).To(Equal(time.Unix(1_700_000_000, 0).UTC()))
}

func TestReadSourceRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		after   string
		options sourceOptions
		want    string
	}{
		"another version": {options: sourceOptions{version: "1.2.4"}, want: `VERSION is "1.2.4", but version in charts/insitu/Chart.yaml is "1.2.3"`},
		"two versions": {
			files: map[string]string{"charts/insitu/Chart.yaml": "version: 1.2.3\nappVersion: 1.2.2\n"},
			want:  `version is "1.2.3" and appVersion is "1.2.2"`,
		},
		"no repository": {files: map[string]string{"charts/insitu/values.yaml": "image: {}\n"}, want: "image.repository"},
		"a new file":    {after: "new.go", want: "commit or remove what changed, or try it with --allow-dirty:\n?? new.go"},
		"another time":  {options: sourceOptions{epoch: "yesterday"}, want: `SOURCE_DATE_EPOCH: found "yesterday"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := checkout(t, test.files)
			if test.after != "" {
				g.Expect(os.WriteFile(filepath.Join(root, test.after), []byte("x"), 0o644)).To(Succeed())
			}
			_, err := readSource(t.Context(), root, test.options)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
	g := NewWithT(t)
	root := checkout(t, nil)
	g.Expect(os.WriteFile(filepath.Join(root, "new"), nil, 0o644)).To(Succeed())
	found, err := readSource(t.Context(), root, sourceOptions{allowDirty: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.commit).To(HaveSuffix("-dirty"))
}

// standIn is a release whose programs were not compiled, but for how they were built.
func standIn(t *testing.T, root string) *release {
	t.Helper()
	g := NewWithT(t)
	found, err := readSource(t.Context(), root, sourceOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	made := &release{
		source: found, dir: filepath.Join(t.TempDir(), "out"), say: io.Discard,
		libraries: []licenses.Library{{Module: "std", Names: []string{"BSD-3-Clause"}}},
		beside:    []pack.File{{Name: "LICENSE", Content: []byte("license")}, {Name: "NOTICES", Content: []byte("notices")}},
	}
	for _, one := range targets {
		made.binaries = append(made.binaries, binary{
			target: one, content: []byte(one.String()),
			build: &debug.BuildInfo{GoVersion: "go1.26.8", Path: "example.org/" + one.program},
		})
	}

	return made
}

// packAll makes all but what needs a compiler, Helm or kustomize, and returns the checksums.
func packAll(t *testing.T, made *release) string {
	t.Helper()
	g := NewWithT(t)
	g.Expect(made.clear()).To(Succeed())
	g.Expect(made.writeNotes(t.Context())).To(Succeed())
	g.Expect(made.writeImage(t.Context())).To(Succeed())
	g.Expect(made.writeBills(t.Context())).To(Succeed())
	g.Expect(made.writeArchives(t.Context())).To(Succeed())
	chart, err := made.chart(t.Context(), made.digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.write("insitu-1.2.3.tgz", chart)).To(Succeed())
	g.Expect(made.writeChecksums(t.Context())).To(Succeed())
	sums, err := os.ReadFile(filepath.Join(made.dir, "checksums.txt"))
	g.Expect(err).NotTo(HaveOccurred())

	return string(sums)
}

func sources(t *testing.T) map[string]string {
	t.Helper()
	krew, err := os.ReadFile("../../.krew.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return map[string]string{
		".krew.yaml": string(krew), "CHANGELOG.md": "## [1.2.3] - 2026-11-22\n\n- Something.\n", "charts/insitu/templates/a.yaml": "a: 1\n",
	}
}

// Two checkouts of one commit, in two folders and at two times, give the same release.
func TestReleasesAreTheSame(t *testing.T) {
	g := NewWithT(t)
	here, there := checkout(t, sources(t)), checkout(t, sources(t))
	one := packAll(t, standIn(t, here))
	old := time.Now().Add(-time.Hour)
	g.Expect(os.Chtimes(filepath.Join(there, "charts/insitu/Chart.yaml"), old, old)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(there, "charts/insitu/.Chart.yaml.swp"), []byte("an editor's"), 0o644)).To(Succeed())
	t.Setenv("TZ", "Asia/Tokyo")
	made := standIn(t, there)
	g.Expect(packAll(t, made)).To(Equal(one))
	g.Expect(packAll(t, made)).To(Equal(one), "into the folder of the release before")

	var names []string
	for line := range strings.Lines(one) {
		names = append(names, strings.Fields(line)[1])
	}
	g.Expect(names).To(Equal([]string{
		"NOTES.md", "image.txt", "image_linux_amd64.cdx.json", "image_linux_arm64.cdx.json", "insitu-1.2.3-image.tar", "insitu-1.2.3.tgz", "krew.yaml",
		"kubectl-insitu_darwin_amd64.cdx.json", "kubectl-insitu_darwin_amd64.tar.gz",
		"kubectl-insitu_darwin_arm64.cdx.json", "kubectl-insitu_darwin_arm64.tar.gz",
		"kubectl-insitu_linux_amd64.cdx.json", "kubectl-insitu_linux_amd64.tar.gz",
		"kubectl-insitu_linux_arm64.cdx.json", "kubectl-insitu_linux_arm64.tar.gz",
		"kubectl-insitu_windows_amd64.cdx.json", "kubectl-insitu_windows_amd64.tar.gz",
	}))
	other := sources(t)
	other["charts/insitu/templates/a.yaml"] = "a: 2\n"
	g.Expect(packAll(t, standIn(t, checkout(t, other)))).NotTo(Equal(one))
}

func TestReleaseTouchesNoOtherFolder(t *testing.T) {
	g := NewWithT(t)
	made := standIn(t, checkout(t, sources(t)))
	for _, name := range []string{"thesis.txt", "NOTES.md", "image/oci-layout", "checksums.txt"} {
		g.Expect(os.RemoveAll(made.dir)).To(Succeed())
		g.Expect(os.MkdirAll(filepath.Join(made.dir, "image"), 0o755)).To(Succeed())
		g.Expect(made.write(name, []byte("x"))).To(Succeed())
		g.Expect(made.clear()).To(MatchError(ContainSubstring("holds something else than a release")))
		g.Expect(filepath.Join(made.dir, name)).To(BeARegularFile())
	}
	// An empty folder is taken, and one where a release broke off as well.
	g.Expect(os.RemoveAll(made.dir)).To(Succeed())
	g.Expect(os.Mkdir(made.dir, 0o755)).To(Succeed())
	g.Expect(made.clear()).To(Succeed())
	g.Expect(made.write("NOTES.md", []byte("x"))).To(Succeed())
	g.Expect(made.clear()).To(Succeed())
	g.Expect(filepath.Join(made.dir, "NOTES.md")).NotTo(BeAnExistingFile())
	// What is no folder stays.
	made.dir = filepath.Join(made.dir, "file")
	g.Expect(os.WriteFile(made.dir, []byte("x"), 0o600)).To(Succeed())
	g.Expect(made.clear()).NotTo(Succeed())
	g.Expect(made.dir).To(BeARegularFile())
}

func TestReleaseNamesNoFolder(t *testing.T) {
	g := NewWithT(t)
	root := checkout(t, sources(t))
	made := standIn(t, root)
	g.Expect(made.clear()).To(Succeed())
	g.Expect(made.write("NOTES.md", []byte("Made in "+root+"\n"))).To(Succeed())
	g.Expect(made.writeChecksums(t.Context())).To(MatchError(ContainSubstring("NOTES.md names a folder of this machine")))
}

func TestBinaryCheck(t *testing.T) {
	g := NewWithT(t)
	one := binary{target: targets[1], build: &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "CGO_ENABLED", Value: "0"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "-trimpath", Value: "true"},
	}}}
	g.Expect(one.check([]string{"/home/jane"})).To(Succeed())
	one.content = []byte("/home/jane/insitu/main.go")
	g.Expect(one.check([]string{"/home/jane"})).To(MatchError(ContainSubstring("insitu_linux_arm64 names a folder of this machine")))
	one.build.Settings[0].Value = "1"
	g.Expect(one.check(nil)).To(MatchError("insitu_linux_arm64 was not built with map[CGO_ENABLED:0]"))
}

func TestNotes(t *testing.T) {
	g := NewWithT(t)
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- Soon.\n\n## [1.2.3] - 2026-11-22\n\n### Added\n\n- This.\n\n## [1.2.2] - 2026-10-01\n\n- That.\n\n" +
		"## [1.2.1]\n\n- Undated.\n\n## [1.2.0] - 2026-09-01\n\n[1.2.3]: https://example.org\n"
	text, err := notes(changelog, "1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal("### Added\n\n- This.\n"))
	for version, want := range map[string]string{
		"1.2.4": `want a section "## [1.2.4] - YYYY-MM-DD"`, "1.2.0": "says nothing of this release", "1.2.1": "and the day of the release",
	} {
		_, err := notes(changelog, version)
		g.Expect(err).To(MatchError(ContainSubstring(want)), version)
	}
}

// The real changelog has what the next release needs.
func TestNotesOfThisRelease(t *testing.T) {
	g := NewWithT(t)
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	g.Expect(err).NotTo(HaveOccurred())
	var chart struct {
		Version string `json:"version"`
	}
	g.Expect(decode("../../charts/insitu/Chart.yaml", &chart)).To(Succeed())
	_, err = notes(string(changelog), chart.Version)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestKrewManifest(t *testing.T) {
	g := NewWithT(t)
	archives := map[string][]byte{}
	for _, one := range targets {
		if one.program == plugin {
			archives[one.String()+".tar.gz"] = []byte(one.arch)
		}
	}
	template := sources(t)[".krew.yaml"]
	text, err := krewManifest(template, "1.2.3", archives)
	g.Expect(err).NotTo(HaveOccurred())
	var manifest struct {
		Spec struct {
			Version   string `json:"version"`
			Platforms []struct {
				URI, SHA256, Bin string
			} `json:"platforms"`
		} `json:"spec"`
	}
	g.Expect(yaml.Unmarshal([]byte(text), &manifest)).To(Succeed())
	g.Expect(manifest.Spec.Version).To(Equal("v1.2.3"))
	g.Expect(manifest.Spec.Platforms).To(HaveLen(5))
	g.Expect(manifest.Spec.Platforms[0].URI).To(Equal("https://github.com/insitu-dev/insitu/releases/download/v1.2.3/kubectl-insitu_linux_amd64.tar.gz"))
	g.Expect(manifest.Spec.Platforms[0].SHA256).To(Equal(pack.SHA256([]byte("amd64"))))
	g.Expect(text).NotTo(ContainSubstring("template"))

	delete(archives, "kubectl-insitu_windows_amd64.tar.gz")
	_, err = krewManifest(template, "1.2.3", archives)
	g.Expect(err).To(MatchError(ContainSubstring("kubectl-insitu_windows_amd64.tar.gz is not made")))
	archives["kubectl-insitu_windows_amd64.tar.gz"], archives["kubectl-insitu_plan9_amd64.tar.gz"] = nil, nil
	_, err = krewManifest(template, "1.2.3", archives)
	g.Expect(err).To(MatchError(ContainSubstring("it has 5 platforms, and 6 archives are made")))
}

func TestPinned(t *testing.T) {
	g := NewWithT(t)
	const image = "example/insitu@sha256:0123"
	for name, annotations := range map[string]string{"none": "", "empty": "annotations:\n", "others": "annotations:\n  a: b\n"} {
		text, err := pinned("name: insitu\nversion: 1.2.3\n"+annotations, image)
		g.Expect(err).NotTo(HaveOccurred(), name)
		var chart struct {
			Name, Version string
			Annotations   map[string]string
		}
		g.Expect(yaml.UnmarshalStrict([]byte(text), &chart)).To(Succeed())
		g.Expect(chart.Name+" "+chart.Version).To(Equal("insitu 1.2.3"), name)
		g.Expect(chart.Annotations).To(HaveKeyWithValue(imageAnnotation, image), name)
		if name == "others" {
			g.Expect(chart.Annotations).To(HaveKeyWithValue("a", "b"))
		}
	}
	_, err := pinned("annotations:\n  insitu.dev/image: another\n", image)
	g.Expect(err).To(MatchError(ContainSubstring("charts/insitu/Chart.yaml: found the annotation insitu.dev/image: another")))
	_, err = pinned("a: [", image)
	g.Expect(err).To(MatchError(ContainSubstring("read charts/insitu/Chart.yaml")))
}

// The package of the real chart has the image of the release in all that it renders, and
// another where a user names another: with no more words than for the chart of a checkout.
func TestPackagedChart(t *testing.T) {
	g := NewWithT(t)
	root, err := filepath.Abs("../..")
	g.Expect(err).NotTo(HaveOccurred())
	made := source{root: root, time: time.Unix(1_800_000_000, 0)}
	g.Expect(made.readChart("")).To(Succeed())
	digest := "sha256:" + strings.Repeat("a", 64)
	packed, err := made.chart(t.Context(), digest)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), "insitu.tgz")
	g.Expect(os.WriteFile(path, packed, 0o600)).To(Succeed())

	g.Expect(made.checkChart(t.Context(), path, digest)).To(Succeed())

	rendered, err := made.run(t.Context(), "hack/tool", "helm", "template", "insitu", path, "--show-only=templates/deployment.yaml",
		"--set=image.repository=mirror.example.com/insitu,image.tag=dev")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rendered).To(MatchRegexp(`(?m)^\s+(- )?image: "?mirror.example.com/insitu:dev"?$`))
}

func TestCheckImages(t *testing.T) {
	g := NewWithT(t)
	made := source{repository: "example/insitu"}
	const fine = "- image: example/insitu@sha256:01\n"
	g.Expect(made.checkImages("it", "containers:\n"+fine+"  name: a\n"+`  image: "example/insitu@sha256:01"`, "sha256:01")).To(Succeed())
	g.Expect(made.checkImages("it", fine+"- image: example/insitu:dev\n", "sha256:01")).To(MatchError("it has the image example/insitu:dev, want example/insitu@sha256:01"))
	g.Expect(made.checkImages("it", "kind: Service\n", "sha256:01")).To(MatchError(ContainSubstring("it has no image")))
}

func TestVerbs(t *testing.T) {
	g := NewWithT(t)
	for _, args := range [][]string{nil, {"publish"}} {
		g.Expect(run(t.Context(), args, io.Discard)).To(MatchError("want one of the verbs make, push, image, licenses"))
	}
	g.Expect(run(t.Context(), []string{"image", "--arch", "x86_64"}, io.Discard)).To(MatchError(`flag --arch: found "x86_64", accepted are amd64 and arm64`))
	// Nothing is pushed that is not what the release names.
	made := standIn(t, checkout(t, sources(t)))
	packAll(t, made)
	g.Expect(made.write("image.txt", []byte("example/insitu:1.2.3@sha256:"+strings.Repeat("0", 64)+"\n"))).To(Succeed())
	t.Chdir(made.root)
	err := run(t.Context(), []string{"push", "--root", made.root, "--from", made.dir}, io.Discard)
	g.Expect(err).To(MatchError(ContainSubstring("and image.txt names sha256:000")))
}
