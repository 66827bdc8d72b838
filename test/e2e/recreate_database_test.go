// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// rows returns all numbers that a server has, sorted: how many there are, and
// which, is what is compared.
func rows(ctx context.Context, d database, namespace, pod string) []int {
	GinkgoHelper()
	w := &writer{database: d, namespace: namespace, pod: pod}
	var stored map[int]bool
	Eventually(ctx, func(ctx context.Context) (err error) { stored, err = w.stored(ctx); return err }).Should(Succeed())
	return slices.Sorted(maps.Keys(stored))
}

// allRows returns the rows of every pod of a set, by ordinal.
func allRows(ctx context.Context, d database, set *appsv1beta1.StatefulSet) [][]int {
	GinkgoHelper()
	var all [][]int
	for i := range int(*set.Spec.Replicas) {
		all = append(all, rows(ctx, d, set.Namespace, fmt.Sprintf("%s-%d", set.Name, i)))
	}
	return all
}

// writeFrom writes numbers to a server, from one on, until it has acknowledged that.
func writeFrom(ctx context.Context, d database, namespace, pod string, number int) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &writer{database: d, namespace: namespace, pod: pod}
	go w.session(ctx, number)
	Eventually(ctx, w.written).Should(ContainElement(number))
}

// undo asks for the volume that a claim had before.
func undo(ctx context.Context, namespace, claim, volume string) {
	GinkgoHelper()
	found := claimNamed(ctx, namespace, claim)
	before := found.DeepCopy()
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[undoAnnotation] = volume
	Expect(api.Patch(ctx, found, mergeFrom(before))).To(Succeed())
}

var _ = Describe("The volumes of a database, recreated from their snapshots", func() {
	DescribeTable("lose nothing: forth, back, undone, and restored elsewhere", func(ctx context.Context, d database) {
		namespace := newRecreateNamespace(ctx)
		set := create(ctx, d.set(namespace, classStandard).With(recreating(nil)))
		first := boundTo(ctx, namespace)
		writers := startWriters(ctx, d, set)
		most := watchAway(ctx, set)

		By("getting another class, which a policy forbids at first, while they are written to")
		allow, before := forbidClass(ctx, namespace), podUIDs(ctx, set)
		change(ctx, set, toClass(classNoatime))
		Expect(waitBlocker(ctx, set, "sample-2", "ClaimRefused")).To(ContainSubstring("ask the storage team for this class"))
		notStopped(ctx, set, before, 0, 1, 2)
		Expect(snapshots(ctx, namespace)).To(BeEmpty())
		allow(ctx)
		waitRecreated(ctx, set, classNoatime)
		writers.expectGoOn(ctx)
		for i := range 3 {
			Expect(mounted(ctx, namespace, fmt.Sprintf("sample-%d", i), d.dir)).To(ContainSubstring("noatime"))
		}

		By("rolling back while they are written to")
		change(ctx, set, toClass(classStandard))
		waitRecreated(ctx, set, classStandard)
		for claim, volume := range first {
			Expect(heldVolumes(ctx, namespace, claim)).To(And(HaveLen(2), ContainElement(volume)))
			Expect(boundTo(ctx, namespace)).NotTo(HaveKeyWithValue(claim, volume), "it is a copy of what was written since")
			Expect(snapshotsOf(ctx, namespace, claim)).To(HaveLen(2))
		}
		Expect(most()).To(Equal(1), "pods that were out of service at a time")
		writers.expectAllStored(ctx)
		written := allRows(ctx, d, set)

		By("getting another class once more, all at once, which is undone")
		known, second := map[string][]string{}, boundTo(ctx, namespace)
		for claim := range second {
			known[claim] = snapshotsOf(ctx, namespace, claim)
		}
		change(ctx, set, edits(toClass(classNoatime), allAtOnce))
		waitRecreated(ctx, set, classNoatime)
		third := boundTo(ctx, namespace)
		Expect(allRows(ctx, d, set)).To(Equal(written))
		const later = 1_000_000
		for i := range 3 {
			writeFrom(ctx, d, namespace, fmt.Sprintf("sample-%d", i), later)
		}
		for claim := range second {
			undo(ctx, namespace, claim, "previous")
		}
		Eventually(ctx, boundTo).WithArguments(namespace).WithTimeout(volumePatience).Should(Equal(second))
		change(ctx, set, toClass(classStandard))
		waitRecreated(ctx, set, classStandard)
		Expect(boundTo(ctx, namespace)).To(Equal(second))
		Expect(allRows(ctx, d, set)).To(Equal(written), "what was written to the newer volumes is not in the older ones")
		for claim, volume := range third {
			Expect(heldVolumes(ctx, namespace, claim)).To(ContainElement(volume), "it has what was written since")
			Expect(claimNamed(ctx, namespace, claim).Annotations).NotTo(HaveKey(undoAnnotation))
		}
		expectEvent(ctx, namespace, "StatefulSet", "DeletingClaim", "is in volume "+third["data-sample-0"])

		By("starting another set from the snapshots of the last recreation")
		snapshotByOrdinal := map[string]string{}
		for i := range 3 {
			claim := fmt.Sprintf("data-sample-%d", i)
			for _, name := range snapshotsOf(ctx, namespace, claim) {
				if !slices.Contains(known[claim], name) {
					snapshotByOrdinal[fmt.Sprint(i)] = name
				}
			}
		}
		Expect(snapshotByOrdinal).To(HaveLen(3))
		restored := create(ctx, d.set(namespace, classWait).With(edits(func(s *appsv1beta1.StatefulSet) { rename(s, "copy") }, restoringFrom(asJSON(snapshotByOrdinal)))))
		Expect(allRows(ctx, d, restored)).To(Equal(written))

		By("going back to what the undo had put away, for one of them")
		undo(ctx, namespace, "data-sample-2", third["data-sample-2"])
		Eventually(ctx, boundTo).WithArguments(namespace).WithTimeout(volumePatience).Should(HaveKeyWithValue("data-sample-2", third["data-sample-2"]))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(3))
		}).Should(Succeed())
		newer := rows(ctx, d, namespace, "sample-2")
		Expect(newer[:len(written[2])]).To(Equal(written[2]))
		Expect(newer).To(ContainElement(later))
	},
		Entry("Redis", redis),
		Entry("PostgreSQL", postgres),
	)
})
