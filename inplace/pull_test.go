// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestPullFor(t *testing.T) {
	changes := func(images ...ImageChange) Step { return Step{LeadsToPatch: true, Change: Change{Images: images}} }
	image := ImageChange{Container: "main", To: "nginx:b"}
	for name, test := range map[string]struct {
		change func(*PodState)
		want   string
	}{
		"a pod that serves": {func(*PodState) {}, "node-1 Always/nginx:b"},
		"one that is drained": {func(s *PodState) {
			s.Pod = marked(inService("p")).Build()
			s.Pod.Spec.NodeName = "node-1"
			s.Ready = false
		}, "node-1 /nginx:b"},
		"one that is drained and broken": {func(s *PodState) {
			s.Pod = crashing(marked(inService("p"))).Build()
			s.Pod.Spec.NodeName = "node-1"
			s.Ready = false
		}, ""},
		"one that is broken":                    {func(s *PodState) { s.Pod = crashing(inService("p")).Build(); s.Pod.Spec.NodeName = "node-1" }, ""},
		"one that is not ready for a moment":    {func(s *PodState) { s.Ready = false }, "node-1 Always/nginx:b"},
		"one without a node":                    {func(s *PodState) { s.Pod.Spec.NodeName = "" }, ""},
		"one that is to be recreated":           {func(s *PodState) { s.Step.LeadsToPatch = false }, ""},
		"a change of labels":                    {func(s *PodState) { s.Step = changes() }, ""},
		"a restart of the same image":           {func(s *PodState) { s.Step = changes(ImageChange{Container: "main", To: "nginx:a", Restart: true}) }, ""},
		"a sidecar":                             {func(s *PodState) { s.Step = changes(ImageChange{Container: "log", Sidecar: true, To: "log:b"}) }, "node-1 IfNotPresent/log:b"},
		"two containers with the same":          {func(s *PodState) { s.Step = changes(image, image) }, "node-1 Always/nginx:b"},
		"several, in whichever order":           {func(s *PodState) { s.Step = changes(image, ImageChange{Container: "log", To: "log:b"}) }, "node-1 IfNotPresent/log:b Always/nginx:b"},
		"what is changed with a later batch":    {func(s *PodState) { s.Step.Change.Later = []ImageChange{{Container: "log", To: "log:b"}} }, "node-1 IfNotPresent/log:b Always/nginx:b"},
		"one that waits for its turn to go":     {func(s *PodState) { s.Step.Action = Wait }, "node-1 Always/nginx:b"},
		"one that is to be held by a hook next": {func(s *PodState) { s.Step.Action = SetLifecycle }, "node-1 Always/nginx:b"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := inService("p").Build()
			pod.Spec.NodeName = "node-1"
			pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
			pod.Spec.InitContainers = []corev1.Container{{Name: "log", ImagePullPolicy: corev1.PullIfNotPresent}}
			state := PodState{Pod: pod, Ready: true, Step: changes(image)}
			test.change(&state)
			got := ""
			if pull := PullFor(state); len(pull.Images) > 0 {
				got = pull.Key()
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// What a new pod needs that the one in whose place it comes does not have.
func TestSuccessorPull(t *testing.T) {
	template := func(fields string, images ...string) *Template {
		containers := make([]string, 0, len(images))
		for i, image := range images {
			containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":%q}`, i, image))
		}
		parsed, err := ParseTemplate([]byte(`{"spec":{` + fields + `"containers":[` + strings.Join(containers, ",") + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	const secret, other = `"imagePullSecrets":[{"name":"registry"}],`, `"serviceAccountName":"api",`
	for name, test := range map[string]struct {
		from, to *Template
		has      []string
		want     string
	}{
		"another image":                       {template("", "app:a"), template("", "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b"},
		"an image that is new each time":      {template("", "app:a"), template("", "app"), []string{"app:a"}, "node-1 Always/app"},
		"a policy":                            {template("", "app:a"), template(`"initContainers":[{"name":"i","image":"i:1","imagePullPolicy":"Never"}],`, "app:a"), []string{"app:a"}, "node-1 Never/i:1"},
		"the same":                            {template("", "app:a"), template(`"hostname":"x",`, "app:a"), []string{"app:a"}, ""},
		"the same, spelled otherwise":         {template("", "app:a"), template("", "docker.io/library/app:a"), []string{"app:a"}, ""},
		"one that another container has":      {template("", "app:a", "log:1"), template("", "log:1", "app:a"), []string{"app:a", "log:1"}, ""},
		"one for two containers":              {template("", "app:a", "app:a"), template("", "app:b", "app:b"), []string{"app:a", "app:a"}, "node-1 IfNotPresent/app:b"},
		"the same, and admission has another": {template("", "app:a"), template(`"hostname":"x",`, "app:a"), []string{"mirror.example/app:a"}, ""},
		"an unknown revision":                 {nil, template("", "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b as default []"},
		"another secret":                      {template("", "app:a"), template(secret, "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b as default [{registry}]"},
		"the same secret":                     {template(secret, "app:a"), template(secret, "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b"},
		"no secret any more":                  {template(secret, "app:a"), template("", "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b as default []"},
		"another account":                     {template("", "app:a"), template(other, "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b as api []"},
		"the same account":                    {template(`"serviceAccount":"api",`, "app:a"), template(other, "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b"},
		"an image that a registry is asked for each time, as another account": {template("", "app"), template(other, "app"), []string{"app"}, "node-1 Always/app as api []"},
		"an image that it is not asked for again":                             {template("", "app:a"), template(other, "app:a"), []string{"app:a"}, ""},
		"an image for other nodes":                                            {template("", "app:a"), template(`"nodeSelector":{"kubernetes.io/arch":"arm64"},`, "app:b"), []string{"app:a"}, ""},
		"the account that pods have":                                          {template("", "app:a"), template(`"serviceAccountName":"default",`, "app:b"), []string{"app:a"}, "node-1 IfNotPresent/app:b"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := PodFacts{Pod: builders.Pod("p", "a", test.has[0]).Build()}
			facts.Pod.Spec.NodeName = "node-1"
			for _, image := range test.has[1:] {
				facts.Pod.Spec.Containers = append(facts.Pod.Spec.Containers, corev1.Container{Image: image})
			}
			if test.from != nil {
				facts.From = &Revision{Name: "a", Template: test.from}
			}
			w := workload(t, 1, inService("p"))
			w.Pods = []PodFacts{facts}
			w.Target.Template, w.Target.Policy = test.to, appsv1beta1.RecreatePodUpdateStrategyType
			plan, got := MakePlan(w, planned), ""
			NewWithT(t).Expect(plan.Moves).To(HaveExactElements(HaveField("Step.Action", Recreate)))
			if pull := PullFor(plan.Pods[0]); len(pull.Images) > 0 {
				got = pull.Key()
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// What is out of service for its deletion, or in the middle of an update, and what does not run, does
// not come back into service by waiting.
func TestPodsThatGoWithoutThePullOfTheirSuccessor(t *testing.T) {
	leaving := func(b *builders.PodBuilder) *builders.PodBuilder {
		return b.With(func(pod *corev1.Pod) {
			pod.Labels[appsv1beta1.LifecycleStateKey] = string(appsv1beta1.LifecycleStatePreparingDelete)
		})
	}
	for name, test := range map[string]struct {
		pod  *builders.PodBuilder
		want bool
	}{
		"one that serves":                                  {inService("p"), true},
		"one that is not ready":                            {notReady(inService("p")), true},
		"one that its hook gave up, and that serves":       {leaving(inService("p")), true},
		"one that its hook gave up, and that is not ready": {leaving(notReady(inService("p"))), false},
		"one that is broken":                               {crashing(inService("p")), false},
		"one between two batches, out of service": {marked(inService("p")).Record(appsv1beta1.InPlaceUpdateState{
			Revision: "a", UpdateTimestamp: metav1.NewTime(patched), NextContainerImages: map[string]string{"main": "nginx:third"},
		}), false},
		"one between two batches, in service": {inService("p").Record(appsv1beta1.InPlaceUpdateState{
			Revision: "a", UpdateTimestamp: metav1.NewTime(patched), NextContainerImages: map[string]string{"main": "nginx:third"},
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, 1, test.pod)
			w.Pods[0].Pod.Spec.NodeName, w.Target.Policy = "node-1", appsv1beta1.RecreatePodUpdateStrategyType
			w.Target.Lifecycle = &appsv1beta1.Lifecycle{PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{"hold": "on"}}}
			plan := MakePlan(w, planned)
			NewWithT(t).Expect(plan.Moves).To(HaveLen(1))
			NewWithT(t).Expect(plan.Moves[0].Step.PullsImages()).To(Equal(test.want))
		})
	}
}

// A pod that is deleted for its size comes back at the target, too.
func TestEvictedPodsAwaitTheImagesOfTheNextOne(t *testing.T) {
	for evict, policy := range map[bool]appsv1beta1.PodUpdateStrategyType{true: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, false: appsv1beta1.RecreatePodUpdateStrategyType} {
		g := NewWithT(t)
		w := workload(t, 1, inService("p"))
		w.Pods[0].Pod.Spec.NodeName = "node-1"
		w.Target.Policy = policy
		if evict {
			w.Target.Resize.OnError = appsv1beta1.RecreateResizeFailure
			w.Pods[0].Refused = &Refusal{Reason: ReasonResizeDenied, Message: "too large", Denied: true}
		}
		plan := MakePlan(w, planned)
		g.Expect(plan.Moves).To(HaveLen(1))
		g.Expect(plan.Moves[0].Step).To(And(HaveField("Action", Recreate), HaveField("Evict", evict)))
		g.Expect(PullFor(plan.Pods[0]).ImagesInWords()).To(Equal(latestImage))

		w.Pods[0].Irreplaceable = &Refusal{Reason: ReasonImageNotPullable, Message: "the kubelet on node-1 cannot pull it"}
		plan = MakePlan(w, planned)
		g.Expect(plan.Moves).To(BeEmpty())
		g.Expect(plan.Blockers).To(ConsistOf(And(HaveField("State", Stuck), HaveField("Message", ContainSubstring("the kubelet on node-1 cannot pull it")),
			Not(HaveField("Message", ContainSubstring("would not accept"))))))
	}
}

func TestImagesOfANode(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{
		{Names: []string{"docker.io/library/nginx@" + digest, "docker.io/library/nginx:alpine", "docker.io/library/nginx:latest"}},
		{Names: []string{"registry.example:5000/team/app:1"}},
	}}}
	for image, want := range map[string]bool{
		"nginx:alpine": true, "docker.io/nginx:alpine": true, "nginx": true, "nginx@" + digest: true, "nginx:alpine@" + digest: true,
		"registry.example:5000/team/app:1": true,
		"nginx:1":                          false, "team/app:1": false, "registry.example:5000/team/app": false, "nginx@" + strings.Replace(digest, "aaaa", "bbbb", 1): false,
		"Not An Image": false,
	} {
		pull := Pull{Node: "node-1", Images: []Image{{Name: "nginx:alpine"}, {Name: image, PullPolicy: corev1.PullIfNotPresent}}}
		NewWithT(t).Expect(pull.IsOn(node, &corev1.Pod{})).To(Equal(want), image)
	}
	g := NewWithT(t)
	always := Pull{Images: []Image{{Name: "nginx:alpine", PullPolicy: corev1.PullAlways}}}
	g.Expect(always.IsOn(node, &corev1.Pod{})).To(BeFalse(), "what the tag names now may be something else")
	secret := &corev1.Pod{Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "mirror"}}}}
	g.Expect(Pull{Images: []Image{{Name: "nginx:alpine"}}}.IsOn(node, secret)).To(BeFalse(), "the registry has a say")
	g.Expect(IsVirtual(node)).To(BeFalse())
	for label, value := range map[string]string{"type": "virtual-kubelet", "eks.amazonaws.com/compute-type": "fargate"} {
		node.Labels = map[string]string{label: value}
		g.Expect(IsVirtual(node)).To(BeTrue(), label)
	}
}

func TestPullState(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ended := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason}}}
	}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   PullState
		words  string
	}{
		"new":                        {corev1.PodStatus{Phase: corev1.PodPending}, PullUnanswered, ""},
		"begun":                      {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating", ""), waiting("ContainerCreating", "")}}, PullUnderWay, ""},
		"one is there":               {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("StartError"), waiting("ContainerCreating", "")}}, PullUnderWay, ""},
		"both are there":             {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("StartError"), ended("ContainerCannotRun")}}, Pulled, ""},
		"one is there, one is not":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("StartError"), waiting("ImagePullBackOff", "Back-off")}}, PullFailed, "ImagePullBackOff: Back-off"},
		"no such name":               {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("InvalidImageName", "")}}, PullFailed, "InvalidImageName"},
		"refused by the runtime":     {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("CreateContainerError", ""), waiting("CreateContainerConfigError", "")}}, Pulled, ""},
		"it has the command":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, ended("Completed")}}, Pulled, ""},
		"without a sandbox":          {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}, ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating", "")}}, PullUnanswered, ""},
		"rejected":                   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "no room"}, PullRejected, "OutOfcpu: no room"},
		"ended while it was pulling": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", ContainerStatuses: []corev1.ContainerStatus{ended("ContainerStatusUnknown"), ended("StartError")}}, PullRejected, "DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state, words := PullStateOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 2)}, Status: test.status})
			g.Expect(state).To(Equal(test.want))
			g.Expect(words).To(Equal(test.words))
		})
	}
}

func TestPuller(t *testing.T) {
	g := NewWithT(t)
	owner := builders.StatefulSet("default", "sample", "nginx:a").Build()
	pod := inService("sample-0").Build()
	pull := Pull{Node: "node-1", Images: []Image{{Name: "nginx:b", PullPolicy: corev1.PullAlways}, {Name: "log:b"}}}
	puller := pull.Puller(owner, *metav1.NewControllerRef(owner, appsv1beta1.GroupVersion.WithKind("StatefulSet")), pod)
	g.Expect(IsPuller(puller)).To(BeTrue())
	g.Expect(IsPuller(pod)).To(BeFalse())
	g.Expect(puller.Labels).NotTo(HaveKey("app"), "no Service and no controller selects it")
	g.Expect(puller.Spec.NodeName).To(Equal("node-1"))
	g.Expect(puller.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	for i, c := range puller.Spec.Containers {
		g.Expect(c.Image).To(Equal(pull.Images[i].Name))
		g.Expect(c.ImagePullPolicy).To(Equal(pull.Images[i].PullPolicy))
		g.Expect(c.Command).NotTo(BeEmpty(), "else the image's own would run")
	}
	g.Expect(metav1.IsControlledBy(puller, owner)).To(BeTrue())

	t.Run("on Windows", func(t *testing.T) {
		g := NewWithT(t)
		windows := pod.DeepCopy()
		windows.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		spec := pull.Puller(owner, metav1.OwnerReference{}, windows).Spec
		g.Expect(spec.SecurityContext).To(Equal(&corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}), "other fields are refused there")
		g.Expect(spec.Containers[0].SecurityContext).To(BeNil())
	})
	t.Run("user", func(t *testing.T) {
		g := NewWithT(t)
		userOf := func(change func(spec *corev1.PodSpec)) int64 {
			of := pod.DeepCopy()
			change(&of.Spec)
			return *pull.Puller(owner, metav1.OwnerReference{}, of).Spec.SecurityContext.RunAsUser
		}
		g.Expect(userOf(func(*corev1.PodSpec) {})).To(BeEquivalentTo(65534))
		g.Expect(userOf(func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}
		})).To(BeEquivalentTo(1000))
		g.Expect(userOf(func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1000680000)}
		})).To(BeEquivalentTo(1000680000), "as admission of OpenShift sets it")
	})
	t.Run("names", func(t *testing.T) {
		g := NewWithT(t)
		other, elsewhere := owner.DeepCopy(), pull
		other.UID, elsewhere.Node = "another", "node-2"
		names := []string{pull.PullerName(owner), pull.PullerName(other), elsewhere.PullerName(owner)}
		g.Expect(names[0]).NotTo(Or(Equal(names[1]), Equal(names[2])))
		owner.Name = strings.Repeat("a", 39) + strings.Repeat(".b", 100)
		g.Expect(validation.IsDNS1123Subdomain(pull.PullerName(owner))).To(BeEmpty(), pull.PullerName(owner))
	})
}
