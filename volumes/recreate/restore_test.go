// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestRestorationOf(t *testing.T) {
	long := strings.Repeat("a", 253)
	for name, test := range map[string]struct {
		from, missing string
		want          string // the snapshot, "!" and what an error says
		orEmpty       bool
	}{
		"a name":                         {"nightly", "", "nightly", false},
		"a pattern":                      {"nightly-$(claim)-$(ordinal)", "", "nightly-data-7", false},
		"all that is replaced":           {"$(workload).$(claim).$(ordinal).$(ordinal)", "Refuse", "db.data.7.7", false},
		"or empty":                       {"nightly-$(ordinal)", "Empty", "nightly-7", true},
		"a map":                          {`{"7":"snap-a","8":"snap-b"}`, "", "snap-a", false},
		"a map with a pattern":           {`{"7":"$(claim)-last"}`, "", "data-last", false},
		"a map with space":               {"\n {\"7\": \"snap-a\"}\n", "", "snap-a", false},
		"a map without the ordinal":      {`{"8":"snap-b"}`, "", "", false},
		"an empty map":                   {`{}`, "Empty", "", true},
		"nothing":                        {"", "", "", false},
		"as long as a name":              {long, "", long, false},
		"longer":                         {long + "a", "", "!no more than 253", false},
		"too long with the names":        {long[:250] + "-$(claim)-$(ordinal)-$(workload)", "", "!no more than 253", false},
		"capitals":                       {"Nightly", "", `!makes the snapshot name "Nightly"`, false},
		"what is not replaced":           {"nightly-$(pod)", "", "!$(claim), $(ordinal) and $(workload) are replaced", false},
		"no map of names":                {`{"7":1}`, "", `!such as {"0":"nightly-0"}`, false},
		"no JSON":                        {`{"7":"snap-a"`, "", "!no JSON object", false},
		"a bad name for another ordinal": {`{"7":"a","8":"B"}`, "", "a", false},
		"a bad name for the ordinal":     {`{"7":"B"}`, "", `!"B"`, false},
		"a policy that is none":          {"nightly", "empty", `!"empty"; accepted are Refuse and Empty`, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			annotations := map[string]string{appsv1beta1.RestoreFromAnnotation: test.from}
			if test.missing != "" {
				annotations[appsv1beta1.RestoreMissingAnnotation] = test.missing
			}
			got, err := RestorationOf(annotations, "data", "db", 7)
			if says, fails := strings.CutPrefix(test.want, "!"); fails {
				g.Expect(err).To(MatchError(And(ContainSubstring(says), ContainSubstring("claim template data"))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(&Restoration{Snapshot: test.want, OrEmpty: test.orEmpty}))
		})
	}
	g := NewWithT(t)
	got, err := RestorationOf(map[string]string{appsv1beta1.RestoreMissingAnnotation: "junk"}, "data", "db", 7)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeNil(), "nothing is asked for")
}

// newRestored returns a claim that does not exist yet and is to start from a snapshot.
func newRestored(t *testing.T, from, missing string) *life {
	t.Helper()
	l := &life{storage: newStorage(t), strategy: recreated(nil), template: templateOf("slow", "1Gi"), lives: -1}
	l.template.Annotations = map[string]string{"example.com/team": "db", appsv1beta1.RestoreFromAnnotation: from}
	if missing != "" {
		l.template.Annotations[appsv1beta1.RestoreMissingAnnotation] = missing
	}
	return l
}

// take makes a snapshot that a user has taken, with what was written to it.
func (l *life) take(name, size string, ready bool) *storedSnapshot {
	snapshot := &storedSnapshot{data: []int{1, 2}, VolumeSnapshot: &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "theirs"},
		Status: &snapshotv1.VolumeSnapshotStatus{
			ReadyToUse: &ready, RestoreSize: ptr.To(resource.MustParse(size)), BoundVolumeSnapshotContentName: ptr.To("content"),
		},
	}}
	l.snapshots[name] = snapshot
	l.acknowledged = 2
	return snapshot
}

func TestRestore(t *testing.T) {
	for _, from := range []string{"nightly-$(claim)-$(ordinal)", `{"0":"nightly-data-0"}`} {
		for _, missing := range []string{"", "Refuse", "Empty"} {
			g := NewWithT(t)
			l := newRestored(t, from, missing)
			l.take("nightly-data-0", "3Gi", true)
			l.settle()
			g.Expect(l.wrote()).To(Equal([]string{"CreateClaim from snapshot", "CreatePod"}))
			g.Expect(l.missing()).To(BeEmpty())
			g.Expect(l.claim.Annotations).To(And(
				HaveKeyWithValue("example.com/team", "db"), HaveKeyWithValue(appsv1beta1.RestoredFromAnnotation, "nightly-data-0"),
				Not(HaveKey(appsv1beta1.RestoreFromAnnotation)), Not(HaveKey(appsv1beta1.RestoreMissingAnnotation))))
			g.Expect(l.claim.Spec.Resources.Requests.Storage().String()).To(Equal("3Gi"), "as large as the snapshot restores to")

			// A claim that exists is never restored again; the snapshot is not ours to delete.
			l.template.Annotations[appsv1beta1.RestoreFromAnnotation] = "other"
			l.settle()
			g.Expect(l.wrote()).To(BeEmpty())
			g.Expect(l.snapshots).To(HaveKey("nightly-data-0"))

			// When it is recreated, it is made from a snapshot of itself.
			l.wants("fast")
			l.settle()
			g.Expect(l.missing()).To(BeEmpty())
			g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")))
			g.Expect(l.claim.Annotations).NotTo(HaveKey(appsv1beta1.RestoredFromAnnotation))
			g.Expect(l.snapshots).To(HaveKey("nightly-data-0"))
		}
	}
}

// TestRestoreWaits: without its snapshot there is no claim, and no pod; or an empty one
// where that is said.
func TestRestoreWaits(t *testing.T) {
	for name, test := range map[string]struct {
		from, missing string
		prepare       func(*life)
		reason, says  string // of the wait; empty for an empty claim
	}{
		"there is none":                 {"nightly", "", nil, ReasonRestoreMissing, "snapshot nightly, which it is to be restored from, does not exist"},
		"there is none, or empty":       {"nightly", "Empty", nil, "", ""},
		"none for the ordinal":          {`{"1":"a"}`, "Refuse", nil, ReasonRestoreMissing, "names no snapshot for ordinal 0"},
		"none for the ordinal, empty":   {`{"1":"a"}`, "Empty", nil, "", ""},
		"it cannot be understood":       {`{`, "Empty", nil, ReasonRestoreInvalid, "no JSON object"},
		"it is not ready":               {"nightly", "", func(l *life) { l.take("nightly", "1Gi", false) }, ReasonSnapshotNotReady, "when snapshot nightly is ready"},
		"it is not ready, or empty":     {"nightly", "Empty", func(l *life) { l.take("nightly", "1Gi", false) }, ReasonSnapshotNotReady, "when snapshot nightly is ready"},
		"it is ready and has no volume": {"nightly", "", func(l *life) { l.take("nightly", "1Gi", true).Status.BoundVolumeSnapshotContentName = nil }, ReasonSnapshotNotReady, ""},
		"it has no status":              {"nightly", "", func(l *life) { l.take("nightly", "1Gi", true).Status = nil }, ReasonSnapshotNotReady, ""},
		"it is being deleted": {
			"nightly", "", func(l *life) { l.take("nightly", "1Gi", true).DeletionTimestamp = ptr.To(metav1.NewTime(start)) }, ReasonRestoreMissing, "",
		},
		"it failed": {"nightly", "", func(l *life) {
			l.take("nightly", "1Gi", false).Status.Error = &snapshotv1.VolumeSnapshotError{Message: ptr.To("no space")}
		}, ReasonSnapshotNotReady, "of which is said: no space"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newRestored(t, test.from, test.missing)
			if test.prepare != nil {
				test.prepare(l)
			}
			for range 3 {
				l.reconcile()
			}
			if test.reason == "" {
				l.settle()
				g.Expect(l.wrote()).To(Equal([]string{"CreateClaim by template", "CreatePod"}))
				g.Expect(l.claim.Spec.DataSource).To(BeNil())
				return
			}
			g.Expect(l.wrote()).To(BeEmpty())
			g.Expect(l.step).To(And(HaveField("Action", Wait), HaveField("Reason", test.reason), HaveField("Message", ContainSubstring(test.says)), HaveField("PodMayRun", false)))

			l.template.Annotations[appsv1beta1.RestoreFromAnnotation] = "there"
			l.take("there", "1Gi", true)
			l.settle()
			g.Expect(l.wrote()).To(Equal([]string{"CreateClaim from snapshot", "CreatePod"}))
			g.Expect(l.pod.IsReady()).To(BeTrue())
		})
	}
}

// TestRestoreLosesItsSnapshot: a claim that waits for a snapshot that is gone would do so
// for ever, and keep one that is being deleted.
func TestRestoreLosesItsSnapshot(t *testing.T) {
	for name, lose := range map[string]func(*life){
		"gone":          func(l *life) { clear(l.snapshots) },
		"being deleted": func(l *life) { l.snapshots["nightly"].DeletionTimestamp = ptr.To(metav1.NewTime(start)) },
	} {
		for _, missing := range []string{"Refuse", "Empty"} {
			t.Run(name+"/"+missing, func(t *testing.T) {
				g := NewWithT(t)
				l := newRestored(t, "nightly", missing)
				l.take("nightly", "1Gi", true)
				l.stuck = true
				l.rounds(5)
				g.Expect(l.wrote()).To(Equal([]string{"CreateClaim from snapshot", "CreatePod"}))
				g.Expect(l.step).To(And(HaveField("Reason", ReasonVolumeNotReady), HaveField("PodMayRun", true)))
				lose(l)
				l.stuck = false
				l.rounds(5)
				if missing == "Empty" {
					g.Expect(l.wrote()).To(Equal([]string{"DeleteClaim", "CreateClaim by template"}))
					g.Expect(l.pod.IsReady()).To(BeTrue())
					return
				}
				g.Expect(l.wrote()).To(Equal([]string{"DeleteClaim"}))
				g.Expect(l.step.Reason).To(Equal(ReasonRestoreMissing))
				l.take("nightly", "1Gi", true)
				l.settle()
				g.Expect(l.wrote()).To(Equal([]string{"CreateClaim from snapshot"}))
				g.Expect(l.missing()).To(BeEmpty())
			})
		}
	}
}
