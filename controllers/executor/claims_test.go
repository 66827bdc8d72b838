// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/volumes"
)

func claimOf(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-sample-0", UID: uid}}
}

// TestClaimRefusals: what the API server refuses is asked for less and less often, by
// claim and patch.
func TestClaimRefusals(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	e := &Executor{claims: newClaimMemory()}
	claim := claimOf("1")
	larger := volumes.Patch{Size: ptr.To(resource.MustParse("2Gi"))}
	gold := volumes.Patch{AttributesClass: "gold"}
	quota := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New("exceeded quota: q\nand a difference of specs"))

	for _, period := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 8 * time.Minute} {
		e.claims.learn(claim, larger, quota, now)
		g.Expect(e.ClaimRefusals(claim)).To(HaveExactElements(And(HaveField("Key", larger.Key()), HaveField("Until", now.Add(period)),
			HaveField("Message", And(ContainSubstring("exceeded quota: q"), Not(ContainSubstring("difference")))))))
	}

	e.claims.learn(claim, larger, apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New("it has changed")), now)
	e.claims.learn(claim, larger, apierrors.NewTooManyRequests("later", 1), now)
	g.Expect(e.ClaimRefusals(claim)).To(HaveExactElements(HaveField("Until", now.Add(8*time.Minute))), "no answer is no other one")

	e.claims.learn(claim, gold, quota, now)
	g.Expect(e.ClaimRefusals(claim)).To(ConsistOf(
		And(HaveField("Key", larger.Key()), HaveField("Until", now.Add(8*time.Minute))), And(HaveField("Key", gold.Key()), HaveField("Until", now.Add(15*time.Second)))))
	g.Expect(e.ClaimRefusals(claimOf("2"))).To(BeEmpty(), "a claim of the same name that was recreated")

	e.claims.learn(claim, larger, nil, now)
	g.Expect(e.ClaimRefusals(claim)).To(HaveExactElements(HaveField("Key", gold.Key())))
	e.claims.learn(claim, larger, quota, now)
	g.Expect(e.ClaimRefusals(claim)).To(ContainElement(And(HaveField("Key", larger.Key()), HaveField("Until", now.Add(15*time.Second)))), "it starts again")
}
