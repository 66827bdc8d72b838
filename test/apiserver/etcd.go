// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Store puts a value under a key of etcd, past the API server. So an object can
// be there as an earlier release left it: with its UID, its generation and its
// times, and without the defaults and the validation that a request of today
// would meet. The API server reads JSON as well as what it writes itself.
func (s *Server) Store(ctx context.Context, key string, value []byte) error {
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value})
	if err != nil {
		return fmt.Errorf("store %s in etcd: %w", key, err)
	}

	url := s.environment.ControlPlane.Etcd.URL.JoinPath("v3", "kv", "put")

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("store %s in etcd: %w", key, err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("store %s in etcd: %w", key, err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(response.Body)

		return fmt.Errorf("store %s in etcd: %s: %s", key, response.Status, message)
	}

	return nil
}
