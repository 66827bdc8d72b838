// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

const (
	claimName = "data-sample-0"
	driver    = "csi.example.io"
)

// start is when a life begins: its claim is bound, and its pod ready.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// life is one claim of one pod in the hands of the operator. What everybody else does
// is in storage.
type life struct {
	*storage
	strategy appsv1beta1.VolumeClaimUpdateStrategy
	template *corev1.PersistentVolumeClaim
	// owner is the UID of the StatefulSet.
	owner types.UID
	// paused: no recreation is begun.
	paused bool
	// lives is how many writes the operator makes before it is killed; negative for
	// ever.
	lives int
	// stray is the write that it was about to make then, and that may yet arrive.
	stray *Step

	// log is what the operator wrote, in short.
	log []string
	// step is what it said last of the claim, and refused what Preflight did.
	step    Step
	refused string
}

// recreated is a strategy with what matters of it.
func recreated(change func(*appsv1beta1.VolumeClaimRecreateStrategy)) appsv1beta1.VolumeClaimUpdateStrategy {
	strategy := appsv1beta1.VolumeClaimUpdateStrategy{
		Type:     appsv1beta1.RecreateVolumeClaimUpdateStrategyType,
		Recreate: &appsv1beta1.VolumeClaimRecreateStrategy{TimeoutSeconds: ptr.To[int32](60), HoldSeconds: ptr.To[int32](100)},
	}
	if change != nil {
		change(strategy.Recreate)
	}
	return strategy
}

// templateOf returns the claim that a pod has from a template, as the operator would
// make it.
func templateOf(class, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claimName, Labels: map[string]string{"app": "sample"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// newLife returns the life of a claim of class "slow" that is bound, and has been
// written to.
func newLife(t testing.TB, change func(*appsv1beta1.VolumeClaimRecreateStrategy)) *life {
	t.Helper()
	l := &life{storage: newStorage(t), strategy: recreated(change), template: templateOf("slow", "1Gi"), owner: "set-1", lives: -1}
	l.settle()
	NewWithT(t).Expect(l.pod.IsReady()).To(BeTrue())
	l.log = nil
	return l
}

// wants changes the storage class of the template.
func (l *life) wants(class string) { l.template.Spec.StorageClassName = &class }

// annotate sets an annotation of the claim, as a user does.
func (l *life) annotate(key, value string) {
	metav1.SetMetaDataAnnotation(&l.claim.ObjectMeta, key, value)
	l.touch()
}

func (l *life) undo(volume string) { l.annotate(appsv1beta1.UndoRecreateAnnotation, volume) }

// round is one turn of the operator and one of everybody else.
func (l *life) round() {
	l.reconcile()
	l.turn()
}

func (l *life) rounds(n int) {
	for range n {
		l.round()
	}
}

// settle lets all actors take turns until each of them can only wait.
func (l *life) settle() {
	l.t.Helper()
	for quiet := 0; quiet < 3; quiet++ {
		before := l.changes
		l.reconcile()
		if until := l.step.Until; until.After(l.now) && until.Before(l.now.Add(unstagePeriod+5*time.Second)) {
			l.now, quiet = until, 0
		}
		if l.turn() || l.changes > before {
			quiet = 0
		}
		if l.changes > 3000 {
			l.t.Fatalf("not at rest:\n%s", strings.Join(l.log[max(0, len(l.log)-60):], "\n"))
		}
	}
}

// reconcile does what the controller does in one reconciliation.
func (l *life) reconcile() {
	l.t.Helper()
	l.step, l.refused = Step{}, ""
	mayRun := true
	if l.needsRenewal() {
		if l.step = l.advance(); l.lives == 0 {
			return
		}
		mayRun = l.step.Action != Wait || l.step.PodMayRun
	}
	if mayRun {
		l.ensurePod()
	}
	l.stopPod()
}

// needsRenewal reports whether the controller looks at a claim at all.
func (l *life) needsRenewal() bool {
	if l.claim == nil {
		return l.pod == nil || !l.pod.scheduled
	}
	busy, _ := IsBusy(l.claim, l.strategy, l.now)
	kept := l.keptFacts()
	busy = busy || HasGone(l.claim, kept.Volumes, kept.Snapshots)
	if !busy && l.claim.Status.Phase == corev1.ClaimPending {
		busy = InFlight(l.heldFor()) != nil // another client has made it
	}
	if !busy && l.claim.Status.Phase == corev1.ClaimBound && (l.pod == nil || !l.pod.scheduled) {
		busy = Supplants(l.claim, l.heldFor()) != nil
	}
	if step := Next(l.facts(), l.now); !busy && step.Action != None {
		l.t.Fatalf("IsBusy says no, and Next %s: %s\n%s", step.Action, step.Message, l.claim.Annotations[appsv1beta1.VolumeClaimUpdateStateKey])
	}
	return busy
}

// advance takes all the steps that can be taken now.
func (l *life) advance() Step {
	l.t.Helper()
	refused := ""
	for range 16 {
		facts := l.facts()
		facts.Refused = refused
		step := Next(facts, l.now)
		if step.Reason == "" && step.Action != None || step.Action != None && step.Message == "" {
			l.t.Fatalf("a step says not what it is for: %+v", step)
		}
		if step.Action == None || step.Action == Wait {
			return step
		}
		if !l.writes("%s", short(step)) {
			l.stray = &step
			return step
		}
		if (step.Action == CreateClaim || step.Action == CreateTrialClaim) && l.refuses != nil {
			if refused = l.refuses(step.Claim); refused != "" {
				continue
			}
		}
		l.apply(step)
	}
	l.t.Fatalf("no end of steps:\n%s", strings.Join(l.log, "\n"))
	return Step{}
}

// short returns a step in short: "HoldVolume pv-1", "Note RecreateTimedOut".
func short(step Step) string {
	switch step.Action {
	case CreateSnapshot, DeleteSnapshot:
		if isTrial(step.Snapshot.Name) {
			return strings.Replace(string(step.Action), "Snapshot", "Trial", 1)
		}
		return string(step.Action)
	case HoldVolume, ReleaseVolume, FreeVolume, LockVolume, DiscardVolume:
		return string(step.Action) + " " + step.Volume.Name
	case CreateClaim:
		from := ""
		if step.Claim.Spec.VolumeName != "" {
			from = " on " + step.Claim.Spec.VolumeName
		} else if step.Claim.Spec.DataSource != nil {
			from = " from snapshot"
		}
		return string(step.Action) + from
	case Note:
		if step.Failed {
			return string(step.Action) + " " + step.Reason
		}
		return string(step.Action)
	case CreateTrialClaim:
		return "TryRestore"
	case DeleteTrialClaim:
		return "EndRestore"
	case None, Wait, DeleteClaim:
		return string(step.Action)
	default:
		return string(step.Action)
	}
}

// writes notes a write, and reports whether the operator lives to make it.
func (l *life) writes(format string, args ...any) bool {
	if l.lives == 0 {
		return false
	}
	l.lives--
	l.changes++
	l.log = append(l.log, fmt.Sprintf(format, args...))
	return true
}

// ensurePod makes the pod, and the claim that it needs if no other client makes that.
func (l *life) ensurePod() {
	if l.pod != nil && l.pod.scheduled {
		return
	}
	if l.claim == nil {
		if held := InFlight(l.heldFor()); held != nil {
			l.t.Fatalf("an empty claim takes the place of that on %s", held.Name)
		}
		if !l.writes("CreateClaim by template") {
			return
		}
		l.createClaim(l.template)
	}
	if l.pod == nil && l.claim.DeletionTimestamp == nil && l.writes("CreatePod") {
		l.pod = &pod{uid: types.UID(l.next("pod")), since: l.now}
	}
}

// stopPod deletes the pod if its claim is to be recreated.
func (l *life) stopPod() {
	if l.claim == nil || l.claim.DeletionTimestamp != nil || l.pod == nil || l.pod.leaving || l.lives == 0 {
		return
	}
	record, isUndone := volumes.RecordOf(l.claim), AsksForUndo(l.claim)
	follows := l.strategy.FollowsTemplates() || isUndone
	switch {
	case l.paused || !follows:
		return
	case record.Recreate == nil:
		isWanted := l.strategy.Recreates() && volumes.NeedsRecreate(l.claim, l.template)
		if l.claim.Status.Phase != corev1.ClaimBound || !isUndone && !isWanted {
			return
		}
		judgement := Preflight(l.preflight(false))
		if judgement.Refused != nil {
			l.refused = judgement.Refused.Reason
			return
		}
		if record.Recreate = ptr.To(Begin(l.claim, nil, judgement, l.now)); NeedsTrial(*record.Recreate) {
			l.note(record, "begin")
			return
		}
	case record.Recreate.Abandoned != "" || NeedsTrial(*record.Recreate):
		return
	}
	isNoted := record.Recreate.Pod == l.pod.uid
	record.Recreate = ptr.To(Stop(*record.Recreate, podWith(l.pod.uid), l.now))
	if (isNoted || l.note(record, "stop")) && l.writes("DeletePod") {
		l.pod.leaving = true
	}
}

// note writes a record to the claim, as the planner has it done.
func (l *life) note(record volumes.Record, what string) bool {
	if !l.writes("Note %s", what) {
		return false
	}
	setRecord(l.claim, record)
	l.touch()
	return true
}

// expectClean asserts that the claim has what its template says, its pod is ready, and
// nothing is left of how it came to be so but what is told to be kept.
func (l *life) expectClean() {
	l.t.Helper()
	g, record := NewWithT(l.t), volumes.RecordOf(l.claim)
	g.Expect(l.pod.IsReady()).To(BeTrue(), "its pod is ready")
	g.Expect(l.claim.Status.Phase).To(Equal(corev1.ClaimBound))
	g.Expect(record.Recreate).To(BeNil())
	g.Expect(record.GivenBack).To(BeFalse())
	kept, snapshots := []string{l.claim.Spec.VolumeName}, []string{}
	for _, entry := range record.HeldVolumes {
		g.Expect(entry.SinceTimestamp).NotTo(BeNil(), "volume %s is proved", entry.Name)
		kept = append(kept, entry.Name)
		if entry.Snapshot != "" {
			snapshots = append(snapshots, entry.Snapshot)
		}
	}
	g.Expect(slices.Collect(maps.Keys(l.stored))).To(ConsistOf(kept), "volumes")
	if l.strategy.GetRecreate().Snapshot == appsv1beta1.DeleteRecreateRetention {
		g.Expect(snapshots).To(ContainElements(slices.Collect(maps.Keys(l.snapshots))), "snapshots")
	}
	for name, snapshot := range l.snapshots {
		g.Expect(IsReady(snapshot.VolumeSnapshot)).To(BeTrue(), "snapshot %s is ready", name)
	}
	own := l.volume(l.claim.Spec.VolumeName)
	g.Expect(own.State).To(BeNil(), "the volume of the claim is not held")
	g.Expect(own.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
}

// wrote returns what the operator wrote since it was asked last.
func (l *life) wrote() []string {
	log := l.log
	l.log = nil
	return log
}

// expectOn asserts that the claim has a volume, and all that was ever written is there.
func (l *life) expectOn(volume, class string) {
	l.t.Helper()
	l.expectClean()
	g := NewWithT(l.t)
	g.Expect(l.claim.Spec.VolumeName).To(Equal(volume))
	g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal(class)))
	g.Expect(l.missing()).To(BeEmpty(), "what was written")
}

// failure returns why the claim was not recreated the last time.
func (l *life) failure() string {
	if failed := volumes.RecordOf(l.claim).RecreateFailure; failed != nil {
		return failed.Reason
	}
	return ""
}

// until lets all take turns until the operator has made a write that begins so.
func (l *life) until(write string) {
	l.t.Helper()
	for range 400 {
		if slices.ContainsFunc(l.log, func(w string) bool { return strings.HasPrefix(w, write) }) {
			return
		}
		l.turn()
		l.lives = 1
		l.reconcile()
		l.lives = -1
	}
	l.t.Fatalf("no write %q:\n%s", write, strings.Join(l.log, "\n"))
}
