// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// ask has a ContainerRecreateRequest ask a pod for restarts.
func ask(t *testing.T, pod *corev1.Pod, request appsv1beta1.PodRecreateRequest) {
	t.Helper()
	request.Name = "again"
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = withValues(pod.Annotations, map[string]string{appsv1beta1.RecreateRequestAnnotation: string(raw)})
}

// given notes in the record of a pod what was restarted for a request.
func given(pod *corev1.Pod, state appsv1beta1.InPlaceUpdateState, uid types.UID, containers ...string) {
	state.Revision, state.RecreateRequest = RevisionOf(pod), &appsv1beta1.InPlaceUpdateRecreateRequest{UID: uid, Containers: containers}
	raw, _ := json.Marshal(state)
	pod.Annotations = withValues(pod.Annotations, map[string]string{appsv1beta1.InPlaceUpdateStateKey: string(raw)})
}

// atRest is what a pod is asked in that has come to its revision.
func atRest(t *testing.T) (PodFacts, Target) {
	t.Helper()
	pod := restartablePod()
	revision := Revision{Name: RevisionOf(pod), Template: restartable(t, "")}
	return PodFacts{Pod: pod, From: &revision}, Target{Revision: revision, Policy: inPlaceOnly, CannotDrain: unheeded}
}

// stepOf returns the step of the only pod of a workload.
func stepOf(facts PodFacts, target Target) Step {
	plan := MakePlan(Workload{Target: target, Replicas: 1, MaxUnavailable: 1, Pods: []PodFacts{facts}}, after(0))
	return plan.Pods[0].Step
}

func TestRequestedRestarts(t *testing.T) {
	for name, test := range map[string]struct {
		request appsv1beta1.PodRecreateRequest
		pod     func(*corev1.Pod)
		// restarts are the containers that are restarted now, later those after them.
		restarts, later []string
		waits           string
	}{
		"of one":                     {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}}, restarts: []string{"side"}},
		"of a sidecar":               {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"proxy"}}, restarts: []string{"proxy"}},
		"of all at once":             {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main", "proxy"}}, restarts: []string{"main", "side", "proxy"}},
		"of what is not there":       {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"other", "setup"}}},
		"of what is not there, too":  {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"other", "side"}}, restarts: []string{"side"}},
		"one after the other":        {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true}, restarts: []string{"side"}},
		"given already":              {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}}, pod: func(pod *corev1.Pod) { given(pod, appsv1beta1.InPlaceUpdateState{}, "1", "side") }},
		"given for another one":      {request: appsv1beta1.PodRecreateRequest{UID: "2", Containers: []string{"side"}}, pod: func(pod *corev1.Pod) { given(pod, appsv1beta1.InPlaceUpdateState{}, "1", "side") }, restarts: []string{"side"}},
		"in the order of the launch": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"main", "side"}}, pod: launchOrdered, restarts: []string{"main"}, later: []string{"side"}},
		"the annotation is no JSON":  {pod: func(pod *corev1.Pod) { pod.Annotations[appsv1beta1.RecreateRequestAnnotation] = "side" }},
		"the next, one before is up": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true}, pod: func(pod *corev1.Pod) { given(pod, appsv1beta1.InPlaceUpdateState{}, "1", "side") }, restarts: []string{"main"}},
		"the pod is being deleted":   {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}}, pod: func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(after(0))) }, waits: "the pod is being deleted"},
		"no other spelling is known": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}}, pod: spelledOneWay, waits: "container side: it can be restarted by spelling its image otherwise only, and of registry:5000/nginx:1 no other spelling is known"},
		"the next, one before is not": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true}, pod: func(pod *corev1.Pod) {
			given(pod, appsv1beta1.InPlaceUpdateState{}, "1", "side")
			pod.Status.ContainerStatuses[1].Ready = false
		}, waits: "ContainerRecreateRequest again restarts one container after the other, and side is not ready"},
		"the next, one before is still to stop": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true}, pod: func(pod *corev1.Pod) {
			given(pod, appsv1beta1.InPlaceUpdateState{LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
				"side": {ContainerID: pod.Status.ContainerStatuses[1].ContainerID, Image: "docker.io/library/nginx:alpine", EnvChanged: true},
			}}, "1", "side")
			pod.Generation, pod.Status.ObservedGeneration = 2, 1
		}, waits: "container side: the kubelet has not reported that it saw the change"},
		"the next, one before is not for long enough": {request: appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true, MinStartedSeconds: 100_000_000}, pod: func(pod *corev1.Pod) {
			given(pod, appsv1beta1.InPlaceUpdateState{}, "1", "side")
		}, waits: "ContainerRecreateRequest again restarts one container after the other, and side is not ready for 100000000 seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			facts, target := atRest(t)
			ask(t, facts.Pod, test.request)
			if test.pod != nil {
				test.pod(facts.Pod)
			}

			step := stepOf(facts, target)

			if test.restarts == nil {
				g.Expect(step.Action).To(Equal(Wait))
				g.Expect(step.Message).To(ContainSubstring(test.waits))
				return
			}
			g.Expect(step).To(And(HaveField("Action", Patch), HaveField("OnRequest", true), HaveField("LeadsToPatch", true)))
			g.Expect(containersOf(step.Change.Images)).To(ConsistOf(test.restarts))
			g.Expect(containersOf(step.Change.Later)).To(ConsistOf(test.later))
			g.Expect(step.Record.Revision).To(Equal(RevisionOf(facts.Pod)))
			g.Expect(step.Record.RecreateRequest).To(And(HaveField("UID", test.request.UID), HaveField("Containers", ContainElements(test.restarts))))
			for _, image := range step.Change.Images {
				g.Expect(image.String()).To(And(HavePrefix("restart of "), HaveSuffix(", as ContainerRecreateRequest again asks")))
				g.Expect(image.To).NotTo(Equal(image.From))
				g.Expect(image.StandsFor).To(Equal(image.From))
			}
		})
	}
}

func launchOrdered(pod *corev1.Pod) {
	pod.Annotations[appsv1beta1.ContainerLaunchPriorityKey] = appsv1beta1.ContainerLaunchOrdered
}

func spelledOneWay(pod *corev1.Pod) {
	pod.Spec.Containers[1].Image, pod.Spec.Containers[1].ImagePullPolicy = "registry:5000/nginx:1", corev1.PullAlways
}

// A second request spells the image as it was before the first one.
func TestRequestsGoToAndFro(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})
	first := stepOf(facts, target)
	patch, err := RevisionPatch(facts.Pod, first)
	g.Expect(err).NotTo(HaveOccurred())
	facts.Pod = mergePod(t, facts.Pod, patch)
	facts.Pod.Generation, facts.Pod.Status.ObservedGeneration = 2, 2
	facts.Pod.Status.ContainerStatuses[1] = builders.RunningContainer("side", "side-2", alpineImage, after(0))

	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "2", Containers: []string{"side"}})
	plan := MakePlan(Workload{Target: target, Replicas: 1, MaxUnavailable: 1, Pods: []PodFacts{facts}}, after(120))

	g.Expect(plan.Pods[0].Step.Action).To(Equal(Patch))
	g.Expect(plan.Pods[0].Step.Change.Images).To(ConsistOf(And(
		HaveField("Container", "side"), HaveField("From", first.Change.Images[0].To), HaveField("To", alpineImage), HaveField("StandsFor", ""))))
	g.Expect(plan.Pods[0].Step.Record.EquivalentImages).To(BeEmpty())
}

// What the workload says of updates holds for requests, and a request may say more.
func TestRequestsAreDrainedAsUpdates(t *testing.T) {
	drainable := func(t *testing.T, request appsv1beta1.PodRecreateRequest) (PodFacts, Target) {
		t.Helper()
		facts, target := atRest(t)
		target.CannotDrain = nil
		request.UID, request.Containers = "1", []string{"side"}
		ask(t, facts.Pod, request)
		return facts, target
	}
	t.Run("the pod is taken out of service", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(stepOf(drainable(t, appsv1beta1.PodRecreateRequest{}))).To(And(HaveField("Action", MarkNotReady), HaveField("OnRequest", true),
			HaveField("Message", ContainSubstring("as ContainerRecreateRequest again asks"))))
	})
	t.Run("it stays, where the workload says so", func(t *testing.T) {
		facts, target := drainable(t, appsv1beta1.PodRecreateRequest{})
		target.KeepReady = []string{"side"}
		NewWithT(t).Expect(stepOf(facts, target)).To(HaveField("Action", Patch))
	})
	t.Run("it does not, if the request says another thing", func(t *testing.T) {
		facts, target := drainable(t, appsv1beta1.PodRecreateRequest{UnreadyGracePeriodSeconds: ptr.To[int64](0)})
		target.KeepReady = []string{"side"}
		NewWithT(t).Expect(stepOf(facts, target)).To(HaveField("Action", MarkNotReady))
	})
	t.Run("it waits, where it cannot be", func(t *testing.T) {
		facts, target := drainable(t, appsv1beta1.PodRecreateRequest{UnreadyGracePeriodSeconds: ptr.To[int64](0)})
		target.CannotDrain = unheeded
		NewWithT(t).Expect(stepOf(facts, target)).To(And(HaveField("Action", Wait), HaveField("State", Waiting), HaveField("Reason", unheeded.Reason)))
	})
	for name, seconds := range map[string]struct{ workload, request, want time.Duration }{
		"the workload's grace period is longer": {workload: 30 * time.Second, request: 10 * time.Second, want: 30 * time.Second},
		"the request's grace period is longer":  {workload: 10 * time.Second, request: 30 * time.Second, want: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			facts, target := drainable(t, appsv1beta1.PodRecreateRequest{UnreadyGracePeriodSeconds: ptr.To(int64(seconds.request.Seconds()))})
			target.GracePeriod = seconds.workload
			facts.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
			for _, kind := range []corev1.PodConditionType{appsv1beta1.InPlaceUpdateReady, corev1.PodReady} {
				facts.Pod.Status.Conditions = append([]corev1.PodCondition{{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(after(0))}}, facts.Pod.Status.Conditions...)
			}
			NewWithT(t).Expect(stepOf(facts, target)).To(And(HaveField("State", Grace), HaveField("Until", after(0).Add(seconds.want))))
		})
	}
}

// A pod that is asked waits for its turn, as for an update, also where its workload stands still.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})
	other, _ := atRest(t)
	other.Pod.Name, other.Pod.UID = "sample-1", "other"
	other.Pod.Status.Conditions[0].Status = corev1.ConditionFalse
	w := Workload{Target: target, Replicas: 2, MaxUnavailable: 1, Pods: []PodFacts{facts, other}, Stopped: true}

	g.Expect(MakePlan(w, after(0)).Moves).To(BeEmpty())
	g.Expect(MakePlan(w, after(0)).Blockers).To(ContainElement(And(HaveField("Pod.Name", facts.Pod.Name), HaveField("Reason", ReasonBudget),
		HaveField("Message", HaveSuffix("; it is restarted for ContainerRecreateRequest again")))))
	w.MaxUnavailable = 2
	g.Expect(MakePlan(w, after(0)).Moves).To(ConsistOf(HaveField("Pod.Name", facts.Pod.Name)))
}

// A request is given together with an update, and holds up none.
func TestRequestsGoWithUpdates(t *testing.T) {
	update := parse(t, `{"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:latest"},{"name":"side","image":"nginx:alpine"}]}}`)
	for name, test := range map[string]struct {
		asked    []string
		pod      func(*corev1.Pod)
		restarts []string
		given    []string
	}{
		"of another container":         {asked: []string{"side"}, restarts: []string{"main", "side"}, given: []string{"side"}},
		"of the one that changes":      {asked: []string{"main"}, restarts: []string{"main"}, given: []string{"main"}},
		"of one that cannot restarted": {asked: []string{"side"}, pod: spelledOneWay, restarts: []string{"main"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			facts, target := atRest(t)
			target.Revision = Revision{Name: "b", Template: update}
			ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: test.asked})
			if test.pod != nil {
				test.pod(facts.Pod)
			}

			step := stepOf(facts, target)

			g.Expect(step.Action).To(Equal(Patch))
			g.Expect(containersOf(step.Change.Images)).To(ConsistOf(test.restarts))
			if test.given == nil {
				g.Expect(step.Record.RecreateRequest).To(BeNil())
				return
			}
			g.Expect(step.Record.RecreateRequest.Containers).To(Equal(test.given))
		})
	}
}

// The next update does not forget what was given.
func TestRequestsAreRemembered(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})
	given(facts.Pod, appsv1beta1.InPlaceUpdateState{}, "1", "side")
	target.Revision = Revision{Name: "b", Template: parse(t, `{"metadata":{"labels":{"tier":"web"}},"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:alpine"},{"name":"side","image":"nginx:alpine"}]}}`)}

	step := stepOf(facts, target)

	g.Expect(step.Action).To(Equal(Patch))
	g.Expect(step.Change.Images).To(BeEmpty())
	g.Expect(step.Record.RecreateRequest).To(Equal(&appsv1beta1.InPlaceUpdateRecreateRequest{UID: "1", Containers: []string{"side"}}))
}

// A pod that no revision was made for gets no label of one.
func TestRequestOfAPodWithoutRevision(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	delete(facts.Pod.Labels, appsv1beta1.ControllerRevisionHashLabel)
	target.Name, facts.From = "", nil
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})

	patch, err := RevisionPatch(facts.Pod, stepOf(facts, target))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mergePod(t, facts.Pod, patch).Labels).To(Equal(facts.Pod.Labels))
}

// What an update has begun comes first: containers that are changed later, and sizes that are due.
func TestRequestsComeAfterWhatWasBegun(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	given(facts.Pod, appsv1beta1.InPlaceUpdateState{
		NextContainerImages: map[string]string{"side": "nginx:latest"},
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
			"main": {ContainerID: facts.Pod.Status.ContainerStatuses[0].ContainerID, Image: "nginx:before"},
		},
	}, "0")
	facts.Pod.Generation, facts.Pod.Status.ObservedGeneration = 2, 1
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})

	g.Expect(stepOf(facts, target)).To(And(HaveField("Action", Wait), HaveField("State", Restarting)), "main is being changed")
	facts.Pod.Status.ObservedGeneration = 2
	facts.Pod.Status.ContainerStatuses[0] = builders.RunningContainer("main", "main-2", alpineImage, after(0))
	facts.Pod.Status.ContainerStatuses[0].ImageID = "other"
	step := stepOf(facts, target)
	g.Expect(step).To(And(HaveField("Action", Patch), HaveField("OnRequest", false)), "side is changed")
	g.Expect(step.Record.RecreateRequest).To(Equal(&appsv1beta1.InPlaceUpdateRecreateRequest{UID: "1", Containers: []string{"side"}}), "and restarted by that")
}

func TestRequestsKeepWhatIsDue(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	due := map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}}
	given(facts.Pod, appsv1beta1.InPlaceUpdateState{NextContainerResources: due}, "0")
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})

	step := stepOf(facts, target)

	g.Expect(step).To(And(HaveField("Action", Patch), HaveField("OnRequest", true)))
	g.Expect(step.Record.NextContainerResources).To(HaveKey("main"))
}

// Another client has given a container another image since it was restarted on request.
func TestRequestsDoNotBringBackAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"nginx:1.28":                          "nginx:1.28",
		"nginx:alpine":                        "nginx:alpine",
		"docker.io/library/nginx:alpine":      "nginx:alpine",
		"nginx:alpine@sha256:" + digestOfIt(): "nginx:alpine",
		"registry.example/nginx:alpine":       "registry.example/nginx:alpine",
	} {
		t.Run(image, func(t *testing.T) {
			g := NewWithT(t)
			facts, _ := atRest(t)
			given(facts.Pod, appsv1beta1.InPlaceUpdateState{
				UpdateTimestamp: metav1.NewTime(after(-3600)), EquivalentImages: map[string]string{"side": "nginx:alpine"},
				LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
					"side": {Image: "nginx:alpine", ImageID: builders.ImageID(alpineImage), ContainerID: "containerd://before", EnvChanged: true, SameContent: true},
				},
			}, "0")
			facts.Pod.Spec.Containers[1].Image = image
			facts.Pod.Status.ContainerStatuses[1].ImageID = builders.ImageID(image)

			change, refused := RestartOf(facts.Pod, "side", after(0))

			g.Expect(refused).To(BeNil())
			g.Expect(spells(change.To, want)).To(BeTrue(), change.To)
			g.Expect(change.To).NotTo(Equal(image))
			if _, digest, isDigested := strings.Cut(change.To, "@"); isDigested {
				g.Expect(facts.Pod.Status.ContainerStatuses[1].ImageID).To(HaveSuffix(digest), "the content that it runs")
			}
		})
	}
}

// What a later batch is to be given is not lost when a revision overtakes that leaves the container as
// it is, though the container runs another image.
func TestAPendingImageIsNotTakenForAnother(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	given(facts.Pod, appsv1beta1.InPlaceUpdateState{
		NextContainerImages: map[string]string{"side": "nginx:2@sha256:" + digestOfIt()}, EquivalentImages: map[string]string{"side": "nginx:2"},
	}, "0")
	of := func(annotations string) *Template {
		return parse(t, `{"metadata":{"annotations":{`+annotations+`}},"spec":{`+
			`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
			`"containers":[{"name":"main","image":"nginx:alpine"},{"name":"side","image":"nginx:2"}]}}`)
	}
	facts.From = &Revision{Name: RevisionOf(facts.Pod), Template: of("")}
	target.Revision = Revision{Name: "b", Template: of(`"a":"b"`)}

	step := stepOf(facts, target)

	g.Expect(step.Change.Images).To(ConsistOf(And(HaveField("Container", "side"), HaveField("To", HavePrefix("nginx:2")))))
}

// An update does not wait for a request that cannot be given, and does not give it.
func TestRequestsThatWaitHoldUpNoUpdate(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	target.MustDrain, target.KeepReady, target.Policy = true, []string{"main", "side"}, inPlaceIfPossible
	target.Revision = Revision{Name: "b", Template: parse(t, `{"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:latest"},{"name":"side","image":"nginx:alpine"}]}}`)}
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, UnreadyGracePeriodSeconds: ptr.To[int64](5)})

	step := stepOf(facts, target)

	g.Expect(step.Action).To(Equal(Patch))
	g.Expect(containersOf(step.Change.Images)).To(Equal([]string{"main"}))
	g.Expect(step.Record.RecreateRequest).To(BeNil())
}

func digestOfIt() string {
	_, digest, _ := strings.Cut(builders.ImageID(alpineImage), "@sha256:")
	return digest
}

// The restart of the next container makes that of the one before no less certain.
func TestRequestsKeepWhatIsCertain(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side", "main"}, Ordered: true})
	for i, container := range []string{"side", "main"} {
		now := after(5 * i)
		plan := MakePlan(Workload{Target: target, Replicas: 1, MaxUnavailable: 1, Pods: []PodFacts{facts}}, now)
		g.Expect(plan.Moves).To(HaveLen(1), container)
		g.Expect(containersOf(plan.Moves[0].Step.Change.Images)).To(Equal([]string{container}))
		patch, err := RevisionPatch(facts.Pod, plan.Moves[0].Step)
		g.Expect(err).NotTo(HaveOccurred())
		facts.Pod = mergePod(t, facts.Pod, patch)
		facts.Pod.Generation++
		facts.Pod.Status.ObservedGeneration = facts.Pod.Generation
		for j := range facts.Pod.Status.ContainerStatuses {
			if status := &facts.Pod.Status.ContainerStatuses[j]; status.Name == container {
				imageID := status.ImageID
				*status = builders.RunningContainer(container, container+"-2", alpineImage, now.Add(2*time.Second))
				status.ImageID = imageID
			}
		}
	}

	g.Expect(HasRestarted(facts.Pod, "side", after(8))).To(BeTrue())
	g.Expect(Observe(facts.Pod, after(8))).To(And(HaveField("Complete", true), HaveField("Proved", true)))
}

// What a request says of service holds also where it goes with an update.
func TestRequestsDrainForUpdates(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	target.CannotDrain, target.KeepReady = nil, []string{"main", "side"}
	target.Revision = Revision{Name: "b", Template: parse(t, `{"spec":{`+
		`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
		`"containers":[{"name":"main","image":"nginx:latest"},{"name":"side","image":"nginx:alpine"}]}}`)}
	g.Expect(stepOf(facts, target)).To(HaveField("Action", Patch))

	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}, UnreadyGracePeriodSeconds: ptr.To[int64](5)})
	g.Expect(stepOf(facts, target)).To(HaveField("Action", MarkNotReady))
}

// An update that goes back to what a container may run all along restarts nothing, and gives nothing.
func TestRequestsAreNotGivenByWhatRestartsNothing(t *testing.T) {
	g := NewWithT(t)
	facts, target := atRest(t)
	spelledOneWay(facts.Pod)
	facts.Pod.Spec.Containers[1].Image = "registry:5000/nginx:2"
	facts.Pod.Generation, facts.Pod.Status.ObservedGeneration = 2, 1
	before := func(image string) *Template {
		return parse(t, `{"spec":{`+
			`"initContainers":[{"name":"setup","image":"setup:1"},{"name":"proxy","image":"nginx:alpine","restartPolicy":"Always"}],`+
			`"containers":[{"name":"main","image":"nginx:alpine"},{"name":"side","image":"`+image+`"}]}}`)
	}
	given(facts.Pod, appsv1beta1.InPlaceUpdateState{UpdateTimestamp: metav1.NewTime(after(0)), LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{
		"side": {ContainerID: facts.Pod.Status.ContainerStatuses[1].ContainerID, Image: "registry:5000/nginx:1"},
	}}, "0")
	facts.From = &Revision{Name: RevisionOf(facts.Pod), Template: before("registry:5000/nginx:2")}
	target.Revision = Revision{Name: "b", Template: before("registry:5000/nginx:1")}
	ask(t, facts.Pod, appsv1beta1.PodRecreateRequest{UID: "1", Containers: []string{"side"}})

	step := stepOf(facts, target)

	g.Expect(step.Action).To(Equal(Patch))
	g.Expect(containersOf(step.Change.Images)).To(Equal([]string{"side"}))
	g.Expect(step.Record.RecreateRequest.UID).To(BeEquivalentTo("0"), "it is still to be given")
}
