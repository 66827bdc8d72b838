// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Statuses and conditions, as external-resizer 2.3 and kubelets wrote them.
const (
	controllerInProgress = corev1.PersistentVolumeClaimControllerResizeInProgress
	controllerInfeasible = corev1.PersistentVolumeClaimControllerResizeInfeasible
	nodePending          = corev1.PersistentVolumeClaimNodeResizePending
	nodeInProgress       = corev1.PersistentVolumeClaimNodeResizeInProgress
	nodeInfeasible       = corev1.PersistentVolumeClaimNodeResizeInfeasible

	resizing   = "Resizing"
	remount    = "FileSystemResizePending: Waiting for user to (re-)start a pod to finish file system resize of volume on node."
	outOfRange = "ControllerResizeError: failed to expand pvc with rpc error: code = OutOfRange desc = at most 3Gi"
	internal   = "ControllerResizeError: failed to expand pvc with rpc error: code = Internal desc = it fails"
	coolDown   = "ControllerResizeError: failed to expand pvc with rpc error: code = Internal desc = try again in 7s"
	attached   = "ControllerResizeError: failed to expand pvc with rpc error: code = FailedPrecondition desc = volume is in use on node-2"
	nodeFails  = "NodeResizeError: failed to expand pvc with Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = it fails"
	mounted    = "NodeResizeError: failed to expand pvc with Expander.NodeExpand failed to expand the volume : rpc error: code = FailedPrecondition desc = mounted"

	inProgress     = corev1.PersistentVolumeClaimModifyVolumeInProgress
	infeasible     = corev1.PersistentVolumeClaimModifyVolumeInfeasible
	pending        = corev1.PersistentVolumeClaimModifyVolumePending
	modifyingGold  = `ModifyingVolume: Modifying volume to "gold" is in progress.`
	modifyingOther = `ModifyingVolume: Modifying volume to "refused" is in progress.`
	modifyError    = "ModifyVolumeError: rpc error: code = InvalidArgument desc = unknown parameter"
)

// moment is what happens to a claim some time after the start, and what is done then.
type moment struct {
	at      time.Duration
	happens func(*life)
	want    string
}

// TestRecorded goes through what was recorded of claims with a CSI driver, the
// external-resizer and kubelets.
func TestRecorded(t *testing.T) {
	const ms, sec, minute = time.Millisecond, time.Second, time.Minute
	for name, moments := range map[string][]moment{
		"online": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{0, nil, "UnderWay ClaimExpanding"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{50 * ms, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{1350 * ms, growing(nodeInProgress, resizing, remount), "UnderWay ClaimExpanding"},
			{1500 * ms, grown("2Gi"), "Settled"},
		},
		"online, by a kubelet that looks at the pod every 90 s": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{50 * ms, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{90 * sec, nil, "UnderWay ClaimExpanding"},
			{90 * sec, grown("2Gi"), "Settled"},
		},
		"without a part on the node, and rounded up": {
			{0, template("1500Mi", ""), "Changing request to 1500Mi"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{50 * ms, grown("2Gi"), "Settled"},
			{60 * sec, template("1800Mi", ""), "Settled"},
			{90 * sec, template("1Gi", ""), "Settled"},
			{120 * sec, template("3Gi", ""), "Changing request to 3Gi"},
		},
		"the conditions are lost while it goes on": {
			{0, template("2Gi", "gold"), "Changing request to 2Gi, VolumeAttributesClass to gold"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{sec, all(modified("gold"), growing(controllerInProgress)), "UnderWay ClaimExpanding"},
			{2 * sec, growing(nodePending), "UnderWay ClaimExpanding"},
			{3 * sec, growing(nodeInProgress), "UnderWay ClaimExpanding"},
			{3 * minute, nil, "UnderWay ClaimExpanding"},
			{10 * minute, nil, "Blocked ClaimOverdue"},
		},
		"no driver takes it up": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{10*minute - ms, nil, "UnderWay ClaimExpanding"},
			{10 * minute, nil, "Blocked ClaimOverdue"},
			{11 * minute, grown("2Gi"), "Settled"},
		},
		"limited, then smaller": {
			{0, template("4Gi", ""), "Changing request to 4Gi"},
			{100 * ms, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{200 * ms, growing(controllerInfeasible, resizing, outOfRange), "Blocked ExpansionInfeasible"},
			{5 * minute, growing(controllerInfeasible, resizing, outOfRange), "Blocked ExpansionInfeasible"},
			{6 * minute, template("2560Mi", ""), "Changing request to 2560Mi"},
			{6 * minute, nil, "UnderWay ClaimExpanding"},
			{6*minute + 10*ms, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{6*minute + 100*ms, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{6*minute + 6*sec, grown("2560Mi"), "Settled"},
		},
		"limited, the condition is lost": {
			{0, template("4Gi", ""), "Changing request to 4Gi"},
			{200 * ms, growing(controllerInfeasible), "Blocked ExpansionInfeasible"},
			{minute, template("2Gi", ""), "Changing request to 2Gi"},
			{minute, nil, "UnderWay ClaimExpanding"},
		},
		"limited, then rolled back: nothing waits, and nothing shrinks": {
			{0, template("4Gi", ""), "Changing request to 4Gi"},
			{200 * ms, growing(controllerInfeasible, resizing, outOfRange), "Blocked ExpansionInfeasible"},
			{minute, template("1Gi", ""), "Settled"},
			{time.Hour, growing(controllerInfeasible, resizing, outOfRange), "Settled"},
		},
		"limited, then the provider allows it": {
			{0, template("4Gi", ""), "Changing request to 4Gi"},
			{200 * ms, growing(controllerInfeasible, resizing, outOfRange), "Blocked ExpansionInfeasible"},
			{time.Hour, growing(nodePending, resizing, outOfRange, remount), "UnderWay ClaimExpanding"},
			{time.Hour + sec, grown("4Gi"), "Settled"},
		},
		"failing; less fails as well": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{0, growing(controllerInProgress, resizing, internal), "Blocked ExpansionFailed"},
			{time.Hour, growing(controllerInProgress, resizing, internal), "Blocked ExpansionFailed"},
			{time.Hour + sec, template("1500Mi", ""), "Changing request to 1500Mi"},
			{time.Hour + sec, nil, "UnderWay ClaimExpanding"},
			{time.Hour + sec, growing(controllerInProgress, resizing, internal), "Blocked ExpansionFailed"},
			{2 * time.Hour, grown("1500Mi"), "Settled"},
		},
		"a cool-down": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{0, growing(controllerInProgress, resizing, coolDown), "Blocked ExpansionFailed"},
			{8 * sec, growing(controllerInProgress, resizing, coolDown), "Blocked ExpansionFailed"},
			{9 * sec, growing(nodePending, resizing, coolDown, remount), "UnderWay ClaimExpanding"},
			{10 * sec, grown("2Gi"), "Settled"},
		},
		"stalled: the sidecar says nothing": {
			{0, template("3Gi", ""), "Changing request to 3Gi"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{5 * minute, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{10 * minute, growing(controllerInProgress, resizing), "Blocked ClaimOverdue"},
			{11 * minute, template("2Gi", ""), "Changing request to 2Gi"},
			{11 * minute, nil, "UnderWay ClaimExpanding"},
			// The old size is pursued, and becomes true.
			{12 * minute, grown("3Gi"), "Settled"},
		},
		"offline: the pod goes, once": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{3 * sec, nil, "away: UnderWay ClaimExpanding"},
			{4 * sec, growing(controllerInProgress, resizing), "away: UnderWay ClaimExpanding"},
			// Not unstaged yet.
			{4 * sec, growing(controllerInProgress, resizing, attached), "away: UnderWay ClaimExpanding"},
			{5 * sec, growing(nodePending, resizing, attached, remount), "back: UnderWay ClaimExpanding"},
			{9 * sec, grown("2Gi"), "Settled"},
		},
		"offline: what does not help is not done again": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{3 * sec, nil, "away: UnderWay ClaimExpanding"},
			{6*minute + sec - ms, growing(controllerInProgress, resizing, attached), "away: UnderWay ClaimExpanding"},
			{6*minute + sec, growing(controllerInProgress, resizing, attached), "back: Blocked VolumeInUse"},
			{time.Hour, growing(controllerInProgress, resizing, attached), "Blocked VolumeInUse"},
			// Another size is another try.
			{2 * time.Hour, template("3Gi", ""), "Detaching VolumeInUse"},
			{2*time.Hour + sec, nil, "away: Changing request to 3Gi"},
			{2*time.Hour + 2*sec, growing(nodePending, resizing, remount), "back: UnderWay ClaimExpanding"},
		},
		"offline, and it was to be known": {
			{0, func(l *life) { template("2Gi", "")(l); l.InUseSince = start.Add(-time.Hour) }, "Detaching VolumeInUse"},
			{sec, nil, "away: Changing request to 2Gi"},
			{2 * sec, growing(nodePending, resizing, remount), "back: UnderWay ClaimExpanding"},
			{3 * sec, grown("2Gi"), "Settled"},
		},
		"it was offline two days ago": {
			{0, func(l *life) { template("2Gi", "")(l); l.InUseSince = start.Add(-48 * time.Hour) }, "Changing request to 2Gi"},
		},
		"offline, and something else fails while the pod is away": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{3 * sec, nil, "away: UnderWay ClaimExpanding"},
			{4 * sec, growing(controllerInProgress, resizing, internal), "back: Blocked ExpansionFailed"},
		},
		"offline, the pod is back early": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{2 * sec, func(l *life) { l.Pod = podSince(l.now) }, "Blocked VolumeInUse"},
			// The volume had not its time: the pod goes once more, and no more than that.
			{6*minute + sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{6*minute + 2*sec, nil, "away: UnderWay ClaimExpanding"},
			{12*minute + 3*sec, growing(controllerInProgress, resizing, attached), "back: Blocked VolumeInUse"},
			{time.Hour, growing(controllerInProgress, resizing, attached), "Blocked VolumeInUse"},
		},
		// The sidecar does not say it again of another size.
		"offline, the pod must stay, and another size is asked for": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, func(l *life) { l.WhyNotDetached = "it must stay"; growing(controllerInProgress, resizing, attached)(l) }, "Blocked VolumeInUse"},
			{minute, func(l *life) { l.WhyNotDetached = ""; template("1500Mi", "")(l) }, "Changing request to 1500Mi"},
			{minute + sec, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{minute + 30*sec, nil, "Detaching VolumeInUse"},
		},
		"offline, and the pod must stay": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, func(l *life) { l.WhyNotDetached = "it must stay"; growing(controllerInProgress, resizing, attached)(l) }, "Blocked VolumeInUse"},
			{time.Hour, func(l *life) { l.WhyNotDetached = "" }, "Detaching VolumeInUse"},
		},
		"offline, rolled back while the pod is away": {
			{-minute, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			{2 * sec, template("1Gi", ""), "back: Settled"},
		},
		"offline, less while the pod is away": {
			{-minute, template("3Gi", ""), "Changing request to 3Gi"},
			{sec, growing(controllerInProgress, resizing, attached), "Detaching VolumeInUse"},
			// It is asked for with the pod away, now or by the next time it is.
			{2 * sec, template("2Gi", ""), "back: Changing request to 2Gi"},
			{3 * sec, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{32 * sec, nil, "Detaching VolumeInUse"},
			{33 * sec, nil, "away: UnderWay ClaimExpanding"},
			{34 * sec, growing(nodePending, resizing, remount), "back: UnderWay ClaimExpanding"},
			{35 * sec, grown("2Gi"), "Settled"},
		},
		"the kubelet does not act": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{3*minute + sec - ms, nil, "UnderWay ClaimExpanding"},
			{3*minute + sec, nil, "Detaching VolumeNotRemounted"},
			{3*minute + 31*sec - ms, nil, "away: UnderWay ClaimExpanding"},
			{3*minute + 31*sec, nil, "back: UnderWay ClaimExpanding"},
			{6*minute + 31*sec, nil, "Blocked VolumeNotRemounted"},
		},
		"the node fails: the pod must stay": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{2 * sec, growing(nodeInProgress, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
			{time.Hour, nil, "Blocked ExpansionFailed"},
			{time.Hour + sec, grown("2Gi"), "Settled"},
		},
		"the node finds it infeasible, and is asked every second": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(nodeInfeasible, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
			{sec + 20*ms, growing(nodePending, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
			{sec + 40*ms, growing(nodeInProgress, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
			{2 * sec, growing(nodeInfeasible, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
		},
		// The kubelet goes on with the size before, and leaves the error as it was.
		"the node fails, and more is asked for": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{2 * sec, growing(nodeInProgress, resizing, remount, nodeFails), "Blocked ExpansionFailed"},
			{time.Hour, template("3Gi", ""), "Changing request to 3Gi"},
			{time.Hour + sec, nil, "Blocked ExpansionFailed"},
			{2 * time.Hour, nil, "Blocked ExpansionFailed"},
			// It was asked for an hour ago.
			{2*time.Hour + sec, all(grown("2Gi"), growing(controllerInProgress, resizing)), "Blocked ClaimOverdue"},
			{2*time.Hour + 2*sec, grown("3Gi"), "Settled"},
		},
		"the node cannot while it is mounted": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{2 * sec, growing(nodeInProgress, resizing, remount, mounted), "Detaching VolumeNotRemounted"},
			// Nothing tells when the node has unmounted it.
			{31 * sec, nil, "away: UnderWay ClaimExpanding"},
			{32 * sec, nil, "back: UnderWay ClaimExpanding"},
			{34 * sec, grown("2Gi"), "Settled"},
		},
		"the node never can": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{2 * sec, growing(nodeInProgress, resizing, remount, mounted), "Detaching VolumeNotRemounted"},
			{32 * sec, nil, "back: UnderWay ClaimExpanding"},
			{40 * sec, growing(nodeInProgress, resizing, remount, mounted), "Blocked VolumeNotRemounted"},
			{time.Hour, nil, "Blocked VolumeNotRemounted"},
		},
		"the node never can, and leaves its first word as it is": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{2 * sec, growing(nodeInProgress, resizing, remount, mounted), "Detaching VolumeNotRemounted"},
			{32 * sec, nil, "back: UnderWay ClaimExpanding"},
			{3*minute + 32*sec, nil, "UnderWay ClaimExpanding"},
			{10*minute + 2*sec, nil, "Blocked ClaimOverdue"},
		},
		"fixed, until its class allows it": {
			{0, func(l *life) { template("2Gi", "")(l); l.StorageClass = storageClass(false) }, "Blocked ExpansionNotAllowed"},
			{minute, func(l *life) { l.StorageClass = storageClass(true) }, "Changing request to 2Gi"},
		},
		"fixed, beside another attributes class": {
			{0, func(l *life) { template("2Gi", "gold")(l); l.StorageClass = storageClass(false) }, "Changing VolumeAttributesClass to gold"},
			{sec, modified("gold"), "Blocked ExpansionNotAllowed"},
		},
		"fixed, and rolled back": {
			{0, func(l *life) { template("2Gi", "")(l); l.StorageClass = storageClass(false) }, "Blocked ExpansionNotAllowed"},
			{minute, template("1Gi", ""), "Settled"},
		},
		"its class is missing": {
			{0, func(l *life) { template("2Gi", "")(l); l.StorageClass = nil }, "Blocked StorageClassMissing"},
		},
		"without a class": {
			{0, func(l *life) { template("2Gi", "")(l); l.StorageClass = nil; l.Claim.Spec.StorageClassName = nil }, "Blocked ExpansionNotAllowed"},
		},
		"waits for its first consumer": {
			{0, func(l *life) {
				template("2Gi", "gold")(l)
				l.Claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			}, "Waiting ClaimNotBound"},
			{time.Hour, nil, "Waiting ClaimNotBound"},
			{time.Hour + 100*ms, func(l *life) { grown("1Gi")(l); l.Claim.Status.Phase = corev1.ClaimBound }, "Changing request to 2Gi, VolumeAttributesClass to gold"},
		},
		"lost its volume": {
			{0, func(l *life) { template("2Gi", "")(l); l.Claim.Status.Phase = corev1.ClaimLost }, "Waiting ClaimNotBound"},
		},
		"is deleted": {
			{0, template("2Gi", ""), "Changing request to 2Gi"},
			{sec, func(l *life) { l.Claim.DeletionTimestamp = &l.Claim.CreationTimestamp }, "Waiting ClaimTerminating"},
			{2 * sec, func(l *life) { l.Claim = nil }, "Waiting ClaimMissing"},
		},
		"gold, quickly": {
			{0, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			{0, nil, "UnderWay ClaimModifying"},
			{100 * ms, modifying(inProgress, "gold", "", modifyingGold), "UnderWay ClaimModifying"},
			{120 * ms, modified("gold"), "Settled"},
		},
		"gold, refused and gold again": {
			{0, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			{20 * ms, modified("gold"), "Settled"},
			{minute, template("1Gi", "refused"), "Changing VolumeAttributesClass to refused"},
			{minute + 20*ms, modifying(infeasible, "refused", "InvalidArgument", modifyingOther, modifyError), "Blocked ModificationInfeasible"},
			{time.Hour, nil, "Blocked ModificationInfeasible"},
			{time.Hour, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			// What there is to see is that of the class before.
			{time.Hour, nil, "UnderWay ClaimModifying"},
			{time.Hour + 10*ms, modifying(inProgress, "gold", "", modifyingGold), "UnderWay ClaimModifying"},
			{time.Hour + 20*ms, modified("gold"), "Settled"},
		},
		"refused, the conditions are lost": {
			{0, template("1Gi", "refused"), "Changing VolumeAttributesClass to refused"},
			{20 * ms, modifying(infeasible, "refused", ""), "Blocked ModificationInfeasible"},
		},
		"refused, and then none is asked for": {
			{0, template("1Gi", "refused"), "Changing VolumeAttributesClass to refused"},
			{20 * ms, modifying(infeasible, "refused", "InvalidArgument", modifyingOther, modifyError), "Blocked ModificationInfeasible"},
			{minute, template("1Gi", ""), "Settled"},
		},
		"its driver fails to modify it": {
			{0, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			{20 * ms, modifying(inProgress, "gold", "Internal", modifyingGold, "ModifyVolumeError: it fails"), "Blocked ModificationFailed"},
			{time.Hour, nil, "Blocked ModificationFailed"},
			{2 * time.Hour, modified("gold"), "Settled"},
		},
		"its driver hangs": {
			{0, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			{20 * ms, modifying(inProgress, "gold", "", modifyingGold), "UnderWay ClaimModifying"},
			{10 * minute, modifying(inProgress, "gold", "", modifyingGold), "Blocked ClaimOverdue"},
		},
		"its driver cannot modify volumes": {
			{0, template("1Gi", "gold"), "Changing VolumeAttributesClass to gold"},
			{10*minute - ms, nil, "UnderWay ClaimModifying"},
			{10 * minute, nil, "Blocked ClaimOverdue"},
		},
		"the attributes class is missing": {
			{0, func(l *life) { template("1Gi", "gold")(l); l.LacksAttributesClass = true }, "Blocked VolumeAttributesClassMissing"},
			{minute, func(l *life) { l.LacksAttributesClass = false }, "Changing VolumeAttributesClass to gold"},
		},
		"the attributes class is missing, the size follows": {
			{0, func(l *life) { template("2Gi", "gold")(l); l.LacksAttributesClass = true }, "Changing request to 2Gi"},
			{sec, nil, "UnderWay ClaimExpanding"},
			{2 * sec, grown("2Gi"), "Blocked VolumeAttributesClassMissing"},
		},
		"another client asked for a class that is missing": {
			{0, func(l *life) {
				template("1Gi", "gold")(l)
				l.Claim.Spec.VolumeAttributesClassName, l.LacksAttributesClass = l.Template.Spec.VolumeAttributesClassName, true
				modifying(pending, "", "")(l)
			}, "Blocked VolumeAttributesClassMissing"},
		},
		"growth and gold in one patch": {
			{0, template("2Gi", "gold"), "Changing request to 2Gi, VolumeAttributesClass to gold"},
			{0, growing(controllerInProgress, resizing), "UnderWay ClaimExpanding"},
			{10 * ms, modified("gold"), "UnderWay ClaimExpanding"},
			{50 * ms, growing(nodePending, resizing, remount), "UnderWay ClaimExpanding"},
			{1500 * ms, grown("2Gi"), "Settled"},
		},
		"a quota refuses the growth: it is asked for again later, and blocks nothing": {
			{0, all(template("2Gi", ""), refused("exceeded quota: q", 15*time.Second)), "Blocked ClaimRefused"},
			{15*sec - ms, nil, "Blocked ClaimRefused"},
			{15 * sec, nil, "Changing request to 2Gi"},
		},
		"a quota refuses the growth, another size is another request": {
			{0, all(template("3Gi", ""), refused("exceeded quota: q", 15*time.Second)), "Blocked ClaimRefused"},
			{sec, template("2Gi", ""), "Changing request to 2Gi"},
		},
		"a quota refuses the growth, the class alone is changed": {
			{0, all(template("2Gi", "gold"), refused("exceeded quota: q", 15*time.Second)), "Changing VolumeAttributesClass to gold"},
			{10 * ms, modified("gold"), "Changing request to 2Gi"},
		},
		"a quota refuses the growth, with the class and alone": {
			{0, all(template("2Gi", ""), refused("exceeded quota: q", time.Minute)), "Blocked ClaimRefused"},
			{sec, all(template("2Gi", "gold"), refused("exceeded quota: q", time.Minute)), "Changing VolumeAttributesClass to gold"},
			{2 * sec, modified("gold"), "Blocked ClaimRefused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, "1Gi", "")
			for i, m := range moments {
				l.now = start.Add(m.at)
				if m.happens != nil {
					m.happens(l)
				}
				NewWithT(t).Expect(l.decide()).To(Equal(m.want), "moment %d, after %s", i, m.at)
			}
		})
	}
}
