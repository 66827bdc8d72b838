// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// withSnapshotClass lets snapshots be of a class, and take so long at most.
func withSnapshotClass(class string, timeoutSeconds int32) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		r.VolumeSnapshotClassName, r.TimeoutSeconds = class, &timeoutSeconds
	}
}

// afterTheStop is withSnapshotClass where nothing is restored before a pod is stopped.
func afterTheStop(class string, timeoutSeconds int32) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		withSnapshotClass(class, timeoutSeconds)(r)
		r.Trial = appsv1beta1.SnapshotRecreateTrial
	}
}

// temporarily creates an object for the time of a spec. The function that it
// returns deletes it earlier.
func temporarily(ctx context.Context, object client.Object) (remove func(context.Context)) {
	GinkgoHelper()
	Expect(api.Create(ctx, object)).To(Succeed())
	remove = func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed()) }
	DeferCleanup(remove)
	return remove
}

// foreignSnapshotClass is a class of snapshots of a driver that is not there.
func foreignSnapshotClass(name string) client.Object {
	class := &unstructured.Unstructured{Object: map[string]any{"driver": "csi.example.com", "deletionPolicy": "Delete"}}
	class.SetGroupVersionKind(snapshotKind.GroupVersion().WithKind("VolumeSnapshotClass"))
	class.SetName(name)
	return class
}

// retainingSnapshotClass is the standard class, but for that what the driver stores of a
// snapshot outlives the snapshot.
func retainingSnapshotClass(ctx context.Context, name string) client.Object {
	GinkgoHelper()
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(snapshotKind.GroupVersion().WithKind("VolumeSnapshotClass"))
	Expect(api.Get(ctx, client.ObjectKey{Name: snapshotStandard}, class)).To(Succeed())
	class.Object["metadata"] = map[string]any{"name": name}
	class.Object["deletionPolicy"] = "Retain"
	return class
}

// snapshotContents returns the names of what drivers store of the snapshots of a namespace.
func snapshotContents(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(snapshotKind.GroupVersion().WithKind("VolumeSnapshotContentList"))
	Expect(api.List(ctx, list)).To(Succeed())
	var names []string
	for _, content := range list.Items {
		if of, _, _ := unstructured.NestedString(content.Object, "spec", "volumeSnapshotRef", "namespace"); of == namespace {
			names = append(names, content.GetName())
		}
	}
	return names
}

// forbidClass has a policy refuse new claims of the class classNoatime in a namespace, and
// waits until the API server acts on it.
func forbidClass(ctx context.Context, namespace string) func(context.Context) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "classes." + namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.spec.?storageClassName.orValue('') != '%s'", classNoatime), Message: "ask the storage team for this class",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	removePolicy, removeBinding := temporarily(ctx, policy), temporarily(ctx, binding)
	try := func(ctx context.Context) error {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tried"}}
		claim.Spec.StorageClassName, claim.Spec.AccessModes = ptr.To(classNoatime), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		return api.Create(ctx, claim, client.DryRunAll)
	}
	Eventually(ctx, try).Should(MatchError(ContainSubstring("ask the storage team")))
	return func(ctx context.Context) {
		removeBinding(ctx)
		removePolicy(ctx)
		Eventually(ctx, try).Should(Succeed())
	}
}

func hardQuota(namespace, name, of, hard string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(of): resource.MustParse(hard)}},
	}
}

// keptSnapshots are those that no client has deleted: one that is deleted in the
// moment in which it is made goes only when the snapshot controller looks at it
// again.
func keptSnapshots(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	return slices.DeleteFunc(snapshots(ctx, namespace), func(snapshot unstructured.Unstructured) bool {
		return snapshot.GetDeletionTimestamp() != nil
	})
}

// refusal is a recreation that is refused before anything stops.
type refusal struct {
	name, reason string
	// prepare makes what is in the way, and returns what takes it away.
	prepare func(context.Context, string) func(context.Context)
	change  edit
}

var _ = Describe("Claims that cannot be recreated", func() {
	var (
		namespace string
		set       *appsv1beta1.StatefulSet
	)
	BeforeEach(func(ctx context.Context) {
		namespace = newRecreateNamespace(ctx)
		set = create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(recreating(nil)))
		fillVolumes(ctx, set)
	})

	It("for what can be seen before, stop nothing", func(ctx context.Context) {
		before, bound, data, template := podUIDs(ctx, set), claims(ctx, namespace), contents(ctx, set), set.DeepCopy()
		foreign := namespace + "-foreign"
		temporarily(ctx, foreignSnapshotClass(foreign))
		temporarily(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: foreign}, Provisioner: "csi.example.com"})
		small := namespace + "-small"
		temporarily(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: small}, Provisioner: labDriver})
		temporarily(ctx, &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}, StorageClassName: small,
			NodeTopology: &metav1.LabelSelector{}, Capacity: ptr.To(resource.MustParse("500Mi")), MaximumVolumeSize: ptr.To(resource.MustParse("500Mi")),
		})
		elsewhere := namespace + "-elsewhere"
		temporarily(ctx, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: elsewhere}, Provisioner: labDriver,
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: "topology.kubernetes.io/zone", Values: []string{"nowhere"}},
			}}},
		})
		limited := func(what, hard string) func(context.Context, string) func(context.Context) {
			return func(ctx context.Context, namespace string) func(context.Context) {
				return temporarily(ctx, hardQuota(namespace, "limited", what, hard))
			}
		}
		for _, r := range []refusal{
			{
				name: "a class of snapshots that is missing", reason: "SnapshotClassMissing",
				change: edits(toClass(classNoatime), recreating(withSnapshotClass("no-such-class", 600))),
			},
			{
				name: "a class of snapshots of another driver", reason: "SnapshotClassMismatch",
				change: edits(toClass(classNoatime), recreating(withSnapshotClass(foreign, 600))),
			},
			{name: "a class that is missing", reason: "StorageClassMissing", change: toClass("no-such-class")},
			{name: "a class of another driver", reason: "DriverDiffers", change: toClass(foreign)},
			{name: "another volume mode", reason: "VolumeModeChanged", change: func(s *appsv1beta1.StatefulSet) {
				s.Spec.VolumeClaimTemplates[0].Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
			}},
			{
				name: "a quota for snapshots", reason: "QuotaExceeded", change: toClass(classNoatime),
				prepare: limited("count/volumesnapshots.snapshot.storage.k8s.io", "0"),
			},
			{
				name: "a quota for the class", reason: "QuotaExceeded", change: toClass(classNoatime),
				prepare: limited(classNoatime+".storageclass.storage.k8s.io/requests.storage", "1Mi"),
			},
			{
				name: "a quota for storage, and a larger volume", reason: "QuotaExceeded", change: edits(toClass(classNoatime), toSize("2Gi")),
				prepare: limited("requests.storage", "2Gi"),
			},
			{name: "no room", reason: "CapacityTooSmall", change: toClass(small)},
			{name: "a policy", reason: "ClaimRefused", change: toClass(classNoatime), prepare: forbidClass},
		} {
			By(r.name)
			remove := func(context.Context) {}
			if r.prepare != nil {
				remove = r.prepare(ctx, namespace)
			}
			change(ctx, set, r.change)
			message := waitBlocker(ctx, set, "sample-1", r.reason)
			AddReportEntry(r.reason, message)
			Expect(message).To(ContainSubstring("data-sample-1"))
			notStopped(ctx, set, before, 0, 1)
			Expect(claims(ctx, namespace)).To(Equal(bound))
			Expect(snapshots(ctx, namespace)).To(BeEmpty())
			change(ctx, set, func(s *appsv1beta1.StatefulSet) {
				s.Spec.VolumeClaimTemplates = template.Spec.VolumeClaimTemplates
				s.Spec.VolumeClaimUpdateStrategy = template.Spec.VolumeClaimUpdateStrategy
			})
			waitVolumes(ctx, set)
			remove(ctx) // not before: in the moment between, the claim could be recreated
		}
		notStopped(ctx, set, before, 0, 1)
		Expect(contents(ctx, set)).To(Equal(data))
		for _, volume := range volumesOf(ctx, namespace) {
			Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete), volume.Name)
			Expect(volume.Labels).NotTo(HaveKey(claimLabel))
		}
	})

	DescribeTable("for no snapshot is made, give up in time, and stop nothing", func(ctx context.Context, class string) {
		before, bound, volumes, data := podUIDs(ctx, set), claims(ctx, namespace), boundTo(ctx, namespace), contents(ctx, set)
		change(ctx, set, edits(toClass(classNoatime), recreating(withSnapshotClass(class, 10))))
		for i := range 2 {
			message := waitBlocker(ctx, set, fmt.Sprintf("sample-%d", i), "RecreateTimedOut", "RecreateFailedBefore")
			AddReportEntry(fmt.Sprintf("sample-%d", i), message)
		}
		Eventually(ctx, snapshots).WithArguments(namespace).Should(BeEmpty())
		notStopped(ctx, set, before, 0, 1)
		Expect(claims(ctx, namespace)).To(Equal(bound))
		Expect(boundTo(ctx, namespace)).To(Equal(volumes))
		Expect(classes(ctx, namespace)).To(Equal(of(2, classStandard)))
		Expect(contents(ctx, set)).To(Equal(data))
		for _, volume := range volumesOf(ctx, namespace) {
			Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete), volume.Name)
			Expect(volume.Labels).NotTo(HaveKey(claimLabel))
			Expect(volume.Annotations).NotTo(HaveKey("insitu.dev/held-volume"))
		}

		By("not trying again by itself")
		Consistently(ctx, snapshots).WithArguments(namespace).WithTimeout(8 * time.Second).Should(BeEmpty())
		notStopped(ctx, set, before, 0, 1)

		By("trying again when it is told how")
		change(ctx, set, recreating(withSnapshotClass(snapshotStandard, 600)))
		waitRecreated(ctx, set, classNoatime)
		notStalled(set)
		Expect(contents(ctx, set)).To(Equal(data))
	},
		Entry("they never become ready", snapshotNeverReady),
		Entry("the driver fails", snapshotFailing),
	)

	It("for no volume is made of the first snapshot, stop nothing", func(ctx context.Context) {
		before, bound, volumes := podUIDs(ctx, set), claims(ctx, namespace), boundTo(ctx, namespace)
		retaining := "retaining." + namespace
		temporarily(ctx, retainingSnapshotClass(ctx, retaining))
		change(ctx, set, edits(toClass(classUnmade), recreating(withSnapshotClass(retaining, 60))))
		Eventually(ctx, snapshotContents).WithArguments(namespace).ShouldNot(BeEmpty())
		message := waitBlocker(ctx, set, "sample-1", "RecreateTimedOut")
		AddReportEntry("sample-1", message)
		Expect(message).To(And(ContainSubstring("restores its first snapshot on trial"), ContainSubstring("code = ResourceExhausted")), "the driver's words")
		waitBlocker(ctx, set, "sample-0", "RecreateFailedBefore")
		Eventually(ctx, keptSnapshots).WithArguments(namespace).Should(BeEmpty())
		Eventually(ctx, snapshotContents).WithArguments(namespace).Should(BeEmpty(), "whatever the class says")
		Eventually(ctx, claims).WithArguments(namespace).Should(Equal(bound), "nothing is left of the trial")
		notStopped(ctx, set, before, 0, 1)
		Expect(boundTo(ctx, namespace)).To(Equal(volumes))
	})

	It("for no volume is made of the snapshot, get back their old one", func(ctx context.Context) {
		before, bound, volumes, data := podUIDs(ctx, set), claims(ctx, namespace), boundTo(ctx, namespace), contents(ctx, set)
		change(ctx, set, edits(toClass(classUnmade), recreating(afterTheStop(snapshotStandard, 60))))
		message := waitBlocker(ctx, set, "sample-1", "RecreateTimedOut")
		AddReportEntry("sample-1", message)
		Expect(message).To(ContainSubstring("code = ResourceExhausted"), "the driver's words")
		AddReportEntry("sample-0", waitBlocker(ctx, set, "sample-0", "RecreateFailedBefore"))
		waitReplicas(ctx, set, 2)
		Expect(boundTo(ctx, namespace)).To(Equal(volumes))
		Expect(classes(ctx, namespace)).To(Equal(of(2, classStandard)))
		Expect(contents(ctx, set)).To(Equal(data))
		Eventually(ctx, keptSnapshots).WithArguments(namespace).Should(BeEmpty())
		notStopped(ctx, set, before, 0)
		after := claims(ctx, namespace)
		Expect(after["data-sample-1"]).NotTo(Equal(bound["data-sample-1"]))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			for _, volume := range volumesOf(ctx, namespace) {
				g.Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound))
				g.Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete), volume.Name)
				g.Expect(volume.Labels).NotTo(HaveKey(claimLabel))
			}
		}).Should(Succeed())

		By("reverting the template, which settles it")
		change(ctx, set, toClass(classStandard))
		waitVolumes(ctx, set)
		notStalled(set)
		Expect(claims(ctx, namespace)).To(Equal(after))
	})

	It("for no volume is made of the snapshot, go on in another class", func(ctx context.Context) {
		data, volumes := contents(ctx, set), boundTo(ctx, namespace)
		change(ctx, set, edits(toClass(classUnmade), recreating(afterTheStop(snapshotStandard, 600))))
		Eventually(ctx, classes).WithArguments(namespace).Should(HaveKeyWithValue("data-sample-1", classUnmade))
		change(ctx, set, edits(toClass(classNoatime), recreating(keepingNothing(0))))
		waitRecreated(ctx, set, classNoatime)
		Expect(contents(ctx, set)).To(Equal(data))
		Eventually(ctx, volumesOf).WithArguments(namespace).Should(HaveLen(2))
		Eventually(ctx, snapshots).WithArguments(namespace).Should(BeEmpty())
		for claim, volume := range boundTo(ctx, namespace) {
			Expect(volume).NotTo(Equal(volumes[claim]))
		}
	})

	It("for it is taken back before the new volume is there, get back their old one", func(ctx context.Context) {
		data, volumes := contents(ctx, set), boundTo(ctx, namespace)
		change(ctx, set, edits(toClass(classUnmade), recreating(afterTheStop(snapshotStandard, 600))))
		Eventually(ctx, classes).WithArguments(namespace).Should(HaveKeyWithValue("data-sample-1", classUnmade))
		change(ctx, set, toClass(classStandard))
		waitVolumes(ctx, set)
		notStalled(set)
		Expect(boundTo(ctx, namespace)).To(Equal(volumes))
		Expect(contents(ctx, set)).To(Equal(data))
		Eventually(ctx, keptSnapshots).WithArguments(namespace).Should(BeEmpty())
	})
})

var _ = Describe("A claim of a volume that no snapshot can be taken of", func() {
	It("is refused, or recreated empty, as told, and the old volume is kept", func(ctx context.Context) {
		namespace := newRecreateNamespace(ctx)
		makeVolumes(ctx, namespace, 1)
		// The volume is a folder of a node: the pod has its data there only.
		onOneNode := func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-1"}
		}
		set := create(ctx, nginxWithVolume(namespace, namespace).Replicas(1).With(edits(toSize("1Mi"), onOneNode, recreating(keepingNothing(3600)))))
		fillVolumes(ctx, set)
		volume, before := boundTo(ctx, namespace)["data-sample-0"], podUIDs(ctx, set)
		change(ctx, set, edits(toClass(classStandard), toSize("1Gi")))
		AddReportEntry("VolumeNotCSI", waitBlocker(ctx, set, "sample-0", "VolumeNotCSI"))
		notStopped(ctx, set, before, 0)

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Recreate.WithoutSnapshot = appsv1beta1.EmptyWithoutSnapshot
		})
		waitRecreated(ctx, set, classStandard)
		Expect(content(ctx, namespace, "sample-0")).To(BeEmpty())
		Expect(heldVolumes(ctx, namespace, "data-sample-0")).To(ConsistOf(volume))
		Expect(snapshots(ctx, namespace)).To(BeEmpty())

		By("undoing it, which brings the data back")
		undo(ctx, namespace, "data-sample-0", "previous")
		Eventually(ctx, boundTo).WithArguments(namespace).Should(HaveKeyWithValue("data-sample-0", volume))
		waitReplicas(ctx, set, 1)
		Expect(content(ctx, namespace, "sample-0")).NotTo(BeEmpty())
	})
})
