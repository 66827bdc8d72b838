// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// releases holds a folder for each release, with a file for each set that it
// left at rest. How they are made: testdata/releases/README.md.
const releases = "testdata/releases"

// rewordings is how often the status of a set may be written after an upgrade
// from a release. A pod, a revision and a claim are never written.
//
// It is at most 1: where a release says more in the status, or in other words,
// the sets that are there have to say so too, once. That costs one write of each
// set and disturbs no pod. It stays 0 where nothing was changed: raise it in the
// commit that changes what the status says.
var rewordings = map[string]int{
	// It said "1 pods are available".
	"v0.1": 1,
	// OpenKruise writes neither Ready nor Progressing nor Stalled.
	"openkruise-1.9": 1,
}

// unfinished holds the writes that a release left undone, so that its own next
// start would have made them: they are made once.
var unfinished = map[string][]string{
	// v0.1 took the revision that the last pod had just left for one in use, and
	// kept one more than revisionHistoryLimit until something else happened.
	"v0.1/history-limit": {"delete ControllerRevision sample-7798977997"},
}

var _ = Describe("An upgrade", short.Spec, func() {
	files, err := filepath.Glob(filepath.Join(releases, "*", "*.yaml"))

	It("is tested from every release", func() {
		Expect(err).NotTo(HaveOccurred())
		tested := map[string]int{}
		for _, file := range files {
			tested[filepath.Base(filepath.Dir(file))]++
		}
		for release, allowed := range rewordings {
			Expect(tested).To(HaveKey(release))
			Expect(allowed).To(BeNumerically("<=", 1), release)
		}
		Expect(tested).To(HaveLen(len(rewordings)))
	})

	for _, file := range files {
		release := filepath.Base(filepath.Dir(file))
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		It("from "+release+" leaves alone what is at rest: "+name, func(ctx context.Context) {
			w := newWorld(ctx)
			left := w.restore(file)
			attempts := w.reconcileForDays()
			due := unfinished[release+"/"+name]
			Expect(attempts.other).To(HaveExactElements(due))
			Expect(attempts.status).To(BeNumerically("<=", rewordings[release]), "writes of the set's status")
			w.expectUnchanged(left, due, attempts.status > 0)
			w.expectAtWork()
		})
	}
})

// restore puts the objects of a file into the namespace, and sets the clock to
// when they had come to rest.
func (w *world) restore(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	left, newest := stage.Restore(w.ctx, server, w.live, w.namespace, file)
	w.clock.SetTime(newest.Add(time.Minute))
	for _, obj := range left {
		if obj.GroupVersionKind() == appsv1beta1.GroupVersion.WithKind("StatefulSet") {
			Expect(w.set).To(BeNil(), "one set in each file")
			w.set = &appsv1beta1.StatefulSet{}
			Expect(w.live.Get(w.ctx, client.ObjectKeyFromObject(obj), w.set)).To(Succeed())
		}
	}
	Expect(w.set).NotTo(BeNil(), "a set in each file")
	return left
}

// attempts are the writes that managers tried, whether they succeeded or not.
type attempts struct {
	// status counts the patches of the set's status, other holds the rest, and
	// the events.
	status int
	other  []string
}

// reconcileForDays reconciles the set for some minutes after the upgrade, and
// again with another manager after a day.
func (w *world) reconcileForDays() attempts {
	GinkgoHelper()
	a := attempts{}
	for range 2 {
		w.startManager(newView())
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "patch StatefulSet/status ") {
				a.status++
			} else {
				a.other = append(a.other, write)
			}
			return nil
		}
		for range 5 {
			w.reconcile()
			w.clock.Step(time.Minute)
		}
		for _, event := range w.recorder.All {
			a.other = append(a.other, "event "+event.Reason+": "+event.Note)
		}
		w.clock.Step(24 * time.Hour)
	}
	return a
}

// expectUnchanged checks that every object is what it was, except for those that
// were due to be deleted, and for words in the status of the set if that was
// written.
func (w *world) expectUnchanged(left []*unstructured.Unstructured, due []string, reworded bool) {
	GinkgoHelper()
	for _, before := range left {
		if slices.Contains(due, "delete "+before.GetKind()+" "+before.GetName()) {
			continue
		}
		after := stage.Read(w.ctx, w.live, before)
		if reworded && before.GetKind() == "StatefulSet" {
			expectSameCounts(before, after)
			withoutStatus(before)
			withoutStatus(after)
		}
		Expect(after).To(Equal(before))
	}
}

// expectSameCounts checks that a status says of the pods what it said before: the
// counts and the revisions, whatever was added to them.
func expectSameCounts(before, after *unstructured.Unstructured) {
	GinkgoHelper()
	counted, _, err := unstructured.NestedMap(before.Object, "status")
	Expect(err).NotTo(HaveOccurred())
	for field, value := range counted {
		if field != "conditions" && field != "blockers" {
			Expect(after.Object["status"]).To(HaveKeyWithValue(field, value))
		}
	}
}

// withoutStatus removes what a write of the status changes.
func withoutStatus(obj *unstructured.Unstructured) {
	obj.SetResourceVersion("")
	obj.SetManagedFields(nil)
	unstructured.RemoveNestedField(obj.Object, "status")
}

// expectAtWork checks that what was restored is a set that the manager serves:
// one that it did not see would stay as it is, too.
func (w *world) expectAtWork() {
	GinkgoHelper()
	w.manager.Forget()
	w.scale(ptr.Deref(w.refresh().Spec.Replicas, 1) + 1)
	w.reconcile()
	Expect(w.manager.Writes("create Pod ")).To(HaveLen(1))
	for _, pod := range w.pods() {
		Expect(pod.OwnerReferences).To(ContainElement(HaveField("UID", w.set.UID)))
	}
}
