// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What real kubelets showed in stories where a change is taken back at once, which
// depends on when they see it. The end-to-end suite meets each of them by luck only.
var traces = []struct{ name, story, told string }{
	{"the size that was taken back is made, and shown so", "a size is taken back at once", `
		0 current, ready, gate, sized ; app 1 of image 1 running
		1 not current, ready, gate, not sized ; app 1 of image 1 running
		2 current, ready, gate, not sized InProgress; app 1 of image 1 running
		3 not current, ready, gate, not sized InProgress; app 1 of image 1 running
		4 not current, ready, gate, not sized ; app 1 of image 1 running
		5 current, ready, gate, not sized InProgress; app 1 of image 1 running
		6 current, ready, gate, sized ; app 1 of image 1 running`},
	{"nothing is shown of the way back", "a size is taken back at once", `
		0 current, ready, gate, sized ; app 1 of image 1 running
		1 not current, ready, gate, not sized ; app 1 of image 1 running
		2 not current, ready, gate, sized ; app 1 of image 1 running
		3 not current, ready, gate, not sized InProgress; app 1 of image 1 running
		4 not current, ready, gate, not sized ; app 1 of image 1 running
		5 current, ready, gate, sized ; app 1 of image 1 running`},
	{"nothing is shown of both ways", "a size is taken back at once", `
		0 current, ready, gate, sized ; app 1 of image 1 running
		1 not current, ready, gate, not sized ; app 1 of image 1 running
		2 not current, ready, gate, sized ; app 1 of image 1 running
		3 not current, ready, gate, not sized ; app 1 of image 1 running
		4 current, ready, gate, sized ; app 1 of image 1 running`},
	{"the image that was taken back runs, and is shown so", "a change is taken back at once", `
		0 current, ready, gate, sized ; app 1 of image 1 running
		1 not current, ready, gate, sized ; app 1 of image 1 running
		2 not current, not ready, gate, sized ; app 2 of image 2 running
		3 current, not ready, gate, sized ; app 2 of image 2 running
		4 current, not ready, gate, sized ; app 3 of image 1 running
		5 current, ready, gate, sized ; app 3 of image 1 running`},
	{"the image that was taken back is ready", "a change is taken back at once", `
		0 current, ready, gate, sized ; app 1 of image 1 running
		1 not current, ready, gate, sized ; app 1 of image 1 running
		2 current, not ready, gate, sized ; app 2 of image 2 running
		3 current, ready, gate, sized ; app 2 of image 2 running
		4 current, not ready, gate, sized ; app 3 of image 1 running
		5 current, ready, gate, sized ; app 3 of image 1 running`},
}

func TestTracesOfRealKubelets(t *testing.T) {
	for _, trace := range traces {
		t.Run(trace.name, func(t *testing.T) {
			i := slices.IndexFunc(PodStories, func(s PodStory) bool { return s.Name == trace.story })
			behavior, err := PodStories[i].Behavior(500)
			if err != nil {
				t.Fatal(err)
			}
			if err := behavior.Check(parse(t, trace.told)); err != nil {
				t.Error(err)
			}
		})
	}
}

// parse reads observations as tell writes them.
func parse(t *testing.T, told string) []Observation {
	t.Helper()
	var seen []Observation
	for line := range strings.Lines(strings.TrimSpace(told)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		o := Observation{}
		parts := strings.Split(line, "; ")
		words := strings.Split(parts[0], ", ")
		sized, resize, _ := strings.Cut(strings.TrimPrefix(words[3], "not "), " ")
		o.Current, o.Ready, o.Gate = words[0] == "current", words[1] == "ready", words[2] == "gate"
		o.Sized, o.Resize = !strings.HasPrefix(words[3], "not ") && sized == "sized", resize
		for i, part := range parts[1:] {
			c := &o.Containers[i]
			if _, err := fmt.Sscanf(part, "%s %d of image %d", &c.Name, &c.ID, &c.Image); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			c.State = State(strings.Join(strings.Fields(part)[5:], " "))
		}
		if o.String() != line {
			t.Fatalf("%q is read as %q", line, o)
		}
		seen = append(seen, o)
	}
	return seen
}
