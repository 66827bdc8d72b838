// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of every file in every image.
var epoch = time.Unix(0, 0).UTC()

// layerOf packs files, sorted by path, into a layer.
func layerOf(files ...File) (v1.Layer, error) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, file := range files {
		if err := writeEntry(archive, file); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return readCloser{bytes.NewReader(content.Bytes())}, nil
	}, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	return layer, nil
}

func writeEntry(archive *tar.Writer, file File) error {
	path, ok := strings.CutPrefix(file.Path, "/")
	if !ok || path == "" {
		return fmt.Errorf("path is %q, want an absolute path below /", file.Path)
	}
	header := &tar.Header{
		Name:    path,
		Mode:    int64(file.Mode.Perm()),
		Uid:     file.Owner,
		Gid:     file.Owner,
		ModTime: epoch,
	}
	if file.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch file.Mode.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, path+"/"
		return archive.WriteHeader(header)
	case fs.ModeSymlink:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, string(file.Content), 0o777
		return archive.WriteHeader(header)
	case 0:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(file.Content))
		if file.Mode == 0 {
			header.Mode = 0o644
		}
	default:
		return fmt.Errorf("mode is %s, want a file, directory or symbolic link", file.Mode)
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(file.Content)
	return err
}

// User is a line of /etc/passwd and of /etc/group.
type User struct {
	Name string
	ID   int
}

// baseFiles returns what nearly every program expects to find: /run, /tmp and
// the names of its users.
func baseFiles(users []User) []File {
	known := append([]User{{"root", 0}, {"nobody", 65534}, {"nonroot", Nonroot}}, users...)
	var passwd, group strings.Builder
	for _, user := range known {
		fmt.Fprintf(&passwd, "%s:x:%d:%d:%s:/:/usr/sbin/nologin\n", user.Name, user.ID, user.ID, user.Name)
		fmt.Fprintf(&group, "%s:x:%d:\n", user.Name, user.ID)
	}
	return []File{
		{Path: "/etc", Mode: fs.ModeDir | 0o755},
		{Path: "/etc/passwd", Content: []byte(passwd.String())},
		{Path: "/etc/group", Content: []byte(group.String())},
		{Path: "/run", Mode: fs.ModeDir | 0o755},
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}
