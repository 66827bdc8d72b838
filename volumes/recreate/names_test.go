// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// TestKeyOf: a key changes with what a recreation depends on, and with nothing else.
func TestKeyOf(t *testing.T) {
	g := NewWithT(t)
	before := possible()
	key := KeyOf(before.Template, before.Strategy)
	seen := map[string]string{key: "before"}
	for name, change := range map[string]func(*PreflightFacts){
		"class":       func(f *PreflightFacts) { f.Template.Spec.StorageClassName = ptr.To("new") },
		"no class":    func(f *PreflightFacts) { f.Template.Spec.StorageClassName = nil },
		"empty class": func(f *PreflightFacts) { f.Template.Spec.StorageClassName = ptr.To("") },
		"annotation": func(f *PreflightFacts) {
			f.Template.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "new"}
		},
		"mode": isBlock,
		"access modes": func(f *PreflightFacts) {
			f.Template.Spec.AccessModes = append(f.Template.Spec.AccessModes, corev1.ReadOnlyMany)
		},
		"timeout":        func(f *PreflightFacts) { f.Strategy.Recreate.TimeoutSeconds = ptr.To[int32](1) },
		"without":        func(f *PreflightFacts) { withoutSnapshot(f.Strategy.Recreate) },
		"snapshot class": names("mine"),
		"no parameters":  func(f *PreflightFacts) { f.Strategy.Recreate = nil },
	} {
		f := possible()
		change(f)
		key := KeyOf(f.Template, f.Strategy)
		g.Expect(seen[key]).To(BeEmpty(), name)
		seen[key] = name
	}
	for name, change := range map[string]func(*PreflightFacts){
		"size":          larger("9Gi"),
		"labels":        func(f *PreflightFacts) { f.Template.Labels = map[string]string{"a": "b"} },
		"annotations":   func(f *PreflightFacts) { f.Template.Annotations = map[string]string{"a": "b"} },
		"maxConcurrent": func(f *PreflightFacts) { f.Strategy.Type = "OnDelete" },
	} {
		f := possible()
		change(f)
		g.Expect(KeyOf(f.Template, f.Strategy)).To(Equal(key), name)
	}
}

func TestLabelValue(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("a", 63)
	g.Expect(LabelValue("data-sample-0")).To(Equal("data-sample-0"))
	g.Expect(LabelValue(long)).To(Equal(long))
	one, other := LabelValue(long+"b"), LabelValue(long+"c")
	g.Expect(one).NotTo(Equal(other), "names that begin alike")
	for _, value := range []string{one, other, LabelValue(strings.Repeat("a-", 40)), LabelValue(strings.Repeat("a.", 126) + "a")} {
		g.Expect(len(value)).To(BeNumerically("<=", 63))
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
	}
	g.Expect(LabelValue(long + "b")).To(Equal(one))
}

// TestBegin: the name of a snapshot is one of its own, also for a claim whose own name is
// as long as one may be.
func TestBegin(t *testing.T) {
	g := NewWithT(t)
	f := possible()
	f.Claim.Name = strings.Repeat("a", 253)
	judgement := Preflight(*f)
	g.Expect(judgement.Refused).To(BeNil())
	a := Begin(f.Claim, nil, judgement, start.Add(time.Millisecond))
	for _, name := range []string{a.Snapshot, a.Trial} {
		g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty(), name)
	}
	g.Expect(a.Trial).NotTo(Equal(a.Snapshot))
	g.Expect(a.Number).To(Equal(int64(1)))
	g.Expect(a.StartTimestamp.Time).To(Equal(start), "to the second")
	g.Expect(a.Pod).To(BeEmpty(), "its pod is not stopped yet")

	f.Claim.ResourceVersion = "2"
	setRecord(f.Claim, volumes.Record{HeldVolumes: []appsv1beta1.HeldVolume{{Name: "b", Number: 3}, {Name: "a", Number: 7}}})
	next := Begin(f.Claim, nil, judgement, start)
	g.Expect(next.Snapshot).NotTo(Equal(a.Snapshot))
	g.Expect(next.Number).To(Equal(int64(8)))

	// The note on the claim is lost. The volumes tell what came before: a number that was
	// given twice would let an older volume decide what the claim is made from.
	delete(f.Claim.Annotations, appsv1beta1.VolumeClaimUpdateStateKey)
	g.Expect(Begin(f.Claim, []Volume{heldFor(f.Claim.Name, 9)}, judgement, start).Number).To(Equal(int64(10)))
	g.Expect(Begin(f.Claim, []Volume{heldFor("other", 9)}, judgement, start).Number).To(Equal(int64(1)))

	stopped := Stop(a, podWith("pod-1"), start.Add(time.Minute))
	g.Expect(stopped.Pod).To(BeEquivalentTo("pod-1"))
	g.Expect(stopped.StartTimestamp.Time).To(Equal(start.Add(time.Minute)))
	g.Expect(Stop(stopped, podWith("pod-2"), start.Add(time.Hour))).To(Equal(stopped), "a pod is stopped once")
}

func podWith(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
}

func heldAs(name string, number int64, proved bool) Volume {
	state := &appsv1beta1.HeldVolumeState{Namespace: "default", Claim: claimName, ClaimUID: "1", Recreate: Attempt{Number: number}}
	if proved {
		state.ProvedTimestamp = ptr.To(metav1.NewTime(start))
	}
	return Volume{PersistentVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}, State: state}
}

func heldFor(claim string, number int64) Volume {
	v := heldAs("pv-9", number, false)
	v.State.Claim = claim
	return v
}

func TestInFlight(t *testing.T) {
	g := NewWithT(t)
	g.Expect(InFlight(nil)).To(BeNil())
	g.Expect(InFlight([]Volume{heldAs("a", 1, true), heldAs("b", 2, true)})).To(BeNil())
	g.Expect(InFlight([]Volume{heldAs("a", 1, true), heldAs("b", 2, false), heldAs("c", 3, true)})).To(HaveField("Name", "b"))
	g.Expect(InFlight([]Volume{heldAs("a", 1, false), heldAs("c", 3, false), heldAs("b", 2, false)})).To(HaveField("Name", "c"))
	first, second := heldAs("a", 2, false), heldAs("b", 2, false)
	first.State.Recreate.StartTimestamp, second.State.Recreate.StartTimestamp = metav1.NewTime(start), metav1.NewTime(start.Add(time.Second))
	g.Expect(InFlight([]Volume{first, second})).To(HaveField("Name", "b"))
	g.Expect(InFlight([]Volume{second, first})).To(HaveField("Name", "b"), "in any order")
	held := []Volume{heldAs("a", 1, true), heldAs("b", 2, false)}
	InFlight(held)
	g.Expect(held).To(HaveExactElements(HaveField("Name", "a"), HaveField("Name", "b")), "they are only read")
}

// TestIsReady: a claim is made from a snapshot only if that is whole, and stays.
func TestIsReady(t *testing.T) {
	g := NewWithT(t)
	whole := func() *snapshotv1.VolumeSnapshot {
		return &snapshotv1.VolumeSnapshot{Status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true), BoundVolumeSnapshotContentName: ptr.To("content")}}
	}
	g.Expect(IsReady(whole())).To(BeTrue())
	g.Expect(IsReady(nil)).To(BeFalse())
	for name, change := range map[string]func(*snapshotv1.VolumeSnapshot){
		"being deleted":  func(s *snapshotv1.VolumeSnapshot) { s.DeletionTimestamp = ptr.To(metav1.NewTime(start)) },
		"no status":      func(s *snapshotv1.VolumeSnapshot) { s.Status = nil },
		"not known":      func(s *snapshotv1.VolumeSnapshot) { s.Status.ReadyToUse = nil },
		"not ready":      func(s *snapshotv1.VolumeSnapshot) { s.Status.ReadyToUse = ptr.To(false) },
		"of no contents": func(s *snapshotv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = nil },
	} {
		snapshot := whole()
		change(snapshot)
		g.Expect(IsReady(snapshot)).To(BeFalse(), name)
	}
}

// TestNewVolume: what cannot be read is no volume that nothing was noted on.
func TestNewVolume(t *testing.T) {
	g := NewWithT(t)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Annotations: map[string]string{"a": "b"}}}
	got, err := NewVolume(pv)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.State).To(BeNil())
	g.Expect(got.IsHeldFor("", "")).To(BeFalse())

	pv.Annotations[appsv1beta1.HeldVolumeStateKey] = `{"namespace":"default","claim":"data-sample-0"}`
	got, err = NewVolume(pv)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.IsHeldFor("default", claimName)).To(BeTrue())
	g.Expect(got.IsHeldFor("other", claimName)).To(BeFalse())
	g.Expect(got.IsHeldFor("default", "other")).To(BeFalse())

	for _, text := range []string{"", "{", "[]", `{"claim":1}`} {
		pv.Annotations[appsv1beta1.HeldVolumeStateKey] = text
		_, err = NewVolume(pv)
		g.Expect(err).To(MatchError(ContainSubstring("insitu.dev/held-volume of volume pv-1")), text)
	}
}

// TestAnnotations: what users put on a claim is on the next one, what others noted on its
// volume is not.
func TestAnnotations(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	for _, key := range []string{
		"pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
		"volume.beta.kubernetes.io/storage-provisioner", appsv1beta1.RestoredFromAnnotation,
	} {
		l.annotate(key, "before")
	}
	l.annotate("example.com/team", "db")
	l.annotate("team", "db")
	l.annotate("example.com/both", "of the claim")
	l.claim.Labels = map[string]string{"app": "of the claim", "mine": "of the claim"}
	l.template.Annotations = map[string]string{"example.com/both": "of the template"}
	l.wants("fast")
	l.stuck = true
	l.until("CreateClaim")
	record := l.claim.Annotations[appsv1beta1.VolumeClaimUpdateStateKey]
	g.Expect(l.claim.Annotations).To(Equal(map[string]string{
		"example.com/team": "db", "team": "db", "example.com/both": "of the template", appsv1beta1.VolumeClaimUpdateStateKey: record,
	}))
	g.Expect(l.claim.Labels).To(Equal(map[string]string{"app": "sample", "mine": "of the claim"}))
}

// TestClassIsKept: a template that names no class does not follow the default to
// another.
func TestClassIsKept(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.template.Spec.StorageClassName = nil
	l.template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	l.settle()
	l.expectOn("pv-2", "slow")
	g.Expect(l.claim.Spec.AccessModes).To(HaveExactElements(corev1.ReadWriteMany))

	// Nor does it on the way back, to a volume of fewer access modes.
	l.undo("previous")
	l.settle()
	l.expectBack("pv-1", "slow", "pv-2")
	g.Expect(l.claim.Spec.AccessModes).To(HaveExactElements(corev1.ReadWriteOnce))
	g.Expect(l.claim.Spec.Resources.Requests[corev1.ResourceStorage]).To(Equal(resource.MustParse("1Gi")))
}

// TestTemplateWithASource: a template says what its claims start from and which volumes
// they may have. A claim that is recreated starts from itself.
func TestTemplateWithASource(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.template.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	l.template.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	l.template.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	l.wants("fast")
	l.settle()
	l.expectOn("pv-2", "fast")
	g.Expect(l.claim.Spec.DataSource.Kind).To(Equal("VolumeSnapshot"))
	g.Expect(l.claim.Spec.DataSourceRef).To(BeNil(), "the API server would refuse two sources")
	l.undo("previous")
	l.settle()
	l.expectBack("pv-1", "slow", "pv-2")
	g.Expect(l.claim.Spec).To(And(HaveField("DataSource", BeNil()), HaveField("DataSourceRef", BeNil()), HaveField("Selector", BeNil())))
}
