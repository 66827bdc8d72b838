// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// More of what every lab has.
const (
	classNoatime = "noatime" // a pod sees it in /proc/mounts
	classWait    = "wait"    // makes a volume when a pod needs it
	classUnmade  = "unmade"  // never makes a volume

	snapshotStandard   = "standard"
	snapshotNeverReady = "never-ready"
	snapshotFailing    = "failing"
)

// Marks on claims, volumes and snapshots that users are told of.
const (
	claimLabel          = "insitu.dev/claim"
	claimNamespaceLabel = "insitu.dev/claim-namespace"
	undoAnnotation      = "insitu.dev/undo-recreate"
)

// recreating lets the claims of a set be recreated from their snapshots, those of
// one pod at a time.
func recreating(change func(*appsv1beta1.VolumeClaimRecreateStrategy)) edit {
	return func(s *appsv1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{
			Type: appsv1beta1.RecreateVolumeClaimUpdateStrategyType, Recreate: &appsv1beta1.VolumeClaimRecreateStrategy{},
		}
		if change != nil {
			change(s.Spec.VolumeClaimUpdateStrategy.Recreate)
		}
	}
}

// allAtOnce lets all pods of a set, and their claims, change at once.
func allAtOnce(s *appsv1beta1.StatefulSet) {
	s.Spec.VolumeClaimUpdateStrategy.MaxConcurrent = ptr.To(intstr.FromString("100%"))
	s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
}

// keepingNothing is of recreations that leave nothing behind after that time.
func keepingNothing(holdSeconds int32) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		r.OldVolume, r.Snapshot = appsv1beta1.DeleteRecreateRetention, appsv1beta1.DeleteRecreateRetention
		r.HoldSeconds = &holdSeconds
	}
}

// toClass gives the first claim template of a set another class.
func toClass(class string) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class }
}

// newRecreateNamespace is newVolumeNamespace, and deletes what is kept of its
// volumes when the spec has ended.
func newRecreateNamespace(ctx context.Context) string {
	GinkgoHelper()
	var namespace string
	DeferCleanup(func(ctx context.Context) {
		for _, volume := range volumesOf(ctx, namespace) {
			Expect(client.IgnoreNotFound(api.Patch(ctx, &volume, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`))))).To(Succeed())
		}
	})
	namespace = newVolumeNamespace(ctx)
	DeferCleanup(func(ctx context.Context) {
		if !CurrentSpecReport().Failed() {
			return
		}
		for _, volume := range volumesOf(ctx, namespace) {
			AddReportEntry("Volume "+volume.Name, fmt.Sprintf("%v\n%v\n%+v\n%+v", volume.Labels, volume.Annotations, volume.Spec, volume.Status))
		}
		for _, snapshot := range snapshots(ctx, namespace) {
			AddReportEntry("Snapshot "+snapshot.GetName(), fmt.Sprintf("%+v", snapshot.Object))
		}
	})
	return namespace
}

// volumesOf returns the volumes that are, or were, of claims of a namespace.
func volumesOf(ctx context.Context, namespace string) []corev1.PersistentVolume {
	GinkgoHelper()
	list := &corev1.PersistentVolumeList{}
	Expect(api.List(ctx, list)).To(Succeed())
	return slices.DeleteFunc(list.Items, func(volume corev1.PersistentVolume) bool {
		return volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != namespace
	})
}

// heldVolumes returns the names of the volumes that were replaced, by the label
// that users find them by.
func heldVolumes(ctx context.Context, namespace, claim string) []string {
	GinkgoHelper()
	list := &corev1.PersistentVolumeList{}
	Expect(api.List(ctx, list, client.MatchingLabels{claimNamespaceLabel: namespace, claimLabel: claim})).To(Succeed())
	var names []string
	for _, volume := range list.Items {
		names = append(names, volume.Name)
	}
	return names
}

var snapshotKind = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}

func snapshots(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(snapshotKind)
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// snapshotsOf returns the names of the snapshots of a claim, without those that a
// client has deleted.
func snapshotsOf(ctx context.Context, namespace, claim string) []string {
	GinkgoHelper()
	var names []string
	for _, snapshot := range snapshots(ctx, namespace) {
		if source, _, _ := unstructured.NestedString(snapshot.Object, "spec", "source", "persistentVolumeClaimName"); source == claim && snapshot.GetDeletionTimestamp() == nil {
			names = append(names, snapshot.GetName())
		}
	}
	return names
}

// takeSnapshot makes a snapshot of a claim as a user does, and waits for it.
func takeSnapshot(ctx context.Context, namespace, name, claim string) {
	GinkgoHelper()
	snapshot := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}},
	}}
	snapshot.SetGroupVersionKind(snapshotKind)
	snapshot.SetNamespace(namespace)
	snapshot.SetName(name)
	Expect(api.Create(ctx, snapshot)).To(Succeed())
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot)).To(Succeed())
		ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
		g.Expect(ready).To(BeTrue())
	}).Should(Succeed())
}

func claimNamed(ctx context.Context, namespace, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim)).To(Succeed())
	return claim
}

// classes returns the classes of the claims of a namespace, by name.
func classes(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, claim := range claimList(ctx, namespace) {
		found[claim.Name] = ptr.Deref(claim.Spec.StorageClassName, "")
	}
	return found
}

// boundTo returns the volumes that the claims of a namespace are bound to, by
// name.
func boundTo(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, claim := range claimList(ctx, namespace) {
		if claim.Status.Phase == corev1.ClaimBound {
			found[claim.Name] = claim.Spec.VolumeName
		}
	}
	return found
}

// inPod runs a command in a pod, and returns what it printed.
func inPod(ctx context.Context, namespace, pod string, command ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, append([]string{"exec", "-n", namespace, pod, "--"}, command...)...)
	Expect(err).NotTo(HaveOccurred(), output)
	return strings.TrimSpace(output)
}

// mounted returns what a pod sees of the mount at a path.
func mounted(ctx context.Context, namespace, pod, path string) string {
	GinkgoHelper()
	return inPod(ctx, namespace, pod, "busybox", "grep", " "+path+" ", "/proc/mounts")
}

// fillVolumes writes something into the volumes of all pods of a set of nginx, and
// waits until it is on disk.
func fillVolumes(ctx context.Context, set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	for i := range int(*set.Spec.Replicas) {
		inPod(ctx, set.Namespace, fmt.Sprintf("%s-%d", set.Name, i),
			"busybox", "sh", "-c", fmt.Sprintf("dd if=/dev/urandom of=/data/noise bs=64k count=16 2>/dev/null; echo of pod %d > /data/file; sync", i))
	}
}

// contents returns checksums of what is in the volumes of the pods of a set of
// nginx, by pod.
func contents(ctx context.Context, set *appsv1beta1.StatefulSet) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for i := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		found[name] = content(ctx, set.Namespace, name)
	}
	return found
}

// content returns checksums of what is in the volume of a pod of nginx.
func content(ctx context.Context, namespace, pod string) string {
	GinkgoHelper()
	return inPod(ctx, namespace, pod, "busybox", "sh", "-c", "cd /data && busybox find . -type f | busybox sort | busybox xargs -r busybox md5sum")
}

// waitRecreated waits until the pods of a set are at their template with claims of
// a class.
func waitRecreated(ctx context.Context, set *appsv1beta1.StatefulSet, class string) {
	GinkgoHelper()
	waitVolumes(ctx, set)
	for name, found := range classes(ctx, set.Namespace) {
		if strings.HasPrefix(name, set.Spec.VolumeClaimTemplates[0].Name+"-"+set.Name+"-") {
			Expect(found).To(Equal(class), name)
		}
	}
}

// labRecord is what the lab's driver records of a volume or a snapshot.
type labRecord struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
	// Volume is what a snapshot is of.
	Volume string `json:"volume"`
	Source *struct {
		Snapshot string `json:"snapshot"`
	} `json:"source"`
}

// labRecords reads what the lab's driver has, by ID: "volumes" or "snapshots".
func labRecords(what string) map[string]labRecord {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(labPath, "state", "storage", what, "*", "record.json"))
	Expect(err).NotTo(HaveOccurred())
	found := map[string]labRecord{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		Expect(err).NotTo(HaveOccurred())
		record := labRecord{}
		Expect(json.Unmarshal(content, &record)).To(Succeed())
		found[record.ID] = record
	}
	return found
}

// labVolumes returns the IDs of the volumes that the lab's driver has of a
// namespace, sorted.
func labVolumes(namespace string) []string {
	GinkgoHelper()
	var ids []string
	for id, record := range labRecords("volumes") {
		if record.Namespace == namespace {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// labSnapshots returns how many snapshots the lab's driver has of volumes.
func labSnapshots(volumes []string) int {
	GinkgoHelper()
	count := 0
	for _, record := range labRecords("snapshots") {
		if slices.Contains(volumes, record.Volume) {
			count++
		}
	}
	return count
}

var _ = Describe("Claims recreated from their snapshots", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newRecreateNamespace(ctx) })

	It("leave nothing behind if that is told", func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(recreating(keepingNothing(5))))
		fillVolumes(ctx, set)
		data, old := contents(ctx, set), labVolumes(namespace)
		change(ctx, set, toClass(classNoatime))
		waitRecreated(ctx, set, classNoatime)
		Expect(contents(ctx, set)).To(Equal(data))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(snapshots(ctx, namespace)).To(BeEmpty())
			volumes := volumesOf(ctx, namespace)
			g.Expect(volumes).To(HaveLen(2))
			for _, volume := range volumes {
				g.Expect(volume.Spec.StorageClassName).To(Equal(classNoatime))
				g.Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound))
				g.Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
				g.Expect(volume.Labels).NotTo(HaveKey(claimLabel))
			}
			g.Expect(labVolumes(namespace)).To(HaveLen(2))
			g.Expect(labVolumes(namespace)).NotTo(ContainElements(old))
			g.Expect(labSnapshots(old)).To(BeZero())
		}).Should(Succeed())
		Expect(contents(ctx, set)).To(Equal(data))
	})

	It("keep the old volume and the snapshot by default, and say whose they are", short.Spec, func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(recreating(nil)).With(edits(
			func(s *appsv1beta1.StatefulSet) {
				s.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"team": "storage"}
				s.Spec.VolumeClaimTemplates[0].Annotations = map[string]string{"example.com/backup": "daily"}
			})))
		fillVolumes(ctx, set)
		data, old := contents(ctx, set), boundTo(ctx, namespace)
		change(ctx, set, edits(toClass(classWait), toSize("2Gi")))
		waitRecreated(ctx, set, classWait)
		Expect(contents(ctx, set)).To(Equal(data))
		Expect(capacities(ctx, namespace)).To(Equal(of(2, "2Gi")))
		expectFilesystems(ctx, set, 2)
		for name, volume := range old {
			claim := claimNamed(ctx, namespace, name)
			Expect(claim.Spec.VolumeName).NotTo(Equal(volume))
			Expect(claim.Labels).To(HaveKeyWithValue("team", "storage"))
			Expect(claim.Annotations).To(HaveKeyWithValue("example.com/backup", "daily"))
			Expect(heldVolumes(ctx, namespace, name)).To(ConsistOf(volume))
			Expect(snapshotsOf(ctx, namespace, name)).To(HaveLen(1))
			Expect(claim.Spec.DataSource).To(And(HaveField("Kind", "VolumeSnapshot"), HaveField("Name", snapshotsOf(ctx, namespace, name)[0])))
			held := &corev1.PersistentVolume{}
			Expect(api.Get(ctx, client.ObjectKey{Name: volume}, held)).To(Succeed())
			Expect(held.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
			Expect(held.Status.Phase).To(Equal(corev1.VolumeReleased))
		}
		Expect(labSnapshots(labVolumes(namespace))).To(Equal(2))
	})

	It("get another access mode, two of a pod at once", func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(edits(recreating(keepingNothing(0)), func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claimTemplate("logs", classStandard))
			container := &s.Spec.Template.Spec.Containers[0]
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "logs", MountPath: "/data/logs"})
		})))
		fillVolumes(ctx, set)
		for i := range 2 {
			inPod(ctx, namespace, fmt.Sprintf("sample-%d", i), "busybox", "sh", "-c", fmt.Sprintf("echo log of %d > /data/logs/file; sync", i))
		}
		data := contents(ctx, set)
		most := watchAway(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			for i := range s.Spec.VolumeClaimTemplates {
				s.Spec.VolumeClaimTemplates[i].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			}
		})
		waitVolumes(ctx, set)
		Expect(most()).To(Equal(1))
		Expect(contents(ctx, set)).To(Equal(data))
		for _, claim := range claimList(ctx, namespace) {
			Expect(claim.Spec.AccessModes).To(ConsistOf(corev1.ReadWriteOncePod), claim.Name)
		}
		Expect(set.Status.Recreated).To(BeEquivalentTo(2), "each pod was taken once")
	})

	It("of a set that is scaled down in the middle, and up again, have their data", func(ctx context.Context) {
		// The old volume is held for long enough to be seen.
		set := create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(recreating(keepingNothing(600))))
		fillVolumes(ctx, set)
		data := contents(ctx, set)
		change(ctx, set, toClass(classNoatime))
		Eventually(ctx, func(ctx context.Context) []string { return heldVolumes(ctx, namespace, "data-sample-1") }).
			WithPolling(50 * time.Millisecond).ShouldNot(BeEmpty())
		scale(ctx, set, 1)
		waitGone(ctx, set, 1)
		waitSettled(ctx, set)
		scale(ctx, set, 2)
		waitRecreated(ctx, set, classNoatime)
		Expect(contents(ctx, set)).To(Equal(data))
	})
})

// notStopped checks that pods of a set are those from before, never restarted.
func notStopped(ctx context.Context, set *appsv1beta1.StatefulSet, before map[string]types.UID, ordinals ...int) {
	GinkgoHelper()
	for _, ordinal := range ordinals {
		pod := getPod(ctx, set, ordinal)
		Expect(pod.UID).To(Equal(before[pod.Name]), pod.Name)
		Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero(), pod.Name)
	}
}

// podUIDs returns the UIDs of the pods of a set, by name.
func podUIDs(ctx context.Context, set *appsv1beta1.StatefulSet) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	for _, pod := range pods(ctx, set) {
		found[pod.Name] = pod.UID
	}
	return found
}

// waitBlocker waits for a blocker of a pod with one of some reasons, and returns its
// message.
func waitBlocker(ctx context.Context, set *appsv1beta1.StatefulSet, pod string, reasons ...string) (message string) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		message = ""
		for _, b := range set.Status.Blockers {
			if b.Pod == pod && slices.Contains(reasons, b.Reason) {
				message = b.Message
			}
		}
		g.Expect(message).NotTo(BeEmpty(), "blockers: %+v, conditions: %+v", set.Status.Blockers, meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled))
	})
	return message
}
