// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

var db = Ref{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}

func TestAdvice(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Advice(inplace.ReasonGracePeriod)).To(Equal("Nothing: it ends by itself"))
	g.Expect(Advice("CrashLoopBackOff")).To(ContainSubstring("`kubectl logs POD --all-containers --previous`"))
	g.Expect(Advice("SomethingNew")).To(Equal("See what the pod says: `kubectl describe pod POD`"))
}

func TestAdviceOn(t *testing.T) {
	g := NewWithT(t)
	g.Expect(AdviceOn("CrashLoopBackOff", db, "db-2", "")).To(HaveSuffix(
		"`kubectl logs db-2 -n shop --all-containers --previous`; `kubectl insitu undo statefulset.apps.kruise.io/db -n shop`"))
	g.Expect(AdviceOn(volumes.ReasonClaimOverdue, db, "db-2", "data-db-2")).To(HaveSuffix("`kubectl describe pvc data-db-2 -n shop`"))
	g.Expect(AdviceOn(volumes.ReasonClaimOverdue, db, "db-2", "")).To(HaveSuffix("`kubectl describe pvc CLAIM`"), "a name that is not known stays a word")
	g.Expect(AdviceOn(inplace.ReasonDisruptionBudget, db, "db-2", "")).To(HaveSuffix("`kubectl get poddisruptionbudgets -n shop`"))
}

// Advice begins with a verb or with Nothing, ends without a full stop, and names no
// command outside of backticks.
func TestAdviceIsInOneForm(t *testing.T) {
	reasons := Reasons()
	for _, known := range KubeletReasons() {
		reasons = append(reasons, known.Reason)
	}
	form := regexp.MustCompile("^[A-Z][a-z]+[ ,;:][^`]*(`kubectl [^`]+`(; (or [^`]+)?)?)*$")
	for _, reason := range reasons {
		advice := Advice(reason)
		NewWithT(t).Expect(advice).To(MatchRegexp(form.String()), reason)
		NewWithT(t).Expect(regexp.MustCompile("`[^`]*`").ReplaceAllString(advice, "")).NotTo(Or(ContainSubstring("kubectl"), HaveSuffix("."), ContainSubstring("\n")), reason)
	}
}

func TestAdviseBlockers(t *testing.T) {
	g := NewWithT(t)
	w := Workload{
		Ref: db, Phase: Stalled,
		Pods: []Pod{{Name: "db-0", Claims: []Claim{{Name: "logs-db-0"}, {Name: "data-db-0", Reason: volumes.ReasonClaimOverdue}}}},
		Blockers: []Blocker{
			{Pod: "db-0", Reason: volumes.ReasonClaimOverdue}, {Pod: "db-1", Reason: "ErrImagePull"}, {Reason: "Paused"},
		},
	}
	advise(&w)
	g.Expect(w.Blockers[0].Advice).To(HaveSuffix("`kubectl describe pvc data-db-0 -n shop`"))
	g.Expect(w.Blockers[1].Advice).To(ContainSubstring("`kubectl insitu undo statefulset.apps.kruise.io/db -n shop`"))
	g.Expect(w.Blockers[2].Advice).To(ContainSubstring("`kubectl insitu resume statefulset.apps.kruise.io/db -n shop`"))

	w.Phase = Unknown
	advise(&w)
	g.Expect(w.Blockers[2].Advice).To(Equal(AdviceOnOperator))
	g.Expect(w.Blockers[1].Advice).To(ContainSubstring("undo"))
}

func TestRefString(t *testing.T) {
	g := NewWithT(t)
	g.Expect(db.String()).To(Equal("statefulset.apps.kruise.io/db"))
	g.Expect(Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}.String()).To(Equal("deployment.apps/web"))
}

// A DaemonSet of ours calls its policy otherwise.
func TestAdviceOnADaemonSetNamesItsFields(t *testing.T) {
	g := NewWithT(t)
	agent := Ref{APIVersion: "apps.kruise.io/v1beta1", Kind: "DaemonSet", Namespace: "shop", Name: "agent"}
	for _, reason := range Reasons() {
		g.Expect(AdviceOn(reason, agent, "agent-x2k4v", "")).NotTo(ContainSubstring("podUpdatePolicy"), reason)
	}
	g.Expect(AdviceOn(inplace.ReasonFieldImmutable, agent, "agent-x2k4v", "")).To(Equal(
		"Allow recreation with rollingUpdateType InPlaceIfPossible, or go back: `kubectl insitu undo daemonset.apps.kruise.io/agent -n shop`"))
	g.Expect(AdviceOn(inplace.ReasonResizeInfeasible, agent, "agent-x2k4v", "")).To(ContainSubstring("recreated by resize.onInfeasible Recreate, or"))
	g.Expect(AdviceOn("PartitionReached", agent, "", "")).To(HavePrefix("Lower the partition, or widen the selector of nodes, when you are ready: `kubectl insitu promote "))
	g.Expect(AdviceOn(inplace.ReasonNodeUnavailable, agent, "agent-x2k4v", "")).To(And(HavePrefix("Nothing, if the node "), HaveSuffix("`kubectl get nodes`")))
}

// Advice on workloads of Kubernetes names their labels and annotations.
func TestAdviceOnNativeKindsNamesNoFieldsThatTheyLack(t *testing.T) {
	g := NewWithT(t)
	lacking := regexp.MustCompile(`podUpdatePolicy|inPlaceUpdateStrategy|resize\.on`)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		web := Ref{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: "web"}
		for _, reason := range Reasons() {
			g.Expect(AdviceOn(reason, web, "web-0", "")).NotTo(MatchRegexp(lacking.String()), reason)
		}
	}
	web := Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	g.Expect(AdviceOn(inplace.ReasonFieldImmutable, web, "web-0", "")).To(HavePrefix("Allow recreation with the label insitu.dev/update-policy=InPlaceIfPossible, or"))
	g.Expect(AdviceOn(inplace.ReasonResizeInfeasible, web, "web-0", "")).To(ContainSubstring(`recreated by "onInfeasible":"Recreate" in the annotation insitu.dev/resize, or`))
	g.Expect(AdviceOn(inplace.ReasonFieldImmutable, db, "db-0", "")).To(HavePrefix("Allow recreation with podUpdatePolicy InPlaceIfPossible, or"))
}
