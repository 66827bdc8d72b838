// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// manifest is what a registry keeps of an image besides its blobs. An image is
// only the same when its content type is.
type manifest struct {
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

// manifestKey names a manifest by repository ("library/nginx") and by tag or
// digest ("alpine", "sha256:...").
type manifestKey struct {
	repository, target string
}

// manifestPath splits the path of a request for a manifest.
func manifestPath(path string) (repository, target string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return "", "", false
	}
	repository, target, ok = strings.Cut(rest, "/manifests/")
	return repository, target, ok && repository != "" && target != "" && !strings.Contains(target, "/")
}

// manifestStore is a folder with one file per repository and tag or digest.
type manifestStore struct {
	dir string
}

func (s manifestStore) file(key manifestKey) string {
	return filepath.Join(s.dir, url.PathEscape(key.repository), url.PathEscape(key.target))
}

// write keeps m under its tag and under its digest, so that a pod that names
// the digest can still pull it after the tag has moved on.
func (s manifestStore) write(key manifestKey, m manifest) error {
	digest, _, err := v1.SHA256(bytes.NewReader(m.Body))
	if err != nil {
		return fmt.Errorf("compute digest: %w", err)
	}
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	for _, target := range []string{digest.String(), key.target} {
		if err := writeFile(s.file(manifestKey{key.repository, target}), content); err != nil {
			return fmt.Errorf("keep manifest %s:%s: %w", key.repository, target, err)
		}
	}
	return nil
}

func (s manifestStore) remove(key manifestKey) error {
	if err := os.Remove(s.file(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove manifest: %w", err)
	}
	return nil
}

// replay pushes everything kept to served. Images go before the indexes that
// list them, because a registry refuses an index of unknown images.
func (s manifestStore) replay(served http.Handler) error {
	var indexes []func() error
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		key, m, err := s.read(path)
		if err != nil {
			return err
		}
		if types.MediaType(m.ContentType).IsIndex() {
			indexes = append(indexes, func() error { return restore(served, key, m) })
			return nil
		}
		return restore(served, key, m)
	})
	if err != nil {
		return err
	}
	for _, restoreIndex := range indexes {
		if err := restoreIndex(); err != nil {
			return err
		}
	}
	return nil
}

func (s manifestStore) read(path string) (manifestKey, manifest, error) {
	var m manifest
	content, err := os.ReadFile(path)
	if err != nil {
		return manifestKey{}, m, err
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return manifestKey{}, m, fmt.Errorf("read manifest %s: %w", path, err)
	}
	repository, err := url.PathUnescape(filepath.Base(filepath.Dir(path)))
	if err != nil {
		return manifestKey{}, m, fmt.Errorf("read name of %s: %w", path, err)
	}
	target, err := url.PathUnescape(filepath.Base(path))
	if err != nil {
		return manifestKey{}, m, fmt.Errorf("read name of %s: %w", path, err)
	}
	return manifestKey{repository, target}, m, nil
}

func restore(served http.Handler, key manifestKey, m manifest) error {
	if answer := put(served, key, m); answer.status >= http.StatusBadRequest {
		return fmt.Errorf("restore %s:%s: %s", key.repository, key.target, answer.body.String())
	}
	return nil
}

// writeFile writes a file so that a crash leaves the old content or the new.
func writeFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(dir), ".write-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	if _, err := temporary.Write(content); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
