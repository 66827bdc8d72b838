// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// format is part of the name of every kept layer and image. Count it up when
// the way of packing changes.
const format = "1"

// mergedFolders are the folders of the root that are links into /usr.
var mergedFolders = []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin"}

// debLayer merges the files of Debian archives into one layer. The layer is
// kept in dir, under a name made from the names of the archives, which hold
// the versions.
func debLayer(ctx context.Context, dir string, archives []string) (v1.Layer, error) {
	names := sha256.New()
	fmt.Fprintln(names, format)
	for _, archive := range archives {
		fmt.Fprintln(names, filepath.Base(archive))
	}
	kept := filepath.Join(dir, fmt.Sprintf("%x.tar", names.Sum(nil)))
	if isMissing(kept) {
		if err := writeDebLayer(ctx, kept, archives); err != nil {
			return nil, err
		}
	}
	layer, err := tarball.LayerFromFile(kept, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	return layer, nil
}

func writeDebLayer(ctx context.Context, kept string, archives []string) error {
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(kept), ".unpack-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	merged := filepath.Join(work, "layer.tar")
	if err := mergeArchives(ctx, work, merged, archives); err != nil {
		return err
	}
	return os.Rename(merged, kept)
}

// mergeArchives writes the entries of all archives to one tar file, sorted by
// name. Only the index is held in memory: PostgreSQL and what it needs is more
// than 200 MB.
func mergeArchives(ctx context.Context, work, merged string, archives []string) error {
	index := debIndex{}
	var contents []*os.File // read when the merged file is written
	defer func() {
		for _, content := range contents {
			_ = content.Close()
		}
	}()
	for i, archive := range archives {
		content, err := unwrap(ctx, archive, filepath.Join(work, fmt.Sprintf("%d.tar", i)))
		if err != nil {
			return fmt.Errorf("open %s: %w", filepath.Base(archive), err)
		}
		contents = append(contents, content)
		if err := index.add(content); err != nil {
			return fmt.Errorf("read %s: %w", filepath.Base(archive), err)
		}
	}
	out, err := os.Create(merged)
	if err != nil {
		return err
	}
	return errors.Join(index.writeTo(out), out.Close())
}

// unwrap writes the files of a Debian archive to a tar file, uncompressed.
func unwrap(ctx context.Context, archive, target string) (*os.File, error) {
	out, err := os.Create(target)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", archive)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("run dpkg-deb: %w", withOutput(err, stderr.String())), out.Close())
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// debIndex maps the path of each file to where its content lies.
type debIndex map[string]debEntry

type debEntry struct {
	header  *tar.Header
	content *io.SectionReader
}

// add enters all files of a tar file. Of two files with one path the later
// stays, as with dpkg when a package says that it replaces another.
func (x debIndex) add(file *os.File) error {
	archive := tar.NewReader(file)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := mergedName(header.Name)
		if name == "" || isDocumentation(name) || !isPacked(header.Typeflag) {
			continue
		}
		// The reader has consumed exactly the header, so the content is next.
		start, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if old, ok := x[name]; ok && old.header.Typeflag == tar.TypeDir && header.Typeflag == tar.TypeDir {
			continue
		}
		x[name] = debEntry{normal(name, header), io.NewSectionReader(file, start, header.Size)}
	}
}

// writeTo writes everything sorted by name. A hard link sorts before the file
// it is a link to when its name does, and would then be refused on unpacking;
// hard links go last for that reason.
func (x debIndex) writeTo(w io.Writer) error {
	archive := tar.NewWriter(w)
	names := slices.SortedFunc(maps.Keys(x), func(a, b string) int {
		linkA, linkB := x[a].header.Typeflag == tar.TypeLink, x[b].header.Typeflag == tar.TypeLink
		if linkA != linkB {
			if linkA {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		entry := x[name]
		if err := archive.WriteHeader(entry.header); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		if entry.header.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := io.Copy(archive, entry.content); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return archive.Close()
}

// normal keeps of a header what belongs to the file and not to the moment of
// packing.
func normal(name string, header *tar.Header) *tar.Header {
	kept := &tar.Header{
		Typeflag: header.Typeflag,
		Name:     name,
		Linkname: header.Linkname,
		Mode:     header.Mode,
		Uid:      header.Uid,
		Gid:      header.Gid,
		Size:     header.Size,
		ModTime:  epoch,
	}
	switch header.Typeflag {
	case tar.TypeDir:
		kept.Name += "/"
	case tar.TypeLink:
		kept.Linkname = mergedName(header.Linkname)
	}
	return kept
}

// mergedName returns the path of a file below the root, without a leading
// slash, with /lib/x as usr/lib/x. It is empty for the root itself.
func mergedName(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(mergedFolders, first) {
		return "usr/" + name
	}
	return name
}

func isPacked(typeflag byte) bool {
	return slices.Contains([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink}, typeflag)
}

// isDocumentation tells what no program in a container reads. Copyright files stay,
// as their licenses ask.
func isDocumentation(name string) bool {
	if path.Base(name) == "copyright" {
		return false
	}
	return slices.ContainsFunc([]string{"doc", "info", "lintian", "locale", "man"}, func(folder string) bool {
		return strings.HasPrefix(name, "usr/share/"+folder+"/")
	})
}
