// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

func TestDiff(t *testing.T) {
	change := func(w report.Workload, change func(*report.Workload)) report.Workload {
		change(&w)
		return w
	}
	for name, test := range map[string]struct {
		before, after report.Workload
		want          []string
	}{
		"nothing": {rolling(), rolling(), nil},
		"at first": {report.Workload{}, rolling(), []string{
			"statefulset.apps.kruise.io/db  Progressing  Updating",
			"statefulset.apps.kruise.io/db  2 of 3 pods updated, 2 available",
			"pod db-0  Waiting  MaxUnavailable  1 pod is unavailable, maxUnavailable is 1",
			"pod db-1  Restarting  ContainerRestarting  container main is being restarted",
		}},
		"at first, at rest": {report.Workload{}, set(2), []string{
			"statefulset.apps.kruise.io/db  Healthy  Available",
			"statefulset.apps.kruise.io/db  2 of 2 pods updated, 2 available",
		}},
		"a pod gets on, and all is done": {waiting(set(2), 0, 1), set(2), []string{
			"statefulset.apps.kruise.io/db  Progressing -> Healthy  Available",
			"statefulset.apps.kruise.io/db  2 of 2 pods updated, 2 available",
			"pod db-0  Waiting -> Settled",
		}},
		"a pod waits for something else": {
			set(1), change(set(1), func(w *report.Workload) { w.Pods[0].Reason, w.Pods[0].Message = "Other", "two\nlines" }),
			[]string{"pod db-0  Settled  Other  two; lines"},
		},
		"pods come, go and are recreated": {
			set(3), change(set(4), func(w *report.Workload) {
				w.Pods[1].UID, w.Pods[1].State = "another", "Verifying"
				w.Pods = append(w.Pods[:2], w.Pods[3])
				w.Replicas, w.Updated = 3, 3
			}),
			[]string{"pod db-1  Settled -> recreated, Verifying", "pod db-3  new -> Settled", "pod db-2  Settled -> gone"},
		},
		"another revision, pause and partition": {
			set(1), change(set(1), func(w *report.Workload) {
				w.Revisions[0].Number, w.Paused, w.Partition = 4, true, "1"
			}),
			[]string{
				"statefulset.apps.kruise.io/db  revision 3 -> revision 4",
				"statefulset.apps.kruise.io/db  paused",
				"statefulset.apps.kruise.io/db  partition none -> 1",
			},
		},
		"the end of a pause": {
			change(set(1), func(w *report.Workload) { w.Paused = true }), set(1),
			[]string{"statefulset.apps.kruise.io/db  resumed"},
		},
		"claims": {
			set(2), change(set(2), func(w *report.Workload) {
				w.Pods[0].Claims[0].Capacity = "2Gi"
				w.Pods[1].Claims[0].Reason, w.Pods[1].Claims[0].Message = "ExpansionNotAllowed", "storage class fast does not allow expansion"
			}),
			[]string{
				"pod db-0  claim data-db-0  Bound 1Gi -> Bound 2Gi",
				"pod db-1  claim data-db-1  Bound 1Gi  ExpansionNotAllowed  storage class fast does not allow expansion",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Diff(test.before, test.after)).To(Equal(test.want))
		})
	}
}

func TestLines(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	g.Expect(Lines(out, waiting(set(2), 0, 1), set(2), Options{Now: now})).To(Succeed())
	g.Expect(out.String()).To(Equal(`2026-11-22T10:00:00Z  statefulset.apps.kruise.io/db  Progressing -> Healthy  Available
2026-11-22T10:00:00Z  statefulset.apps.kruise.io/db  2 of 2 pods updated, 2 available
2026-11-22T10:00:00Z  pod db-0  Waiting -> Settled
`))
}
