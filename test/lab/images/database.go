// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import "io/fs"

// The user and group of the database servers.
const (
	databaseUser  = 999
	databaseOwner = "999:999"
)

// databaseFiles returns a shell with the tools that one needs to look around, a
// file that tells two tags of a server apart, and folders for its data.
func databaseFiles(image string, folders ...string) []File {
	files := append(busybox("cat", "chmod", "df", "du", "echo", "env", "ls", "mv", "ps", "rm", "sh", "sleep", "stat", "sync", "test"),
		File{Path: "/etc/image", Content: []byte(image + "\n")})
	for _, folder := range folders {
		files = append(files, File{Path: folder, Mode: fs.ModeDir | 0o755, Owner: databaseUser})
	}
	return files
}

// busybox returns links that make tools out of it.
func busybox(tools ...string) []File {
	files := make([]File, len(tools))
	for i, tool := range tools {
		files[i] = File{Path: "/usr/bin/" + tool, Mode: fs.ModeSymlink, Content: []byte("busybox")}
	}
	return files
}
