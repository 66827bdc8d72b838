// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// randomLife returns a claim in any state, also in such that no driver shows.
func randomLife(t *testing.T, r *rand.Rand) *life {
	t.Helper()
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	ago := func() time.Time { return start.Add(-time.Duration(r.IntN(900)) * time.Second) }
	size := func() string { return one("1Gi", "1Gi", "1500Mi", "2Gi", "2147483647", "3Gi", "4G") }
	l := newLife(t, size(), one("", "", "silver", "gold"))
	l.Template = templateOf(size(), one("", "", "silver", "gold"))
	status := &l.Claim.Status
	status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size())}
	status.Phase = corev1.PersistentVolumeClaimPhase(one("Bound", "Bound", "Bound", "Bound", "Bound", "Pending", "Lost", ""))
	growing(corev1.ClaimResourceStatus(one("", "", string(controllerInProgress), string(controllerInfeasible), string(nodePending),
		string(nodeInProgress), string(nodeInfeasible), "Nonsense")))(l)
	for _, condition := range []string{resizing, remount, outOfRange, internal, attached, nodeFails, mounted, modifyingGold, modifyError, "Unused"} {
		if r.IntN(4) == 0 {
			l.conditions("", condition)
			status.Conditions[len(status.Conditions)-1].LastTransitionTime = metav1.NewTime(ago())
		}
	}
	if r.IntN(3) == 0 {
		status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{
			Status:                          corev1.PersistentVolumeClaimModifyVolumeStatus(one(string(inProgress), string(infeasible), string(pending), "Nonsense")),
			TargetVolumeAttributesClassName: one("", "silver", "gold"),
		}
	}
	if r.IntN(2) == 0 {
		record := Record{Size: ptr.To(resource.MustParse(size())), SizeTimestamp: metav1.NewTime(ago())}
		if r.IntN(2) == 0 {
			record.AttributesClass, record.AttributesClassTimestamp = one("silver", "gold"), metav1.NewTime(ago())
		}
		if r.IntN(2) == 0 {
			record.DetachTimestamp = ptr.To(metav1.NewTime(ago()))
		}
		if r.IntN(2) == 0 {
			record.InUseTimestamp = record.DetachTimestamp
		}
		l.Claim = merged(t, l.Claim, Patch{Record: record})
	} else if r.IntN(10) == 0 {
		noted(one("", "{", "[]", `{"size":"x"}`, `{"size":null}`))(l)
	}
	switch r.IntN(12) {
	case 0:
		l.StorageClass = nil
	case 1:
		l.StorageClass = storageClass(false)
	case 2:
		l.LacksAttributesClass = true
	case 3:
		l.InUseSince = ago()
	case 4:
		l.WhyNotDetached = "it must stay"
	case 5:
		l.Claim.DeletionTimestamp = ptr.To(metav1.NewTime(ago()))
	case 6:
		l.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	case 7:
		refused("exceeded quota: q", time.Duration(r.IntN(100)-50)*time.Second)(l)
	}
	if l.Pod = podSince(ago()); r.IntN(4) == 0 {
		l.Pod = nil
	} else {
		l.Pod.Ready = r.IntN(3) > 0
	}
	return l
}

// TestAnyClaim states what holds for any claim, however it came to be what it is.
func TestAnyClaim(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(8000) {
		r := rand.New(rand.NewPCG(seed, 7))
		l := randomLife(t, r)
		before := l.Claim.DeepCopy()
		step := Next(l.Facts, l.now)
		seen[string(step.State)+" "+step.Reason]++
		if failed := lawsOf(t, l, step); failed != "" {
			t.Fatalf("seed %d: %s: %s %s\n%+v\nrecord %s\nstatus %+v", seed, failed, inShort(step), step.Message, before.Spec,
				before.Annotations[appsv1beta1.VolumeClaimUpdateStateKey], before.Status)
		}
		NewWithT(t).Expect(l.Claim).To(Equal(before), "seed %d: the claim is only read", seed)
	}
	for _, reason := range []string{
		"Settled ", "Waiting ClaimNotBound", "Waiting ClaimTerminating", "Changing ClaimChanging", "UnderWay ClaimExpanding", "UnderWay ClaimModifying",
		"Detaching VolumeInUse", "Detaching VolumeNotRemounted", "Blocked VolumeInUse", "Blocked VolumeNotRemounted", "Blocked ClaimImmutable",
		"Blocked ExpansionNotAllowed", "Blocked StorageClassMissing", "Blocked VolumeAttributesClassMissing", "Blocked ClaimRefused",
		"Blocked ExpansionInfeasible", "Blocked ExpansionFailed", "Blocked ModificationInfeasible", "Blocked ModificationFailed", "Blocked ClaimOverdue",
	} {
		if seen[reason] == 0 {
			t.Errorf("%s was not seen: the claims are not random enough", reason)
		}
	}
}

// lawsOf returns the first law that a step breaks; empty if it keeps them all.
func lawsOf(t *testing.T, l *life, step Step) string {
	t.Helper()
	capacity, want := sizeOf(l.Claim.Status.Capacity), sizeOf(l.Template.Spec.Resources.Requests)
	match := Compare(l.Claim, l.Template)
	hasPatch := step.State == Changing || step.State == Detaching
	switch {
	case step.Patch.Size != nil && step.Patch.Size.Cmp(capacity) <= 0:
		return "asks for no more than the volume has"
	case step.Patch.Size != nil && step.Patch.Size.Cmp(want) > 0:
		return "asks for more than the template"
	case match.Ready && l.Claim.Status.ModifyVolumeStatus == nil && step.State != Settled:
		return "a claim that is as its template says is left alone"
	case capacity.Cmp(want) >= 0 && step.Patch.Size != nil:
		return "a volume that is large enough is not touched"
	case step.State == Settled && !match.Compatible:
		return "a settled claim is compatible"
	case step.State == Settled && step.Message != "", step.State != Settled && step.Reason == "":
		return "a settled claim has nothing to say, any other has"
	case hasPatch && (l.Claim.Status.Phase != corev1.ClaimBound || l.Claim.DeletionTimestamp != nil):
		return "Kubernetes refuses to change it"
	case step.State == Changing && step.Patch.IsEmpty():
		return "changes nothing"
	case step.State == Detaching && (l.Pod == nil || l.WhyNotDetached != ""):
		return "there is no pod that may go"
	case step.State == Detaching && step.Patch.Record.DetachTimestamp == nil:
		return "does not note that the pod went"
	case step.State == Blocked && step.Message == "":
		return "says not why it is blocked"
	case !step.Until.IsZero() && !step.Until.After(l.now):
		return "waits for a moment that has passed"
	case !hasPatch && (!step.Patch.IsEmpty() || step.Patch.Record.Size != nil):
		return "has a patch that is not to be written"
	}
	if at := AwaitDetached(l.Facts, l.now); !at.IsZero() && (l.Pod != nil || !at.After(l.now) || at.After(l.now.Add(detachPeriod))) {
		return fmt.Sprintf("the pod is kept away until %s", at)
	}
	if hasPatch {
		return lawsOfPatch(t, l, step)
	}
	return ""
}

// lawsOfPatch returns the first law that a claim breaks once its patch is written.
func lawsOfPatch(t *testing.T, l *life, step Step) string {
	t.Helper()
	after := merged(t, l.Claim, step.Patch)
	asked, record := sizeOf(after.Spec.Resources.Requests), RecordOf(after)
	now := *l
	now.Claim = after
	if step.State == Detaching {
		now.Pod = nil
	}
	again := Next(now.Facts, now.now)
	switch {
	case step.Patch.Size != nil && asked.Cmp(*step.Patch.Size) != 0:
		return "the size is not that of the patch"
	case step.Patch.AttributesClass != "" && attributesClass(after) != step.Patch.AttributesClass:
		return "the attributes class is not that of the patch"
	case step.State == Changing && step.Patch.Size != nil && !asks(record, *step.Patch.Size):
		return "the size is not noted"
	case step.Patch.AttributesClass != "" && record.AttributesClass != step.Patch.AttributesClass:
		return "the attributes class is not noted"
	case step.State == Changing && again.State == Changing && again.Patch.Key() == step.Patch.Key():
		return "the same is asked for again"
	case step.State == Detaching && again.State == Detaching:
		return "a pod that is gone is sent away again"
	case len(after.Status.Conditions) != len(l.Claim.Status.Conditions):
		return "the status is not ours"
	}
	return ""
}
