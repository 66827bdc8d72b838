// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

const (
	recreateDeferred = appsv1beta1.RecreateResizeDeferred
	waitDeferred     = appsv1beta1.WaitResizeDeferred
	recreate         = appsv1beta1.RecreateResizeFailure
	keep             = appsv1beta1.KeepResizeFailure
)

func TestPolicyJudgesEachState(t *testing.T) {
	for name, test := range map[string]struct {
		policy Policy
		state  State
		want   Verdict
	}{
		"done":                               {Policy{OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: recreate}, Done, Wait},
		"not observed":                       {Policy{OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: recreate}, NotObserved, Wait},
		"in progress":                        {Policy{OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: recreate}, InProgress, Wait},
		"a state of a later release":         {Policy{OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: recreate}, "Later", Wait},
		"deferred, by default":               {Policy{}, Deferred, Wait},
		"deferred, Wait":                     {Policy{OnDeferred: waitDeferred, OnInfeasible: recreate, OnError: recreate}, Deferred, Wait},
		"deferred, Recreate":                 {Policy{OnDeferred: recreateDeferred}, Deferred, Recreate},
		"deferred, Recreate, with a time":    {Policy{OnDeferred: recreateDeferred, DeferredTimeout: time.Hour}, Deferred, Recreate},
		"infeasible, by default":             {Policy{}, Infeasible, Keep},
		"infeasible, Keep":                   {Policy{OnDeferred: recreateDeferred, OnInfeasible: keep, OnError: recreate}, Infeasible, Keep},
		"infeasible, Recreate":               {Policy{OnInfeasible: recreate}, Infeasible, Recreate},
		"error, by default":                  {Policy{}, Failed, Keep},
		"error, Keep":                        {Policy{OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: keep}, Failed, Keep},
		"error, Recreate":                    {Policy{OnError: recreate}, Failed, Recreate},
		"a setting of a later release keeps": {Policy{OnInfeasible: "Later"}, Infeasible, Keep},
		"a time is for deferred only":        {Policy{DeferredTimeout: time.Second, OnInfeasible: recreate}, InProgress, Wait},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			progress := Progress{State: test.state, Message: "what the kubelet says", Since: moment}
			verdict, judged := test.policy.Judge(progress, moment.Add(time.Minute))
			g.Expect(verdict).To(Equal(test.want))
			g.Expect(judged).To(Equal(progress))
		})
	}
}

func TestDeferredTimeoutEndsAtItsMoment(t *testing.T) {
	end := moment.Add(time.Minute)
	for name, test := range map[string]struct {
		policy  Policy
		since   time.Time
		now     time.Time
		want    Verdict
		state   State
		recheck time.Time
		message string
	}{
		"at the start": {
			policy: Policy{DeferredTimeout: time.Minute, OnInfeasible: recreate}, since: moment, now: moment,
			want: Wait, state: Deferred, recheck: end, message: "no room",
		},
		"a moment before the end": {
			policy: Policy{DeferredTimeout: time.Minute, OnInfeasible: recreate}, since: moment, now: end.Add(-1),
			want: Wait, state: Deferred, recheck: end, message: "no room",
		},
		"at the end": {
			policy: Policy{DeferredTimeout: time.Minute, OnInfeasible: recreate}, since: moment, now: end,
			want: Recreate, state: Infeasible, message: "no room for longer than 1m0s: no room",
		},
		"long after it": {
			policy: Policy{DeferredTimeout: time.Minute, OnInfeasible: recreate}, since: moment, now: end.Add(time.Hour),
			want: Recreate, state: Infeasible, message: "no room for longer than 1m0s: no room",
		},
		"at the end, where infeasible pods are kept": {
			policy: Policy{DeferredTimeout: time.Minute, OnError: recreate}, since: moment, now: end,
			want: Keep, state: Infeasible, message: "no room for longer than 1m0s: no room",
		},
		"no time is for ever": {
			policy: Policy{OnInfeasible: recreate}, since: moment, now: end.Add(1000 * time.Hour),
			want: Wait, state: Deferred, message: "no room",
		},
		"a kubelet that does not say since when": {
			policy: Policy{DeferredTimeout: time.Minute, OnInfeasible: recreate}, now: end,
			want: Wait, state: Deferred, message: "no room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			verdict, judged := test.policy.Judge(Progress{State: Deferred, Message: "no room", Since: test.since}, test.now)
			g.Expect(verdict).To(Equal(test.want))
			g.Expect(judged).To(Equal(Progress{State: test.state, Message: test.message, Since: test.since, Recheck: test.recheck}))
		})
	}
}

// The kubelet tries again after an error, and is given 15 seconds for that: a pod that was
// recreated for what passes by itself is a pod lost for nothing.
func TestErrorsAreGivenTime(t *testing.T) {
	g := NewWithT(t)
	failed := Progress{State: Failed, Message: inUse, Since: moment}
	for policy, want := range map[Policy]Verdict{{}: Keep, {OnError: recreate}: Recreate} {
		for _, after := range []time.Duration{0, 15*time.Second - 1} {
			verdict, judged := policy.Judge(failed, moment.Add(after))
			g.Expect(verdict).To(Equal(Wait), "%v after %s", policy, after)
			g.Expect(judged.Recheck).To(Equal(moment.Add(15*time.Second)), "it is looked at again then")
		}
		verdict, judged := policy.Judge(failed, moment.Add(15*time.Second))
		g.Expect(verdict).To(Equal(want), "%v", policy)
		g.Expect(judged).To(Equal(failed))
	}
}

func TestPolicyOnRefusal(t *testing.T) {
	g := NewWithT(t)
	for _, infeasible := range []bool{true, false} {
		g.Expect(Policy{OnDeferred: recreateDeferred}.OnRefusal(infeasible)).To(Equal(Keep))
	}
	g.Expect(Policy{OnInfeasible: recreate}.OnRefusal(true)).To(Equal(Recreate))
	g.Expect(Policy{OnInfeasible: recreate}.OnRefusal(false)).To(Equal(Keep))
	g.Expect(Policy{OnError: recreate}.OnRefusal(true)).To(Equal(Keep))
	g.Expect(Policy{OnError: recreate}.OnRefusal(false)).To(Equal(Recreate))
}

func TestKeepingNeverRecreates(t *testing.T) {
	g := NewWithT(t)
	policy := Policy{
		OnDeferred: recreateDeferred, OnInfeasible: recreate, OnError: recreate,
		DeferredTimeout: time.Minute, Enforce: true,
	}.Keeping()
	g.Expect(policy.Enforce).To(BeTrue())
	for _, state := range []State{Done, NotObserved, InProgress, Deferred, Infeasible, Failed} {
		for _, after := range []time.Duration{0, time.Minute, time.Hour} {
			verdict, _ := policy.Judge(Progress{State: state, Since: moment}, moment.Add(after))
			g.Expect(verdict).NotTo(Equal(Recreate), "%s after %s", state, after)
		}
	}
	g.Expect(policy.OnRefusal(true)).To(Equal(Keep))
	g.Expect(policy.OnRefusal(false)).To(Equal(Keep))
}
