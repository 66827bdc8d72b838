// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// noted puts a record on the claim, as the operator writes it.
func noted(record string) func(*life) {
	return func(l *life) {
		l.Claim.Annotations = map[string]string{appsv1beta1.VolumeClaimUpdateStateKey: record}
	}
}

func requests(size string) func(*life) {
	return func(l *life) {
		l.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

// allocated is the size that the resizer is at.
func allocated(size string) func(*life) {
	return func(l *life) {
		l.Claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

func TestNext(t *testing.T) {
	const own = `{"size":"3Gi","sizeTimestamp":"2026-11-01T11:00:00Z"}`
	for name, test := range map[string]struct {
		is   func(*life) // a claim of 1Gi at 12:00, its pod since 11:00
		want string
		says []string
	}{
		"there is none": {func(l *life) { l.Claim = nil }, "Waiting ClaimMissing", nil},
		"no status at all": {
			func(l *life) { l.Claim.Status = corev1.PersistentVolumeClaimStatus{} }, "Settled", nil,
		},
		"no status at all, and it should be larger": {
			all(template("2Gi", ""), func(l *life) { l.Claim.Status = corev1.PersistentVolumeClaimStatus{} }), "Waiting ClaimNotBound",
			[]string{"claim data-sample-0: ", "no volume yet"},
		},
		"bound, and no capacity": {
			all(template("2Gi", ""), func(l *life) { l.Claim.Status.Capacity = nil }), "Changing request to 2Gi", nil,
		},
		"bound without capacity, as asked": {func(l *life) { l.Claim.Status.Capacity = nil }, "UnderWay ClaimExpanding", []string{"to 1Gi"}},
		"empty specs": {
			func(l *life) {
				l.Claim.Spec, l.Template.Spec = corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}
			}, "Settled", nil,
		},
		"larger than its template": {requests("3Gi"), "Settled", nil},
		"it has more than its template says, and asked for less": {
			all(template("2Gi", ""), grown("3Gi")), "Settled", nil,
		},

		// What is larger than the template, and not there yet.
		"another client asks for more than the template, under way": {
			all(template("2Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing)), "UnderWay ClaimExpanding", []string{"from 1Gi to 3Gi"},
		},
		"another client asks for more than the template, and cannot have it": {
			all(template("2Gi", ""), requests("3Gi"), growing(controllerInfeasible, resizing, outOfRange)), "Changing request to 2Gi", nil,
		},
		"another client asks for more than the template, it fails": {
			all(template("2Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing, internal)), "Blocked ExpansionFailed", nil,
		},
		"another client asks for more than the template, and the volume has it": {
			all(template("2Gi", ""), requests("3Gi"), growing(nodePending, resizing, outOfRange, remount)), "UnderWay ClaimExpanding", nil,
		},
		"another client asks for more than the template, and the driver is known not to expand volumes in use": {
			all(template("2Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing),
				func(l *life) { l.InUseSince, l.now = start.Add(-time.Hour), start.Add(silentPeriod) }), "Blocked VolumeInUse",
			[]string{"another client has asked for 3Gi", "delete its pod", "the 2Gi of the template"},
		},
		"another client asks for more than the template, and the file system does not follow": {
			all(template("2Gi", ""), requests("3Gi"), growing(nodePending, resizing, remount), func(l *life) { l.now = start.Add(remountPeriod) }),
			"Blocked VolumeNotRemounted", []string{"another client has asked for 3Gi"},
		},
		"we asked for more than the template": {
			all(template("2Gi", ""), requests("3Gi"), noted(own), growing(controllerInProgress, resizing)), "Changing request to 2Gi", nil,
		},
		"we asked for more, and then another client for still more": {
			all(template("2Gi", ""), requests("4Gi"), noted(own), growing(controllerInProgress, resizing)), "UnderWay ClaimExpanding", nil,
		},

		// What no claim becomes.
		"another storage class": {
			func(l *life) { l.Template.Spec.StorageClassName = ptr.To("fast") }, "Blocked ClaimImmutable",
			[]string{`its storage class is "standard", the template says "fast"`, "revert the template", "OnDelete"},
		},
		"no storage class, by an empty name": {
			func(l *life) { l.Template.Spec.StorageClassName = ptr.To("") }, "Blocked ClaimImmutable", []string{`the template says ""`},
		},
		"another storage class by the old annotation": {
			func(l *life) { l.Template.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "fast"} }, "Blocked ClaimImmutable", []string{`"fast"`},
		},
		"another volume mode": {
			func(l *life) { l.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "Blocked ClaimImmutable", []string{"its volume mode is Filesystem, the template says Block"},
		},
		"the default volume mode by name": {
			func(l *life) { l.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem) }, "Settled", nil,
		},
		"other access modes": {
			func(l *life) { l.Template.Spec.AccessModes = append(l.Template.Spec.AccessModes, corev1.ReadOnlyMany) }, "Blocked ClaimImmutable",
			[]string{"access modes are [ReadWriteOnce], the template says [ReadWriteOnce ReadOnlyMany]"},
		},
		"access modes in another order": {
			func(l *life) {
				l.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteOnce}
				l.Template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
			}, "Settled", nil,
		},
		"another volume mode, and larger: nothing is changed": {
			func(l *life) {
				template("2Gi", "gold")(l)
				l.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
			}, "Blocked ClaimImmutable", nil,
		},

		// Whose word counts.
		"an error of the request before": {
			all(template("3Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing, internal),
				noted(`{"size":"3Gi","sizeTimestamp":"2026-11-01T12:00:01Z"}`)), "UnderWay ClaimExpanding", nil,
		},
		"an earlier request, rounded up to this one, is repeated for ever": {
			all(template("3Gi", ""), requests("3Gi"), noted(own), grown("2500Mi"), growing(nodePending, resizing, remount), allocated("2500Mi")), "Blocked ClaimOverdue", nil,
		},
		"an earlier request is not done yet": {
			all(template("3Gi", ""), requests("3Gi"), noted(own), growing(nodePending, resizing, remount), allocated("2500Mi")), "UnderWay ClaimExpanding", nil,
		},
		"an error of this request": {
			all(template("3Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing, internal),
				noted(`{"size":"3Gi","sizeTimestamp":"2026-11-01T11:59:00Z"}`)), "Blocked ExpansionFailed",
			[]string{"claim data-sample-0: ", "3Gi", "code = Internal desc = it fails", "asked again"},
		},
		"a condition that is False": {
			all(template("3Gi", ""), requests("3Gi"), growing(controllerInProgress, resizing, internal), noted(own),
				func(l *life) { l.Claim.Status.Conditions[1].Status = corev1.ConditionFalse }), "Blocked ClaimOverdue", nil,
		},
		"conditions that are not known": {
			all(template("2Gi", ""), func(l *life) { l.conditions("NoPodsUsingPVC", "Unused") }), "Changing request to 2Gi", nil,
		},
		"an error of the attributes before": {
			all(template("1Gi", "gold"), func(l *life) { l.Claim.Spec.VolumeAttributesClassName = ptr.To("gold") },
				modifying(infeasible, "refused", "InvalidArgument", modifyingOther, modifyError),
				noted(`{"attributesClass":"gold","attributesClassTimestamp":"2026-11-01T12:00:00Z"}`)), "UnderWay ClaimModifying", nil,
		},
		"the attributes class before is given back": {
			all(template("1Gi", "gold"), func(l *life) {
				l.Claim.Spec.VolumeAttributesClassName, l.Claim.Status.CurrentVolumeAttributesClassName = ptr.To("gold"), ptr.To("gold")
			}, modifying(inProgress, "gold", "", modifyingGold)), "UnderWay ClaimModifying", nil,
		},
		"a template without attributes class takes any": {
			func(l *life) { l.Claim = claimOf("1Gi", "gold") }, "Settled", nil,
		},

		// Records that cannot be read: the claim is judged by what it shows.
		"no JSON": {
			all(template("2Gi", ""), noted(`{"size":`)), "Changing request to 2Gi", nil,
		},
		"a size that is none": {
			all(template("2Gi", ""), requests("2Gi"), noted(`{"size":"much","sizeTimestamp":"2026-11-01T11:59:00Z"}`), growing(controllerInProgress, resizing)),
			"UnderWay ClaimExpanding", nil,
		},
		"a list": {
			all(template("2Gi", ""), requests("2Gi"), noted(`[]`)), "UnderWay ClaimExpanding", []string{"another client"},
		},
		"null": {
			all(template("2Gi", ""), requests("2Gi"), noted(`null`)), "UnderWay ClaimExpanding", []string{"another client"},
		},
		"empty": {
			all(template("2Gi", ""), noted(``)), "Changing request to 2Gi", nil,
		},
		"what a later release may add": {
			all(template("3Gi", ""), requests("3Gi"), noted(`{"size":"3Gi","sizeTimestamp":"2026-11-01T11:59:00Z","other":{"a":1}}`)), "UnderWay ClaimExpanding", nil,
		},
		"from the future": {
			all(template("3Gi", ""), requests("3Gi"), noted(`{"size":"3Gi","sizeTimestamp":"2026-11-01T12:05:00Z"}`)), "UnderWay ClaimExpanding", nil,
		},

		// Messages.
		"the class forbids it": {
			all(template("2Gi", ""), func(l *life) { l.StorageClass = storageClass(false) }), "Blocked ExpansionNotAllowed",
			[]string{"claim data-sample-0: its storage class standard does not allow it to grow to 2Gi", "allowVolumeExpansion: true", "revert the template"},
		},
		"the class does not say": {
			all(template("2Gi", ""), func(l *life) { l.StorageClass.AllowVolumeExpansion = nil }), "Blocked ExpansionNotAllowed", nil,
		},
		"the class is missing": {
			all(template("2Gi", ""), func(l *life) { l.StorageClass = nil }), "Blocked StorageClassMissing", []string{"storage class standard does not exist"},
		},
		"the class is not known": {
			all(template("2Gi", ""), func(l *life) { l.StorageClass, l.ClassesUnknown = nil, true }), "Changing request to 2Gi", nil,
		},
		"the class is not known, and the API server refuses": {
			all(template("2Gi", ""), refused("the storageclass must support resize", time.Minute), func(l *life) { l.StorageClass, l.ClassesUnknown = nil, true }),
			"Blocked ClaimRefused", []string{"claim data-sample-0: the API server refuses to change its request to 2Gi: the storageclass must support resize"},
		},
		"infeasible": {
			all(template("4Gi", ""), requests("4Gi"), growing(controllerInfeasible, resizing, outOfRange)), "Blocked ExpansionInfeasible",
			[]string{"claim data-sample-0: ", "4Gi", "OutOfRange desc = at most 3Gi", "ask for less, but more than 1Gi", "revert the template"},
		},
		"infeasible attributes": {
			all(template("1Gi", "gold"), func(l *life) { l.Claim.Spec.VolumeAttributesClassName = ptr.To("gold") },
				modifying(infeasible, "gold", "InvalidArgument", modifyingGold, modifyError)), "Blocked ModificationInfeasible",
			[]string{"claim data-sample-0: ", "VolumeAttributesClass gold", "unknown parameter", "revert the template"},
		},
		"the attributes class is missing": {
			all(template("1Gi", "gold"), func(l *life) { l.LacksAttributesClass = true }), "Blocked VolumeAttributesClassMissing",
			[]string{"VolumeAttributesClass gold does not exist", "create it, or revert"},
		},
		"a driver that talks much": {
			all(template("4Gi", ""), requests("4Gi"), growing(controllerInProgress, resizing, internal+strings.Repeat("ä", 500))), "Blocked ExpansionFailed",
			[]string{"..."},
		},
		"refused": {
			all(template("2Gi", ""), refused("exceeded quota: q", time.Minute)), "Blocked ClaimRefused",
			[]string{"claim data-sample-0: the API server refuses to change its request to 2Gi: exceeded quota: q"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, "1Gi", "")
			test.is(l)
			step := Next(l.Facts, l.now)
			g.Expect(inShort(step)).To(Equal(test.want))
			for _, part := range test.says {
				g.Expect(step.Message).To(ContainSubstring(part))
			}
			g.Expect(len(step.Message)).To(BeNumerically("<", 700))
			g.Expect(step.Claim).To(BeIdenticalTo(l.Claim))
		})
	}
}

// TestNextTellsTime: since when, and until when nothing but time changes it.
func TestNextTellsTime(t *testing.T) {
	for name, test := range map[string]struct {
		is           func(*life)
		since, until time.Duration // zero time if zero
	}{
		"settled":  {nil, 0, 0},
		"changing": {template("2Gi", ""), 0, 0},
		"under way": {
			all(template("2Gi", ""), requests("2Gi"), noted(`{"size":"2Gi","sizeTimestamp":"2026-11-01T11:59:00Z"}`)),
			-time.Minute, 9 * time.Minute,
		},
		"under way on the node": {
			all(template("2Gi", ""), requests("2Gi"), noted(`{"size":"2Gi","sizeTimestamp":"2026-11-01T11:59:00Z"}`),
				growing(nodePending, resizing, remount), func(l *life) { l.now = start.Add(time.Minute) }),
			1, 3 * time.Minute,
		},
		"modified": {
			all(template("1Gi", "gold"), func(l *life) { l.Claim.Spec.VolumeAttributesClassName = ptr.To("gold") },
				noted(`{"attributesClass":"gold","attributesClassTimestamp":"2026-11-01T11:59:00Z"}`)),
			-time.Minute, 9 * time.Minute,
		},
		"refused":              {all(template("2Gi", ""), refused("no", time.Minute)), 0, time.Minute},
		"a class is looked up": {all(template("2Gi", ""), func(l *life) { l.StorageClass = nil }), 0, classPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, "1Gi", "")
			if test.is != nil {
				test.is(l)
			}
			step := Next(l.Facts, l.now)
			g.Expect(step.Since).To(BeTemporally("~", timeOf(test.since), time.Millisecond), "since")
			g.Expect(step.Until).To(BeTemporally("~", timeOf(test.until), time.Millisecond), "until")
		})
	}
}

func timeOf(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return start.Add(d)
}

// TestNextKeepsPod: only a volume that could not be mounted again keeps its pod.
func TestNextKeepsPod(t *testing.T) {
	for name, test := range map[string]struct {
		is    func(*life)
		keeps bool
	}{
		"the node fails":                 {growing(nodeInProgress, resizing, remount, nodeFails), true},
		"the node finds it infeasible":   {growing(nodeInfeasible, resizing, remount, nodeFails), true},
		"the node cannot while mounted":  {growing(nodeInProgress, resizing, remount, mounted), false},
		"the driver fails":               {growing(controllerInProgress, resizing, internal), false},
		"the driver finds it infeasible": {growing(controllerInfeasible, resizing, outOfRange), false},
		"under way":                      {growing(nodePending, resizing, remount), false},
		"it failed, and is there by now": {all(growing(nodeInProgress, resizing, nodeFails), grown("2Gi")), false},
		"whatever it asks for by now":    {growing(controllerInProgress, resizing, nodeFails), true},
		"whatever its template says":     {all(growing(nodeInProgress, resizing, remount, nodeFails), template("1Gi", "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, "1Gi", "")
			all(template("2Gi", ""), requests("2Gi"), test.is)(l)
			NewWithT(t).Expect(Claims{Next(l.Facts, l.now)}.KeepPod()).To(Equal(test.keeps))
		})
	}
}

func TestAwaitDetached(t *testing.T) {
	const detached = `{"size":"2Gi","sizeTimestamp":"2026-11-01T12:00:00Z","inUseTimestamp":"2026-11-01T12:00:00Z","detachTimestamp":"2026-11-01T12:00:00Z"}`
	const unmounted = `{"size":"2Gi","sizeTimestamp":"2026-11-01T12:00:00Z","detachTimestamp":"2026-11-01T12:00:00Z"}`
	none := func(*life) {}
	for name, test := range map[string]struct {
		record  string
		is      func(*life)
		after   time.Duration
		want    time.Duration // zero: the pod may come back
		restore bool
	}{
		"gone a moment ago":         {detached, requests("1Gi"), time.Second, detachPeriod, true},
		"it asks again":             {detached, growing(controllerInProgress, resizing), 5 * time.Second, detachPeriod, false},
		"still in use":              {detached, all(func(l *life) { l.now = start.Add(time.Second) }, growing(controllerInProgress, resizing, attached)), 5 * time.Second, detachPeriod, false},
		"the pod is on its way out": {detached, func(l *life) { requests("2Gi")(l); l.Pod = &Pod{Since: start, Leaving: true} }, time.Second, detachPeriod, false},
		"its time is up":            {detached, requests("2Gi"), detachPeriod, 0, false},
		"grown":                     {detached, growing(nodePending, resizing, attached, remount), 5 * time.Second, 0, false},
		"grown, by the capacity":    {detached, grown("2Gi"), 5 * time.Second, 0, false},
		"it fails":                  {detached, growing(controllerInProgress, resizing, internal), 5 * time.Second, 0, false},
		"it is infeasible":          {detached, growing(controllerInfeasible, resizing, outOfRange), 5 * time.Second, 0, false},
		"its class forbids it now":  {detached, all(requests("1Gi"), func(l *life) { l.StorageClass = storageClass(false) }), 5 * time.Second, 0, false},
		"rolled back":               {detached, template("1Gi", ""), 5 * time.Second, 0, false},
		"for another size":          {detached, template("3Gi", ""), 5 * time.Second, 0, false},
		"never sent away":           {``, requests("2Gi"), 5 * time.Second, 0, false},
		"the claim is deleted":      {detached, func(l *life) { l.Claim.DeletionTimestamp = &metav1.Time{Time: start} }, 5 * time.Second, 0, false},
		"the claim is gone":         {detached, func(l *life) { l.Claim = nil }, 5 * time.Second, 0, false},
		"the pod is there":          {detached, func(l *life) { requests("2Gi")(l); l.Pod = podSince(start) }, 5 * time.Second, 0, false},
		"a node unmounts it":        {unmounted, growing(nodeInProgress, resizing, remount), 5 * time.Second, unmountPeriod, false},
		"a node unmounts what another client asked for": {unmounted, all(template("1500Mi", ""), growing(nodeInProgress, resizing, remount)), 5 * time.Second, unmountPeriod, false},
		"a node has unmounted it":                       {unmounted, growing(nodeInProgress, resizing, remount), unmountPeriod, 0, false},
		"long ago":                                      {detached, none, time.Hour, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, "1Gi", "")
			l.Pod = nil
			all(template("2Gi", ""), requests("2Gi"), noted(test.record))(l)
			test.is(l)
			now := start.Add(test.after)
			g.Expect(AwaitDetached(l.Facts, now)).To(BeTemporally("==", timeOf(test.want)))
			if test.restore {
				g.Expect(inShort(Next(l.Facts, now))).To(Equal("Changing request to 2Gi"))
			}
		})
	}
}

// TestNextTriesAgain: a refused patch is tried again in its time, and the pod does not
// wait for that.
func TestNextTriesAgain(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, "1Gi", "")
	all(template("2Gi", ""), refused("exceeded quota: q", time.Minute))(l)
	step := Next(l.Facts, start.Add(time.Minute))
	g.Expect(inShort(step)).To(Equal("Changing request to 2Gi"))
	g.Expect(step.Refused).To(ContainSubstring("exceeded quota: q"))
	g.Expect(Claims{step}.AwaitedByPod()).To(BeEmpty())
}

func TestClaims(t *testing.T) {
	g := NewWithT(t)
	claims := Claims{
		{State: Settled},
		{State: Changing, Message: "a", Since: timeOf(2), Until: timeOf(9)},
		{State: Changing, Message: "b", Refused: "no"},
		{State: UnderWay, Message: "c", Since: timeOf(1), Until: timeOf(10)},
	}
	g.Expect(claims.Has(UnderWay)).To(BeTrue())
	g.Expect(claims.Has(Blocked)).To(BeFalse())
	g.Expect(claims.In(Changing)).To(HaveLen(2))
	g.Expect(claims.AwaitedByPod()).To(HaveExactElements(HaveField("Message", "a"), HaveField("Message", "c")))
	g.Expect(Claims{{State: UnderWay, Foreign: true}}.AwaitedByPod()).To(BeEmpty())
	g.Expect(claims.IsChanging()).To(BeTrue())
	g.Expect(claims.In(Changing).IsChanging()).To(BeFalse())
	g.Expect(Claims{{State: Changing, InFlight: true}}.IsChanging()).To(BeTrue())
	g.Expect(Claims{{State: UnderWay, Foreign: true}}.IsChanging()).To(BeFalse())
	g.Expect(claims.In(Changing)).To(HaveLen(2), "nothing is taken out of the claims")
	g.Expect(claims.In(Changing).Message()).To(Equal("a; b"))
	g.Expect(claims.Since()).To(Equal(timeOf(1)))
	g.Expect(claims.Until()).To(Equal(timeOf(9)))
	g.Expect(claims.KeepPod()).To(BeFalse())
	g.Expect(Claims{{State: Blocked, KeepsPod: true}}.KeepPod()).To(BeTrue())

	var none Claims
	g.Expect(none.Has(Changing)).To(BeFalse())
	g.Expect(none.In(Changing)).To(BeEmpty())
	g.Expect(none.Message()).To(BeEmpty())
	g.Expect(none.Since().IsZero()).To(BeTrue())
	g.Expect(none.Until().IsZero()).To(BeTrue())
}
