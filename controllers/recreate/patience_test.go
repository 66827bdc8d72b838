// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// waitingClaims is how many claims wait at a time.
const waitingClaims = 100

// began is when they began to wait.
var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// crowd is a StatefulSet whose claims are all being recreated, and that wait for the same.
type crowd struct {
	set       *appsv1beta1.StatefulSet
	claims    []Claim
	objects   []client.Object
	recreator *Recreator
	// cache is what the manager reads from its caches, and requests counts what it asks of the
	// API server.
	cache    client.Client
	requests int
}

// claimOf adds a claim, its volume and its attempt.
func (c *crowd) claimOf(i int, change func(*appsv1beta1.VolumeClaimRecreateState)) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, appsv1beta1.VolumeClaimRecreateState) {
	template := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("data-db-%d", i)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	claim := template.DeepCopy()
	claim.UID, claim.Spec.StorageClassName, claim.Spec.VolumeName = types.UID(claim.Name), ptr.To("slow"), fmt.Sprintf("pv-%d", i)
	claim.CreationTimestamp, claim.Status.Phase = metav1.NewTime(began), corev1.ClaimBound
	attempt := appsv1beta1.VolumeClaimRecreateState{
		Number: 1, Source: appsv1beta1.SnapshotRecreateSource, ClaimUID: claim.UID, Snapshot: "snapshot-" + claim.Name, Pod: "pod",
		StartTimestamp: metav1.NewTime(began), Key: recreate.KeyOf(template, c.set.Spec.VolumeClaimUpdateStrategy),
	}
	change(&attempt)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, UID: types.UID(claim.Spec.VolumeName)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "slow", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, Capacity: template.Spec.Resources.Requests,
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.io"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	c.claims = append(c.claims, Claim{Template: template, Ordinal: i})
	c.objects = append(c.objects, claim, volume)
	noteAttempt(claim, attempt)
	return claim, volume, attempt
}

func noteAttempt(claim *corev1.PersistentVolumeClaim, attempt appsv1beta1.VolumeClaimRecreateState) {
	text, _ := json.Marshal(appsv1beta1.VolumeClaimUpdateState{Recreate: &attempt})
	claim.Annotations = map[string]string{appsv1beta1.VolumeClaimUpdateStateKey: string(text)}
}

// hold marks a volume as held for an attempt.
func (c *crowd) hold(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, attempt appsv1beta1.VolumeClaimRecreateState) {
	text, _ := json.Marshal(appsv1beta1.HeldVolumeState{
		Namespace: "default", Claim: claim.Name, ClaimUID: claim.UID, OwnerUID: c.set.UID, ReclaimPolicy: corev1.PersistentVolumeReclaimDelete, Recreate: attempt,
	})
	volume.Annotations = map[string]string{appsv1beta1.HeldVolumeStateKey: string(text)}
	volume.Labels = map[string]string{appsv1beta1.ClaimNamespaceLabel: "default", appsv1beta1.ClaimLabel: claim.Name}
}

// snapshotOf adds a snapshot of a claim.
func (c *crowd) snapshotOf(claim *corev1.PersistentVolumeClaim, name string, isReady bool) {
	c.objects = append(c.objects, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(began),
			Annotations: map[string]string{appsv1beta1.RecreateOfAnnotation: string(claim.UID)},
		},
		Status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: &isReady, BoundVolumeSnapshotContentName: ptr.To("content"), RestoreSize: ptr.To(resource.MustParse("1Gi"))},
	})
}

// crowds are what a hundred claims may wait for.
var crowds = map[string]func(*crowd, int){
	"the first snapshot": func(c *crowd, i int) {
		claim, _, attempt := c.claimOf(i, func(a *appsv1beta1.VolumeClaimRecreateState) { a.Pod, a.Trial = "", "snapshot-trial-"+fmt.Sprint(i) })
		c.snapshotOf(claim, attempt.Trial, false)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("db-%d", i), UID: types.UID(claim.Name)}}
		pod.Spec.NodeName = "node"
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
		c.objects = append(c.objects, pod)
		c.claims[i].Pod = pod
	},
	"the volume to be detached": func(c *crowd, i int) {
		_, volume, _ := c.claimOf(i, func(*appsv1beta1.VolumeClaimRecreateState) {})
		c.objects = append(c.objects, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name}},
		})
	},
	"the snapshot": func(c *crowd, i int) {
		claim, volume, attempt := c.claimOf(i, func(a *appsv1beta1.VolumeClaimRecreateState) {
			a.StoppedTimestamp, a.WatchedTimestamp = ptr.To(metav1.NewTime(began)), ptr.To(metav1.NewTime(began.Add(24*time.Hour)))
		})
		c.hold(volume, claim, attempt)
		c.snapshotOf(claim, attempt.Snapshot, false)
	},
	"the new volume": func(c *crowd, i int) {
		claim, volume, attempt := c.claimOf(i, func(a *appsv1beta1.VolumeClaimRecreateState) { a.StoppedTimestamp = ptr.To(metav1.NewTime(began)) })
		c.hold(volume, claim, attempt)
		c.snapshotOf(claim, attempt.Snapshot, true)
		volume.Status.Phase = corev1.VolumeReleased
		claim.UID, claim.Annotations, claim.Status.Phase = types.UID("new-"+claim.Name), nil, corev1.ClaimPending
		claim.Spec.StorageClassName, claim.Spec.VolumeName = ptr.To("fast"), ""
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: attempt.Snapshot}
	},
}

// newCrowd returns claims that wait for the same.
func newCrowd(g Gomega, claims int, wait func(*crowd, int)) *crowd {
	c := &crowd{set: &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "set", Generation: 1}}}
	c.set.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{
		Type: appsv1beta1.RecreateVolumeClaimUpdateStrategyType, Recreate: &appsv1beta1.VolumeClaimRecreateStrategy{TimeoutSeconds: ptr.To[int32](86400)},
	}
	for i := range claims {
		wait(c, i)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme, snapshotv1.AddToScheme, appsv1beta1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c.cache = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(c.objects, c.set)...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(object client.Object) []string {
			return []string{string(object.(*corev1.Event).InvolvedObject.UID)}
		}).                                                                                                                           //nolint:forcetypeassert // it is an index of events
		WithIndex(&corev1.Event{}, "reason", func(object client.Object) []string { return []string{object.(*corev1.Event).Reason} }). //nolint:forcetypeassert // it is an index of events
		Build()
	live := interceptor.NewClient(c.cache.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake client is one
		Get: func(ctx context.Context, client client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			c.requests++
			return client.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, client client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			c.requests++
			return client.List(ctx, list, options...)
		},
	})
	c.recreator = New(c.cache, live, events.NewFakeRecorder(1000))
	return c
}

// reconcile looks at all claims at a time, as a reconciliation of their workload does.
// It returns when the first of them is to be looked at again.
func (c *crowd) reconcile(g Gomega, now time.Time) (again time.Time) {
	ctx := context.Background()
	session := c.recreator.Open(workload.Owner{Object: c.set, Kind: appsv1beta1.StatefulSetKind}, c.set.Spec.VolumeClaimUpdateStrategy, now)
	for _, claim := range c.claims {
		found := &corev1.PersistentVolumeClaim{}
		g.Expect(c.cache.Get(ctx, client.ObjectKeyFromObject(claim.Template), found)).To(Succeed())
		claim.Found = found
		result, err := session.Advance(ctx, claim)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Action).To(Equal(recreate.Wait), result.Message)
		if again.IsZero() || result.Again.Before(again) {
			again = result.Again
		}
	}
	return again
}

// perMinute returns how many requests are made in the minute that begins after a time.
func (c *crowd) perMinute(g Gomega, after time.Duration) int {
	now, before := began, 0
	for now.Before(began.Add(after + time.Minute)) {
		if now.Before(began.Add(after)) {
			before = c.requests
		}
		now = c.reconcile(g, now)
	}
	return c.requests - before
}

// TestRequestsOfWaitingClaims: the longer claims wait for a driver, the less the manager asks
// the API server for each of them.
func TestRequestsOfWaitingClaims(t *testing.T) {
	claims := waitingClaims
	if testing.Short() {
		claims /= 4
	}
	for name, wait := range crowds {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			early, late := newCrowd(g, claims, wait).perMinute(g, 0), newCrowd(g, claims, wait).perMinute(g, 10*time.Minute)
			t.Logf("%d waiting claims: %d requests in the first minute, %d in the eleventh", claims, early, late)
			g.Expect(late).To(BeNumerically("<=", 12*claims))
			g.Expect(early).To(BeNumerically("<=", 60*claims))
		})
	}
}

// TestAPodThatComesIsSeenAtOnce: however rarely the objects of a claim are read, a pod that
// comes to use its volume after the claim's own pod was stopped is seen at the next look,
// which is at most two seconds later. What that pod writes is in no snapshot.
func TestAPodThatComesIsSeenAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := newCrowd(g, 1, crowds["the snapshot"])
	now := began
	for now.Before(began.Add(10 * time.Minute)) {
		again := c.reconcile(g, now)
		g.Expect(again).To(BeTemporally("<=", now.Add(2*time.Second)))
		now = again
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "debug"}}
	pod.Spec.NodeName = "node"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.claims[0].Template.Name},
	}}}
	g.Expect(c.cache.Create(t.Context(), pod)).To(Succeed())

	c.advance(t, now)
	g.Expect(c.recordOf(t).Recreate).To(BeNil(), "the recreation is given up")
}

// advance looks at the first claim once.
func (c *crowd) advance(t *testing.T, now time.Time) Result {
	t.Helper()
	g := NewWithT(t)
	claim := c.claims[0]
	claim.Found = &corev1.PersistentVolumeClaim{}
	g.Expect(c.cache.Get(t.Context(), client.ObjectKeyFromObject(claim.Template), claim.Found)).To(Succeed())
	session := c.recreator.Open(workload.Owner{Object: c.set, Kind: appsv1beta1.StatefulSetKind}, c.set.Spec.VolumeClaimUpdateStrategy, now)
	result, err := session.Advance(t.Context(), claim)
	g.Expect(err).NotTo(HaveOccurred())
	return result
}

// recordOf returns what is noted on the first claim.
func (c *crowd) recordOf(t *testing.T) volumes.Record {
	t.Helper()
	found := &corev1.PersistentVolumeClaim{}
	NewWithT(t).Expect(c.cache.Get(t.Context(), client.ObjectKeyFromObject(c.claims[0].Template), found)).To(Succeed())
	return volumes.RecordOf(found)
}

// TestAPodThatCameAndEnded: a Job that used the claim after its pod was stopped, and ended
// before the manager looked, has written what is in no snapshot.
func TestAPodThatCameAndEnded(t *testing.T) {
	for name, test := range map[string]struct {
		started time.Duration
		givesUp bool
	}{"after it was stopped": {10 * time.Second, true}, "before": {-time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCrowd(g, 1, crowds["the snapshot"])
			c.advance(t, began.Add(time.Second))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job-1"}}
			pod.Spec.NodeName = "node"
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.claims[0].Template.Name},
			}}}
			pod.Status.Phase, pod.Status.StartTime = corev1.PodSucceeded, ptr.To(metav1.NewTime(began.Add(test.started)))
			g.Expect(c.cache.Create(t.Context(), pod)).To(Succeed())
			c.advance(t, began.Add(time.Minute))
			g.Expect(c.recordOf(t).Recreate == nil).To(Equal(test.givesUp))
		})
	}
}

// TestEventsThatCannotBeListed: events only say why. A claim whose time is over gets its old
// volume back without them.
func TestEventsThatCannotBeListed(t *testing.T) {
	c := newCrowd(NewWithT(t), 1, crowds["the new volume"])
	live := interceptor.NewClient(c.cache.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake client is one
		List: func(ctx context.Context, client client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, isEvents := list.(*corev1.EventList); isEvents {
				return errors.New("events is forbidden")
			}
			return client.List(ctx, list, options...)
		},
	})
	c.recreator = New(c.cache, live, events.NewFakeRecorder(1000))
	result := c.advance(t, began.Add(25*time.Hour))
	NewWithT(t).Expect(result.Message).To(ContainSubstring("volume pv-0"), "it gets that back")
}

// TestPauseBetweenLooks: a claim whose snapshot has a later deadline than its pod is looked at
// again after a pause.
func TestPauseBetweenLooks(t *testing.T) {
	g := NewWithT(t)
	c := newCrowd(g, 1, crowds["the snapshot"])
	for _, object := range c.objects {
		if snapshot, is := object.(*snapshotv1.VolumeSnapshot); is {
			g.Expect(c.cache.Delete(t.Context(), snapshot)).To(Succeed())
			snapshot.CreationTimestamp, snapshot.ResourceVersion = metav1.NewTime(began.Add(20*time.Second)), ""
			g.Expect(c.cache.Create(t.Context(), snapshot)).To(Succeed())
		}
	}
	now := began.Add(24*time.Hour + time.Second)
	g.Expect(c.reconcile(g, now)).To(BeTemporally(">=", now.Add(time.Second)))
}
