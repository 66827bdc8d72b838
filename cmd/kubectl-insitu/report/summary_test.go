// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

var (
	now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

	statefulSetKind = appsv1beta1.GroupVersion.WithKind("StatefulSet")
	cloneSetKind    = appsv1beta1.GroupVersion.WithKind("CloneSet")
	deploymentKind  = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// factsOf returns facts of an object that has no pods.
func factsOf(kind schema.GroupVersionKind, object client.Object) report.Facts {
	return report.Facts{Kind: kind, Object: object, Now: now, RevisionOf: func(*corev1.Pod) string { return "" }}
}

// statefulSet returns a set whose operator has said these conditions.
func statefulSet(lag int64, conditions ...metav1.Condition) *appsv1beta1.StatefulSet {
	set := builders.StatefulSet("default", "db", "nginx:1").Replicas(3).Build()
	set.Generation, set.Status.ObservedGeneration = 5, 5-lag
	set.Status.Conditions = conditions
	return set
}

func cloneSet(lag int64, conditions ...metav1.Condition) *appsv1beta1.CloneSet {
	set := builders.CloneSet("default", "db", "nginx:1").Replicas(3).Build()
	set.Generation, set.Status.ObservedGeneration = 5, 5-lag
	for _, c := range conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1beta1.CloneSetCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return set
}

func condition(kind string, isTrue bool, reason string) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because " + reason, LastTransitionTime: metav1.NewTime(now)}
}

func TestThePhaseOfAWorkloadOfOursIsWhatItsConditionsSay(t *testing.T) {
	ready := func(isTrue bool, reason string) metav1.Condition {
		return condition(appsv1beta1.ConditionReady, isTrue, reason)
	}
	stalled := func(isTrue bool, reason string) metav1.Condition {
		return condition(appsv1beta1.ConditionStalled, isTrue, reason)
	}
	for _, c := range []struct {
		name       string
		lag        int64
		conditions []metav1.Condition
		phase      report.Phase
		reason     string
	}{
		{"nothing said", 0, nil, report.Unknown, "NotObserved"},
		{"available", 0, []metav1.Condition{ready(true, "Available"), stalled(false, "NotStalled")}, report.Healthy, "Available"},
		{"available, of the spec before", 1, []metav1.Condition{ready(true, "Available"), stalled(false, "NotStalled")}, report.Unknown, "NotObserved"},
		{"updating", 0, []metav1.Condition{ready(false, "Updating"), stalled(false, "NotStalled")}, report.Progressing, "Updating"},
		{"scaling", 0, []metav1.Condition{ready(false, "Scaling")}, report.Progressing, "Scaling"},
		{"claims on their way", 0, []metav1.Condition{ready(false, "UpdatingClaims")}, report.Progressing, "UpdatingClaims"},
		{"claims blocked", 0, []metav1.Condition{ready(false, "ClaimsBlocked"), stalled(false, "NotStalled")}, report.Stalled, "ClaimsBlocked"},
		{"paused", 0, []metav1.Condition{ready(false, "Paused"), stalled(false, "NotStalled")}, report.Paused, "Paused"},
		{"partition reached", 0, []metav1.Condition{ready(true, "PartitionReached"), stalled(false, "NotStalled")}, report.Paused, "PartitionReached"},
		{"partition reached, pods not available", 0, []metav1.Condition{ready(false, "PartitionReached")}, report.Progressing, "PartitionReached"},
		{"left to deletions", 0, []metav1.Condition{ready(true, "OnDelete")}, report.Paused, "OnDelete"},
		{"left to deletions, pods not available", 0, []metav1.Condition{ready(false, "OnDelete")}, report.Progressing, "OnDelete"},
		{"stuck", 0, []metav1.Condition{ready(false, "Updating"), stalled(true, "ResizeInfeasible")}, report.Stalled, "ResizeInfeasible"},
		{"stuck while paused", 0, []metav1.Condition{ready(false, "Paused"), stalled(true, "Refused")}, report.Stalled, "Refused"},
		{"was stuck, of the spec before", 1, []metav1.Condition{ready(false, "Updating"), stalled(true, "ResizeInfeasible")}, report.Unknown, "NotObserved"},
		{"invalid", 0, []metav1.Condition{ready(false, "InvalidSpec"), stalled(true, "InvalidSpec")}, report.Stalled, "InvalidSpec"},
		{"was invalid, of the spec before", 1, []metav1.Condition{ready(false, "InvalidSpec"), stalled(true, "InvalidSpec")}, report.Unknown, "NotObserved"},
	} {
		for _, facts := range []report.Facts{
			factsOf(statefulSetKind, statefulSet(c.lag, c.conditions...)), factsOf(cloneSetKind, cloneSet(c.lag, c.conditions...)),
		} {
			t.Run(facts.Kind.Kind+"/"+c.name, func(t *testing.T) {
				g := NewWithT(t)
				told := report.New(facts)
				g.Expect(told.Phase).To(Equal(c.phase))
				g.Expect(told.Reason).To(Equal(c.reason))
				g.Expect(told.Message).NotTo(BeEmpty())
				g.Expect(told.Driver).To(Equal(report.Insitu))
				g.Expect(told.Replicas).To(BeEquivalentTo(3))
				if c.phase == report.Paused || c.phase == report.Stalled || c.phase == report.Unknown {
					g.Expect(told.Blockers).NotTo(BeEmpty(), "nothing says what it waits for")
					g.Expect(told.Blockers[0].NeedsHelp).To(Equal(c.phase == report.Stalled))
					g.Expect(told.Blockers[0].Advice).NotTo(BeEmpty())
				} else {
					g.Expect(told.Blockers).To(BeEmpty())
				}
			})
		}
	}
}

func TestASetThatMadeNoProgressForTooLongIsStalled(t *testing.T) {
	g := NewWithT(t)
	told := report.New(factsOf(cloneSetKind, cloneSet(0,
		condition(appsv1beta1.ConditionReady, false, "Updating"), condition(appsv1beta1.ConditionStalled, true, "ProgressDeadlineExceeded"))))
	g.Expect(told.Phase).To(Equal(report.Stalled))
	g.Expect(told.Blockers).To(HaveLen(1))
	g.Expect(told.Blockers[0].Reason).To(Equal("ProgressDeadlineExceeded"))
}

// held returns a Deployment that is held, with what the operator has said of it.
func held(status *native.Status) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{
			native.UpdatePolicyLabel: "InPlaceOnly", native.HeldLabel: native.Held,
		}, Annotations: map[string]string{}},
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Paused: true},
		Status: appsv1.DeploymentStatus{UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3},
	}
	if status != nil {
		raw, err := json.Marshal(status)
		if err != nil {
			panic(err) // a struct of strings, numbers and times always marshals
		}
		d.Annotations[native.StatusAnnotation] = string(raw)
	}
	return d
}

func TestThePhaseOfAHeldWorkloadIsWhatTheOperatorSays(t *testing.T) {
	for state, phase := range map[native.State]report.Phase{
		native.Updating: report.Progressing, native.Paused: report.Paused, native.PartitionReached: report.Paused,
		native.Stalled: report.Stalled, native.ProgressDeadlineExceeded: report.Stalled, native.InvalidOptions: report.Stalled,
		"": report.Unknown, "OfALaterRelease": report.Unknown,
	} {
		t.Run(string(state), func(t *testing.T) {
			g := NewWithT(t)
			told := report.New(factsOf(deploymentKind, held(&native.Status{State: state, Message: "so it is", Updated: 1, Available: 2})))
			g.Expect(told.Phase).To(Equal(phase))
			g.Expect(told.Held).To(BeTrue())
			g.Expect(told.Driver).To(Equal(report.Insitu))
			g.Expect(told.Policy).To(Equal("InPlaceOnly"))
			if state != "" {
				g.Expect(told.Message).To(Equal("so it is"))
				g.Expect(told.Updated).To(BeEquivalentTo(1), "the controller of Kubernetes does not know what is updated in place")
				g.Expect(told.Available).To(BeEquivalentTo(2))
			}
			if phase != report.Progressing {
				g.Expect(told.Blockers).NotTo(BeEmpty(), "nothing says what it waits for")
			}
		})
	}
}

func TestAHeldWorkloadIsUnknownBeforeTheOperatorHasSaidAnythingOfIt(t *testing.T) {
	g := NewWithT(t)
	g.Expect(report.New(factsOf(deploymentKind, held(nil))).Phase).To(Equal(report.Unknown))

	unreadable := held(nil)
	unreadable.Annotations[native.StatusAnnotation] = "{"
	g.Expect(report.New(factsOf(deploymentKind, unreadable)).Phase).To(Equal(report.Unknown))
}

func TestWhatWasSaidOfAnotherRevisionSaysNothingOfThePresentOne(t *testing.T) {
	g := NewWithT(t)
	facts := factsOf(deploymentKind, held(&native.Status{State: native.Stalled, Message: "bad image", Revision: "old", Updated: 1,
		Blockers: []appsv1beta1.Blocker{{Pod: "web-1", Step: "Stuck", Reason: "ResizeInfeasible"}}}))
	facts.Inspection = workload.Inspection{Planned: true, Update: "new"}
	told := report.New(facts)
	g.Expect(told.Phase).To(Equal(report.Unknown))
	g.Expect(told.Updated).To(BeZero())
	for _, b := range told.Blockers {
		g.Expect(b.Pod).To(BeEmpty(), "a blocker of the revision before")
	}

	facts.Inspection.Update = "old"
	g.Expect(report.New(facts).Phase).To(Equal(report.Stalled))
}

func TestOptionsOfAHeldWorkloadAreTold(t *testing.T) {
	g := NewWithT(t)
	d := held(&native.Status{State: native.Paused})
	d.Annotations[native.PausedAnnotation] = "true"
	d.Annotations[native.PartitionAnnotation] = "20%"
	told := report.New(factsOf(deploymentKind, d))
	g.Expect(told.Paused).To(BeTrue())
	g.Expect(told.Partition).To(Equal("20%"))

	d = held(&native.Status{State: native.Updating})
	g.Expect(report.New(factsOf(deploymentKind, d)).Paused).To(BeFalse(), "the hold is no pause of its owner")

	set := nativeSet(3, 3, 3)
	set.Labels[native.HeldLabel] = native.Held
	set.Annotations = map[string]string{native.HeldPartitionAnnotation: "2"}
	g.Expect(report.New(factsOf(nativeSetKind, set)).Partition).To(Equal("2"))
	set.Annotations[native.HeldPartitionAnnotation] = "0"
	g.Expect(report.New(factsOf(nativeSetKind, set)).Partition).To(BeEmpty())
}

var (
	nativeSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSetKind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
)

// deployment returns one that Kubernetes has observed.
func deployment(replicas, updated, available int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 2, Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: available, AvailableReplicas: available,
		},
	}
}

func nativeSet(replicas, updated, ready int32) *appsv1.StatefulSet {
	update := "db-2"
	if updated == replicas {
		update = "db-1"
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", Generation: 2, Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(replicas), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready,
			CurrentRevision: "db-1", UpdateRevision: update,
		},
	}
}

func daemonSet(wanted, updated, available int32) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", Generation: 2},
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: wanted, UpdatedNumberScheduled: updated, NumberReady: available, NumberAvailable: available,
		},
	}
}

func TestThePhaseOfAWorkloadThatIsNotHeldIsWhatKubernetesSays(t *testing.T) {
	lagging := func(object client.Object) client.Object {
		object.SetGeneration(3)
		return object
	}
	overdue := deployment(3, 1, 3)
	overdue.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
	}}
	paused, pausedAndDone := deployment(3, 1, 3), deployment(3, 3, 3)
	paused.Spec.Paused, pausedAndDone.Spec.Paused = true, true
	partitioned := nativeSet(3, 1, 3)
	partitioned.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	onDelete, onDeleteAndDone := nativeSet(3, 1, 3), nativeSet(3, 3, 3)
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	onDeleteAndDone.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	agents, agentsDone := daemonSet(3, 1, 3), daemonSet(3, 3, 3)
	agents.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	agentsDone.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	lost := nativeSet(3, 3, 2)
	lost.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType

	for _, c := range []struct {
		name   string
		kind   schema.GroupVersionKind
		object client.Object
		phase  report.Phase
	}{
		{"at rest", deploymentKind, deployment(3, 3, 3), report.Healthy},
		{"no pods wanted", deploymentKind, deployment(0, 0, 0), report.Healthy},
		{"updating", deploymentKind, deployment(3, 1, 3), report.Progressing},
		{"not available yet", deploymentKind, deployment(3, 3, 2), report.Progressing},
		{"not observed", deploymentKind, lagging(deployment(3, 3, 3)), report.Progressing},
		{"without progress", deploymentKind, overdue, report.Stalled},
		{"paused", deploymentKind, paused, report.Paused},
		{"paused, and nothing to do", deploymentKind, pausedAndDone, report.Healthy},
		{"at rest", nativeSetKind, nativeSet(3, 3, 3), report.Healthy},
		{"updating", nativeSetKind, nativeSet(3, 1, 3), report.Progressing},
		{"not ready yet", nativeSetKind, nativeSet(3, 3, 2), report.Progressing},
		{"not observed", nativeSetKind, lagging(nativeSet(3, 3, 3)), report.Progressing},
		{"partition reached", nativeSetKind, partitioned, report.Paused},
		{"left to deletions", nativeSetKind, onDelete, report.Paused},
		{"left to deletions, and nothing to do", nativeSetKind, onDeleteAndDone, report.Healthy},
		{"left to deletions, not ready yet", nativeSetKind, lost, report.Progressing},
		{"at rest", daemonSetKind, daemonSet(3, 3, 3), report.Healthy},
		{"no nodes", daemonSetKind, daemonSet(0, 0, 0), report.Healthy},
		{"updating", daemonSetKind, daemonSet(3, 1, 3), report.Progressing},
		{"not available yet", daemonSetKind, daemonSet(3, 3, 2), report.Progressing},
		{"left to deletions", daemonSetKind, agents, report.Paused},
		{"left to deletions, and nothing to do", daemonSetKind, agentsDone, report.Healthy},
	} {
		t.Run(c.kind.Kind+"/"+c.name, func(t *testing.T) {
			g := NewWithT(t)
			told := report.New(factsOf(c.kind, c.object))
			g.Expect(told.Phase).To(Equal(c.phase), told.Message)
			g.Expect(told.Message).NotTo(BeEmpty())
			g.Expect(told.Held).To(BeFalse())
			if c.phase == report.Paused || c.phase == report.Stalled {
				g.Expect(told.Reason).NotTo(BeEmpty())
				g.Expect(told.Blockers).To(HaveLen(1))
				g.Expect(told.Blockers[0].Reason).To(Equal(told.Reason))
			}
		})
	}
}

func TestWhoDrivesAWorkloadIsTold(t *testing.T) {
	g := NewWithT(t)
	g.Expect(report.New(factsOf(deploymentKind, deployment(3, 3, 3))).Driver).To(Equal(report.Insitu))
	g.Expect(report.New(factsOf(daemonSetKind, daemonSet(3, 3, 3))).Driver).To(Equal(report.Kubernetes))
}

func TestAnObjectThatIsNoWorkloadIsUnknown(t *testing.T) {
	g := NewWithT(t)
	told := report.New(factsOf(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{}))
	g.Expect(told.Phase).To(Equal(report.Unknown))
}
