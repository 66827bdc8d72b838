// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// storage is what Kubernetes and a storage driver make of claims: the API server's
// word on them, the provisioner, the protection of claims in use, the resizer
// (storage_resizer.go, storage_modifier.go), and what kubelets do to volumes
// (storage_kubelet.go).
type storage struct {
	world *World
	// drivers are what is behind the storage classes, by their name.
	drivers map[string]driver
	// volumes are those that are bound, by the UID of their claims; disks all that there
	// are, by the names of their PersistentVolumes.
	volumes map[types.UID]*volume
	disks   map[string]*volume
	// outside are the disks that no PersistentVolume names, by their handles; keepers is
	// until when another controller holds a PersistentVolume, by its name.
	outside map[string]*volume
	keepers map[string]time.Time
	// snapshotters are what is behind the classes of snapshots, takings what is
	// remembered of snapshots, images what they hold, by the names of their contents.
	snapshotters map[string]snapshotter
	takings      map[types.UID]*taking
	images       map[string]*image
	// unserved: the API server knows of no snapshots.
	unserved bool
	// lastWrite is the number of the last write of a pod.
	lastWrite int
	// refuse, if set, refuses growth as a quota does.
	refuse func(after *corev1.PersistentVolumeClaim) error
	// silentUntil: the resizer does nothing before.
	silentUntil time.Time
	// writes counts what is written here: it goes on where the operator is done.
	writes int64
}

// driver is what a storage class promises, and what is behind it. The zero value
// expands volumes while they are in use.
type driver struct {
	// fixed: the class allows no expansion. waits: a volume is made for a pod that is
	// scheduled.
	fixed, waits bool
	// offline: the driver grows volumes that no node has. remount: a node grows them
	// when it mounts them, and never later. whole: nothing is left for the node.
	offline, remount, whole bool
	// rounds: volumes are as large as whole Gi.
	rounds bool
	// limit is the largest size that there can be; empty for no limit.
	limit string
	// code is what so many calls to grow a volume come to, before one succeeds; for
	// ever, if failures is negative. nodeCode and nodeFailures are those of the node.
	code, nodeCode         string
	failures, nodeFailures int
	// only: the failures and the limit are those of claims whose name ends so.
	only string
	// coolDown is how long after a growth there can be no other, in seconds.
	coolDown int
	// foreign: it is another driver. noRestore: it makes no volume from a snapshot.
	// retains: volumes stay when their claims are gone.
	foreign, noRestore, retains bool
}

const forever = -1

func (d driver) String() string {
	var words []string
	for word, is := range map[string]bool{"fixed": d.fixed, "waits": d.waits, "offline": d.offline, "remount": d.remount, "whole": d.whole, "rounds": d.rounds, "foreign": d.foreign, "noRestore": d.noRestore, "retains": d.retains} {
		if is {
			words = append(words, word)
		}
	}
	if d.limit != "" {
		words = append(words, "up to "+d.limit)
	}
	if d.code != "" {
		words = append(words, fmt.Sprintf("%s %d times", d.code, d.failures))
	}
	if d.nodeCode != "" {
		words = append(words, fmt.Sprintf("%s %d times on the node", d.nodeCode, d.nodeFailures))
	}
	if d.coolDown > 0 {
		words = append(words, fmt.Sprintf("cools down for %ds", d.coolDown))
	}
	slices.Sort(words)
	return fmt.Sprintf("%v%s", words, d.only)
}

// drivers are those of the storage classes that there are, by name.
var drivers = map[string]driver{
	"standard":   {},
	"wait":       {waits: true},
	"whole":      {whole: true},
	"offline":    {offline: true, rounds: true},
	"rounds":     {rounds: true},
	"remount":    {remount: true, nodeCode: "FailedPrecondition", nodeFailures: forever},
	"fixed":      {fixed: true},
	"limited":    {limit: "3Gi"},
	"failing":    {code: "Internal", failures: 3},
	"broken":     {code: "Internal", failures: forever},
	"stalled":    {code: "DeadlineExceeded", failures: 3},
	"stuck":      {code: "DeadlineExceeded", failures: forever},
	"node-fails": {nodeCode: "Internal", nodeFailures: 2},
	"node-never": {nodeCode: "OutOfRange", nodeFailures: 3},
	"cool-down":  {coolDown: 40},
	"fast":       {},
	"fast-wait":  {waits: true},
	"no-restore": {noRestore: true},
	"foreign":    {foreign: true},
	"retained":   {retains: true},
}

// attributeClasses are the VolumeAttributesClasses that there are, and what a call
// to give a volume one of them comes to so often.
var attributeClasses = map[string]driver{
	"silver":  {},
	"gold":    {},
	"slow":    {code: "DeadlineExceeded", failures: 2},
	"flaky":   {code: "Internal", failures: 2},
	"refused": {code: "InvalidArgument", failures: forever},
}

// volume is a volume, and what the programs around it remember of it.
type volume struct {
	// name is that of its PersistentVolume, claim that of the claim that it is for, or
	// was for last, class that of its storage class.
	name, claim, class string
	// handle is what the driver calls it.
	handle string
	// written is what pods have written in it, of which safe has reached it.
	written bytes
	safe    int
	// deleteAt is when it is deleted, if nothing wants it until then.
	deleteAt time.Time
	// size is that of the PersistentVolume, attributes its class.
	size       resource.Quantity
	attributes string
	// grown is when it grew last.
	grown time.Time
	// node is the node that has it, freeAt when it is taken from there, if nothing
	// there uses it.
	node   string
	freeAt time.Time
	growth growth
	change modification
	nodal  nodal
}

func newStorage(w *World) *storage {
	return &storage{
		world: w, drivers: maps.Clone(drivers), volumes: map[types.UID]*volume{}, disks: map[string]*volume{},
		outside: map[string]*volume{}, keepers: map[string]time.Time{},
		snapshotters: maps.Clone(snapshotters), takings: map[types.UID]*taking{}, images: map[string]*image{},
	}
}

// createClasses makes the objects that classes are.
func (s *storage) createClasses() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.drivers)) {
		errs = append(errs, s.world.server.create(s.class(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(attributeClasses)) {
		errs = append(errs, s.world.server.create(&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: driverName}))
	}
	return errors.Join(slices.Concat(errs, s.createSnapshotClasses())...)
}

const (
	driverName   = "csi.example.io"
	defaultClass = "standard"
	protection   = "kubernetes.io/pvc-protection"
)

func (s *storage) class(name string) *storagev1.StorageClass {
	d, mode := s.drivers[name], storagev1.VolumeBindingImmediate
	if d.waits {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driverName, AllowVolumeExpansion: ptr.To(!d.fixed), VolumeBindingMode: &mode,
		ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete),
	}
	if d.foreign {
		class.Provisioner = foreignDriver
	}
	if d.retains {
		class.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
	}
	return class
}

// driverOf returns the driver of a claim; one that does nothing for other claims
// than those that it is meant to trouble.
func (s *storage) driverOf(claim *corev1.PersistentVolumeClaim) driver {
	d := s.drivers[ptr.Deref(claim.Spec.StorageClassName, "")]
	if !strings.HasSuffix(claim.Name, d.only) {
		d.limit, d.code, d.nodeCode = "", "", ""
	}
	return d
}

// prepare fills in what a claim is created with.
func (s *storage) prepare(claim *corev1.PersistentVolumeClaim) {
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	if claim.Spec.StorageClassName == nil {
		claim.Spec.StorageClassName = ptr.To(defaultClass)
	}
	if claim.Spec.VolumeMode == nil {
		claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
	if claim.Spec.DataSource == nil && claim.Spec.DataSourceRef != nil {
		ref := claim.Spec.DataSourceRef
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
	if source := claim.Spec.DataSource; source != nil {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	}
	claim.Finalizers = append(claim.Finalizers, protection)
}

func requestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

func capacityOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Status.Capacity[corev1.ResourceStorage]
}

// compare compares two quantities.
func compare(a, b resource.Quantity) int { return a.Cmp(b) }

// validateUpdate refuses what the API server refuses, in its order: first what is
// not valid, then what is not allowed.
func (s *storage) validateUpdate(before, after *corev1.PersistentVolumeClaim) error {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	fixed := after.Spec.DeepCopy()
	if before.Status.Phase == corev1.ClaimBound {
		fixed.Resources.Requests = before.Spec.Resources.Requests
		for name, value := range after.Spec.Resources.Requests {
			if name != corev1.ResourceStorage {
				fixed.Resources.Requests = corev1.ResourceList{name: value}
			}
		}
		fixed.VolumeAttributesClassName = before.Spec.VolumeAttributesClassName
	}
	if !apiequality.Semantic.DeepEqual(*fixed, before.Spec) {
		errs = append(errs, field.Forbidden(spec, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size, old := requestOf(after), requestOf(before)
	if path := spec.Child("resources", "requests", "storage"); compare(size, old) < 0 && compare(size, capacityOf(before)) <= 0 {
		errs = append(errs, field.Forbidden(path, "field can not be less than status.capacity"))
	}
	if before.Status.CurrentVolumeAttributesClassName != nil && before.Spec.VolumeAttributesClassName != nil && ptr.Deref(after.Spec.VolumeAttributesClassName, "") == "" {
		errs = append(errs, field.Forbidden(spec.Child("volumeAttributesClassName"), "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, after.Name, errs)
	}
	if compare(size, old) <= 0 {
		return nil
	}
	if class, ok := get[*storagev1.StorageClass](s.world.server, ptr.Deref(after.Spec.StorageClassName, "")); !ok || !ptr.Deref(class.AllowVolumeExpansion, false) {
		return apierrors.NewForbidden(resourceOf("persistentvolumeclaims"), after.Name, errNotExpandable)
	}
	if s.refuse != nil {
		return s.refuse(after)
	}
	return nil
}

var (
	errNotExpandable = errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	errStorageQuota  = errors.New("exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi")
)

// refusesStorage refuses all growth, as an exhausted quota does.
func refusesStorage(after *corev1.PersistentVolumeClaim) error {
	return apierrors.NewForbidden(resourceOf("persistentvolumeclaims"), after.Name, errStorageQuota)
}

// write changes a claim, or its status, as the programs of the storage do.
func (s *storage) write(claim string, change func(*corev1.PersistentVolumeClaim)) {
	before := s.world.server.version
	mutate(s.world.server, claim, change)
	s.writes += s.world.server.version - before
}

func (s *storage) say(format string, args ...any) {
	s.world.say("storage: "+format, args...)
}

func (s *storage) now() time.Time { return s.world.clock.Now() }

// soon is when a program acts that has just got to know of something.
func (s *storage) soon() time.Time {
	return s.now().Add(time.Second + s.world.choices.seconds(s.world.settings.volumes.delay))
}

// step is one second of the controllers of claims and volumes.
func (s *storage) step() {
	claims := all[*corev1.PersistentVolumeClaim](s.world.server)
	there := map[types.UID]bool{}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		claim := claims[name]
		there[claim.UID] = true
		switch {
		case claim.DeletionTimestamp != nil && !s.protects(claim):
			s.drop(claim)
		case claim.Status.Phase == corev1.ClaimPending:
			s.provision(claim)
		case s.volumes[claim.UID] == nil: // it is lost
		default:
			v := s.volumes[claim.UID]
			if !s.now().Before(s.silentUntil) {
				s.stepResizer(v, claim)
				s.stepModifier(v, s.claimOf(v))
			}
		}
	}
	maps.DeleteFunc(s.volumes, func(uid types.UID, _ *volume) bool { return !there[uid] })
	s.writeBytes()
	s.freeDisks()
	s.stepSnapshots()
	s.stepBinder()
	s.countQuotas()
}

// isScheduledFor reports whether a pod on a node names a claim: it is protected.
func (s *storage) isScheduledFor(claim string) bool {
	return slices.ContainsFunc(s.podsWith(claim), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
}

// podsWith returns the pods that name a claim.
func (s *storage) podsWith(claim string) []*corev1.Pod {
	var found []*corev1.Pod
	pods := all[*corev1.Pod](s.world.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if slices.Contains(claimsOf(pods[name]), claim) {
			found = append(found, pods[name])
		}
	}
	return found
}

// claimsOf returns the names of the claims that a pod names.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// claimOf returns the claim of a volume as it is now.
func (s *storage) claimOf(v *volume) *corev1.PersistentVolumeClaim {
	claim, _ := get[*corev1.PersistentVolumeClaim](s.world.server, v.claim)
	return claim
}

// schedules reports whether the claims of a pod let it be scheduled. Those that wait
// for a consumer get to know that there is one.
func (s *storage) schedules(pod *corev1.Pod, node string) bool {
	if s == nil {
		return true
	}
	ready := true
	for _, name := range claimsOf(pod) {
		claim, ok := get[*corev1.PersistentVolumeClaim](s.world.server, name)
		if !ok || claim.DeletionTimestamp != nil {
			return false
		}
		if claim.Status.Phase != corev1.ClaimBound {
			ready = false
			s.selectNode(claim, node)
		}
	}
	return ready
}

// isBusy reports whether something goes on that comes to an end by itself.
func (s *storage) isBusy() bool {
	if s == nil {
		return false
	}
	if s.isSnapshotting() || s.isDeleting() {
		return true
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](s.world.server) {
		v := s.volumes[claim.UID]
		switch {
		case claim.DeletionTimestamp != nil:
		case claim.Status.Phase == corev1.ClaimLost:
		case v == nil:
			if s.volumeFor(claim) != nil || claim.Spec.VolumeName == "" && s.canMake(claim) {
				return true
			}
		case s.isGrowing(v, claim), s.isChanging(v, claim):
			return true
		}
	}
	return false
}

// tries returns how much was written by drivers that try for ever what cannot be.
func (s *storage) tries() int64 {
	if s == nil {
		return 0
	}
	return s.writes
}

// isGrowing reports whether a volume will have grown, if nothing else happens.
func (s *storage) isGrowing(v *volume, claim *corev1.PersistentVolumeClaim) bool {
	d, users := s.driverOf(claim), s.podsWith(claim.Name)
	if compare(requestOf(claim), capacityOf(claim)) <= 0 && !isForNode(claim) {
		return false
	}
	if v.isTrapped(claim) {
		return false
	}
	if isForNode(claim) || growthStatus(claim) == corev1.PersistentVolumeClaimNodeResizeInfeasible {
		return len(users) > 0 && !v.nodal.refused && (d.nodeCode == "" || d.remount || d.nodeFailures != forever)
	}
	size, calls := v.nextSize(claim)
	switch {
	case !calls, d.code != "" && d.failures == forever:
		return false
	case d.limit != "" && compare(size, resource.MustParse(d.limit)) > 0 && (!v.growth.final || compare(requestOf(claim), resource.MustParse(d.limit)) > 0):
		return false
	default:
		return !d.offline || len(users) == 0
	}
}

// isTrapped reports whether the resizer asks for ever for the size that a claim has
// already: the volume was made larger than that, and is as large as the claim is to be.
func (v *volume) isTrapped(claim *corev1.PersistentVolumeClaim) bool {
	allocated, has := claim.Status.AllocatedResources[corev1.ResourceStorage]
	return has && compare(v.size, requestOf(claim)) >= 0 && compare(allocated, requestOf(claim)) < 0 && compare(capacityOf(claim), requestOf(claim)) < 0
}

// isChanging reports whether a volume will have the class that it is to have, if
// nothing else happens.
func (s *storage) isChanging(v *volume, claim *corev1.PersistentVolumeClaim) bool {
	target := v.change.target(claim)
	if target == "" || target == ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") && claim.Status.ModifyVolumeStatus == nil {
		return false
	}
	d := attributeClasses[target]
	return (v.change.call != nil || !v.change.due.IsZero()) && (d.code == "" || d.failures != forever)
}
