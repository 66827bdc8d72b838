// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// kept is what a recreation leaves that is to be kept.
func keeping(r *appsv1beta1.VolumeClaimRecreateStrategy) {
	r.OldVolume, r.Snapshot = appsv1beta1.RetainRecreateRetention, appsv1beta1.RetainRecreateRetention
}

// snapshottedBy names the class of snapshots.
func snapshottedBy(class string) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.VolumeSnapshotClassName = class }
}

// trying says what is tried before a pod is stopped.
func trying(what appsv1beta1.RecreateTrialType) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.Trial = what }
}

func startingEmpty(r *appsv1beta1.VolumeClaimRecreateStrategy) {
	r.WithoutSnapshot = appsv1beta1.EmptyWithoutSnapshot
}

// after lets time pass before something.
func after(seconds int, change func(*World)) func(*World) {
	return func(w *World) {
		for range seconds {
			w.step()
		}
		change(w)
	}
}

// undoAll asks for the volumes back that all claims had before.
func undoAll(w *World) {
	for _, name := range slices.Sorted(maps.Keys(all[*corev1.PersistentVolumeClaim](w.server))) {
		w.undo(name, appsv1beta1.UndoRecreatePrevious)
	}
}

func reclassed(class string) func(*World) {
	return func(w *World) {
		w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) { s.Recreate.VolumeSnapshotClassName = class })
	}
}

// Nothing disturbs sets whose claims are recreated: what each change comes to.
func TestRecreation(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings func(*settings)
		changes  []func(*World)
		// remade is how many pods were made again in all. claims tells what claims there
		// are, and how many volumes each has had that are held still.
		remade int
		claims string
		// blocked are the reasons of the blockers.
		blocked string
	}{
		{name: "another class", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi"},
		{name: "where volumes wait for pods", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("fast-wait")}, remade: 3, claims: "3 fast-wait 1Gi"},
		{
			name: "where nothing tells of attachments", settings: withRecreation(func(s *settings) { s.volumes.attaches = false }),
			changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi",
		},
		{name: "all is kept", settings: recreating(keeping), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi held 1"},
		{name: "with an image", settings: withRecreation(nil), changes: []func(*World){func(w *World) {
			wish := w.claims
			wish.class = "fast"
			w.askAll(revisionNamed("b"), wish)
		}}, remade: 3, claims: "3 fast 1Gi"},
		{name: "and back", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("fast"), claimsOfClass("standard")}, remade: 6, claims: "3 standard 1Gi"},
		{name: "and back, all is kept", settings: recreating(keeping), changes: []func(*World){claimsOfClass("fast"), claimsOfClass("standard")}, remade: 6, claims: "3 standard 1Gi held 2"},
		{name: "other access modes", settings: withRecreation(nil), changes: []func(*World){claimsWith(func(w *claimWish) { w.shared = true })}, remade: 3, claims: "3 standard 1Gi shared"},
		{name: "larger", settings: withRecreation(nil), changes: []func(*World){claimsWith(func(w *claimWish) { w.class, w.size = "fast", "2Gi" })}, remade: 3, claims: "3 fast 2Gi"},
		{
			name: "smaller", settings: withRecreation(func(s *settings) { s.volumes.wish.size = "2Gi" }),
			changes: []func(*World){claimsWith(func(w *claimWish) { w.class, w.size = "fast", "1Gi" })}, remade: 3, claims: "3 fast 2Gi",
		},
		{
			name: "two claims", settings: withRecreation(func(s *settings) { s.volumes.wish.second = "standard" }),
			changes: []func(*World){claimsWith(func(w *claimWish) { w.class, w.second = "fast", "fast-wait" })}, remade: 3, claims: "3 fast 1Gi, 3 fast-wait 1Gi",
		},
		{
			name: "one of two claims", settings: withRecreation(func(s *settings) { s.volumes.wish.second = "standard" }),
			changes: []func(*World){claimsWith(func(w *claimWish) { w.second = "fast" })}, remade: 3, claims: "3 fast 1Gi, 3 standard 1Gi",
		},
		{name: "slow snapshots", settings: recreating(snapshottedBy("slow")), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi"},
		{name: "snapshots that fail at first", settings: recreating(snapshottedBy("flaky")), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi"},
		{name: "snapshots that do not tell their size", settings: recreating(snapshottedBy("sizeless")), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi"},
		{
			name: "snapshots that fail", settings: recreating(snapshottedBy("failing")), changes: []func(*World){claimsOfClass("fast")},
			claims: "3 standard 1Gi", blocked: "2 RecreateFailedBefore, 1 RecreateTimedOut",
		},
		{
			name: "snapshots that are never answered", settings: recreating(snapshottedBy("hanging")), changes: []func(*World){claimsOfClass("fast")},
			claims: "3 standard 1Gi", blocked: "2 RecreateFailedBefore, 1 RecreateTimedOut",
		},
		{
			name: "snapshots that are never ready", settings: recreating(snapshottedBy("never-ready")), changes: []func(*World){claimsOfClass("fast")},
			claims: "3 standard 1Gi", blocked: "2 RecreateFailedBefore, 1 RecreateTimedOut",
		},
		{
			name: "snapshots that are never ready, and another class", settings: recreating(snapshottedBy("never-ready")),
			changes: []func(*World){claimsOfClass("fast"), reclassed("standard")}, remade: 3, claims: "3 fast 1Gi",
		},
		{
			name: "snapshots that are never ready, and back", settings: recreating(snapshottedBy("never-ready")),
			changes: []func(*World){claimsOfClass("fast"), claimsOfClass("standard")}, claims: "3 standard 1Gi",
		},
		{name: "nothing can be restored", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("no-restore")}, claims: "3 standard 1Gi", blocked: "2 RecreateFailedBefore, 1 RecreateTimedOut"},
		{
			name: "nothing can be restored, which is not tried before", settings: recreating(trying(appsv1beta1.SnapshotRecreateTrial)),
			changes: []func(*World){claimsOfClass("no-restore")}, remade: 1, claims: "3 standard 1Gi", blocked: "2 RecreateFailedBefore, 1 RecreateTimedOut",
		},
		{
			name: "nothing is tried", settings: recreating(trying(appsv1beta1.NoRecreateTrial)),
			changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi",
		},
		{name: "volumes that wait for pods", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("fast-wait")}, remade: 3, claims: "3 fast-wait 1Gi"},
		{
			name: "nothing can be restored, and another class", settings: withRecreation(nil),
			changes: []func(*World){claimsOfClass("no-restore"), claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi",
		},
		{name: "another driver", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("foreign")}, claims: "3 standard 1Gi", blocked: "3 DriverDiffers"},
		{name: "another driver, empty", settings: recreating(startingEmpty), changes: []func(*World){emptied(claimsOfClass("foreign"))}, remade: 3, claims: "3 foreign 1Gi held 1"},
		{name: "no such class", settings: withRecreation(nil), changes: []func(*World){claimsOfClass("none")}, claims: "3 standard 1Gi", blocked: "3 StorageClassMissing"},
		{name: "block devices", settings: withRecreation(nil), changes: []func(*World){claimsWith(func(w *claimWish) { w.block = true })}, claims: "3 standard 1Gi", blocked: "3 VolumeModeChanged"},
		{
			name: "block devices, empty", settings: recreating(startingEmpty), changes: []func(*World){emptied(claimsWith(func(w *claimWish) { w.block = true }))},
			remade: 3, claims: "3 standard 1Gi block held 1",
		},
		{
			name: "no such class of snapshots", settings: recreating(snapshottedBy("none")), changes: []func(*World){claimsOfClass("fast")},
			claims: "3 standard 1Gi", blocked: "3 SnapshotClassMissing",
		},
		{
			name: "snapshots of another driver", settings: recreating(snapshottedBy("foreign")), changes: []func(*World){claimsOfClass("fast")},
			claims: "3 standard 1Gi", blocked: "3 SnapshotClassMismatch",
		},
		{name: "no snapshots at all", settings: withRecreation(nil), changes: []func(*World){func(w *World) {
			w.storage.unserved = true
			claimsOfClass("fast")(w)
		}}, claims: "3 standard 1Gi", blocked: "3 SnapshotsNotServed"},
		{name: "no room for claims", settings: withRecreation(nil), changes: []func(*World){func(w *World) {
			w.limitStorage("fast.storageclass.storage.k8s.io/requests.storage", "512Mi")
			claimsOfClass("fast")(w)
		}}, claims: "3 standard 1Gi", blocked: "3 QuotaExceeded"},
		{name: "no room for snapshots", settings: withRecreation(nil), changes: []func(*World){func(w *World) {
			w.limitStorage(snapshotCount, "0")
			claimsOfClass("fast")(w)
		}}, claims: "3 standard 1Gi", blocked: "3 QuotaExceeded"},
		{name: "room for as much as there is", settings: withRecreation(nil), changes: []func(*World){func(w *World) {
			w.limitStorage(corev1.ResourceRequestsStorage, "3Gi")
			claimsOfClass("fast")(w)
		}}, remade: 3, claims: "3 fast 1Gi"},
		{name: "undone", settings: recreating(keeping), changes: []func(*World){claimsOfClass("fast"), after(20, undoAll)}, remade: 6, claims: "3 standard 1Gi held 1", blocked: "3 RecreateUndone"},
		{
			name: "undone, with the template", settings: recreating(keeping),
			changes: []func(*World){claimsOfClass("fast"), after(20, func(w *World) { undoAll(w); claimsOfClass("standard")(w) })}, remade: 6, claims: "3 standard 1Gi held 1",
		},
		{name: "undone twice", settings: recreating(keeping), changes: []func(*World){claimsOfClass("fast"), after(20, undoAll), after(20, undoAll)}, remade: 9, claims: "3 fast 1Gi held 1"},
		{
			name: "undone, with nothing to go back to", settings: recreating(keeping), changes: []func(*World){undoAll},
			claims: "3 standard 1Gi", blocked: "3 UndoRefused",
		},
		{name: "paused and on", settings: withRecreation(nil), changes: []func(*World){
			func(w *World) { w.togglePause(); claimsOfClass("fast")(w) }, (*World).togglePause,
		}, remade: 3, claims: "3 fast 1Gi"},
		{name: "with new pods", settings: withRecreation(nil), changes: []func(*World){func(w *World) { scaleTo(5)(w); claimsOfClass("fast")(w) }}, remade: 3, claims: "5 fast 1Gi"},
		{
			name: "held by a hook", settings: withRecreation(hookedBy(hooks{preDelete: true})), changes: []func(*World){claimsOfClass("fast")},
			remade: 3, claims: "3 fast 1Gi",
		},
		{name: "many at a time", settings: withRecreation(func(s *settings) {
			s.maxUnavailable = 3
			s.volumes.strategy.MaxConcurrent = claimLimits[3]
		}), changes: []func(*World){claimsOfClass("fast")}, remade: 3, claims: "3 fast 1Gi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			test.settings(&s)
			w, err := newScenario(s)
			g.Expect(err).NotTo(HaveOccurred())
			before := w.uids()
			remade := 0
			for _, change := range test.changes {
				after(20, change)(w)
				w.settle()
				_, again := w.restarts(before)
				before = w.uids()
				remade += again
			}
			w.rest()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			g.Expect(w.claimsInWords()).To(Equal(test.claims), w.story.String())
			g.Expect(w.blockedFor()).To(Equal(test.blocked), w.story.String())
			g.Expect(remade).To(Equal(test.remade), w.story.String())
		})
	}
}

// emptied lets claims start empty.
func emptied(change func(*World)) func(*World) {
	return func(w *World) {
		w.law.data.emptied = true
		change(w)
	}
}

// claimsInWords tells what claims there are.
func (w *World) claimsInWords() string {
	counts := map[string]int{}
	for _, claim := range all[*corev1.PersistentVolumeClaim](w.server) {
		capacity := capacityOf(claim)
		words := ptr.Deref(claim.Spec.StorageClassName, "") + " " + capacity.String()
		if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
			words += " shared"
		}
		if modeOf(claim) == corev1.PersistentVolumeBlock {
			words += " block"
		}
		if held := len(recordOf(claim).HeldVolumes); held > 0 {
			words += fmt.Sprintf(" held %d", held)
		}
		if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
			words += " without a volume"
		}
		counts[words]++
	}
	return countsInWords(counts)
}

// blockedFor tells why pods are blocked.
func (w *World) blockedFor() string {
	counts := map[string]int{}
	for _, b := range w.set().Status.Blockers {
		counts[b.Reason]++
	}
	return countsInWords(counts)
}

func countsInWords(counts map[string]int) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(words, ", ")
}
