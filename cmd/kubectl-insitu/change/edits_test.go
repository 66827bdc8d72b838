// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

//go:embed testdata/*.yaml
var tables embed.FS

// table is a file of testdata: edits of one object.
type table struct {
	// Object is what all cases begin with.
	Object map[string]any `json:"object"`
	Cases  []row          `json:"cases"`
}

// row is an edit, and what comes of it.
type row struct {
	Name string `json:"name"`
	// With is merged into the object beforehand.
	With map[string]any `json:"with"`
	// Do are the edits, one after the other; what is wanted is of the last one.
	Do []string `json:"do"`
	// Patch are the operations, Says the words, Notes what is said beside.
	Patch []string `json:"patch"`
	Says  string   `json:"says"`
	Notes []string `json:"notes"`
	// Refused is the error.
	Refused string `json:"refused"`
}

// now is when all restarts are asked for.
var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.FixedZone("", 3600))

// parseEdit returns the edit of a few words, as on a command line.
func parseEdit(t *testing.T, line string) Edit {
	t.Helper()
	words := strings.Fields(line)
	var edit Edit
	var err error
	switch args := words[1:]; words[0] {
	case "pause":
		edit = Pause()
	case "resume":
		edit = Resume()
	case "promote":
		promotion := Promotion{}
		for _, arg := range args {
			flag, value, _ := strings.Cut(arg, "=")
			*map[string]*string{"--to": &promotion.To, "--by": &promotion.By}[flag] = value
		}
		edit = Promote(promotion)
	case "restart":
		edit = Restart(args, now)
	case "image":
		var images []ContainerImage
		images, err = ParseImages(args)
		edit = SetImages(images)
	case "resources":
		wanted := Resources{}
		for _, arg := range args {
			flag, value, _ := strings.Cut(arg, "=")
			switch flag {
			case "-c":
				wanted.Containers = value
			case "--requests":
				wanted.Requests, err = ParseResources(value)
			case "--limits":
				wanted.Limits, err = ParseResources(value)
			}
		}
		edit = SetResources(wanted)
	default:
		t.Fatalf("unknown edit %q", line)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return edit
}

func TestEdits(t *testing.T) {
	files, err := tables.ReadDir("testdata")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		raw, err := tables.ReadFile(path.Join("testdata", file.Name()))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		table := table{}
		NewWithT(t).Expect(yaml.UnmarshalStrict(raw, &table)).To(Succeed())
		for _, row := range table.Cases {
			t.Run(strings.TrimSuffix(file.Name(), ".yaml")+"/"+row.Name, func(t *testing.T) {
				row.run(t, table.Object)
			})
		}
	}
}

func (r row) run(t *testing.T, object map[string]any) {
	t.Helper()
	g := NewWithT(t)
	w := workloadOf(t, merged(t, object, r.With))
	for i, line := range r.Do {
		before := w.DeepCopy()
		outcome, err := parseEdit(t, line)(t.Context(), w)
		if i < len(r.Do)-1 {
			g.Expect(err).NotTo(HaveOccurred())
			continue
		}
		if r.Refused != "" {
			g.Expect(err).To(MatchError(r.Refused))
			return
		}
		g.Expect(err).NotTo(HaveOccurred())
		operations := difference("", before.Object, w.Object)
		g.Expect(linesOf(t, operations)).To(Equal(r.Patch))
		if len(operations) == 0 {
			g.Expect(outcome.Nothing).To(Equal(r.Says))
		} else {
			g.Expect(outcome.Done).To(Equal(r.Says))
		}
		g.Expect(outcome.Notes).To(Equal(r.Notes))
	}
}

// linesOf returns operations as lines: "replace /spec/a 1".
func linesOf(t *testing.T, operations []operation) []string {
	t.Helper()
	var lines []string
	for _, o := range operations {
		value, err := json.Marshal(o.Value)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if o.Op == "remove" {
			lines = append(lines, "remove "+o.Path)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", o.Op, o.Path, value))
	}
	return lines
}

// merged returns an object with fields of another one merged into it.
func merged(t *testing.T, object, with map[string]any) map[string]any {
	t.Helper()
	base, err := json.Marshal(object)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{}
	NewWithT(t).Expect(u.UnmarshalJSON(base)).To(Succeed())
	merge(u.Object, with)
	// Numbers become those that a client reads.
	raw, err := u.MarshalJSON()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(u.UnmarshalJSON(raw)).To(Succeed())
	return u.Object
}

func merge(into, with map[string]any) {
	for key, value := range with {
		mine, isMap := into[key].(map[string]any)
		theirs, wantsMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wantsMap:
			merge(mine, theirs)
		default:
			into[key] = value
		}
	}
}

// workloadOf returns an object as a workload of its kind.
func workloadOf(t *testing.T, object map[string]any) *Workload {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	kind, ok := kinds.Of(u)
	NewWithT(t).Expect(ok).To(BeTrue(), "kind of %v", object)
	return &Workload{Kind: kind, Unstructured: u}
}
