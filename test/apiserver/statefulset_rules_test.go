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

// at returns a patch of the field at a path.
func at(path, fields string) string {
	names := strings.Split(path, ".")

	return strings.Join(names, ": {") + ": " + fields + strings.Repeat("}", len(names)-1)
}

func TestRefusedOnCreate(t *testing.T) {
	testRefusedOnCreate(t, valid, map[string]map[string]refusal{
		"common":         commonRefusals(),
		"identity":       identityRefusals(),
		"template":       templateRefusals(),
		"strategy":       strategyRefusals(),
		"order":          orderRefusals(),
		"priority":       priorityRefusals("spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy"),
		"in place":       inPlaceRefusals("spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy"),
		"resize":         resizeRefusals("spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.resize"),
		"claims":         claimTemplateRefusals(),
		"claim strategy": claimStrategyRefusals(),
		"hooks":          hookRefusals(),
	})
}

// testRefusedOnCreate makes every mistake of the tables in a valid object.
func testRefusedOnCreate(t *testing.T, base string, tables map[string]map[string]refusal) {
	t.Helper()

	c := strictClient(t)

	for _, version := range versions() {
		for group, table := range tables {
			for name, test := range table {
				t.Run(version+"/"+group+"/"+name, func(t *testing.T) {
					err := c.Create(t.Context(), patchOf(t, base, version, test.patch), client.DryRunAll)
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
