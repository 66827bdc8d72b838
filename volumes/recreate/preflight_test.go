// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// possible returns the facts of a claim of class slow and 1Gi that can be recreated with
// class fast.
func possible() *PreflightFacts {
	claim := templateOf("slow", "1Gi")
	claim.UID = "1234"
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "slow", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}},
	}}
	return &PreflightFacts{
		Claim: claim, Template: templateOf("fast", "1Gi"), Strategy: recreated(nil), Volume: &Volume{PersistentVolume: volume}, ClassName: "fast",
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver}, SnapshotsServed: true, SnapshotClasses: snapshotClasses(),
	}
}

func classOf(name, driver string, isDefault bool) snapshotv1.VolumeSnapshotClass {
	class := snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver}
	if isDefault {
		class.Annotations = map[string]string{isDefaultSnapshotClass: "true"}
	}
	return class
}

func names(class string) func(*PreflightFacts) {
	return func(f *PreflightFacts) { f.Strategy.Recreate.VolumeSnapshotClassName = class }
}

func offers(classes ...snapshotv1.VolumeSnapshotClass) func(*PreflightFacts) {
	return func(f *PreflightFacts) { f.SnapshotClasses = classes }
}

func both(one, other func(*PreflightFacts)) func(*PreflightFacts) {
	return func(f *PreflightFacts) { one(f); other(f) }
}

func isBlock(f *PreflightFacts) { f.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }

// snapshots: what there has to be for a snapshot, and what withoutSnapshot says
// of it.
var snapshots = map[string]struct {
	is     func(*PreflightFacts)
	reason string // empty if it can be done, from a snapshot
	// empty: it is recreated empty where withoutSnapshot says so.
	empty bool
	says  string
	class string
}{
	"all is there":                        {func(*PreflightFacts) {}, "", false, "", "usual"},
	"a class by name":                     {both(names("mine"), offers(classOf("mine", driver, false))), "", false, "", "mine"},
	"a class by name beside two defaults": {both(names("mine"), offers(classOf("mine", driver, true), classOf("b", driver, true))), "", false, "", "mine"},
	"no class of the name":                {names("mine"), ReasonSnapshotClassMissing, false, "no VolumeSnapshotClass mine", ""},
	"a class of another driver by name": {
		both(names("mine"), offers(classOf("mine", "other", true))), ReasonSnapshotClassMismatch, false, "VolumeSnapshotClass mine of recreate.volumeSnapshotClassName is of driver other", "",
	},
	"no class at all":                 {offers(), ReasonSnapshotClassMissing, true, "no default VolumeSnapshotClass of driver " + driver, ""},
	"no default class":                {offers(classOf("a", driver, false)), ReasonSnapshotClassMissing, true, "recreate.volumeSnapshotClassName", ""},
	"a default class of another":      {offers(classOf("a", "other", true)), ReasonSnapshotClassMissing, true, driver, ""},
	"a default class of each":         {offers(classOf("a", "other", true), classOf("b", driver, true)), "", false, "", "b"},
	"two default classes":             {offers(classOf("b", driver, true), classOf("a", driver, true)), ReasonSnapshotClassMissing, false, "2 default VolumeSnapshotClasses, a, b", ""},
	"snapshots are not served":        {func(f *PreflightFacts) { f.SnapshotsServed, f.SnapshotClasses = false, nil }, ReasonSnapshotsNotServed, true, "external-snapshotter", ""},
	"not served, by name":             {func(f *PreflightFacts) { names("mine")(f); f.SnapshotsServed = false }, ReasonSnapshotsNotServed, true, "", ""},
	"no CSI volume":                   {func(f *PreflightFacts) { f.Volume.Spec.CSI = nil }, ReasonVolumeNotCSI, true, "pv-1", ""},
	"another driver":                  {func(f *PreflightFacts) { f.Class.Provisioner = "other" }, ReasonDriverDiffers, true, "storage class fast is of driver other, its volume of " + driver, ""},
	"another mode":                    {isBlock, ReasonVolumeModeChanged, true, "volumeMode would become Block", ""},
	"the mode is named":               {func(f *PreflightFacts) { f.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem) }, "", false, "", "usual"},
	"both are blocks":                 {func(f *PreflightFacts) { isBlock(f); f.Claim.Spec.VolumeMode = f.Template.Spec.VolumeMode }, "", false, "", "usual"},
	"a file system in place of block": {func(f *PreflightFacts) { f.Claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, ReasonVolumeModeChanged, true, "Filesystem", ""},
	"no volume":                       {func(f *PreflightFacts) { f.Volume = nil }, volumes.ReasonClaimNotBound, false, "", ""},
}

func TestPreflightOfSnapshots(t *testing.T) {
	for name, test := range snapshots {
		for _, orEmpty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, orEmpty), func(t *testing.T) {
				g := NewWithT(t)
				f := possible()
				if orEmpty {
					withoutSnapshot(f.Strategy.Recreate)
				}
				test.is(f)
				got := Preflight(*f)
				switch {
				case test.reason == "":
					g.Expect(got).To(Equal(Judgement{
						Source: appsv1beta1.SnapshotRecreateSource, SnapshotClass: test.class, Key: KeyOf(f.Template, f.Strategy), Trial: appsv1beta1.RestoreRecreateTrial,
					}))
				case test.empty && orEmpty:
					g.Expect(got).To(Equal(Judgement{Source: appsv1beta1.EmptyRecreateSource, Key: KeyOf(f.Template, f.Strategy)}))
				default:
					g.Expect(got.Refused).To(And(HaveField("Reason", test.reason), HaveField("Message", ContainSubstring(test.says))))
					if test.empty {
						g.Expect(got.Refused.Message).To(ContainSubstring("recreate.withoutSnapshot: Empty"))
					}
				}
			})
		}
	}
}

func failedWith(reason string) func(*PreflightFacts) {
	return func(f *PreflightFacts) {
		setRecord(f.Claim, volumes.Record{RecreateFailure: &Failure{Key: KeyOf(f.Template, f.Strategy), Reason: reason, Message: "so it was"}})
	}
}

func quotaOf(name corev1.ResourceName, hard, used string) corev1.ResourceQuota {
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{name: resource.MustParse(hard)}, Used: corev1.ResourceList{name: resource.MustParse(used)},
	}}
}

func limits(name corev1.ResourceName, hard, used string) func(*PreflightFacts) {
	return func(f *PreflightFacts) { f.Quotas = append(f.Quotas, quotaOf(name, hard, used)) }
}

func larger(template string) func(*PreflightFacts) {
	return func(f *PreflightFacts) {
		f.Template.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(template)
	}
}

func hasRoom(class, capacity, most string) func(*PreflightFacts) {
	return func(f *PreflightFacts) {
		room := storagev1.CSIStorageCapacity{StorageClassName: class}
		if capacity != "" {
			room.Capacity = ptr.To(resource.MustParse(capacity))
		}
		if most != "" {
			room.MaximumVolumeSize = ptr.To(resource.MustParse(most))
		}
		f.Capacities = append(f.Capacities, room)
	}
}

func isTerminating(f *PreflightFacts) { f.Volume.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }

func finalizers(names ...string) func(*PreflightFacts) {
	return func(f *PreflightFacts) { f.Claim.Finalizers = names }
}

// in sets where the class makes volumes, and where the volume is: "zone=a,b" each;
// several places apart by ";".
func in(allowed, reachable string) func(*PreflightFacts) {
	return func(f *PreflightFacts) {
		for key, values := range places(allowed) {
			f.Class.AllowedTopologies = append(f.Class.AllowedTopologies, corev1.TopologySelectorTerm{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}},
			})
		}
		if reachable == "" {
			return
		}
		required := &corev1.NodeSelector{}
		for key, values := range places(reachable) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
			})
		}
		f.Volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: required}
	}
}

func places(text string) map[string][]string {
	found := map[string][]string{}
	for place := range strings.SplitSeq(text, ";") {
		if key, values, ok := strings.Cut(place, "="); ok {
			found[key] = strings.Split(values, ",")
		}
	}
	return found
}

func TestPreflight(t *testing.T) {
	const (
		claims    = corev1.ResourcePersistentVolumeClaims
		storage   = corev1.ResourceRequestsStorage
		ofFast    = corev1.ResourceName("fast.storageclass.storage.k8s.io/requests.storage")
		countFast = corev1.ResourceName("fast.storageclass.storage.k8s.io/persistentvolumeclaims")
		ofSlow    = corev1.ResourceName("slow.storageclass.storage.k8s.io/requests.storage")
		shots     = corev1.ResourceName("count/volumesnapshots.snapshot.storage.k8s.io")
	)
	sameClass := func(f *PreflightFacts) {
		f.Template.Spec.StorageClassName, f.ClassName, f.Class.Name = ptr.To("slow"), "slow", "slow"
		f.Template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	for name, test := range map[string]struct {
		is     func(*PreflightFacts)
		reason string
		says   string
	}{
		"it timed out":                 {failedWith(ReasonRecreateTimedOut), ReasonRecreateTimedOut, "so it was; revert its template"},
		"it was undone":                {failedWith(ReasonRecreateUndone), ReasonRecreateUndone, "so it was"},
		"it failed for another class":  {both(failedWith(ReasonRecreateTimedOut), func(f *PreflightFacts) { f.Template.Spec.StorageClassName = ptr.To("new") }), "", ""},
		"it failed, and may take more": {both(failedWith(ReasonRecreateTimedOut), func(f *PreflightFacts) { f.Strategy.Recreate.TimeoutSeconds = ptr.To[int32](9) }), "", ""},
		"it failed at another size":    {both(failedWith(ReasonRecreateTimedOut), larger("2Gi")), ReasonRecreateTimedOut, ""},
		"it failed for the next claim": {func(f *PreflightFacts) { f.Failed = "data-sample-2" }, ReasonRecreateFailedBefore, "failed for claim data-sample-2"},
		"its volume is being deleted":  {isTerminating, ReasonVolumeTerminating, "would go with its claim"},
		"a finalizer of others":        {finalizers("example.com/backup"), ReasonClaimHasFinalizers, "finalizer example.com/backup would keep it"},
		"those of Kubernetes":          {finalizers("kubernetes.io/pvc-protection", beingSavedFinalizer), "", ""},
		"another pod uses it":          {func(f *PreflightFacts) { f.OtherUsers = []string{"copy"} }, ReasonClaimInUse, "pod copy uses it as well"},
		"no such class":                {func(f *PreflightFacts) { f.Class = nil }, volumes.ReasonStorageClassMissing, "no storage class fast"},
		"no class asked for":           {func(f *PreflightFacts) { f.Class, f.ClassName = nil, "" }, volumes.ReasonStorageClassMissing, "asks for no storage class"},
		"a class that makes no volumes": {func(f *PreflightFacts) {
			withoutSnapshot(f.Strategy.Recreate)
			f.Class.Provisioner = "kubernetes.io/no-provisioner"
		}, volumes.ReasonStorageClassMissing, "makes no volumes"},

		"no room for more":                      {both(larger("3Gi"), limits(storage, "3Gi", "1537Mi")), "QuotaExceeded", "ResourceQuota q allows 3Gi of requests.storage, 1537Mi are used, and 2Gi more are needed"},
		"room for the difference":               {both(larger("3Gi"), limits(storage, "3Gi", "1Gi")), "", ""},
		"the same size needs none":              {limits(storage, "1Gi", "1Gi"), "", ""},
		"but too much is used":                  {limits(storage, "1Gi", "5Gi"), "QuotaExceeded", "allows 1Gi of requests.storage, 5Gi are used, and 0 more are needed"},
		"the number of claims stays":            {limits(claims, "1", "1"), "", ""},
		"but there are too many":                {limits(claims, "1", "2"), "QuotaExceeded", "allows 1 of persistentvolumeclaims, 2 are used"},
		"no room of the class":                  {limits(ofFast, "1023Mi", "0"), "QuotaExceeded", "1Gi more are needed"},
		"room of the class":                     {limits(ofFast, "1Gi", "0"), "", ""},
		"no more claims of the class":           {limits(countFast, "2", "2"), "QuotaExceeded", "allows 2 of fast.storageclass"},
		"more claims of the class":              {limits(countFast, "3", "2"), "", ""},
		"the class before is given back":        {limits(ofSlow, "0", "1Gi"), "", ""},
		"the same class: the difference":        {both(sameClass, both(larger("2Gi"), limits(ofSlow, "2Gi", "1Gi"))), "", ""},
		"the same class: too much":              {both(sameClass, both(larger("2Gi"), limits(ofSlow, "2Gi", "1025Mi"))), "QuotaExceeded", ""},
		"the same class: the number stays":      {both(sameClass, limits("slow.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "1")), "", ""},
		"no more snapshots":                     {limits(shots, "1", "1"), "QuotaExceeded", "count/volumesnapshots"},
		"room for two snapshots":                {limits(shots, "3", "1"), "", ""},
		"room for one snapshot":                 {limits(shots, "2", "1"), "QuotaExceeded", "2 more"},
		"the snapshot is there":                 {both(limits(shots, "1", "1"), func(f *PreflightFacts) { f.HasSnapshot = true }), "", ""},
		"no snapshot is needed":                 {both(limits(shots, "0", "0"), both(isBlock, func(f *PreflightFacts) { withoutSnapshot(f.Strategy.Recreate) })), "", ""},
		"a quota for some claims":               {both(limits(ofFast, "0", "0"), func(f *PreflightFacts) { f.Quotas[0].Spec.Scopes = []corev1.ResourceQuotaScope{"x"} }), "", ""},
		"a quota for those of a selector":       {both(limits(ofFast, "0", "0"), func(f *PreflightFacts) { f.Quotas[0].Spec.ScopeSelector = &corev1.ScopeSelector{} }), "", ""},
		"a quota of something else":             {limits(corev1.ResourcePods, "0", "0"), "", ""},
		"the second quota":                      {both(limits(ofFast, "9Gi", "0"), limits(ofFast, "1Mi", "0")), "QuotaExceeded", "allows 1Mi"},
		"the volume is larger than its request": {both(func(f *PreflightFacts) { f.Volume.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }, limits(ofFast, "1536Mi", "0")), "QuotaExceeded", "2Gi more"},

		"nothing told of room":          {hasRoom("slow", "1Mi", ""), "", ""},
		"room":                          {hasRoom("fast", "1Gi", ""), "", ""},
		"no room":                       {hasRoom("fast", "1023Mi", ""), ReasonCapacityTooSmall, "it needs 1Gi of storage class fast, of which there are 1023Mi at the most"},
		"room in one of two":            {both(hasRoom("fast", "1Mi", ""), hasRoom("fast", "9Gi", "")), "", ""},
		"room, but not for one so big":  {hasRoom("fast", "9Gi", "512Mi"), ReasonCapacityTooSmall, "512Mi"},
		"no capacity is told":           {hasRoom("fast", "", ""), "", ""},
		"room for less than is wanted":  {both(larger("2Gi"), hasRoom("fast", "1Gi", "")), ReasonCapacityTooSmall, "2Gi"},
		"the same place":                {in("zone=a,b", "zone=b,c"), "", ""},
		"another place":                 {in("zone=a,b", "zone=c"), ReasonTopologyDiffers, "storage class fast makes volumes only in other places"},
		"one of two places":             {in("zone=a;rack=1", "zone=c"), "", ""},
		"a place by another key":        {in("zone=a", "rack=1"), "", ""},
		"anywhere, from one place":      {in("", "zone=a"), "", ""},
		"one place, from anywhere":      {in("zone=a", ""), "", ""},
		"one place, no affinity at all": {both(in("zone=a", ""), func(f *PreflightFacts) { f.Volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{} }), "", ""},
		"what is not in a place": {both(in("zone=a", "zone=b"), func(f *PreflightFacts) {
			f.Volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
		}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := possible()
			test.is(f)
			got := Preflight(*f)
			if test.reason == "" {
				g.Expect(got.Refused).To(BeNil())
				g.Expect(got.Key).To(Equal(KeyOf(f.Template, f.Strategy)))
				return
			}
			g.Expect(got.Refused).NotTo(BeNil())
			g.Expect(got.Refused.Reason).To(Equal(test.reason))
			g.Expect(got.Refused.Message).To(ContainSubstring(test.says))
		})
	}
}

// TestUndoOfAVolumeOfAnotherClaim: a user asks for a volume that is held for another claim.
func TestUndoOfAVolumeOfAnotherClaim(t *testing.T) {
	for claim, reason := range map[string]string{claimName: "", "other": ReasonUndoRefused} {
		g := NewWithT(t)
		f := possible()
		held := heldFor(claim, 1)
		held.Spec.PersistentVolumeReclaimPolicy, held.Status.Phase = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased
		held.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim, UID: "1"}
		f.Held = []Volume{held}
		f.Claim.Annotations = map[string]string{appsv1beta1.UndoRecreateAnnotation: held.Name}
		refused := ""
		if judgement := Preflight(*f); judgement.Refused != nil {
			refused = judgement.Refused.Reason
		}
		g.Expect(refused).To(Equal(reason), claim)
	}
}
