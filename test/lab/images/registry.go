// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

// maxManifestBytes bounds what a client may push as one manifest. Registries
// commonly stop at 4 MiB.
const maxManifestBytes = 4 << 20

// NewRegistry returns an image registry that keeps everything in dir: what was
// pushed before is served again after a restart. It is meant for
// http.Serve on the loopback interface; there is no authentication, but for images under
// PrivatePrefix. SetBandwidth says how fast it is, until it is started again.
//
// containerd may use it as the mirror of docker.io. The query `ns=docker.io`
// that containerd then adds tells nodes from others; there is only one namespace.
func NewRegistry(dir string) (http.Handler, error) {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return nil, fmt.Errorf("create registry: %w", err)
	}
	if err := os.Remove(bandwidthFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lift the limit of the registry: %w", err)
	}
	store := manifestStore{dir: filepath.Join(dir, "manifests")}
	served := registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.Logger(log.New(io.Discard, "", 0)),
	)
	if err := store.replay(served); err != nil {
		return nil, fmt.Errorf("restore registry: %w", err)
	}
	return &limited{served: private{persistent{served: served, store: store}}, file: bandwidthFile(dir)}, nil
}

// Nodes get images whose names begin with PrivatePrefix only as PrivateUser with PrivatePassword.
const (
	PrivatePrefix   = "private/"
	PrivateUser     = "reader"
	PrivatePassword = "open-sesame"
)

// private passes on what nodes ask of private images only with the password.
type private struct{ served http.Handler }

func (p private) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	isNode := req.URL.Query().Has("ns")
	user, password, _ := req.BasicAuth()
	if isNode && strings.HasPrefix(req.URL.Path, "/v2/"+PrivatePrefix) && (user != PrivateUser || password != PrivatePassword) {
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
		http.Error(w, "wrong user or password", http.StatusUnauthorized)
		return
	}
	p.served.ServeHTTP(w, req)
}

// persistent passes requests on to a registry that keeps manifests in memory
// only, and writes each change of a manifest to disk before it is answered.
type persistent struct {
	served http.Handler
	store  manifestStore
}

func (p persistent) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	repository, target, ok := manifestPath(req.URL.Path)
	switch {
	case ok && req.Method == http.MethodPut:
		p.put(w, req, manifestKey{repository, target})
	case ok && req.Method == http.MethodDelete:
		p.remove(w, req, manifestKey{repository, target})
	default:
		p.served.ServeHTTP(w, req)
	}
}

func (p persistent) put(w http.ResponseWriter, req *http.Request, key manifestKey) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxManifestBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	m := manifest{ContentType: req.Header.Get("Content-Type"), Body: body}
	answer := put(p.served, key, m)
	if answer.status < http.StatusBadRequest {
		if err := p.store.write(key, m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	answer.sendTo(w)
}

func (p persistent) remove(w http.ResponseWriter, req *http.Request, key manifestKey) {
	answer := newRecorder()
	p.served.ServeHTTP(answer, req)
	if answer.status < http.StatusBadRequest {
		if err := p.store.remove(key); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	answer.sendTo(w)
}
