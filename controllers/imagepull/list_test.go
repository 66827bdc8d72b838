// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func (w *world) addList(spec string) {
	w.add("metadata: {name: pulls}\nspec: "+spec, &appsv1beta1.ImageListPullJob{})
}

func (w *world) list() *appsv1beta1.ImageListPullJob {
	list := &appsv1beta1.ImageListPullJob{}
	w.Expect(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "pulls"}, list)).To(Succeed())
	return list
}

// byImage returns the jobs that there are, by image.
func (w *world) byImage() map[string]*appsv1beta1.ImagePullJob {
	list := &appsv1beta1.ImagePullJobList{}
	w.Expect(w.client.List(context.Background(), list)).To(Succeed())
	jobs := map[string]*appsv1beta1.ImagePullJob{}
	for i := range list.Items {
		jobs[list.Items[i].Spec.Image] = &list.Items[i]
	}
	w.Expect(jobs).To(HaveLen(len(list.Items)), "one job for each image")
	return jobs
}

// edit changes the spec of the list, as a user does.
func (w *world) editList(change func(*appsv1beta1.ImageListPullJobSpec)) {
	list := w.list()
	change(&list.Spec)
	list.Generation++
	w.Expect(w.client.Update(context.Background(), list)).To(Succeed())
}

func TestListPullsEachImage(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addList(`{images: [web:2, db:5], parallelism: 2, completionPolicy: {ttlSecondsAfterFinished: 20}, pullPolicy: {timeoutSeconds: 45}}`)
	w.run(1)
	w.Expect(w.list().Status).To(And(HaveField("Desired", int32(2)), HaveField("Completed", int32(0)), HaveField("StartTime", Not(BeNil()))))
	w.run(3)

	status := w.list().Status
	w.Expect([]int32{status.Desired, status.Active, status.Completed, status.Succeeded}).To(Equal([]int32{2, 0, 2, 2}))
	w.Expect(status.CompletionTime).NotTo(BeNil())
	w.Expect(w.byImage()).To(And(HaveLen(2), HaveKey("web:2"), HaveKey("db:5")))
	for _, job := range w.byImage() {
		w.Expect(metav1.IsControlledBy(job, w.list())).To(BeTrue())
		w.Expect(job.Labels).To(HaveKey("controller-revision-hash"))
		w.Expect(job.Spec.PullPolicy.TimeoutSeconds).To(HaveValue(Equal(int32(45))))
		w.Expect(job.Spec.CompletionPolicy.TTLSecondsAfterFinished).To(BeNil(), "it goes with the list")
	}

	w.run(25)
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pulls"}, &appsv1beta1.ImageListPullJob{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func TestListTellsWhichImagesFail(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.lacks["b"] = true
	w.addList(`{images: [web:2, db:5], parallelism: 2, pullPolicy: {backoffLimit: 1}}`)
	w.run(5)

	status := w.list().Status
	w.Expect([]int32{status.Completed, status.Succeeded}).To(Equal([]int32{2, 0}))
	w.Expect(status.CompletionTime).NotTo(BeNil())
	w.Expect(status.FailedImageStatuses).To(ConsistOf(
		appsv1beta1.FailedImageStatus{ImagePullJob: w.byImage()["web:2"].Name, Name: "web:2", Message: "1 of 2 nodes cannot pull it, b: ErrImagePull: not found"},
		appsv1beta1.FailedImageStatus{ImagePullJob: w.byImage()["db:5"].Name, Name: "db:5", Message: "1 of 2 nodes cannot pull it, b: ErrImagePull: not found"},
	))
}

func TestEditedList(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addList(`{images: [web:2, db:5], completionPolicy: {type: Never}}`)
	w.run(5)
	before := w.byImage()

	w.editList(func(spec *appsv1beta1.ImageListPullJobSpec) { spec.Images = []string{"web:2", "cache:1"} })
	w.run(5)
	w.Expect(slices.Sorted(maps.Keys(w.byImage()))).To(Equal([]string{"cache:1", "web:2"}))
	w.Expect(w.byImage()["web:2"].Name).To(Equal(before["web:2"].Name), "nothing has changed for it")
	w.Expect(w.list().Status).To(And(HaveField("Desired", int32(2)), HaveField("Succeeded", int32(2)), HaveField("CompletionTime", BeNil())))

	w.editList(func(spec *appsv1beta1.ImageListPullJobSpec) { spec.PullPolicy.TimeoutSeconds = ptr.To[int32](30) })
	w.run(5)
	w.Expect(w.byImage()["web:2"].Name).NotTo(Equal(before["web:2"].Name), "another template makes other jobs")
	w.Expect(w.byImage()).To(HaveLen(2))
}

// What no job can be made for is in the status, and does not keep the list beyond its deadline.
func TestListWhoseJobsAreRefused(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.refusesJobs = quota
	w.addList(`{images: [web:2, db:5], completionPolicy: {activeDeadlineSeconds: 600}}`)
	w.run(3)
	w.Expect(w.list().Status.FailedImageStatuses).To(HaveEach(HaveField("Message", ContainSubstring("the API server does not take its job: "))))
	w.Expect(w.list().Status.Completed).To(BeZero())
	w.clock.Step(600 * time.Second)
	w.run(3)
	status := w.list().Status
	w.Expect([]int32{status.Desired, status.Completed, status.Succeeded}).To(Equal([]int32{2, 2, 0}))
	w.Expect(status.CompletionTime).NotTo(BeNil())
}

// A list does not count images that no node was asked to pull.
func TestListWhoseNodesAreUnknown(t *testing.T) {
	for _, policy := range []string{`{type: Never}`, `{activeDeadlineSeconds: 600}`} {
		w := newWorld(t, nodes("a")...)
		w.jobs.namespaceScope = true
		w.addList(`{images: [web:2], completionPolicy: ` + policy + `}`)
		w.run(5)
		w.Expect(w.list().Status.FailedImageStatuses).To(HaveExactElements(HaveField("Message", ContainSubstring("no right to read nodes"))))
		w.clock.Step(600 * time.Second)
		w.run(3)
		w.Expect(w.list().Status.Succeeded).To(BeZero(), policy)
	}
}

// A job of the list that others change is made again, also if it becomes that of another image.
func TestJobsOfAListThatOthersChange(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.addList(`{images: [web:2, db:5], completionPolicy: {type: Never}}`)
	w.run(4)
	names := map[string]string{"web:2": w.byImage()["web:2"].Name, "db:5": w.byImage()["db:5"].Name}
	w.edit(names["web:2"], func(spec *appsv1beta1.ImagePullJobSpec) { spec.Image = "db:5" })
	w.run(5)
	for image, name := range names {
		w.Expect(w.byImage()[image].Name).To(Equal(name))
	}
	w.Expect(w.list().Status.Succeeded).To(Equal(int32(2)))
}

// The jobs of a list that OpenKruise has begun have other names, and go on.
func TestListOfOpenKruise(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addList(`{images: [web:2, db:5], completionPolicy: {type: Always, ttlSecondsAfterFinished: 600}}`)
	theirs := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "pulls-x7k2p", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.list(), appsv1beta1.ImageListPullJobKind)},
	}}
	theirs.Spec = appsv1beta1.ImagePullJobSpec{Image: "web:2", ImagePullJobTemplate: w.list().Spec.ImagePullJobTemplate}
	w.Expect(w.client.Create(t.Context(), theirs)).To(Succeed())
	w.run(5)
	w.Expect(w.byImage()["web:2"].Name).To(Equal("pulls-x7k2p"))
	w.Expect(w.list().Status).To(And(HaveField("Succeeded", int32(2)), HaveField("CompletionTime", Not(BeNil()))))
}

// Jobs of the same namespace that belong to others are theirs, and one that is deleted by hand is
// made again.
func TestListLeavesOtherJobsAlone(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.addJob("own", `{image: "tools:1"}`)
	w.addList(`{images: [web:2], completionPolicy: {type: Never}}`)
	w.run(3)
	w.Expect(w.client.Delete(t.Context(), w.byImage()["web:2"])).To(Succeed())
	w.run(3)
	w.Expect(slices.Sorted(maps.Keys(w.byImage()))).To(Equal([]string{"tools:1", "web:2"}))
}

func TestManagerKilledWhileItServesAList(t *testing.T) {
	for _, isDone := range []bool{false, true} {
		for after := range everyFew(20) {
			t.Run(fmt.Sprintf("after %d done %t", after, isDone), func(t *testing.T) {
				w := newWorld(t, nodes("a", "b")...)
				w.left, w.isDone = after, isDone
				w.addList(`{images: [web:2, db:5], parallelism: 2}`)
				w.run(15)

				w.Expect(w.byImage()).To(HaveLen(2))
				w.Expect(w.list().Status).To(And(HaveField("Succeeded", int32(2)), HaveField("CompletionTime", Not(BeNil()))))
				w.Expect(w.pods()).To(BeEmpty())
			})
		}
	}
}
