// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package images builds, keeps and serves the container images of the lab,
// without Docker and without any other registry.
//
// A lab uses it in three steps:
//
//	handler, err := images.NewRegistry(filepath.Join(labDir, "registry"))
//	go http.Serve(listener, handler) // 127.0.0.1:5000, the mirror of docker.io
//
//	set, err := images.BuildSet(ctx, images.SetOptions{CacheDir: cacheDir, Progress: say})
//	err = images.LoadAll(ctx, "http://127.0.0.1:5000", set)
//
// After that a kubelet whose containerd names the registry as mirror of
// docker.io runs `image: nginx:alpine` as it is. The pause image is PauseRef;
// containerd's sandbox_image is then "docker.io/" + PauseRef.
//
// BuildSet builds these images; references in one line have one digest:
//
//	library/nginx:alpine, library/nginx:1.28.0-alpine
//	library/nginx:latest, library/nginx:stable, library/nginx:1.29.0-alpine
//	insitu-dev/pause:v1
//	insitu-dev/sleeper:v1
//	insitu-dev/sleeper:v2, insitu-dev/sleeper:same-as-v2
//	insitu-dev/sleeper:v3
//
// BuildExtra builds one of those that take long, for labs that ask for it. The
// tags of a server differ in nothing but their digest:
//
//	library/redis:alpine, library/redis:latest
//	library/postgres:alpine, library/postgres:17.5-bookworm
//	library/postgres:latest, library/postgres:17.6-bookworm
//
// The names with a version are those of examples/: what is served under them is
// the server of Debian, whatever its version.
//
// A single image, such as the operator's, is made by FromGo or FromDeb and
// pushed by Load:
//
//	img, err := images.FromGo(ctx, images.GoOptions{Dir: repositoryRoot, Package: "./cmd/insitu"})
//	err = images.Load(ctx, "http://127.0.0.1:5000", "insitu-dev/insitu:dev", img)
//
// # References
//
// A reference is written as in a pod: "nginx:alpine", "library/nginx:alpine"
// and "docker.io/library/nginx:alpine" are the same image, and the tag
// defaults to "latest". The registry keeps it as library/nginx, the name under
// which a mirror of docker.io is asked for it.
//
// # Determinism
//
// The same input gives the same digest: times are zero and tar entries are
// sorted. For FromGo the input is the Go toolchain, the source and the folder
// it lies in; for FromDeb it is the versions of the packages.
package images
