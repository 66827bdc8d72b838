// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/hack/marked"
)

// TestJudge: the words of the table are those of the code that decides.
func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		before, patch string
		want          outcome
	}{
		"an image": {
			patch: `[{"op": "replace", "path": "/spec/containers/1/image", "value": "example.io/log:2"}]`,
			want:  outcome{possible: "in place, the container restarts", only: "in place, the container restarts"},
		},
		"a field that no live pod changes": {
			patch: `[{"op": "add", "path": "/spec/hostNetwork", "value": true}]`,
			want:  outcome{possible: "recreated", only: "stays as it is", reason: "`FieldImmutable`"},
		},
		"sizes of another QoS class": {
			before: `[{"op": "replace", "path": "/spec/initContainers", "value": []}]`,
			patch: `[{"op": "replace", "path": "/spec/containers/0/resources", "value":
				{"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}},
				{"op": "add", "path": "/spec/containers/1/resources", "value":
				{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]`,
			want: outcome{possible: "recreated", only: "stays as it is", reason: "`ResizeQOSClass`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := change{Patch: json.RawMessage(tc.patch)}
			if tc.before != "" {
				c.Before = json.RawMessage(tc.before)
			}

			g.Expect(c.judge()).To(Equal(tc.want))
		})
	}
}

// TestFieldsThatAreJudgedOtherwise: a field of a later Kubernetes that may change in
// place is not hidden among those that may not.
func TestFieldsThatAreJudgedOtherwise(t *testing.T) {
	g := NewWithT(t)
	fixed := change{Change: "hostname", Patch: json.RawMessage(`[{"op": "add", "path": "/spec/hostname", "value": "x"}]`)}
	image := change{Change: "image", Patch: json.RawMessage(`[{"op": "replace", "path": "/spec/containers/0/image", "value": "x"}]`)}

	g.Expect(judgedAlike([]change{fixed, fixed})).To(Succeed())
	g.Expect(judgedAlike([]change{fixed, image})).To(MatchError(ContainSubstring("field image is judged otherwise than hostname")))
}

// TestAPatchThatChangesNothing: its row would tell that all is well.
func TestAPatchThatChangesNothing(t *testing.T) {
	_, err := change{Patch: json.RawMessage(`[]`)}.judge()

	NewWithT(t).Expect(err).To(MatchError("the patch changes nothing"))
}

func TestEachObjectionHasARow(t *testing.T) {
	g := NewWithT(t)
	table, err := podTable()
	g.Expect(err).NotTo(HaveOccurred())
	for _, reason := range []string{
		"FieldImmutable", "ContainersChanged", "RunsOnce", "EnvFromMetadata", "RevisionUnknown", "ResizeRemoved", "ResizeQOSClass",
	} {
		g.Expect(table).To(ContainSubstring("`" + reason + "` |"))
	}
}

// TestTheDocumentIsUpToDate: hack/verify says it too, and takes longer.
func TestTheDocumentIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join("..", "..", document))
	g.Expect(err).NotTo(HaveOccurred())
	pods, err := podTable()
	g.Expect(err).NotTo(HaveOccurred())
	claims, err := claimTable()
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(marked.Replace(string(page), podsGenerator, pods)).To(Equal(string(page)), "run make generate")
	g.Expect(marked.Replace(string(page), claimGenerator, claims)).To(Equal(string(page)), "run make generate")
}
