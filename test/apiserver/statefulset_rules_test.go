// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusal is a change of the valid set, as a JSON merge patch, and what the
// error must say.
type refusal struct {
	patch string
	want  []string
}

func TestRefusedOnCreate(t *testing.T) {
	c := strictClient(t)

	tables := map[string]map[string]refusal{
		"identity": identityRefusals(),
		"template": templateRefusals(),
		"strategy": strategyRefusals(),
		"order":    orderRefusals(),
		"in place": inPlaceRefusals(),
		"claims":   claimRefusals(),
		"hooks":    hookRefusals(),
	}

	for _, version := range versions() {
		for group, table := range tables {
			for name, test := range table {
				t.Run(version+"/"+group+"/"+name, func(t *testing.T) {
					err := c.Create(t.Context(), patched(t, version, test.patch), client.DryRunAll)
					assertRefused(t, err, test.want...)
				})
			}
		}
	}
}

// assertRefused checks that the API server refused an object as invalid with an
// error that holds every part.
func assertRefused(t *testing.T, err error, parts ...string) {
	t.Helper()

	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("got error %v, want the object to be refused as invalid", err)
	}

	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
}
