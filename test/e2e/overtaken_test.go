// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// edit is a change of a set.
type edit func(*appsv1beta1.StatefulSet)

func edits(all ...edit) edit {
	return func(s *appsv1beta1.StatefulSet) {
		for _, e := range all {
			e(s)
		}
	}
}

func image(name string) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func args(list ...string) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Args = list }
}

// environment is what no pod can be given in place.
func environment(s *appsv1beta1.StatefulSet) {
	s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

func noEnvironment(s *appsv1beta1.StatefulSet) {
	s.Spec.Template.Spec.Containers[0].Env = nil
}

func label(s *appsv1beta1.StatefulSet) {
	s.Spec.Template.Labels["tier"] = "backend"
}

func rolling(e func(*appsv1beta1.RollingUpdateStatefulSetStrategy)) edit {
	return func(s *appsv1beta1.StatefulSet) { e(s.Spec.UpdateStrategy.RollingUpdate) }
}

func paused(is bool) edit {
	return rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Paused = is })
}

func partition(n int32) edit {
	return rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(n) })
}

func minReady(seconds int32) edit {
	return rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.MinReadySeconds = ptr.To(seconds) })
}

func graceOf(seconds int32) edit {
	return rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) {
		r.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

// shortGrace ends a grace period that runs.
var shortGrace = graceOf(1)

func onDelete(s *appsv1beta1.StatefulSet) {
	s.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

func rollingAgain(s *appsv1beta1.StatefulSet) {
	s.Spec.UpdateStrategy = builders.StatefulSet("", "", "").GracePeriod(1).Build().Spec.UpdateStrategy
}

func scaledTo(n int32) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.Replicas = ptr.To(n) }
}

// endless is a grace period that ends in no test.
var endless = graceOf(600)

// stopsSlowly makes the container go on for some time when it is to end.
func stopsSlowly(s *appsv1beta1.StatefulSet) {
	args("-ignore-term=10s")(s)
	s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](12)
}

// readyAfter makes the container answer its probe some time after its start.
func readyAfter(duration string) edit {
	return func(s *appsv1beta1.StatefulSet) {
		container := &s.Spec.Template.Spec.Containers[0]
		container.Args = []string{"-ready-after=" + duration}
		container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)},
		}}
	}
}

// readyAnnotation of a pod says how long after its start the container answers its probe,
// of a set that is readyAsAnnotated.
const readyAnnotation = "ready-after"

// readyAsAnnotated makes the container answer its probe at once, and in later revisions
// as late as they say: with never, an update stays where it is until the next one.
func readyAsAnnotated(s *appsv1beta1.StatefulSet) {
	readyAfter("0s")(s)
	metav1.SetMetaDataAnnotation(&s.Spec.Template.ObjectMeta, readyAnnotation, "0s")
	container := &s.Spec.Template.Spec.Containers[0]
	container.Args = nil // a flag would win
	container.Env = append(container.Env, corev1.EnvVar{Name: "SLEEPER_READY_AFTER", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + readyAnnotation + "']"},
	}})
}

func neverReady(s *appsv1beta1.StatefulSet)  { s.Spec.Template.Annotations[readyAnnotation] = "1h" }
func readyAtOnce(s *appsv1beta1.StatefulSet) { s.Spec.Template.Annotations[readyAnnotation] = "0s" }

// overtaken is a cell of docs/any-state-any-revision.md: what is updated, where
// sample-1 is then, what is wanted instead, and what becomes of the two pods.
type overtaken struct {
	given, update edit
	// when matches the blocker of sample-1.
	when types.GomegaMatcher
	by   edit
	// back ends a stop of the rollout, while which the pods serve untouched.
	back edit
	// sample0 and sample1 are left out for a pod that is to be gone.
	sample0, sample1 fate
}

func in(state inplace.State, reasons ...string) types.GomegaMatcher {
	if len(reasons) == 0 {
		return HaveField("Step", string(state))
	}
	return And(HaveField("Step", string(state)), HaveField("Reason", BeElementOf(reasons)))
}

// fate checks what became of a pod.
type fate func(before, after *corev1.Pod)

// kept: it is the same pod, and its container was restarted as often as that.
func kept(restarts types.GomegaMatcher) fate {
	return func(before, after *corev1.Pod) {
		GinkgoHelper()
		Expect(after.UID).To(Equal(before.UID), after.Name)
		Expect(after.Spec.NodeName).To(Equal(before.Spec.NodeName), after.Name)
		Expect(after.Status.ContainerStatuses[0].RestartCount).To(restarts, "restarts of "+after.Name)
	}
}

var (
	untouched     = kept(BeEquivalentTo(0))
	restartedOnce = kept(BeEquivalentTo(1))
	// restartedBack: changed, and changed back.
	restartedBack = kept(BeEquivalentTo(2))
)

func recreated(before, after *corev1.Pod) {
	GinkgoHelper()
	Expect(after.UID).NotTo(Equal(before.UID), after.Name)
	Expect(after.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "restarts of "+after.Name)
}

// nameOf matches the name under which a kubelet reports an image: of two tags of
// one digest, it may be either.
func nameOf(image string) types.GomegaMatcher {
	for _, same := range [][]string{{nginxLatest, nginxStable}, {sleeperV2, sleeperV2Again}} {
		if slices.Contains(same, image) {
			return Or(HaveSuffix(same[0]), HaveSuffix(same[1]))
		}
	}
	return HaveSuffix(image)
}

// expectServing checks that a pod is in service, and is what a set asks for.
func expectServing(g Gomega, pod *corev1.Pod, template corev1.PodTemplateSpec) {
	g.Expect(podutils.IsPodReady(pod)).To(BeTrue(), pod.Name)
	g.Expect(gateStatus(pod)).To(Equal(corev1.ConditionTrue), pod.Name)
	g.Expect(pod.Spec.Containers[0].Image).To(Equal(template.Spec.Containers[0].Image), pod.Name)
	g.Expect(pod.Status.ContainerStatuses[0].Image).To(nameOf(template.Spec.Containers[0].Image), pod.Name)
	g.Expect(pod.Spec.Containers[0].Env).To(Equal(template.Spec.Containers[0].Env), pod.Name)
	for key, value := range template.Labels {
		g.Expect(pod.Labels).To(HaveKeyWithValue(key, value), pod.Name)
	}
}

// waitServing waits until the pods of a set serve what a template says, untouched.
func waitServing(ctx context.Context, set *appsv1beta1.StatefulSet, before []*corev1.Pod) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		for i, pod := range getPods(ctx, set) {
			expectServing(g, pod, corev1.PodTemplateSpec{Spec: before[i].Spec})
		}
	})
	for i, pod := range getPods(ctx, set) {
		untouched(before[i], pod)
	}
}

// updating creates a set of two pods, updates it, and returns when sample-1 is
// where it is to be overtaken, with the pods from before. sample-0 keeps out of it as long
// as the partition is there, however late this is seen.
func (c overtaken) updating(ctx context.Context, namespace string) (*appsv1beta1.StatefulSet, []*corev1.Pod) {
	GinkgoHelper()
	set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).GracePeriod(0).With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](7)
		c.given(s)
	}))
	before, versions := getPods(ctx, set), versionsOf(ctx, set)
	change(ctx, set, edits(c.update, partition(1)))
	waitVersion(ctx, versions, HaveField("Status.Blockers", ContainElement(And(HaveField("Pod", "sample-1"), c.when))))
	return set, before
}

// settles waits until the set is what was asked for last, and checks the pods.
func (c overtaken) settles(ctx context.Context, set *appsv1beta1.StatefulSet, before []*corev1.Pod) {
	GinkgoHelper()
	waitSettled(ctx, set)
	for i, pod := range getPods(ctx, set) {
		expectServing(Default, pod, set.Spec.Template)
		[]fate{c.sample0, c.sample1}[i](before[i], pod)
	}
}

var _ = Describe("An update that is overtaken", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	DescribeTable("gets to what was asked for last", func(ctx context.Context, c overtaken) {
		set, before := c.updating(ctx, namespace)
		change(ctx, set, edits(partition(0), c.by))
		if c.back != nil {
			waitServing(ctx, set, before)
			change(ctx, set, c.back)
		}
		c.settles(ctx, set, before)
	},
		Entry("in Grace, by the previous revision", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: image(sleeperV1), sample0: untouched, sample1: untouched,
		}),
		Entry("in Grace, by a third revision", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: edits(image(sleeperV3), shortGrace), sample0: restartedOnce, sample1: restartedOnce,
		}),
		Entry("in Grace, by one that recreates", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: environment, sample0: recreated, sample1: recreated,
		}),
		Entry("in Grace, by a pause", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: paused(true), back: edits(paused(false), shortGrace), sample0: restartedOnce, sample1: restartedOnce,
		}),
		Entry("in Grace, by a partition", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: partition(2), back: edits(partition(0), shortGrace), sample0: restartedOnce, sample1: restartedOnce,
		}),
		Entry("in Grace, by OnDelete", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: onDelete, back: rollingAgain, sample0: restartedOnce, sample1: restartedOnce,
		}),
		Entry("in Grace, by a scale-in", overtaken{
			given: endless, update: image(sleeperV2), when: in(inplace.Grace),
			by: edits(scaledTo(1), shortGrace), sample0: restartedOnce,
		}),
		Entry("in Restarting, by one that recreates", overtaken{
			given: stopsSlowly, update: image(sleeperV2), when: in(inplace.Restarting),
			by: edits(environment, args()), sample0: recreated, sample1: recreated,
		}),
		// Whether the kubelet starts the second image before the third is its own affair.
		Entry("in Restarting, by a third revision", overtaken{
			given: stopsSlowly, update: image(sleeperV2), when: in(inplace.Restarting),
			by: image(sleeperV3), sample0: restartedOnce, sample1: kept(BeNumerically("~", 1.5, 0.5)),
		}),
		Entry("in Verifying, by the previous revision", overtaken{
			given: readyAsAnnotated, update: edits(image(sleeperV2), neverReady), when: in(inplace.Verifying, inplace.ReasonPodNotReady),
			by: edits(image(sleeperV1), readyAtOnce), sample0: untouched, sample1: restartedBack,
		}),
		Entry("in Recreating, by the previous revision", overtaken{
			given: stopsSlowly, update: environment, when: in(inplace.Recreating, inplace.ReasonTerminating),
			by: noEnvironment, sample0: untouched, sample1: recreated,
		}),
		Entry("with an image that does not exist, by one that recreates", overtaken{
			given: edits(args(), unpulledSet), update: image(nginxMissing), when: HaveField("Reason", BeElementOf("ErrImagePull", "ImagePullBackOff")),
			by: edits(image(sleeperV2), environment), sample0: recreated, sample1: recreated,
		}),
		// The container is ready for a second each time: minReadySeconds is what stops
		// the rollout. The kubelet may take half a minute to call it a CrashLoopBackOff.
		Entry("with an image that keeps crashing, by labels on the one before", overtaken{
			given: minReady(3), update: image(sleeperCrash),
			when: Or(HaveField("Reason", "CrashLoopBackOff"), HaveField("Message", ContainSubstring("ended with exit code 1"))),
			by:   edits(image(sleeperV1), label), sample0: untouched, sample1: kept(BeNumerically(">=", 2)),
		}),
	)

	// The slice is of no Service, so no controller corrects it: the pod stays Draining.
	It("goes back while an EndpointSlice still lists the pod", func(ctx context.Context) {
		c := overtaken{
			given: func(*appsv1beta1.StatefulSet) {}, update: image(sleeperV2),
			when: in(inplace.Draining, inplace.ReasonEndpointsReady), sample0: untouched, sample1: untouched,
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late", Labels: map[string]string{
				discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", discoveryv1.LabelServiceName: "late",
			}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "sample-1"},
			}},
		}
		Expect(api.Create(ctx, slice)).To(Succeed())
		set, before := c.updating(ctx, namespace)
		change(ctx, set, edits(partition(0), image(sleeperV1)))
		c.settles(ctx, set, before)
	})

	It("goes on when the node dies in Restarting, and comes back", Serial, func(ctx context.Context) {
		c := overtaken{
			given: func(s *appsv1beta1.StatefulSet) {
				// Long enough for a busy machine to kill the node meanwhile.
				args("-ignore-term=20s")(s)
				s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](25)
				s.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.Spec.Selector,
				}}
			},
			update: image(sleeperV2), when: in(inplace.Restarting),
			sample0: restartedOnce, sample1: kept(BeNumerically(">=", 1)),
		}
		set, before := c.updating(ctx, namespace)
		Expect(before[1].Spec.NodeName).NotTo(Equal(before[0].Spec.NodeName))
		startNode := killNode(ctx, before[1].Spec.NodeName)
		untouched(before[0], getPod(ctx, set, 0))
		startNode(ctx)
		change(ctx, set, partition(0))
		c.settles(ctx, set, before)
	})
})
