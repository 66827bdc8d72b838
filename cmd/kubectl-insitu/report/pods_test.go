// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

// withPlan adds a pod and what the plan says of it to facts.
func withPlan(f *report.Facts, facts inplace.PodFacts, state inplace.PodState) {
	state.Pod = facts.Pod
	f.Pods = append(f.Pods, facts.Pod)
	f.Inspection.Workload.Pods = append(f.Inspection.Workload.Pods, facts)
	f.Inspection.Plan.Pods = append(f.Inspection.Plan.Pods, state)
}

func podNamed(name string) *builders.PodBuilder {
	return builders.Pod(name, "r1", "nginx:1").Ready(true, now)
}

func TestAPodIsWhereThePlanHasIt(t *testing.T) {
	g := NewWithT(t)
	f := updating(nil)
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-10").Build()}, inplace.PodState{Updated: true, Ready: true, Available: true, Step: inplace.Step{State: inplace.Settled}})
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-9").Build()}, inplace.PodState{Ready: true, Step: inplace.Step{State: inplace.Grace, Reason: "GracePeriod", Message: "3 s", Since: now}})
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-2").Build(), Held: true}, inplace.PodState{Ready: true, Available: true, Step: inplace.Step{State: inplace.Settled}})
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-1").Build(), Held: true}, inplace.PodState{Updated: true, Step: inplace.Step{State: inplace.Settled}})
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-0").Deleted(now).Build()}, inplace.PodState{Step: inplace.Step{State: inplace.Waiting}})

	pods := report.New(f).Pods
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name+" "+pod.State)
	}
	g.Expect(names).To(Equal([]string{"db-0 Terminating", "db-1 Settled", "db-2 Settled", "db-9 Grace", "db-10 Settled"}))
	g.Expect(pods[4]).To(And(HaveField("Updated", true), HaveField("Available", true), HaveField("Kept", false)))
	g.Expect(pods[3]).To(And(HaveField("Reason", "GracePeriod"), HaveField("Message", "3 s"), HaveField("Updated", false)))
	g.Expect(pods[3].Since.Time).To(BeTemporally("==", now))
	g.Expect(pods[2].Kept).To(BeTrue())
	g.Expect(pods[1].Kept).To(BeFalse(), "it is updated already")
}

func TestAPodThatDoesNotGoAwayIsStuck(t *testing.T) {
	g := NewWithT(t)
	f := updating(nil)
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-0").Deleted(now).Build()}, inplace.PodState{Step: inplace.Step{State: inplace.Stuck, Reason: "TerminationOverdue"}})
	g.Expect(report.New(f).Pods[0].State).To(Equal("Stuck"))
}

func TestABlockerSaysWhereAPodIs(t *testing.T) {
	g := NewWithT(t)
	f := updating([]appsv1beta1.Blocker{
		reportedBlocker("db-0", "Restarting", "ImagePullBackOff", 5*time.Second), reportedBlocker("db-0", "Stuck", "Refused", 9*time.Second),
	})
	withPlan(&f, inplace.PodFacts{Pod: podNamed("db-0").Build()}, inplace.PodState{Step: inplace.Step{State: inplace.Waiting}})
	pod := report.New(f).Pods[0]
	g.Expect(pod).To(And(HaveField("State", "Stuck"), HaveField("Reason", "Refused"), HaveField("Message", "reported")), "the worst of its blockers")
	g.Expect(pod.Since.Time).To(BeTemporally("==", now.Add(-9*time.Second)))
}

func TestAClaimThatIsBlockedDoesNotMakeItsPodStuck(t *testing.T) {
	for name, step := range map[string]volumes.Step{
		"blocked":           {State: volumes.Blocked, Reason: "ExpansionNotAllowed", Message: "no"},
		"refused, and told": {State: volumes.Changing, Reason: "ClaimChanging", Refused: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step.Claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0"}}
			reason := step.Reason
			if step.Refused != "" {
				reason = volumes.ReasonClaimRefused
			}
			blocker := plannedBlocker("db-0", inplace.Stuck, reason)
			blocker.Claim = step.Claim
			f := updating(nil, blocker)
			withPlan(&f, inplace.PodFacts{Pod: podNamed("db-0").Build(), Claims: volumes.Claims{step}},
				inplace.PodState{Updated: true, Ready: true, Available: true, Step: inplace.Step{State: inplace.Settled}})
			pod := report.New(f).Pods[0]
			g.Expect(pod.State).To(Equal("Settled"))
			g.Expect(pod.Reason).To(Equal(reason), "it is told nevertheless")
		})
	}
}

func TestAPodWithoutAPlanIsWhatItsStatusSays(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(daemonSetKind, daemonSet(4, 1, 3))
	f.Revisions = []report.Revision{{Name: "new", IsUpdate: true}, {Name: "old"}}
	f.RevisionOf = func(pod *corev1.Pod) string { return pod.Labels[appsv1beta1.ControllerRevisionHashLabel] }
	f.Pods = []*corev1.Pod{
		builders.Pod("a", "old", "x").Ready(true, now).Build(), builders.Pod("b", "new", "x").Ready(true, now).Build(),
		builders.Pod("c", "new", "x").Ready(false, now).Build(), builders.Pod("d", "old", "x").Ready(true, now).Deleted(now).Build(),
		builders.Pod("e", "unknown", "x").Ready(true, now).Build(),
	}
	told := report.New(f)
	states := map[string]string{}
	for _, pod := range told.Pods {
		states[pod.Name] = pod.State
	}
	g.Expect(states).To(Equal(map[string]string{"a": "Waiting", "b": "Settled", "c": "Starting", "d": "Terminating", "e": "Waiting"}))
	g.Expect(told.Pods[1].Updated).To(BeTrue())
	g.Expect(told.Pods[0].Updated).To(BeFalse())
	g.Expect(told.Revisions).To(HaveLen(2))
	g.Expect(told.Revisions[0]).To(And(HaveField("Name", "new"), HaveField("Pods", BeEquivalentTo(2))))

	f.Object = daemonSet(4, 4, 4)
	g.Expect(report.New(f).Pods[0].State).To(Equal("Settled"), "nothing comes to a pod of a healthy workload")
}

// When a hold has ended, nothing but the pods tells how they were updated.
func TestTheWaysOfUpdatedPodsAreCountedAlsoAfterTheHold(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(deploymentKind, deployment(3, 3, 3))
	f.Revisions = []report.Revision{{Name: "new", IsUpdate: true}, {Name: "old"}}
	f.RevisionOf = func(pod *corev1.Pod) string { return pod.Labels[appsv1beta1.ControllerRevisionHashLabel] }
	inPlace := appsv1beta1.InPlaceUpdateState{Revision: "new"}
	f.Pods = []*corev1.Pod{
		builders.Pod("a", "new", "x").Record(inPlace).Ready(true, now).Build(), builders.Pod("b", "new", "x").Record(inPlace).Ready(true, now).Build(),
		builders.Pod("c", "new", "x").Ready(true, now).Build(), builders.Pod("d", "old", "x").Ready(true, now).Build(),
	}
	told := report.New(f)
	g.Expect([]int32{told.InPlace, told.Recreated}).To(Equal([]int32{2, 1}))
}

func TestRestartsSinceTheUpdateAreCounted(t *testing.T) {
	g := NewWithT(t)
	restarted := func(before string) *corev1.Pod {
		b := podNamed("db-0").With(func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{
				{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "setup"},
			}
			pod.Status.ContainerStatuses[0].RestartCount = 4
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", RestartCount: 2}, {Name: "setup", RestartCount: 9}}
		})
		if before != "" {
			b.Annotation(appsv1beta1.PodRestartCountKey, before)
		}
		return b.Build()
	}
	for before, since := range map[string]int32{"": 6, "5": 1, "6": 0, "9": 0, "many": 6} {
		f := updating(nil)
		withPlan(&f, inplace.PodFacts{Pod: restarted(before)}, inplace.PodState{})
		pod := report.New(f).Pods[0]
		g.Expect(pod.Restarts).To(BeEquivalentTo(6), "init containers that run once do not count")
		g.Expect(pod.RestartsSinceUpdate).To(Equal(since), "annotation %q", before)
	}
}

func TestContainersAreToldWithWhatTheyBecome(t *testing.T) {
	amounts := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	pod := podNamed("db-0").With(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Resources = "main", amounts("1")
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "proxy", Image: "proxy:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "setup", Image: "setup:1"},
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "same", Image: "same:1", Resources: amounts("500m")})
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Resources: ptr.To(amounts("900m"))},
			{Name: "same", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: "proxy", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled"}}},
		}
	}).Build()
	f := updating(nil)
	template := &f.Object.(*appsv1beta1.StatefulSet).Spec.Template.Spec
	template.Containers = []corev1.Container{{Name: "main", Image: "nginx:2", Resources: amounts("2")}, {Name: "same", Image: "same:1", Resources: amounts("0.5")}}
	template.InitContainers = []corev1.Container{{Name: "proxy", Image: "proxy:2"}, {Name: "setup", Image: "setup:2"}}

	tell := func(state inplace.PodState, held bool) []report.Container {
		f := f
		withPlan(&f, inplace.PodFacts{Pod: pod, Held: held}, state)
		return report.New(f).Pods[0].Containers
	}
	g := NewWithT(t)
	told := tell(inplace.PodState{Step: inplace.Step{State: inplace.Waiting}}, false)
	g.Expect(told).To(HaveLen(3), "setup runs once")
	g.Expect(told[0]).To(And(HaveField("Name", "main"), HaveField("State", "Running"), HaveField("Ready", true),
		HaveField("Image", "nginx:1"), HaveField("WantedImage", "nginx:2")))
	g.Expect(told[0].Resources.Requests.Cpu().String()).To(Equal("900m"), "what the kubelet has applied")
	g.Expect(told[0].WantedResources.Requests.Cpu().String()).To(Equal("2"))
	g.Expect(told[1]).To(And(HaveField("State", "ImagePullBackOff"), HaveField("WantedImage", ""), HaveField("WantedResources", BeNil())))
	g.Expect(told[2]).To(And(HaveField("Name", "proxy"), HaveField("Sidecar", true), HaveField("State", "OOMKilled"), HaveField("WantedImage", "proxy:2")))

	for name, told := range map[string][]report.Container{
		"kept":    tell(inplace.PodState{Step: inplace.Step{State: inplace.Settled}}, true),
		"settled": tell(inplace.PodState{Updated: true, Step: inplace.Step{State: inplace.Settled}}, false),
	} {
		for _, c := range told {
			g.Expect(c.WantedImage).To(BeEmpty(), name)
			g.Expect(c.WantedResources).To(BeNil(), name)
		}
	}
}

func TestClaimsAreToldWithWhatTheyLack(t *testing.T) {
	g := NewWithT(t)
	size := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(amount)}
	}
	pod := podNamed("db-0").With(func(pod *corev1.Pod) {
		for volume, claim := range map[string]string{"data": "data-db-0", "shared": "everybodys", "lost": "lost-db-0"} {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "config"})
	}).Build()
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), Resources: corev1.VolumeResourceRequirements{Requests: size("2Gi")}},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size("1Gi")},
		}
	}
	f := updating(nil)
	f.Object.(*appsv1beta1.StatefulSet).Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: size("3Gi")}},
	}}
	f.Claims = map[string]*corev1.PersistentVolumeClaim{"data-db-0": claim("data-db-0"), "everybodys": claim("everybodys")}
	withPlan(&f, inplace.PodFacts{Pod: pod, Claims: volumes.Claims{
		{State: volumes.Blocked, Claim: f.Claims["data-db-0"], Reason: "ExpansionNotAllowed", Message: "no"},
	}}, inplace.PodState{})
	told := map[string]report.Claim{}
	for _, c := range report.New(f).Pods[0].Claims {
		told[c.Name] = c
	}
	g.Expect(told).To(HaveLen(3))
	g.Expect(told["data-db-0"]).To(Equal(report.Claim{
		Name: "data-db-0", Template: "data", Capacity: "1Gi", Requested: "2Gi", Wanted: "3Gi", Class: "fast", Phase: "Bound",
		Reason: "ExpansionNotAllowed", Message: "no",
	}))
	g.Expect(told["everybodys"]).To(And(HaveField("Template", ""), HaveField("Wanted", ""), HaveField("Reason", "")))
	g.Expect(told["lost-db-0"].Phase).To(Equal("Missing"))
}

func TestPodsAreOrderedTheSameWhateverTheirNames(t *testing.T) {
	g := NewWithT(t)
	names := []string{"x-9", "x-10", "x-1a", "x-2b", "x-02", "w-1", "plain"}
	var first []string
	for range names {
		names = append(names[1:], names[0])
		f := factsOf(deploymentKind, deployment(7, 7, 7))
		for _, name := range names {
			f.Pods = append(f.Pods, podNamed(name).Build())
		}
		var told []string
		for _, pod := range report.New(f).Pods {
			told = append(told, pod.Name)
		}
		if first == nil {
			first = told
		}
		g.Expect(told).To(Equal(first))
	}
	g.Expect(first).To(Equal([]string{"plain", "w-1", "x-02", "x-9", "x-10", "x-1a", "x-2b"}))
}
