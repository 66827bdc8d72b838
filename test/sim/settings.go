// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// settings are what a run keeps from its beginning to its end.
type settings struct {
	replicas, maxUnavailable int
	// nodes is how many nodes there are; 0 for two. A DaemonSet has one for each pod.
	nodes           int
	policy          appsv1beta1.PodUpdateStrategyType
	ordered, claims bool
	// gated: the pods have the readiness gate; unlisted: their template does not list it.
	gated, unlisted bool
	// undrained: there is no policy that keeps pods out of service without a gate.
	undrained bool
	// unordered: the partition is a number of pods, whichever they are.
	unordered bool
	// roles: the pods are a database, whose primary is updated last.
	roles   bool
	clones  clones
	daemons daemons
	// sidecar: the pods have a native sidecar; keepReady: it restarts in service.
	sidecar, keepReady bool
	// deleteScaled: claims go with the pods that a scale-down removes.
	deleteScaled          bool
	minReadySeconds       int
	gracePeriod, deadline time.Duration
	// hooked: the set has lifecycle hooks at times, hooks are those that it has in
	// the beginning; marked: the template carries what marks pods for these.
	hooked, marked bool
	hooks          hooks
	// batches is how many containers have a place in the launch order.
	batches int
	// reads: the first container reads an annotation; pulls: images are pulled at
	// every start.
	reads, pulls bool
	// ahead: images are pulled before pods are taken out of service, within pullTime seconds;
	// kubelets reject one of so many pods that do so, 0 for none.
	ahead             bool
	pullTime, rejects int
	// unasked: the set does not say how long it waits for pulls, and goes on without one.
	unasked bool
	// respects: PodDisruptionBudgets are respected. There is one that lets one pod
	// be disrupted, and budgetSlack more.
	respects    bool
	budgetSlack int
	// unserved: no Service sends traffic to the pods.
	unserved bool
	resizes  resizes
	volumes  volumes
	wider    wider
	late     late
	// refusesPods: pods of single templates are refused at times; undoesAll: users of
	// Deployments go back by kubectl rollout undo, which brings annotations.
	refusesPods, undoesAll bool

	// How long containers take to stop, and to become ready, and EndpointSlices
	// to follow at most.
	minStopTime, maxStopTime int
	readyTime                time.Duration
	minEndpointDelay         int
	endpointDelay            int
	// slow is a container that takes longer to become ready.
	slow string
	// How long the controller of the hooks takes, and that of budgets.
	minHookDelay, hookDelay, budgetLag int
	// oldKubelets report no observed generation.
	oldKubelets bool
	// lag is how many seconds a cache may show the past; 0 for a cache that is
	// always up to date.
	lag int
	// faults: one write in so many fails; 0 for none.
	faults int
	// deaths: the manager dies at one write in so many; 0 for never.
	deaths int
	// changes: in one second of so many, something happens that is not the
	// operator's doing; 0 for never.
	changes int
}

// reference are the settings of an undisturbed run: three pods, two at a time.
func reference() settings {
	return settings{
		replicas: 3, maxUnavailable: 2, gated: true, minStopTime: 2, maxStopTime: 2, readyTime: time.Second,
		policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
}

// chosen returns settings as the choices have it.
func chosen(c *Choices) settings {
	s := reference()
	s.gated = !c.oneIn(4)
	s.replicas = 1 + c.intN(5)
	s.ordered = c.oneIn(5)
	s.maxUnavailable = 1
	if !s.ordered {
		s.maxUnavailable = 1 + c.intN(s.replicas)
	}
	s.unordered = !s.ordered && c.oneIn(4)
	s.sidecar = c.oneIn(3)
	s.keepReady = s.sidecar && c.oneIn(2)
	s.claims = c.oneIn(3)
	s.deleteScaled = s.claims && c.oneIn(2)
	s.minReadySeconds = 3 * c.intN(3)
	s.gracePeriod = pick(c, []time.Duration{0, 3 * time.Second, 10 * time.Second, 20 * time.Second})
	if c.oneIn(4) {
		s.deadline = 30 * time.Second
	}
	s.policy = pick(c, []appsv1beta1.PodUpdateStrategyType{
		appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		appsv1beta1.InPlaceOnlyPodUpdateStrategyType, appsv1beta1.RecreatePodUpdateStrategyType,
	})
	s.minStopTime, s.maxStopTime, s.readyTime, s.endpointDelay = 0, 1+c.intN(20), c.seconds(5), c.intN(12)
	if c.oneIn(3) {
		s.hooked, s.hooks, s.marked, s.hookDelay = true, chosenHooks(c), !c.oneIn(4), c.intN(20)
	}
	if c.oneIn(3) {
		s.batches = 2 + c.intN(2)
		s.slow = pick(c, []string{"", "app", "log"})
	}
	s.reads = c.oneIn(3)
	s.pulls = s.reads && c.oneIn(4)
	if c.oneIn(4) {
		s.respects, s.budgetSlack, s.budgetLag = true, c.intN(3), c.intN(3)
	}
	s.unserved = c.oneIn(6)
	s.oldKubelets = c.oneIn(6)
	s.lag = c.intN(6)
	s.faults = pick(c, []int{0, 0, 40, 15, 6})
	s.deaths = pick(c, []int{0, 40, 15, 6})
	s.changes = pick(c, []int{30, 20, 12, 6})
	s = s.ofAnyKind(c)
	s.resizes = chosenResizes(c)
	return s
}

func (s settings) String() string {
	return fmt.Sprintf("%d pods, %d at a time, %s, ordered %t, unordered %t, gate %t, not in the template %t, sidecar %t, kept ready %t, claims %t, deleted with pods %t, minReadySeconds %d, grace %s, deadline %s; "+
		"stops within %ds, ready after %s, endpoints within %ds, old kubelets %t, lag %ds, faults 1/%d, deaths 1/%d",
		s.replicas, s.maxUnavailable, s.policy, s.ordered, s.unordered, s.gated, s.unlisted, s.sidecar, s.keepReady, s.claims, s.deleteScaled, s.minReadySeconds, s.gracePeriod, s.deadline,
		s.maxStopTime, s.readyTime, s.endpointDelay, s.oldKubelets, s.lag, s.faults, s.deaths) +
		fmt.Sprintf("; %s; hooked %t: %s, in the template %t, answered within %ds; batches %d, slow %q; reads %t, pulls %t; respects a budget %t, slack %d, lag %ds; unserved %t",
			s.kindWords(), s.hooked, hookWords(s.hooks.lifecycle()), s.marked, s.hookDelay, s.batches, s.slow, s.reads, s.pulls, s.respects, s.budgetSlack, s.budgetLag, s.unserved) +
		fmt.Sprintf("; roles %t; ", s.roles) + s.resizes.String() + "; " + s.volumes.String() + "; " + s.wider.String() + "; " + s.late.String()
}

// slowTime is how much longer a slow container takes.
const slowTime = 12 * time.Second

// levelKey is the annotation that containers read.
const levelKey = "example.io/level"

// revision is a pod template of the user, told by a word.
type revision struct {
	name  string
	write func(*corev1.PodTemplateSpec)
}

// revisions are what the user may ask for. Those at the end never become ready,
// or are recreated.
var revisions = []revision{
	{"a", func(*corev1.PodTemplateSpec) {}},
	{"b", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = bImage }},
	{"b again", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = sameImage }},
	{"both", func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.Containers {
			t.Spec.Containers[i].Image = t.Spec.Containers[i].Name + ":c"
		}
	}},
	{"log", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "log:b" }},
	{"label", func(t *corev1.PodTemplateSpec) { t.Labels["tier"] = "web" }},
	{"proxy", func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.InitContainers {
			t.Spec.InitContainers[i].Image = "proxy:b"
		}
	}},
	{"level", func(t *corev1.PodTemplateSpec) { t.Annotations[levelKey] = "debug" }},
	{"level b", func(t *corev1.PodTemplateSpec) {
		t.Annotations[levelKey] = "debug"
		t.Spec.Containers[0].Image = bImage
	}},
	{"level c", func(t *corev1.PodTemplateSpec) {
		t.Annotations[levelKey] = "trace"
		for i := range t.Spec.Containers {
			t.Spec.Containers[i].Image = t.Spec.Containers[i].Name + ":c"
		}
	}},
	{"env", func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = bImage
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "MODE", Value: "fast"})
	}},
	{"restart", func(t *corev1.PodTemplateSpec) { t.Annotations[restartedAt] = "2026-01-02T12:00:00Z" }},
	{"restart b", func(t *corev1.PodTemplateSpec) {
		t.Annotations[restartedAt] = "2026-01-02T12:00:00Z"
		t.Spec.Containers[0].Image = bImage
	}},
	{"restart log", func(t *corev1.PodTemplateSpec) {
		t.Annotations[appsv1beta1.RestartAnnotationPrefix+"log"] = "2026-01-02T13:00:00Z"
	}},
	{"missing", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = missingImage }},
	{"crash", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = crashImage }},
}

// goodRevisions is how many of the revisions become ready.
const goodRevisions = 14

func (s settings) template(r revision) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": setName}, Annotations: map[string]string{levelKey: "info"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(s.maxStopTime)),
			Containers:                    []corev1.Container{{Name: "app", Image: "app:a"}, {Name: "log", Image: "log:a"}},
		},
	}
	if s.sidecar {
		t.Spec.InitContainers = []corev1.Container{{Name: sidecarName, Image: "proxy:a", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	}
	if s.gated && !s.unlisted {
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	}
	if s.marked {
		s.hooks.mark(&t)
	}
	if s.daemons.on {
		t.Spec.NodeSelector = map[string]string{nodeRole: workerRole}
	}
	s.order(&t)
	s.resizes.fill(&t)
	for i := range t.Spec.Containers {
		if s.pulls {
			t.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	if s.reads {
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + levelKey + "']"},
		}})
	}
	r.write(&t)
	return t
}

// order gives containers their places in the launch order, the first the highest.
func (s settings) order(t *corev1.PodTemplateSpec) {
	if s.batches > len(t.Spec.Containers) {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "web", Image: "web:a"})
	}
	for i := range s.batches {
		t.Spec.Containers[i].Env = []corev1.EnvVar{{Name: appsv1beta1.ContainerLaunchPriorityEnv, Value: strconv.Itoa(10 - i)}}
	}
}

// sidecarName is the name of the native sidecar.
const sidecarName = "proxy"

// set returns the StatefulSet at a revision.
func (s settings) set(r revision) *appsv1beta1.StatefulSet {
	inPlace := &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(s.gracePeriod / time.Second)}
	if s.deadline > 0 {
		inPlace.DeadlineSeconds = ptr.To(int32(s.deadline / time.Second))
	}
	set := &appsv1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace},
		Spec: appsv1beta1.StatefulSetSpec{
			Replicas:             ptr.To(int32(s.replicas)),
			ServiceName:          setName,
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": setName}},
			Template:             s.template(r),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: ptr.To[int32](3),
			UpdateStrategy: appsv1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy:       s.policy,
					MaxUnavailable:        ptr.To(intstr.FromInt(s.maxUnavailable)),
					MinReadySeconds:       ptr.To(int32(s.minReadySeconds)),
					InPlaceUpdateStrategy: inPlace,
				},
			},
		},
	}
	if s.resizes.on {
		inPlace.Resize = s.resizes.policy.DeepCopy()
	}
	if s.hooked {
		set.Spec.Lifecycle = s.hooks.lifecycle()
	}
	if s.respects {
		inPlace.PodDisruptionBudget = appsv1beta1.RespectPodDisruptionBudget
	}
	if s.keepReady {
		inPlace.KeepReady = []string{sidecarName}
	}
	inPlace.ImagePull = s.imagePull()
	if s.unordered {
		set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &appsv1beta1.UnorderedUpdateStrategy{}
	}
	if s.roles {
		set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate.PriorityStrategy = primaryLast()
	}
	if s.deleteScaled {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenScaled: appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	}
	if s.ordered {
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	s.wider.ordinals.fill(set)
	s.wider.again.fill(set)
	switch {
	case s.volumes.on:
		set.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimUpdateStrategy = s.volumes.templates(s.volumes.wish), s.volumes.strategy
	case s.claims:
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	return set
}
