// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// observe reads what the next step of a claim depends on.
func (s *Session) observe(ctx context.Context, claim Claim) (recreate.Facts, error) {
	facts := recreate.Facts{
		Template: claim.Template, Workload: s.owner.GetName(), Owner: s.owner.GetUID(), Ordinal: claim.Ordinal, Strategy: s.strategy, Pod: podOf(claim), Foreign: claim.Foreign, Failed: claim.Failed,
	}
	found := &corev1.PersistentVolumeClaim{}
	exists, err := s.get(ctx, client.ObjectKeyFromObject(claim.Template), found)
	if err != nil {
		return facts, err
	}
	switch {
	case !exists:
		err = s.observeMissing(ctx, &facts)
	case found.DeletionTimestamp != nil:
		facts.Claim = found
		err = s.observeTerminating(ctx, &facts)
	case found.Status.Phase != corev1.ClaimBound:
		facts.Claim = found
		err = s.observeMissing(ctx, &facts)
	default:
		facts.Claim = found
		err = s.observeBound(ctx, claim, &facts)
	}
	if waiting := facts.WaitsForVolume(); waiting != nil && err == nil {
		facts.Events = s.eventsOf(ctx, waiting)
	}
	return facts, err
}

type eventsKey struct{ claim types.UID }

// noEventsPeriod is for how long it is believed that nothing is said of a claim.
const noEventsPeriod = 5 * time.Second

// eventsOf returns the events that say why a claim has no volume, of up to a recentPeriod
// ago: they matter when they last for minutes.
func (s *Session) eventsOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) []corev1.Event {
	if known, ok := s.recent.Get(eventsKey{claim.UID}); ok {
		if events, isOne := known.([]corev1.Event); isOne {
			return events
		}
	}
	list := &corev1.EventList{}
	err := s.live.List(ctx, list, client.InNamespace(claim.Namespace),
		client.MatchingFields{"involvedObject.uid": string(claim.UID), "reason": recreate.ProvisioningFailedEvent})
	if err != nil { // they only say why: the deadline holds without them
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the events of a claim", "PersistentVolumeClaim", klog.KObj(claim))
	}
	period := recentPeriod
	if len(list.Items) == 0 {
		period = noEventsPeriod
	}
	s.recent.Set(eventsKey{claim.UID}, list.Items, period)
	return list.Items
}

// observeTerminating reads what a claim that is being deleted leaves behind, and who keeps
// it.
func (s *Session) observeTerminating(ctx context.Context, facts *recreate.Facts) (err error) {
	if err := s.observeMissing(ctx, facts); err != nil {
		return err
	}
	if attempt := volumes.RecordOf(facts.Claim).Recreate; attempt != nil {
		if err := s.observeTrial(ctx, *attempt, facts); err != nil {
			return err
		}
	}
	facts.Users, err = s.usersOf(ctx, facts.Claim, s.live, nil)
	return err
}

// observeMissing reads what a claim without a volume is made from.
func (s *Session) observeMissing(ctx context.Context, facts *recreate.Facts) error {
	held, err := s.heldFor(ctx, facts.Template.Name)
	if err != nil {
		return err
	}
	for _, volume := range held {
		again, err := s.volume(ctx, volume.Name) // it may have been written to since
		if err != nil {
			return err
		}
		if again != nil && again.IsHeldFor(facts.Template.Namespace, facts.Template.Name) {
			facts.Held = append(facts.Held, *again)
		}
	}
	name := facts.Restored()
	if latest := recreate.InFlight(facts.Held); latest != nil {
		name = latest.State.Recreate.Snapshot
		if target := latest.State.Recreate.Volume; target != "" {
			if facts.Target, err = s.volume(ctx, target); err != nil {
				return err
			}
		}
	}
	facts.Snapshot, err = s.snapshot(ctx, facts.Template.Namespace, name)
	return err
}

// observeBound reads what comes next for a claim that has its volume.
func (s *Session) observeBound(ctx context.Context, claim Claim, facts *recreate.Facts) error {
	record := volumes.RecordOf(facts.Claim)
	volume, err := s.volume(ctx, facts.Claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	facts.Volume = volume
	if facts.Held, err = s.heldBy(ctx, facts.Claim); err != nil {
		return err
	}
	if err := s.observeSupplanted(ctx, claim, facts); err != nil {
		return err
	}
	if record.Recreate != nil {
		return s.observeAttempt(ctx, claim, *record.Recreate, facts)
	}
	if facts.Volume != nil && facts.Volume.State != nil {
		attempt := facts.Volume.State.Recreate
		if err := s.observeTrial(ctx, attempt, facts); err != nil {
			return err
		}
		facts.Snapshot, err = s.snapshot(ctx, claim.Template.Namespace, attempt.Snapshot)
		return err
	}
	if facts.Pod == nil && recreate.GivesBack(facts.Claim) {
		judgement, err := s.judge(ctx, claim, facts.Claim, nil)
		if err != nil {
			return err
		}
		facts.Judgement = &judgement
	}
	if latest := recreate.InFlight(facts.Held); latest != nil {
		if err := s.observeTrial(ctx, latest.State.Recreate, facts); err != nil {
			return err
		}
	}
	facts.Snapshots = map[string]*snapshotv1.VolumeSnapshot{}
	for _, held := range record.HeldVolumes {
		if facts.Snapshots[held.Snapshot], err = s.snapshot(ctx, claim.Template.Namespace, held.Snapshot); err != nil {
			return err
		}
	}
	return nil
}

// observeSupplanted reads the volume that a claim should have been recreated from, if
// another client has created the claim and its pod has not started.
func (s *Session) observeSupplanted(ctx context.Context, claim Claim, facts *recreate.Facts) error {
	if claim.Pod != nil && claim.Pod.Status.Phase != corev1.PodPending {
		return nil
	}
	all, err := s.heldFor(ctx, facts.Claim.Name)
	if err != nil {
		return err
	}
	if held := recreate.Supplants(facts.Claim, all); held != nil {
		again, err := s.volume(ctx, held.Name) // it may have been written to since
		if err != nil {
			return err
		}
		if again != nil && again.IsHeldFor(facts.Claim.Namespace, facts.Claim.Name) {
			facts.Held = append(facts.Held, *again)
		}
	}
	return nil
}

// observeAttempt reads how far a claim is whose pod is, or was, stopped for it.
func (s *Session) observeAttempt(ctx context.Context, claim Claim, attempt recreate.Attempt, facts *recreate.Facts) (err error) {
	if facts.Snapshot, err = s.snapshot(ctx, claim.Template.Namespace, attempt.Snapshot); err != nil || facts.Volume == nil {
		return err
	}
	if err := s.observeTrial(ctx, attempt, facts); err != nil || facts.Pod != nil {
		return err
	}
	if facts.Users, err = s.usersOf(ctx, facts.Claim, nil, attempt.StoppedTimestamp); err != nil {
		return err
	}
	if facts.Attaches, err = s.attaches(ctx, facts.Volume); err != nil {
		return err
	}
	isSaved := attempt.Source != appsv1beta1.SnapshotRecreateSource || recreate.IsReady(facts.Snapshot)
	mayGo := attempt.StoppedTimestamp != nil && facts.Volume.State != nil && isSaved
	switch {
	case attempt.StoppedTimestamp == nil:
		return s.observeStop(ctx, attempt, facts)
	case !mayGo:
		return nil
	}
	if err := s.confirmUnused(ctx, attempt, facts); err != nil {
		return err
	}
	judgement, err := s.judge(ctx, claim, facts.Claim, facts.Snapshot)
	facts.Judgement = &judgement
	return err
}

// observeStop reads what still uses the volume of a claim whose pod was stopped. What was
// read for another claim a moment ago may keep this one waiting; that nothing uses the
// volume is read for each.
func (s *Session) observeStop(ctx context.Context, attempt recreate.Attempt, facts *recreate.Facts) (err error) {
	if facts.Nodes, err = s.nodesOf(ctx, facts.Volume); err != nil || len(facts.Nodes) > 0 {
		return err
	}
	if err := s.confirmUnused(ctx, attempt, facts); err != nil || len(facts.Users) > 0 {
		return err
	}
	s.attachments = &memory[[]storagev1.VolumeAttachment]{}
	facts.Nodes, err = s.nodesOf(ctx, facts.Volume)
	return err
}

// confirmUnused asks the API server for the pods that use a claim, if the cache shows none.
func (s *Session) confirmUnused(ctx context.Context, attempt recreate.Attempt, facts *recreate.Facts) (err error) {
	if len(facts.Users) == 0 {
		facts.Users, err = s.usersOf(ctx, facts.Claim, s.live, attempt.StoppedTimestamp)
	}
	return err
}

// observeTrial reads what the trial of an attempt has made.
func (s *Session) observeTrial(ctx context.Context, attempt recreate.Attempt, facts *recreate.Facts) (err error) {
	if facts.Trial, err = s.snapshot(ctx, facts.Template.Namespace, attempt.Trial); err != nil || attempt.TrialClaim == "" {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{}
	exists, err := s.get(ctx, client.ObjectKey{Namespace: facts.Template.Namespace, Name: attempt.TrialClaim}, claim)
	if err != nil || !exists {
		return err
	}
	facts.TrialClaim = claim
	facts.TrialVolume, err = s.volume(ctx, claim.Spec.VolumeName)
	return err
}

// podOf returns the pod of a claim, if it uses it and has not ended.
func podOf(claim Claim) *recreate.Pod {
	pod := claim.Pod
	if pod == nil || inplace.HasEnded(pod) || !workload.Uses(pod, claim.Template.Name) {
		return nil
	}
	return &recreate.Pod{UID: pod.UID, Ready: pod.DeletionTimestamp == nil && podutils.IsPodReady(pod)}
}

// get reads an object, and reports whether it is there.
func (s *Session) get(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	return workload.Find(ctx, s.live, key, object)
}

// snapshot reads a snapshot; nil if there is none of the name.
func (s *Session) snapshot(ctx context.Context, namespace, name string) (*snapshotv1.VolumeSnapshot, error) {
	if name == "" {
		return nil, nil
	}
	snapshot := &snapshotv1.VolumeSnapshot{}
	if exists, err := s.get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, snapshot); !exists {
		return nil, err
	}
	return snapshot, nil
}

// volume reads a volume; nil if there is none of the name.
func (s *Session) volume(ctx context.Context, name string) (*recreate.Volume, error) {
	if name == "" {
		return nil, nil
	}
	pv := &corev1.PersistentVolume{}
	if exists, err := s.get(ctx, client.ObjectKey{Name: name}, pv); !exists {
		return nil, err
	}
	volume, err := recreate.NewVolume(pv)
	if err == nil {
		s.recent.Set(name, readVolume{&volume, s.now}, recentPeriod)
	}
	return &volume, err
}

// readVolume is a volume as it was read last.
type readVolume struct {
	volume *recreate.Volume
	at     time.Time
}

// heldVolumes returns the volumes that are held in the namespace, which are read once.
func (s *Session) heldVolumes(ctx context.Context) ([]corev1.PersistentVolume, error) {
	all, err := s.held.read(func() ([]corev1.PersistentVolume, error) {
		list := &corev1.PersistentVolumeList{}
		err := s.live.List(ctx, list, client.MatchingLabels{appsv1beta1.ClaimNamespaceLabel: s.owner.GetNamespace()})
		return list.Items, err
	})
	if err != nil {
		return nil, fmt.Errorf("list held volumes: %w", err)
	}
	return all, nil
}

// heldFor returns the volumes that are held for claims of a name.
func (s *Session) heldFor(ctx context.Context, claim string) ([]recreate.Volume, error) {
	all, err := s.heldVolumes(ctx)
	if err != nil {
		return nil, err
	}
	var held []recreate.Volume
	for i := range all {
		if all[i].Labels[appsv1beta1.ClaimLabel] != recreate.LabelValue(claim) {
			continue
		}
		volume, err := recreate.NewVolume(&all[i])
		if err != nil {
			return nil, err
		}
		if volume.IsHeldFor(s.owner.GetNamespace(), claim) {
			held = append(held, volume)
		}
	}
	return held, nil
}

// IsNew reports whether nothing says what a claim that does not exist is made from. It must
// have been missing before: its volume is held before it is deleted.
func (s *Session) IsNew(ctx context.Context, claim string, template *corev1.PersistentVolumeClaim) (bool, error) {
	_, isRestored := template.Annotations[appsv1beta1.RestoreFromAnnotation]
	if s.NotPermitted {
		return !isRestored, nil
	}
	if _, waits := s.recent.Get(waitingKey{s.owner.GetUID(), claim}); waits {
		return false, nil // Advance finds out what has changed
	}
	held, err := s.heldFor(ctx, claim)
	return len(held) == 0 && !isRestored, err
}

// Supplants reports whether a claim that has a volume was created by another client
// while the operator recreated it, and nothing says so yet.
//
// Volumes are listed for this at most once in recentPeriod per workload as long as none
// are held: only reconciliations of the workload hold its volumes, one after the other.
func (s *Session) Supplants(ctx context.Context, found *corev1.PersistentVolumeClaim) (bool, error) {
	if s.NotPermitted || s.holdsNone() {
		return false, nil
	}
	held, err := s.heldFor(ctx, found.Name)
	if err != nil {
		return false, err
	}
	if len(s.held.value) == 0 {
		s.recent.Set(s.owner.GetUID(), s.now, recentPeriod)
	}
	return recreate.Supplants(found, held) != nil, nil
}

// holdsNone reports whether it was seen a moment ago that no volume is held for claims of
// the namespace.
func (s *Session) holdsNone() bool {
	at, known := s.recent.Get(s.owner.GetUID())
	seen, isTime := at.(time.Time)
	return known && isTime && s.now.Before(seen.Add(recentPeriod))
}

// heldBy reads the volumes that a claim has had before.
func (s *Session) heldBy(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]recreate.Volume, error) {
	var held []recreate.Volume
	for _, entry := range volumes.RecordOf(claim).HeldVolumes {
		volume, err := s.volume(ctx, entry.Name)
		if err != nil {
			return nil, err
		}
		if volume != nil && volume.IsHeldFor(claim.Namespace, claim.Name) {
			held = append(held, *volume)
		}
	}
	return held, nil
}

// usersOf returns the names of the pods on nodes that use a claim: as the cache has
// it, or as a reader says. Those that have ended count if they started after a time: they
// have written since.
func (s *Session) usersOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, live client.Reader, since *metav1.Time) ([]string, error) {
	pods, err := s.podsOf(ctx, claim.Namespace, live)
	if err != nil {
		return nil, fmt.Errorf("list pods that use claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	var users []string
	for i := range pods {
		pod := &pods[i]
		hasLeft := inplace.HasEnded(pod) && (since == nil || !since.Before(pod.Status.StartTime))
		if pod.Spec.NodeName != "" && !hasLeft && workload.Uses(pod, claim.Name) {
			users = append(users, pod.Name)
		}
	}
	return users, nil
}

func (s *Session) podsOf(ctx context.Context, namespace string, live client.Reader) ([]corev1.Pod, error) {
	if live != nil {
		return listOnNodes(ctx, live, namespace)
	}
	return s.users.read(func() ([]corev1.Pod, error) {
		list := &corev1.PodList{}
		err := s.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		return list.Items, err
	})
}

// attaches reports whether a volume is attached to nodes before they mount it.
func (s *Session) attaches(ctx context.Context, volume *recreate.Volume) (bool, error) {
	if volume.Spec.CSI == nil {
		return false, nil
	}
	name := volume.Spec.CSI.Driver
	if _, known := s.drivers[name]; !known {
		driver := &storagev1.CSIDriver{}
		exists, err := s.get(ctx, client.ObjectKey{Name: name}, driver)
		if err != nil {
			return false, err
		}
		s.drivers[name] = !exists || ptr.Deref(driver.Spec.AttachRequired, true)
	}
	return s.drivers[name], nil
}

// nodesOf returns the nodes that a volume is attached to. All attachments are read once:
// they cannot be selected by their volume.
func (s *Session) nodesOf(ctx context.Context, volume *recreate.Volume) ([]string, error) {
	all, err := s.attachments.read(func() ([]storagev1.VolumeAttachment, error) {
		list := &storagev1.VolumeAttachmentList{}
		err := s.live.List(ctx, list)
		return list.Items, err
	})
	if err != nil {
		return nil, fmt.Errorf("list volume attachments: %w", err)
	}
	var nodes []string
	for i := range all {
		if ptr.Deref(all[i].Spec.Source.PersistentVolumeName, "") == volume.Name {
			nodes = append(nodes, all[i].Spec.NodeName)
		}
	}
	return nodes, nil
}
