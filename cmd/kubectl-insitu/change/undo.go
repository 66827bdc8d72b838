// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// Undo goes back in the history of a workload: its template becomes that of a revision,
// and so do its claim templates, if they are part of the revision. Nothing else is
// touched but the change cause, which is that of the template.
type Undo struct {
	// ToRevision is the number or the name of the revision. If it is empty, it is the one
	// before: in the middle of a rollout the one that most of the other pods have, and
	// else the newest one in the history beside the present one.
	ToRevision string
	// KeepClaims leaves the claim templates as they are.
	KeepClaims bool
}

// Edit makes an edit. The reader lists revisions and, if none is named, pods.
func (u Undo) Edit(reader client.Reader) Edit {
	return func(ctx context.Context, w *Workload) (Outcome, error) {
		h, err := ReadHistory(ctx, reader, w)
		if err != nil {
			return Outcome{}, err
		}
		target, err := u.target(ctx, reader, h)
		if err != nil {
			return Outcome{}, err
		}
		outcome := Outcome{Done: "rolled back to revision " + target.word(), Nothing: "already at revision " + target.word()}
		if target.IsUpdate {
			return outcome, nil
		}
		if err := w.goTo(target); err != nil {
			return outcome, err
		}
		outcome.Notes = w.notesOnRollout()
		if note := u.restoreClaims(w, target); note != "" {
			outcome.Notes = append(outcome.Notes, note)
		}
		return outcome, nil
	}
}

// target returns the revision to go back to.
func (u Undo) target(ctx context.Context, reader client.Reader, h *History) (*Revision, error) {
	if u.ToRevision != "" {
		return h.named(u.ToRevision)
	}
	err := h.CountPods(ctx, reader)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("which revision the pods have cannot be seen, so name one with --to-revision: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if most := h.mostPods(); most != nil {
		return most, nil
	}
	for _, revision := range slices.Backward(h.Revisions) {
		if !revision.IsUpdate && revision.Number != 0 {
			return revision, nil
		}
	}
	return nil, errors.New("the history has no revision but the present one")
}

// named returns the revision of a number or a name.
func (h *History) named(word string) (*Revision, error) {
	var accepted []string
	for _, revision := range h.Revisions {
		if revision.word() == word || revision.Name == word {
			return revision, nil
		}
		accepted = append(accepted, revision.word())
	}
	if len(accepted) == 0 {
		return nil, fmt.Errorf("found revision %q: there is no history yet", word)
	}
	return nil, fmt.Errorf("found revision %q: the history has %s", word, strings.Join(accepted, ", "))
}

// word returns the number of a revision, or its name if it has none.
func (r *Revision) word() string {
	if r.Number == 0 {
		return r.Name
	}
	return strconv.FormatInt(r.Number, 10)
}

// goTo gives the workload the template of a revision.
func (w *Workload) goTo(target *Revision) error {
	template := runtime.DeepCopyJSON(target.Template)
	unstructured.RemoveNestedField(template, "metadata", "labels", appsv1beta1.PodTemplateHashLabel)
	w.setAnnotation(changeCauseAnnotation, target.ChangeCause)
	return unstructured.SetNestedMap(w.Object, template, "spec", "template")
}

// restoreClaims gives the workload the claim templates of a revision, and says so. Those
// that have come with defaults only stay as they are.
func (u Undo) restoreClaims(w *Workload, target *Revision) string {
	if u.KeepClaims {
		return "volumeClaimTemplates stay as they are"
	}
	view, err := w.view()
	if err != nil || target.Claims == nil {
		return ""
	}
	if present, err := view.Content(); err != nil || target.content.Equal(present) {
		return ""
	}
	claims := runtime.DeepCopyJSONValue(target.Claims).([]any)
	if view.IgnoresClaims {
		present, _, _ := unstructured.NestedSlice(w.Object, "spec", "volumeClaimTemplates")
		if claims = withPresent(claims, present); apiequality.Semantic.DeepEqual(claims, present) {
			return ""
		}
	}
	if err := unstructured.SetNestedSlice(w.Object, claims, "spec", "volumeClaimTemplates"); err != nil {
		return err.Error()
	}
	note := "volumeClaimTemplates go back, too (not with --keep-claims)"
	if view.RecreatesClaims {
		note += ": claims that cannot become so in place are recreated from snapshots"
	}
	return note
}

// withPresent returns claim templates, of which those with the name of a present one are that:
// a change of those alone makes no revision where claims do not follow them.
func withPresent(claims, present []any) []any {
	byName := map[string]any{}
	for _, claim := range present {
		byName[nameOf(claim)] = claim
	}
	for i, claim := range claims {
		if same, is := byName[nameOf(claim)]; is {
			claims[i] = same
		}
	}
	return claims
}

func nameOf(claim any) string {
	fields, _ := claim.(map[string]any)
	name, _, _ := unstructured.NestedString(fields, "metadata", "name")
	return name
}

// Undo goes back. Where the API server lets claim templates not go back, as it is with
// the class of claims that follow their template, the pod template does so alone.
func (wr *Writer) Undo(ctx context.Context, kind kinds.Kind, key client.ObjectKey, undo Undo) (Result, error) {
	result, err := wr.Write(ctx, kind, key, undo.Edit(wr.Client))
	refusal := refusalOfClaims(err)
	if undo.KeepClaims || refusal == "" {
		return result, err
	}
	undo.KeepClaims = true
	result, err = wr.Write(ctx, kind, key, undo.Edit(wr.Client))
	result.Notes = append(result.Notes, "the API server refuses to have them go back: "+refusal)
	return result, err
}

// refusalOfClaims returns what the API server says against claim templates; empty if its
// error is about something else.
func refusalOfClaims(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Field, "volumeClaimTemplates") {
			return cause.Message
		}
	}
	return ""
}
