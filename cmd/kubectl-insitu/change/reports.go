// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Report says what the history holds.
func (h *History) Report() report.History {
	said := report.History{
		Ref: report.Ref{
			APIVersion: h.workload.GetAPIVersion(), Kind: h.workload.GetKind(),
			Namespace: h.workload.GetNamespace(), Name: h.workload.GetName(),
		},
		Revisions: make([]report.RecordedRevision, 0, len(h.Revisions)),
	}
	for _, revision := range h.Revisions {
		said.Revisions = append(said.Revisions, revision.report())
	}
	return said
}

func (r *Revision) report() report.RecordedRevision {
	containers := r.content.Template.Containers()
	images := make([]string, 0, len(containers))
	for _, c := range containers {
		images = append(images, c.Image)
	}
	return report.RecordedRevision{
		Revision: report.Revision{
			Name: r.Name, Number: r.Number, Images: images, IsUpdate: r.IsUpdate, IsCurrent: r.IsCurrent,
			Pods: int32(r.Pods), CreationTimestamp: r.Created,
		},
		ChangeCause: r.ChangeCause, Template: r.Template, VolumeClaimTemplates: r.Claims,
	}
}

// Named returns the history with one revision only: that of a number or a name.
func (h *History) Named(word string) (*History, error) {
	revision, err := h.named(word)
	if err != nil {
		return nil, err
	}
	one := *h
	one.Revisions = []*Revision{revision}
	return &one, nil
}
