// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

const (
	keep   = appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType
	remove = appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
)

type retention = appsv1beta1.PersistentVolumeClaimRetentionPolicyType

// retaining sets the policy, by what happens when the set is deleted and when it
// is scaled down.
func retaining(deleted, scaled retention) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: deleted, WhenScaled: scaled,
		}
	}
}

// claiming is a set with a claim for each pod and a policy.
func claiming(deleted, scaled retention) *builders.StatefulSetBuilder {
	return reference().With(withClaim("1Gi")).With(retaining(deleted, scaled))
}

func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	Expect(w.live.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, claim)).To(Succeed())
	return claim
}

// changeClaim changes a claim as another client does.
func (w *world) changeClaim(name string, mutate func(*corev1.PersistentVolumeClaim)) {
	GinkgoHelper()
	claim := w.claim(name)
	before := claim.DeepCopy()
	mutate(claim)
	Expect(w.api.Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
}

// owners returns who owns the claims, by name: "the set", "the pod" if it is the
// one that is there, "a pod" if it is another one, or the name of another owner.
func (w *world) owners() map[string]string {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	pods := w.pods()
	owners := map[string]string{}
	for _, claim := range list.Items {
		var names []string
		for _, owner := range claim.OwnerReferences {
			pod := pods[strings.TrimPrefix(claim.Name, "data-")]
			switch {
			case owner.UID == w.set.UID:
				names = append(names, "the set")
			case pod != nil && owner.UID == pod.UID:
				names = append(names, "the pod")
			case owner.Kind == "Pod":
				names = append(names, "a pod")
			default:
				names = append(names, owner.Name)
			}
		}
		owners[claim.Name] = strings.Join(names, ", ")
	}
	return owners
}

// three returns who owns the claims of three pods.
func three(first, second, third string) map[string]string {
	return map[string]string{"data-sample-0": first, "data-sample-1": second, "data-sample-2": third}
}

// guardClaims looks at the claims before every write of the manager: no claim of
// a wanted pod gets a pod as its owner, and while one has, nothing but claims and
// the status of the set is written.
func (w *world) guardClaims() {
	before := -1
	generation := int64(0)
	w.manager.Before = func(write string, _ client.Object) error {
		defer GinkgoRecover()
		set, owned := w.claimsOfPods()
		if set.Generation == generation {
			Expect(len(owned)).To(BeNumerically("<=", before), "a claim of a wanted pod got a pod as its owner: %v", owned)
		}
		before, generation = len(owned), set.Generation
		if strings.HasSuffix(write, "sample") || strings.HasPrefix(write, "patch PersistentVolumeClaim") {
			return nil
		}
		Expect(owned).To(BeEmpty(), "claims of wanted pods are owned by pods before %q", write)
		return nil
	}
}

// claimsOfPods returns the set, and the claims of wanted pods that a pod owns.
func (w *world) claimsOfPods() (*appsv1beta1.StatefulSet, []string) {
	GinkgoHelper()
	set := &appsv1beta1.StatefulSet{}
	Expect(w.live.Get(w.ctx, client.ObjectKeyFromObject(w.set), set)).To(Succeed())
	owners := w.owners()
	var owned []string
	for _, ordinal := range set.GetOrdinals() {
		name := fmt.Sprintf("data-sample-%d", ordinal)
		if strings.Contains(owners[name], "pod") {
			owned = append(owned, name)
		}
	}
	return set, owned
}

// expectNoPodOwns checks that no claim of a wanted pod is owned by a pod.
func (w *world) expectNoPodOwns() {
	GinkgoHelper()
	_, owned := w.claimsOfPods()
	Expect(owned).To(BeEmpty())
}

// condemn scales down to one pod and lets the manager get as far as the owners of
// the claims, but not to the deletion of pods.
func (w *world) condemn() {
	GinkgoHelper()
	w.scale(1)
	w.refuse("delete Pod", apierrors.NewConflict(corev1.Resource("pods"), "sample", errors.New("not yet")))
	w.reconcile()
	w.manager.Before = nil
}

var _ = Describe("The retention policy of claims", func() {
	DescribeTable("says who owns them, before and after a scale-down, without a write too many",
		func(ctx context.Context, deleted, scaled retention, wanted, condemned string) {
			w := newWorld(ctx)
			w.create(claiming(deleted, scaled))
			Expect(w.owners()).To(Equal(three(wanted, wanted, wanted)))
			Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(BeEmpty(), "claims are made with their owners")
			w.expectNoWrites()
			w.condemn()
			Expect(w.podNames()).To(HaveLen(3))
			Expect(w.owners()).To(Equal(three(wanted, condemned, condemned)))
			w.settle()
			w.expectSettled(1)
			w.expectNoWrites()
		},
		Entry("no owner", keep, keep, "", ""),
		Entry("the set", remove, keep, "the set", "the set"),
		Entry("condemned pods", keep, remove, "", "the pod"),
		Entry("the set and condemned pods", short.Spec, remove, remove, "the set", "the pod"),
	)

	It("makes owners that are controllers, of which only the set blocks", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(remove, remove))
		w.condemn()
		Expect(w.claim("data-sample-0").OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "sample", UID: w.set.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}))
		Expect(w.claim("data-sample-2").OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "v1", Kind: "Pod", Name: "sample-2", UID: w.pod("sample-2").UID, Controller: ptr.To(true),
		}))
	})

	It("is followed whenever it changes, also by claims whose pods are gone", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, keep))
		w.change(retaining(remove, keep))
		w.settle()
		Expect(w.owners()).To(Equal(three("the set", "the set", "the set")))
		w.scale(2)
		w.settle()
		Expect(w.owners()).To(Equal(three("the set", "the set", "the set")))

		w.manager.Forget()
		w.change(retaining(keep, remove))
		w.settle()
		Expect(w.owners()).To(Equal(three("", "", "")))
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(HaveLen(3))
		w.expectNoWrites()

		w.change(retaining(remove, remove))
		w.settle()
		Expect(w.owners()).To(Equal(three("the set", "the set", "")), "a claim without a pod is not taken")
		w.expectNoWrites()
	})

	It("that changes to Retain takes claims back from pods that are still there", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.condemn()
		w.change(retaining(keep, keep))
		w.manager.Forget()
		w.settle()
		Expect(w.owners()).To(Equal(three("", "", "")))
		Expect(w.manager.Writes("")[:2]).To(ConsistOf("patch PersistentVolumeClaim data-sample-1", "patch PersistentVolumeClaim data-sample-2"))
	})

	It("gives no claim to a pod that is wanted, whoever deletes it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.guardClaims()
		w.deletePod("sample-2")
		w.settle()
		w.kubelet.Evict(w.ctx, w.pod("sample-1"))
		w.settle()
		w.change(setEnv)
		w.settle()
		w.expectSettled(3)
		Expect(w.owners()).To(Equal(three("", "", "")))
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(BeEmpty())
	})

	It("gives the claim of a reserved ordinal to its pod", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.guardClaims()
		uid := w.pod("sample-1").UID
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
		})
		w.settle()
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2", "sample-3"}))
		Expect(w.claim("data-sample-1").OwnerReferences).To(ConsistOf(HaveField("UID", uid)))
		Expect(w.owners()).To(HaveKeyWithValue("data-sample-3", ""))
	})

	It("gives a condemned pod only the claims that it mounts", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove).Partition(3))
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claimTemplate("logs", "1Gi"))
		})
		w.settle()
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "logs-sample-2"}, Spec: claimTemplate("logs", "1Gi").Spec,
		}
		Expect(w.api.Create(w.ctx, claim)).To(Succeed())
		w.scale(2)
		w.settle()
		Expect(w.owners()).To(And(HaveKeyWithValue("data-sample-2", "a pod"), HaveKeyWithValue("logs-sample-2", "")))
	})

	// As a release of OpenKruise that did not mark controllers has left it.
	It("makes a controller of an owner that is none", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(remove, keep))
		w.changeClaim("data-sample-1", func(claim *corev1.PersistentVolumeClaim) {
			claim.OwnerReferences[0].Controller, claim.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		})
		w.settle()
		Expect(metav1.IsControlledBy(w.claim("data-sample-1"), w.set)).To(BeTrue())
		w.expectNoWrites()
	})

	It("leaves alone what another controller owns, and says so once", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, keep))
		backup := metav1.OwnerReference{APIVersion: "example.io/v1", Kind: "Backup", Name: "nightly", UID: "backup", Controller: ptr.To(true)}
		w.changeClaim("data-sample-1", func(claim *corev1.PersistentVolumeClaim) { claim.OwnerReferences = []metav1.OwnerReference{backup} })
		w.settle()
		Expect(w.recorder.Events(appsv1beta1.ReasonConflictingController)).To(BeEmpty(), "Retain wants nothing of it")

		w.change(retaining(remove, remove))
		w.settle()
		w.expectNoWrites()
		Expect(w.owners()).To(Equal(three("the set", "nightly", "the set")))
		Expect(w.recorder.Events(appsv1beta1.ReasonConflictingController)).To(ConsistOf(And(
			HaveField("Kind", "StatefulSet"), HaveField("Type", corev1.EventTypeWarning),
			HaveField("Note", And(ContainSubstring("data-sample-1"), ContainSubstring("Backup nightly"))))))

		w.scale(1)
		w.settle()
		Expect(w.claim("data-sample-1").OwnerReferences).To(ConsistOf(backup))
		w.expectSettled(1)
	})

	It("is no reason to fail for claims that are missing or being deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.changeClaim("data-sample-1", func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = nil })
		Expect(w.api.Delete(w.ctx, w.claim("data-sample-1"))).To(Succeed())
		w.changeClaim("data-sample-2", func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = []string{"example.io/hold"} })
		Expect(w.api.Delete(w.ctx, w.claim("data-sample-2"))).To(Succeed())
		w.scale(1)
		w.settle()
		w.expectSettled(1)
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(BeEmpty())
	})

	// The set of that name is gone, and so will be what it owned.
	It("lets no pod use a claim of an earlier set, and leaves it to be deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		earlier := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "sample", UID: "earlier", Controller: ptr.To(true)}
		Expect(w.api.Create(w.ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data-sample-1", OwnerReferences: []metav1.OwnerReference{earlier}},
			Spec:       claimTemplate("data", "1Gi").Spec,
		})).To(Succeed())
		w.apply(claiming(remove, remove).Build())
		w.reconcileFailing()
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2"}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(And(
			ContainSubstring("sample-1"), ContainSubstring("owned by an earlier StatefulSet")))
		Expect(w.claim("data-sample-1").OwnerReferences).To(ConsistOf(earlier))
	})
})

var _ = Describe("A claim that a scale-down gave to its pod", func() {
	It("is taken back when the pod is wanted again before its deletion", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		uids, claims := w.uids(), w.claims()
		w.condemn()
		Expect(w.owners()).To(Equal(three("", "the pod", "the pod")))
		w.scale(3)
		w.startManager(shared)
		w.guardClaims()
		w.settle()
		w.expectSettled(3)
		w.expectNoPodOwns()
		Expect(w.uids()).To(Equal(uids))
		Expect(w.claims()).To(Equal(claims))
		w.expectNoWrites()
	})

	It("is taken back while the pod terminates, and from one that is gone, before the next is made", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(remove, remove))
		claims := w.claims()
		w.scale(1)
		w.reconcile()
		Expect(w.pod("sample-2").DeletionTimestamp).NotTo(BeNil())
		w.kubelet.Away["sample-1"] = true
		w.kubelet.Sync(w.ctx)
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-1"}))
		Expect(w.owners()).To(Equal(three("the set", "the pod", "a pod")))

		w.scale(3)
		w.guardClaims()
		w.manager.Forget()
		w.reconcile()
		Expect(w.manager.Writes("")[:2]).To(ConsistOf("patch PersistentVolumeClaim data-sample-1", "patch PersistentVolumeClaim data-sample-2"))
		Expect(w.owners()).To(Equal(three("the set", "the set", "the set")))
		w.kubelet.Away = map[string]bool{}
		w.settle()
		w.expectSettled(3)
		Expect(w.claims()).To(Equal(claims))
	})

	// Without the ordinal's claim in safety, neither a new pod nor the end of the
	// old one may come.
	It("holds up its pod, and no other, while it cannot be taken back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.condemn()
		w.scale(3)
		w.kubelet.Evict(w.ctx, w.pod("sample-1"))
		w.deletePod("sample-2")
		w.kubelet.Sync(w.ctx)
		w.refuse("patch PersistentVolumeClaim", apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data", errors.New("denied by a webhook")))
		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:latest" })
		w.manager.Forget()
		w.reconcileFailing()
		Expect(w.manager.Writes("create Pod")).To(BeEmpty())
		Expect(w.manager.Writes("delete Pod")).To(BeEmpty())
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(And(
			ContainSubstring("data-sample-1"), ContainSubstring("data-sample-2"), ContainSubstring("denied by a webhook")))
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedUpdateClaim)).To(HaveLen(2))

		w.guardClaims()
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(same("nginx:latest")))
		w.expectNoPodOwns()
	})

	It("holds up the deletion of its pod while it cannot be given", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.scale(1)
		denied := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-sample-2", errors.New("cannot set an ownerRef"))
		w.refuse("patch PersistentVolumeClaim data-sample-2", denied)
		w.reconcileFailing()
		w.kubelet.Sync(w.ctx)
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2"}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(
			HaveField("Reason", appsv1beta1.ReasonRefused), HaveField("Message", ContainSubstring("cannot set an ownerRef"))))
		w.manager.Before = nil
		w.recover()
		w.settle()
		w.expectSettled(1)
		Expect(w.owners()).To(Equal(three("", "a pod", "a pod")))
	})

	It("keeps its pod from being recreated for an update, while it cannot be taken back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove).MaxUnavailable(3))
		w.condemn()
		w.scale(3)
		w.change(setEnv)
		w.refuse("patch PersistentVolumeClaim data-sample-2", apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data", errors.New("denied")))
		w.manager.Forget()
		for range 4 {
			w.reconcileFailing()
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.manager.Writes("delete Pod")).To(ConsistOf("delete Pod sample-0", "delete Pod sample-1"))
	})

	// The view of the set is behind: the user has scaled up again already.
	It("is not given when the set changed meanwhile", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.scale(1)
		w.manager.Forget()
		later := &liveReader{Reader: w.live, mutate: func(live *metav1.PartialObjectMetadata) { live.Generation++ }}
		w.reconciler = statefulset.NewReconciler(w.manager, later, w.recorder, w.clock)
		w.reconciler.PullAs(stage.NoPulls())
		Expect(w.tryReconcile()).To(HaveField("RequeueAfter", BeNumerically(">", 0)))
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		Expect(w.owners()).To(Equal(three("", "", "")))
	})

	It("is tried again when it changed meanwhile", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.scale(2)
		w.refuse("patch PersistentVolumeClaim", apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "data-sample-2", errors.New("modified")))
		Expect(w.reconcile()).To(HaveField("RequeueAfter", BeNumerically(">", 0)))
		Expect(w.podNames()).To(HaveLen(3))
		w.manager.Before = nil
		w.settle()
		w.expectSettled(2)
	})
})

var _ = Describe("A manager that is killed while it scales down", func() {
	// begin scales a set of three with claims down to one.
	begin := func(ctx context.Context) *world {
		GinkgoHelper()
		w := newWorld(ctx)
		w.create(claiming(remove, remove))
		w.manager.Forget()
		w.scale(1)
		return w
	}
	// die lets a manager live for some writes.
	die := func(w *world, writes int) {
		GinkgoHelper()
		w.startManager(shared)
		w.guardClaims()
		w.manager.Lives = writes
		for range maxRounds {
			if w.manager.IsDead() {
				return
			}
			_, err := w.tryReconcile()
			Expect(err == nil || errors.Is(err, stage.ErrDead)).To(BeTrue(), "%v", err)
			w.kubelet.Sync(w.ctx)
		}
		Fail("the scale-down has fewer writes")
	}

	It("after any write leaves the claims to the pods that go, and ends the same", func(ctx context.Context) {
		w := begin(ctx)
		w.guardClaims()
		w.settle()
		writes := len(w.manager.Writes(""))
		Expect(writes).To(BeNumerically(">=", 5), "two claims, two pods and the status")
		for k := 1; k < writes; k++ {
			By(fmt.Sprintf("killing it after write %d of %d", k, writes))
			w := begin(ctx)
			die(w, k)
			w.expectNoPodOwns()
			w.startManager(shared)
			w.guardClaims()
			w.settle()
			w.expectSettled(1)
			Expect(w.owners()).To(Equal(three("the set", "a pod", "a pod")), "killed after write %d", k)
			w.expectNoWrites()
		}
	})

	It("after any write, and the scale-down is taken back, costs no claim of a wanted pod", func(ctx context.Context) {
		w := begin(ctx)
		w.settle()
		writes := len(w.manager.Writes(""))
		for k := 1; k < writes; k++ {
			for _, gone := range []bool{false, true} {
				By(fmt.Sprintf("killing it after write %d of %d, pods gone: %v", k, writes, gone))
				w := begin(ctx)
				claims := w.claims()
				die(w, k)
				if gone {
					w.kubelet.Sync(w.ctx)
				}
				w.scale(3)
				w.startManager(shared)
				w.guardClaims()
				w.settle()
				w.expectSettled(3)
				w.expectNoPodOwns()
				Expect(w.owners()).To(Equal(three("the set", "the set", "the set")))
				Expect(w.claims()).To(Equal(claims))
				w.expectNoWrites()
			}
		}
	})
})

// liveReader answers for the API server, with a change.
type liveReader struct {
	client.Reader
	mutate func(*metav1.PartialObjectMetadata)
}

func (l *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, obj, opts...)
	if live, ok := obj.(*metav1.PartialObjectMetadata); ok && err == nil {
		l.mutate(live)
	}
	return err
}
