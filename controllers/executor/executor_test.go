// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// request is one write as the API server would get it.
type request struct {
	// verb is "patch", "patch status" or "delete".
	verb, pod string
	patchType types.PatchType
	body      map[string]any
	// uid and version are the preconditions of a deletion.
	uid     types.UID
	version string
}

// rig is an executor that writes to no API server.
type rig struct {
	*WithT
	executor *Executor
	workload *appsv1beta1.StatefulSet

	mutex    sync.Mutex
	requests []request
	events   []string
	// errs are what writes to a pod return.
	errs map[string]error
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{WithT: NewWithT(t), errs: map[string]error{}, workload: builders.StatefulSet("default", "sample", "nginx:alpine").Build()}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			return r.patch("patch", obj, patch)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, subresource string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			return r.patch("patch "+subresource, obj, patch)
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			return r.note(request{verb: "delete", pod: obj.GetName(), uid: *options.Preconditions.UID, version: *options.Preconditions.ResourceVersion})
		},
	}).Build()
	r.executor = New(c, r, clocktesting.NewFakePassiveClock(builders.Start.Add(time.Hour)))
	return r
}

func (r *rig) patch(verb string, obj client.Object, patch client.Patch) error {
	raw, err := patch.Data(obj)
	if err != nil {
		return err
	}
	body := map[string]any{}
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	obj.SetResourceVersion("answer") // what the API server answers ends up here
	return r.note(request{verb: verb, pod: obj.GetName(), patchType: patch.Type(), body: body})
}

func (r *rig) note(write request) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = append(r.requests, write)
	return r.errs[write.pod]
}

// Eventf implements events.EventRecorder.
func (r *rig) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, fmt.Sprintf("%T %s %s ", regarding, eventType, reason)+fmt.Sprintf(note, args...))
}

func (r *rig) run(moves ...inplace.Move) Result {
	return r.executor.Run(context.Background(), r.workload, "sample-2", moves)
}

func podNumber(ordinal int) *corev1.Pod {
	return builders.Pod(fmt.Sprintf("sample-%d", ordinal), "sample-1", "nginx:alpine").Gated(corev1.ConditionTrue, builders.Start).Build()
}

func move(ordinal int, step inplace.Step) inplace.Move {
	return inplace.Move{Pod: podNumber(ordinal), Step: step}
}

func imageStep() inplace.Step {
	return inplace.Step{
		Action: inplace.Patch,
		Change: inplace.Change{Images: []inplace.ImageChange{{Container: "main", From: "nginx:alpine", To: "nginx:latest"}}},
		Record: &appsv1beta1.InPlaceUpdateState{Revision: "sample-2"},
	}
}

func TestEachStepIsOneRequest(t *testing.T) {
	for name, test := range map[string]struct {
		step inplace.Step
		want request
	}{
		"wait": {step: inplace.Step{}},
		"mark not ready": {
			inplace.Step{Action: inplace.MarkNotReady},
			request{verb: "patch status", patchType: types.StrategicMergePatchType},
		},
		"mark ready": {
			inplace.Step{Action: inplace.MarkReady},
			request{verb: "patch status", patchType: types.StrategicMergePatchType},
		},
		"change": {imageStep(), request{verb: "patch", patchType: types.StrategicMergePatchType}},
		"recreate": {
			inplace.Step{Action: inplace.Recreate},
			request{verb: "delete", uid: "uid-sample-0", version: "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m := move(0, test.step)
			before := m.Pod.DeepCopy()
			result := r.run(m)
			r.Expect(result.Errors()).To(BeEmpty())
			r.Expect(m.Pod).To(Equal(before), "an object of the cache is not changed")
			if test.want.verb == "" {
				r.Expect(r.requests).To(BeEmpty())
				return
			}
			r.Expect(r.requests).To(HaveLen(1))
			got := r.requests[0]
			if got.verb != "delete" {
				metadata, ok := got.body["metadata"].(map[string]any)
				r.Expect(ok).To(BeTrue())
				r.Expect(metadata).To(HaveKeyWithValue("uid", "uid-sample-0"), "the pod is meant, not its name")
			}
			got.body, test.want.pod = nil, "sample-0"
			r.Expect(got).To(Equal(test.want))
		})
	}
}

func TestAChangeThatRestartsHasTheVersionAsPrecondition(t *testing.T) {
	r := newRig(t)
	r.run(move(0, imageStep()))
	r.Expect(r.requests[0].body["metadata"]).To(HaveKeyWithValue("resourceVersion", "1"))
}

func TestAnUnknownActionIsAnError(t *testing.T) {
	r := newRig(t)
	result := r.run(move(0, inplace.Step{Action: "Dance"}))
	r.Expect(errors.Join(result.Errors()...)).To(MatchError(And(ContainSubstring("default/sample-0"), ContainSubstring(`"Dance"`))))
}

func TestFailuresDoNotStopOthers(t *testing.T) {
	r := newRig(t)
	pods := corev1.Resource("pods")
	r.errs["sample-1"] = apierrors.NewForbidden(pods, "sample-1", errors.New("denied"))
	r.errs["sample-2"] = apierrors.NewConflict(pods, "sample-2", errors.New("modified"))
	r.errs["sample-3"] = apierrors.NewNotFound(pods, "sample-3")
	var moves []inplace.Move
	for ordinal := range 40 {
		moves = append(moves, move(ordinal, imageStep()))
	}
	result := r.run(moves...)
	r.Expect(r.requests).To(HaveLen(40))
	r.Expect(result.Conflicts).To(Equal(2), "what changed or went away is planned again")
	r.Expect(result.Failed).To(And(HaveLen(1), HaveKey("sample-1")))
	r.Expect(apierrors.IsForbidden(errors.Join(result.Errors()...))).To(BeTrue(), "the kind of the error is kept")
	r.Expect(errors.Join(result.Errors()...)).To(MatchError(ContainSubstring("default/sample-1")))

	warnings := slices.DeleteFunc(slices.Clone(r.events), func(e string) bool { return !strings.Contains(e, "Warning") })
	r.Expect(warnings).To(ConsistOf(
		And(HavePrefix("*v1beta1.StatefulSet"), ContainSubstring("FailedUpdatePodInPlace pod sample-1"), ContainSubstring("denied")),
		And(HavePrefix("*v1.Pod"), ContainSubstring("denied")),
	))
	r.Expect(r.events).To(HaveLen(37+1+2), "one for each that worked and one for all, none for those that changed meanwhile")
	r.Expect(r.events).To(ContainElement(And(
		HavePrefix("*v1beta1.StatefulSet Normal UpdatingPodInPlace pods sample-0, sample-4, sample-5 and 34 more: update to revision sample-2"))))
}

// A plan is old when thousands of writes have been made after it, and a
// reconciliation must end in time to report.
func TestThereIsALimitToTheMovesOfOneRun(t *testing.T) {
	r := newRig(t)
	moves := make([]inplace.Move, maxMoves+2)
	for ordinal := range moves {
		moves[ordinal] = move(ordinal, imageStep())
	}
	result := r.run(moves...)
	r.Expect(r.requests).To(HaveLen(maxMoves))
	r.Expect(result.Postponed).To(Equal(2))
	r.Expect(result.IsUnfinished()).To(BeTrue())
	r.Expect(r.run(moves[:2]...).IsUnfinished()).To(BeFalse())
}

// What belongs to pods is given to them for as many as are deleted now, at once.
func TestPodsAreHandedOverBeforeTheyAreDeleted(t *testing.T) {
	r := newRig(t)
	moves := []inplace.Move{move(0, imageStep())}
	for ordinal := range maxMoves {
		moves = append(moves, move(ordinal+1, inplace.Step{Action: inplace.Recreate}))
	}
	var given []int
	stay, failure := sets.New("sample-7", "sample-0"), error(nil)
	handOver := func(_ context.Context, going []*corev1.Pod) (sets.Set[string], error) {
		r.Expect(r.requests).To(BeEmpty(), "nothing is deleted before")
		given = append(given, len(going))
		return stay, failure
	}
	result, err := r.executor.RunHandedOver(t.Context(), r.workload, "sample-2", moves, handOver)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(given).To(Equal([]int{maxMoves - 1}))
	r.Expect(result.Postponed).To(Equal(1))
	r.Expect(r.requests).To(HaveLen(maxMoves - 1))
	written := sets.New[string]()
	for _, write := range r.requests {
		written.Insert(write.pod)
	}
	r.Expect(written.Has("sample-0")).To(BeTrue(), "it is changed, and not deleted")
	r.Expect(written.Has("sample-7")).To(BeFalse())

	r.requests, failure = nil, errors.New("the set is another one")
	_, err = r.executor.RunHandedOver(t.Context(), r.workload, "sample-2", moves, handOver)
	r.Expect(err).To(MatchError(failure))
	r.Expect(r.requests).To(BeEmpty())
}

// The text ends up in a condition: another order would be another status.
func TestErrorsComeInTheSameOrder(t *testing.T) {
	r := newRig(t)
	result := Result{Failed: map[string]error{}}
	for ordinal := range 9 {
		result.Failed[fmt.Sprintf("sample-%d", ordinal)] = fmt.Errorf("error %d", ordinal)
	}
	for range 50 {
		r.Expect(errors.Join(result.Errors()...)).To(MatchError("error 0\nerror 1\nerror 2\nerror 3\nerror 4\nerror 5\nerror 6\nerror 7\nerror 8"))
	}
	r.Expect(errors.Join(Result{}.Errors()...)).NotTo(HaveOccurred())
}

func TestNewPodsGoIntoServiceWithoutAnEvent(t *testing.T) {
	r := newRig(t)
	r.run(move(0, inplace.Step{Action: inplace.MarkReady}), move(1, inplace.Step{Action: inplace.MarkNotReady}))
	r.Expect(r.events).To(BeEmpty())
	// A pod that was drained and not updated goes back: nothing to be proud of.
	back := move(0, inplace.Step{Action: inplace.MarkReady, Since: builders.Start})
	back.Pod.Labels[appsv1beta1.ControllerRevisionHashLabel] = "sample-1"
	r.run(back)
	r.Expect(r.events).To(BeEmpty())
	updated := move(0, inplace.Step{Action: inplace.MarkReady, Since: builders.Start})
	updated.Pod.Labels[appsv1beta1.ControllerRevisionHashLabel] = "sample-2"
	r.run(updated)
	r.Expect(r.events).To(HaveLen(2))
}

func TestAnEventOfARecreationSaysWhoAsksForIt(t *testing.T) {
	for name, test := range map[string]struct {
		step inplace.Step
		note string
	}{
		"the revision": {inplace.Step{Reason: inplace.ReasonFieldImmutable, Message: "env was added"}, "recreate for revision sample-2: env was added"},
		"a label":      {inplace.Step{Reason: inplace.ReasonSpecifiedDelete, Message: "the label asks for it"}, "recreate: the label asks for it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			test.step.Action = inplace.Recreate
			r.run(move(0, test.step))
			r.Expect(r.events).To(Equal([]string{
				"*v1.Pod Normal Recreating " + test.note, "*v1beta1.StatefulSet Normal Recreating pod sample-0: " + test.note,
			}))
		})
	}
}

// The API refuses notes of more than 1 KiB.
func TestLongNotesAreCut(t *testing.T) {
	for _, first := range []string{"", "d", "de"} {
		r := newRig(t)
		r.errs["sample-0"] = errors.New(first + strings.Repeat("拒绝", 1000))
		r.run(move(0, imageStep()))
		r.Expect(r.events).To(HaveLen(2))
		for _, event := range r.events {
			r.Expect(len(event)).To(BeNumerically("<", 1024))
			r.Expect(utf8.ValidString(event)).To(BeTrue(), "no character is cut in two")
			r.Expect(event).To(HaveSuffix("..."))
		}
	}
}
