// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// rehearsal is what the API server said to a claim that was not created.
type rehearsal struct {
	refused *recreate.Refusal
	at      time.Time
}

// rehearsalKey names a claim but for its name: claims of one template get one answer.
type rehearsalKey struct {
	owner types.UID
	claim string
}

// rehearse asks the API server by a dry run whether it would accept the claim that was
// judged possible, and returns why not; nil if it would, or cannot be asked. Before
// anything is begun, the answer of a moment ago will do.
func (s *Session) rehearse(ctx context.Context, facts recreate.PreflightFacts, judgement recreate.Judgement) (*recreate.Refusal, error) {
	asked := facts.Rehearsal(judgement)
	key := s.rehearsalKey(asked)
	if known, ok := s.recent.Get(key); ok && !facts.HasSnapshot {
		if last, isOne := known.(rehearsal); isOne && s.now.Before(last.at.Add(recentPeriod)) {
			return last.refused, nil
		}
	}
	refused := (*recreate.Refusal)(nil)
	answer := asked.DeepCopy()
	switch err := s.client.Create(ctx, answer, client.DryRunAll, client.DisableReadYourWritesConsistency); {
	case err == nil:
		refused = facts.Rewritten(judgement, asked, answer)
	case executor.IsNoDryRun(err), apierrors.IsAlreadyExists(err):
	case executor.IsOfQuota(err): // it counts the claim that is to go; Preflight has calculated
	case executor.IsRefusal(err):
		refused = &recreate.Refusal{Reason: volumes.ReasonClaimRefused, Message: "the API server would refuse the new claim: " + executor.Shorten(executor.ServerWords(err))}
	default:
		return nil, err
	}
	s.recent.Set(key, rehearsal{refused, s.now}, recentPeriod)
	return refused, nil
}

func (s *Session) rehearsalKey(claim *corev1.PersistentVolumeClaim) rehearsalKey {
	same := claim.DeepCopy()
	same.Name = ""
	if same.Spec.DataSource != nil {
		same.Spec.DataSource.Name = ""
	}
	text, _ := json.Marshal(same) // nothing in a claim fails to be encoded
	return rehearsalKey{s.owner.GetUID(), string(text)}
}
