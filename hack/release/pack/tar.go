// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pack writes archives and checksums that depend on what is packed and on
// nothing else: not on the folder, the user, the clock, or the order of the files.
package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a regular file of an archive.
type File struct {
	// Name is relative and clean: "insitu/Chart.yaml".
	Name string
	// Executable gives the mode 0755, else it is 0644.
	Executable bool
	Content    []byte
}

// Tar returns a tar archive of files, sorted by name. All have the same time, and
// belong to root. Names have to be relative, clean and unique.
func Tar(files []File, modified time.Time) ([]byte, error) {
	var content bytes.Buffer
	if err := writeTar(&content, files, modified); err != nil {
		return nil, err
	}

	return content.Bytes(), nil
}

// TarGz is Tar, compressed.
func TarGz(files []File, modified time.Time) ([]byte, error) {
	var content bytes.Buffer
	// The header has neither name nor time.
	compressed, err := gzip.NewWriterLevel(&content, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(compressed, files, modified); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("compress archive: %w", err)
	}

	return content.Bytes(), nil
}

func writeTar(target io.Writer, files []File, modified time.Time) error {
	if len(files) == 0 {
		return fmt.Errorf("pack archive: there are no files")
	}
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	archive := tar.NewWriter(target)
	for i, file := range sorted {
		if i > 0 && sorted[i-1].Name == file.Name {
			return fmt.Errorf("pack %q: there are two files of this name", file.Name)
		}
		if err := writeFile(archive, file, modified); err != nil {
			return fmt.Errorf("pack %q: %w", file.Name, err)
		}
	}

	return archive.Close()
}

func writeFile(archive *tar.Writer, file File, modified time.Time) error {
	if file.Name == "" || path.IsAbs(file.Name) || path.Clean(file.Name) != file.Name || strings.HasPrefix(file.Name, "..") {
		return fmt.Errorf("want a clean relative path such as insitu/Chart.yaml")
	}
	mode := int64(0o644)
	if file.Executable {
		mode = 0o755
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     file.Name,
		Mode:     mode,
		Size:     int64(len(file.Content)),
		ModTime:  modified.UTC().Truncate(time.Second),
		Format:   tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(file.Content)

	return err
}
