// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

var stopped = metav1.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func keptVolume(source appsv1beta1.VolumeClaimRecreateSource, proved bool, state recreate.KeptState) recreate.Kept {
	volume := &recreate.Volume{
		PersistentVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}},
		State:            &appsv1beta1.HeldVolumeState{Recreate: recreate.Attempt{Source: source, StoppedTimestamp: &stopped}},
	}
	volume.Spec.StorageClassName, volume.Spec.Capacity = "slow", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if proved {
		volume.State.ProvedTimestamp = &stopped
	}
	return recreate.Kept{Volume: volume, Namespace: "shop", Claim: "data-db-0", ClaimUID: "claim-1", Owner: "set-1", Since: stopped.Time, State: state}
}

func keptSnapshot(of types.UID) recreate.Kept {
	snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0-1", CreationTimestamp: stopped}}
	snapshot.Spec.VolumeSnapshotClassName = ptr.To("usual")
	return recreate.Kept{Snapshot: snapshot, Namespace: "shop", Claim: "data-db-0", ClaimUID: of, Since: stopped.Time, State: recreate.KeptRetained}
}

// TestWhatIsLost: no user who reads it deletes the only copy of something by mistake.
func TestWhatIsLost(t *testing.T) {
	const saved, empty, undone = appsv1beta1.SnapshotRecreateSource, appsv1beta1.EmptyRecreateSource, appsv1beta1.VolumeRecreateSource
	for name, test := range map[string]struct {
		kept  []recreate.Kept
		loses string
	}{
		"a volume with its snapshot": {
			[]recreate.Kept{keptVolume(saved, true, recreate.KeptRetained), keptSnapshot("claim-1")},
			"claim data-db-0 cannot have it back any more; snapshot data-db-0-1 has the same data",
		},
		"a volume beside the snapshot of another claim": {
			[]recreate.Kept{keptVolume(saved, true, recreate.KeptRetained), keptSnapshot("claim-2")},
			"claim data-db-0 as it was 2026-11-22T10:00:00Z is lost, and it cannot have that back any more",
		},
		"a snapshot with its volume": {
			[]recreate.Kept{keptSnapshot("claim-1"), keptVolume(saved, true, recreate.KeptRetained)}, "nothing is lost: volume pv-1 has the same data",
		},
		"a snapshot whose volume is being deleted": {
			[]recreate.Kept{keptSnapshot("claim-1"), keptVolume(saved, true, recreate.KeptDeleting)},
			"claim data-db-0 as it was 2026-11-22T10:00:00Z is lost: no volume of it is held any more",
		},
		"a volume that was replaced by an empty one": {
			[]recreate.Kept{keptVolume(empty, true, recreate.KeptOnlyCopy)}, "claim data-db-0 as it was 2026-11-22T10:00:00Z is lost: nothing else has all of it",
		},
		"a volume that was replaced by an undo": {
			[]recreate.Kept{keptVolume(undone, true, recreate.KeptOnlyCopy)}, "claim data-db-0 as it was 2026-11-22T10:00:00Z is lost: nothing else has all of it",
		},
		"a volume whose set was deleted in the middle": {
			[]recreate.Kept{keptVolume(saved, false, recreate.KeptOrphaned)}, "claim data-db-0 as it was 2026-11-22T10:00:00Z is lost: nothing else has all of it",
		},
		"a volume that its claim needs": {[]recreate.Kept{keptVolume(saved, false, recreate.KeptNeeded)}, "the data of claim data-db-0 would be lost"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(NewKept(test.kept, nil)[0].Loses).To(Equal(test.loses))
		})
	}
}

func TestKeptIsToldWithItsSet(t *testing.T) {
	g := NewWithT(t)
	set := func(name string, uid types.UID, templates ...string) appsv1beta1.StatefulSet {
		s := appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
		for _, template := range templates {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: template}})
		}
		return s
	}
	owners := []appsv1beta1.StatefulSet{set("other", "set-2", "data"), set("db", "set-1", "logs", "data"), set("db-0", "set-3", "data")}
	told := NewKept([]recreate.Kept{keptVolume(appsv1beta1.SnapshotRecreateSource, true, recreate.KeptRetained), keptSnapshot("claim-1")}, owners)
	g.Expect(told[0]).To(And(HaveField("StatefulSet", "db"), HaveField("Kind", KeptVolume), HaveField("Class", "slow"), HaveField("Ref()", "volume/pv-1")))
	g.Expect(told[0].Size.String()).To(Equal("1Gi"))
	g.Expect(told[1]).To(And(HaveField("StatefulSet", "db"), HaveField("Kind", KeptSnapshot), HaveField("Class", "usual"), HaveField("Ref()", "snapshot/data-db-0-1")))
	g.Expect(OwnerOf(owners[2:], "", "data-db-0")).To(BeNil(), "data-db-0 is no claim of db-0")
	g.Expect(OwnerOf(owners, "set-9", "data-db-0")).To(BeNil(), "another set of the name")
}

// TestWhatIsLostTogether: a volume and a snapshot with the same data are each other's copy, but
// not when both are discarded.
func TestWhatIsLostTogether(t *testing.T) {
	g := NewWithT(t)
	all := NewKept([]recreate.Kept{keptVolume(appsv1beta1.SnapshotRecreateSource, true, recreate.KeptRetained), keptSnapshot("claim-1")}, nil)
	g.Expect(all[0].Loses).To(ContainSubstring("snapshot data-db-0-1 has the same data"))
	g.Expect(LosesTogether(all[:1], all)[0].Loses).To(Equal(all[0].Loses))
	for _, one := range LosesTogether(all, all) {
		g.Expect(one.Loses).To(MatchRegexp(`^claim data-db-0 as it was .* is lost`))
	}
	g.Expect(all[0].Loses).To(ContainSubstring("has the same data"), "the list is not written to")
}
