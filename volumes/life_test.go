// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// start is when the template changes; the pod runs since an hour before.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// claimOf returns a claim at rest that has a volume, and names an attributes class
// if one is given.
func claimOf(size, attributes string) *corev1.PersistentVolumeClaim {
	claim := templateOf(size, attributes)
	claim.Name, claim.UID, claim.ResourceVersion = "data-sample-0", "1234", "41"
	claim.Spec.StorageClassName = ptr.To("standard")
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: claim.Spec.Resources.Requests.DeepCopy()}
	if attributes != "" {
		claim.Status.CurrentVolumeAttributesClassName = ptr.To(attributes)
	}
	return claim
}

func templateOf(size, attributes string) *corev1.PersistentVolumeClaim {
	template := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	if attributes != "" {
		template.Spec.VolumeAttributesClassName = ptr.To(attributes)
	}
	return template
}

func storageClass(expands bool) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, AllowVolumeExpansion: ptr.To(expands)}
}

// life is a claim in the hands of the operator and of those who write its status.
type life struct {
	Facts
	t   *testing.T
	now time.Time
}

func newLife(t *testing.T, size, attributes string) *life {
	t.Helper()
	return &life{t: t, now: start, Facts: Facts{
		Claim: claimOf(size, attributes), Template: templateOf(size, attributes), StorageClass: storageClass(true), Pod: podSince(start.Add(-time.Hour)),
	}}
}

// podSince returns a pod that was created at a moment, and is ready.
func podSince(at time.Time) *Pod {
	return &Pod{UID: types.UID(at.Format(time.RFC3339Nano)), Since: at, Ready: true}
}

// decide does what the operator does: it keeps the pod away or makes it again, asks
// for the next step, and writes its patch. It returns what it did in short.
func (l *life) decide() string {
	short := ""
	if l.Pod == nil {
		short = "away: "
		if AwaitDetached(l.Facts, l.now).IsZero() {
			short, l.Pod = "back: ", podSince(l.now)
		}
	}
	step := Next(l.Facts, l.now)
	short += inShort(step)
	if step.State != Changing && step.State != Detaching {
		return short
	}
	l.Claim = merged(l.t, l.Claim, step.Patch)
	if step.State == Detaching {
		l.Pod = nil
	}
	return short
}

// inShort returns a step in short: "Changing request to 2Gi", "Blocked ClaimOverdue".
func inShort(step Step) string {
	switch step.State {
	case Settled:
		return "Settled"
	case Changing:
		return "Changing " + step.Patch.String()
	case Detaching:
		if step.Patch.Size != nil {
			return "Detaching " + step.Reason + ", " + step.Patch.String()
		}
		return "Detaching " + step.Reason
	default:
		return string(step.State) + " " + step.Reason
	}
}

// merged returns what the API server makes of the body of a patch.
func merged(t testing.TB, claim *corev1.PersistentVolumeClaim, patch Patch) *corev1.PersistentVolumeClaim {
	t.Helper()
	g := NewWithT(t)
	body, err := patch.Body(claim)
	g.Expect(err).NotTo(HaveOccurred())
	before, err := json.Marshal(claim)
	g.Expect(err).NotTo(HaveOccurred())
	// A merge patch and a strategic one are the same where there are no lists.
	after, err := strategicpatch.StrategicMergePatch(before, body, corev1.PersistentVolumeClaim{})
	g.Expect(err).NotTo(HaveOccurred())
	claim = &corev1.PersistentVolumeClaim{}
	g.Expect(json.Unmarshal(after, claim)).To(Succeed())
	return claim
}

// What happens to a claim.

func template(size, attributes string) func(*life) {
	return func(l *life) { l.Template = templateOf(size, attributes) }
}

// growing is what resizer and kubelet show of an expansion: the status and all
// conditions of it, as "Type" or "Type: message".
func growing(status corev1.ClaimResourceStatus, conditions ...string) func(*life) {
	return func(l *life) {
		l.Claim.Status.AllocatedResourceStatuses = nil
		if status != "" {
			l.Claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		}
		// The kubelet goes on with what was allocated before.
		if status == controllerInProgress || status == controllerInfeasible || l.Claim.Status.AllocatedResources == nil {
			l.Claim.Status.AllocatedResources = l.Claim.Spec.Resources.Requests.DeepCopy()
		}
		l.Claim.Status.Conditions = nil
		l.conditions("", conditions...)
	}
}

func grown(size string) func(*life) {
	return func(l *life) {
		growing("")(l)
		l.Claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

// modifying is what the resizer shows of another attributes class.
func modifying(status corev1.PersistentVolumeClaimModifyVolumeStatus, target, reason string, conditions ...string) func(*life) {
	return func(l *life) {
		l.Claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{Status: status, TargetVolumeAttributesClassName: target}
		l.Claim.Status.Conditions = nil
		l.conditions(reason, conditions...)
	}
}

func modified(class string) func(*life) {
	return func(l *life) {
		l.Claim.Status.ModifyVolumeStatus, l.Claim.Status.Conditions = nil, nil
		l.Claim.Status.CurrentVolumeAttributesClassName = ptr.To(class)
	}
}

func (l *life) conditions(reason string, conditions ...string) {
	for _, condition := range conditions {
		conditionType, message, _ := strings.Cut(condition, ": ")
		l.Claim.Status.Conditions = append(l.Claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimConditionType(conditionType), Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(l.now).Rfc3339Copy(),
		})
	}
}

// all does several of them at once.
func all(happen ...func(*life)) func(*life) {
	return func(l *life) {
		for _, what := range happen {
			what(l)
		}
	}
}

func refused(message string, until time.Duration) func(*life) {
	return func(l *life) {
		step := Next(l.Facts, l.now)
		l.Refused = append(l.Refused, Refusal{Key: step.Patch.Key(), Message: message, Until: l.now.Add(until)})
	}
}
