// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/insitu-dev/insitu/hack/release/image"
	"github.com/insitu-dev/insitu/hack/release/licenses"
	"github.com/insitu-dev/insitu/hack/release/pack"
	"github.com/insitu-dev/insitu/hack/release/sbom"
)

const (
	license = "Apache-2.0"
	// layoutDir is the image as a folder, beside the files of the release.
	layoutDir = "image"
	// markerDir says that a folder is a release, or was to be one, and may be emptied. It is
	// an empty folder, so it is no file of the release.
	markerDir = ".insitu-release"
)

// release is what is made from a source. Files come in the order of the steps; each
// step may use what those before it made.
type release struct {
	source
	dir string
	say io.Writer

	libraries []licenses.Library
	beside    []pack.File
	binaries  []binary
	index     v1.ImageIndex
	digest    string
	archives  map[string][]byte
}

// make makes everything. The folder must be empty or an earlier release, which goes.
func (r *release) make(ctx context.Context) error {
	if err := r.clear(); err != nil {
		return err
	}
	fmt.Fprintf(r.say, "Insitu %s from commit %s of %s, in %s\n", r.version, r.commit, r.time.Format(time.RFC3339), r.dir)
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Release notes", r.writeNotes},
		{"Licenses of what is linked", r.readLicenses},
		{"Manager", func(ctx context.Context) error { return r.compileAll(ctx, manager) }},
		{"Image", r.writeImage},
		{"Chart", r.writeChart},
		{"install.yaml", r.writeInstall},
		{"Plugin", func(ctx context.Context) error { return r.compileAll(ctx, plugin) }},
		{"Archives of the plugin", r.writeArchives},
		{"Bills of materials", r.writeBills},
		{"Checksums", r.writeChecksums},
	} {
		began := time.Now()
		fmt.Fprintf(r.say, "%s\n", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(r.say, "  done in %s\n", time.Since(began).Round(100*time.Millisecond))
	}

	return nil
}

// clear empties the folder. One that was not made by it is not touched.
func (r *release) clear() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(entries) > 0 {
		if marker, err := os.Lstat(filepath.Join(r.dir, markerDir)); err != nil || !marker.IsDir() {
			return fmt.Errorf("%s holds something else than a release: want an empty folder", r.dir)
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}

	return os.MkdirAll(filepath.Join(r.dir, markerDir), 0o755)
}

func (r *release) writeNotes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notes(string(changelog), r.version)
	if err != nil {
		return err
	}

	return r.write("NOTES.md", []byte(text))
}

// readLicenses also makes the files that come with every program.
func (r *release) readLicenses(ctx context.Context) error {
	scanner, err := licenses.NewScanner()
	if err != nil {
		return err
	}
	found, err := scanner.Scan(ctx, licenses.Systems, "./cmd/...")
	if err != nil {
		return err
	}
	if err := licenses.Check(found, licenses.Allowed); err != nil {
		return err
	}
	notices, err := licenses.Notices("Insitu", found)
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	r.libraries = found
	r.beside = []pack.File{{Name: "LICENSE", Content: own}, {Name: "NOTICES", Content: []byte(notices)}}
	fmt.Fprintf(r.say, "  %d libraries\n", len(found))

	return r.write("NOTICES", []byte(notices))
}

// compileAll makes a program for all of its platforms.
func (r *release) compileAll(ctx context.Context, program string) error {
	folders, err := r.machineFolders(ctx)
	if err != nil {
		return err
	}
	for i, one := range targets {
		if one.program != program {
			continue
		}
		began := time.Now()
		fmt.Fprintf(r.say, "  %s for %s, %d of %d\n", one.program, one.platform(), i+1, len(targets))
		made, err := r.compile(ctx, one, r.say)
		if err != nil {
			return err
		}
		if err := made.check(folders); err != nil {
			return err
		}
		fmt.Fprintf(r.say, "    %.1f MiB in %s\n", float64(len(made.content))/(1<<20), time.Since(began).Round(time.Second))
		r.binaries = append(r.binaries, made)
	}

	return nil
}

func (r *release) writeImage(context.Context) error {
	var platforms []image.Platform
	for _, one := range r.binaries {
		if one.program == manager {
			platforms = append(platforms, image.Platform{Architecture: one.arch, Program: one.content, Beside: r.beside})
		}
	}
	index, err := image.Index(r.describe(), platforms...)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	layout := filepath.Join(r.dir, layoutDir)
	if err := image.Write(layout, r.version, index); err != nil {
		return err
	}
	archive, err := r.packFolder(layout)
	if err != nil {
		return err
	}
	r.index, r.digest = index, digest.String()
	fmt.Fprintf(r.say, "  %s:%s@%s\n", r.repository, r.version, r.digest)
	if err := r.write("image.txt", fmt.Appendf(nil, "%s:%s@%s\n", r.repository, r.version, r.digest)); err != nil {
		return err
	}

	return r.write("insitu-"+r.version+"-image.tar", archive)
}

// packFolder returns a folder as a tar archive.
func (r *release) packFolder(root string) ([]byte, error) {
	var files []pack.File
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, pack.File{Name: filepath.ToSlash(relative), Content: content})

		return err
	})
	if err != nil {
		return nil, err
	}

	return pack.Tar(files, r.time)
}

func (r *release) writeBills(context.Context) error {
	manifest, err := r.index.IndexManifest()
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, one := range manifest.Manifests {
		digests[one.Platform.String()] = one.Digest.String()
	}
	for _, one := range r.binaries {
		about := sbom.Program{
			Name: one.program, Version: r.version, Platform: one.platform(), SHA256: pack.SHA256(one.content),
			License: license, Build: one.build, Created: r.time, Licenses: licenses.ByModule(r.libraries),
		}
		var held *sbom.Image
		name := one.String()
		if one.program == manager {
			held = &sbom.Image{Repository: r.repository, Digest: digests[one.platform()]}
			name = "image_" + one.system + "_" + one.arch
		}
		bill, err := sbom.Write(about, held)
		if err != nil {
			return err
		}
		if err := r.write(name+".cdx.json", bill); err != nil {
			return err
		}
	}

	return nil
}

func (r *release) writeArchives(context.Context) error {
	r.archives = map[string][]byte{}
	for _, one := range r.binaries {
		if one.program != plugin {
			continue
		}
		files := append([]pack.File{{Name: one.file(), Executable: true, Content: one.content}}, r.beside...)
		archive, err := pack.TarGz(files, r.time)
		if err != nil {
			return err
		}
		name := one.String() + ".tar.gz"
		r.archives[name] = archive
		if err := r.write(name, archive); err != nil {
			return err
		}
	}
	template, err := os.ReadFile(filepath.Join(r.root, ".krew.yaml"))
	if err != nil {
		return err
	}
	manifest, err := krewManifest(string(template), r.version, r.archives)
	if err != nil {
		return err
	}

	return r.write("krew.yaml", []byte(manifest))
}

func (r *release) writeChart(ctx context.Context) error {
	packed, err := r.chart(ctx, r.digest)
	if err != nil {
		return err
	}
	name := "insitu-" + r.version + ".tgz"
	if err := r.write(name, packed); err != nil {
		return err
	}

	return r.checkChart(ctx, filepath.Join(r.dir, name), r.digest)
}

func (r *release) writeInstall(ctx context.Context) error {
	rendered, err := r.install(ctx, r.digest)
	if err != nil {
		return err
	}

	return r.write("install.yaml", []byte(rendered))
}

// writeChecksums is last: it sums up all files that are there.
func (r *release) writeChecksums(ctx context.Context) error {
	folders, err := r.machineFolders(ctx)
	if err != nil {
		return err
	}
	sums, err := pack.Checksums(r.dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.dir, entry.Name()))
		if err != nil {
			return err
		}
		if err := pack.EnsureNoPaths(entry.Name(), content, folders); err != nil {
			return err
		}
	}
	fmt.Fprint(r.say, sums)

	return r.write("checksums.txt", []byte(sums))
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644)
}
