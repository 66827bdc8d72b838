// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// yard is a cluster whose nodes have no image of revision b: one pod of revision a on each.
type yard struct {
	*WithT
	rig      *rig
	client   client.Client
	clock    *clocktesting.FakeClock
	workload inplace.Workload
	// pulling is how all workloads of the manager pull.
	pulling *Pulling
	// refuses is what the API server says to new pods, and hides to reads of nodes.
	refuses, hides error
}

// newYard has pods sample-0 and so on, on nodes of the same numbers; the highest goes first.
func newYard(t *testing.T, nodes int) *yard {
	t.Helper()
	a := newAdmission(t, nodes)
	y := &yard{WithT: a.WithT, rig: a.recorder, clock: a.clock, workload: a.workload, pulling: &Pulling{}}
	builder := fake.NewClientBuilder()
	for _, index := range podcache.Indexes() {
		builder.WithIndex(index.Object, index.Field, index.Values)
	}
	for i := range y.workload.Pods {
		pod := y.workload.Pods[i].Pod
		pod.Spec.NodeName = strings.Replace(pod.Name, "sample", "node", 1)
		pod.Spec.ServiceAccountName = "web"
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		builder.WithObjects(pod.DeepCopy(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
	}
	y.client = builder.WithStatusSubresource(&corev1.Pod{}, &corev1.Node{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if y.refuses != nil {
				return y.refuses
			}
			obj.SetCreationTimestamp(metav1.NewTime(y.clock.Now()))
			return c.Create(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, isNode := obj.(*corev1.Node); isNode && y.hides != nil {
				return y.hides
			}
			return c.Get(ctx, key, obj, opts...)
		},
		// The API server accepts all changes; none is made.
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
	}).Build()
	y.restart()
	y.workload.Target.Pull = inplace.PullPolicy{Policy: appsv1beta1.RequireImagePull, Timeout: 5 * time.Minute, RefusedTimeout: 5 * time.Minute}
	y.workload.MaxUnavailable = 1
	return y
}

// restart is what becomes of a manager that is killed: what it knew is lost.
func (y *yard) restart() {
	executor := New(y.client, y.rig, y.clock)
	executor.Puller = &Puller{Kind: appsv1beta1.GroupVersion.WithKind("StatefulSet"), Live: y.client, Pulling: y.pulling}
	y.rig.executor = executor
}

// pullers returns the pods that pull images for the workload, by node.
func (y *yard) pullers() map[string]*corev1.Pod {
	list := &corev1.PodList{}
	y.Expect(y.client.List(context.Background(), list, client.MatchingLabels{appsv1beta1.PullerLabel: string(y.rig.workload.GetUID())})).To(Succeed())
	found := map[string]*corev1.Pod{}
	for i := range list.Items {
		node := list.Items[i].Spec.NodeName
		y.Expect(found[node]).To(BeNil(), "one at a time on each node")
		found[node] = &list.Items[i]
	}
	return found
}

func (y *yard) pullingNodes() []string {
	var nodes []string
	for node := range y.pullers() {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

// decide makes a plan a second later.
func (y *yard) decide() inplace.Plan {
	y.clock.Step(time.Second)
	y.workload.Pullers = nil
	for _, puller := range y.pullers() {
		y.workload.Pullers = append(y.workload.Pullers, puller)
	}
	plan, result := y.rig.executor.Plan(context.Background(), y.rig.workload, y.workload, y.clock.Now())
	y.Expect(result.Failed).To(BeEmpty())
	return plan
}

// plan makes a plan a second later, and returns the pods that are taken out of service.
func (y *yard) plan() ([]string, inplace.Plan) {
	plan := y.decide()
	var out []string
	for _, move := range plan.Moves {
		y.Expect(move.Step.Action).To(Equal(inplace.MarkNotReady))
		out = append(out, move.Pod.Name)
	}
	return out, plan
}

// moves returns those of a plan that is made a second later; movesAnd also when to plan again.
func (y *yard) moves() []inplace.Move {
	moves, _ := y.movesAnd()
	return moves
}

func (y *yard) movesAnd() ([]inplace.Move, time.Time) {
	plan := y.decide()
	return plan.Moves, plan.Recheck
}

// taken is what plan returns first.
func (y *yard) taken() []string {
	pods, _ := y.plan()
	return pods
}

// why returns what the plan says of a pod.
func (y *yard) why(pod string) string {
	_, plan := y.plan()
	for _, b := range plan.Blockers {
		if b.Pod.Name == pod {
			return fmt.Sprintf("%s %s: %s", b.State, b.Reason, b.Message)
		}
	}
	return ""
}

// says has a kubelet report on its puller.
func (y *yard) says(node string, status corev1.PodStatus) {
	puller := y.pullers()[node]
	y.Expect(puller).NotTo(BeNil(), "no puller on %s", node)
	puller.Status = status
	y.Expect(y.client.Status().Update(context.Background(), puller)).To(Succeed())
}

// fails has the kubelets of nodes report that they cannot pull.
func (y *yard) fails(nodes ...string) {
	for _, node := range nodes {
		y.says(node, failed)
	}
}

func waitingFor(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "pull-0", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

var (
	begun  = waitingFor("ContainerCreating", "")
	failed = waitingFor("ErrImagePull", "nginx:latest: not found")
	pulled = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "pull-0", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}},
	}}}
)

// lists has a node list an image in its status.
func (y *yard) lists(name string, images ...string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	y.Expect(y.client.Get(context.Background(), client.ObjectKeyFromObject(node), node)).To(Succeed())
	node.Status.Images = []corev1.ContainerImage{{Names: images}}
	y.Expect(y.client.Status().Update(context.Background(), node)).To(Succeed())
}

func TestNoPodGoesBeforeItsImageIsThere(t *testing.T) {
	y := newYard(t, 4)
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-2", "node-3"}), "the node of the next pod, and the one after it")
	y.Expect(y.why("sample-3")).To(Equal("Waiting ImagePull: node-3 pulls nginx:latest before the pod is updated"))
	y.says("node-3", begun)
	y.says("node-2", begun)
	y.taken()
	y.clock.Step(time.Hour)
	y.Expect(y.taken()).To(BeEmpty(), "however long the pull takes")
	y.says("node-3", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-3"}))
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-1", "node-2"}), "the next pull goes on while the pod restarts")
}

func TestNodesThatHaveTheImageAreAskedOnly(t *testing.T) {
	for name, images := range map[string][]string{
		"by tag": {"docker.io/library/nginx@sha256:aaaa", "docker.io/library/nginx:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, 2)
			y.lists("node-0", images...)
			y.lists("node-1", images...)
			y.Expect(y.taken()).To(Equal([]string{"sample-1"}))
			y.Expect(y.pullingNodes()).To(BeEmpty())
		})
	}
}

func TestNodesWhereTheRevisionRunsHaveTheImage(t *testing.T) {
	for _, runs := range []bool{true, false} {
		y := newYard(t, 3)
		there := builders.Pod("sample-2", "b", "nginx:latest").Gated(corev1.ConditionTrue, builders.Start).Ready(runs, builders.Start).Build()
		there.Spec.NodeName = "node-1"
		y.workload.Pods[0].Pod, y.workload.MaxUnavailable = there, 2
		if runs {
			y.Expect(y.taken()).To(Equal([]string{"sample-1"}))
			y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
		} else {
			y.Expect(y.taken()).To(BeEmpty(), "a new pod whose image is missing shows nothing")
		}
	}
}

// givesSecret gives sample-0 a pull secret, and returns the pod.
func (y *yard) givesSecret(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	y.Expect(y.client.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "sample-0"}, pod)).To(Succeed())
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
	y.Expect(y.client.Update(context.Background(), pod)).To(Succeed())
	return pod
}

// Where pods have secrets for a registry, an image on the node may be one that they may not use.
func TestPodsWithPullSecretsAskTheRegistry(t *testing.T) {
	y := newYard(t, 1)
	pod := y.givesSecret("registry")
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.Expect(y.taken()).To(BeEmpty())
	spec := y.pullers()["node-0"].Spec
	y.Expect(spec.ImagePullSecrets).To(Equal(pod.Spec.ImagePullSecrets))
	y.Expect(spec.ServiceAccountName).To(Equal("web"))
	y.Expect(spec.Tolerations).To(Equal(y.workload.Pods[0].Pod.Spec.Tolerations))
}

// Not even for pods with secrets: there is no image store that a pod could pull into.
func TestVirtualNodesPullNothing(t *testing.T) {
	y := newYard(t, 1)
	y.givesSecret("registry")
	node := &corev1.Node{}
	y.Expect(y.client.Get(t.Context(), client.ObjectKey{Name: "node-0"}, node)).To(Succeed())
	node.Labels = map[string]string{"type": "virtual-kubelet"}
	y.Expect(y.client.Update(t.Context(), node)).To(Succeed())
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
	y.Expect(y.pullingNodes()).To(BeEmpty())
}

func TestNodeThatCannotPullIsPassedOver(t *testing.T) {
	y := newYard(t, 6)
	y.taken()
	y.says("node-5", failed)
	y.says("node-4", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-4"}))
	y.Expect(y.why("sample-5")).To(Equal("Stuck ImageNotPullable: the kubelet on node-5 cannot pull nginx:latest: ErrImagePull: nginx:latest: not found"))
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-2", "node-3", "node-5"}), "one that fails keeps no other from pulling")
	y.says("node-3", pulled)
	y.says("node-2", pulled)
	y.taken()
	y.says("node-1", failed)
	y.taken()
	y.Expect(y.pullingNodes()).To(ContainElements("node-0"), "two have failed, and three have the image")
}

func TestImageThatCannotBePulledTakesNoPod(t *testing.T) {
	y := newYard(t, 4)
	y.taken()
	y.says("node-3", failed)
	y.says("node-2", failed)
	y.Expect(y.taken()).To(BeEmpty())
	for i := range 4 {
		y.Expect(y.why(fmt.Sprintf("sample-%d", i))).To(HavePrefix(
			"Stuck ImageNotPullable: 2 nodes cannot pull the images, and others do not try before one can: the kubelet on node-2 cannot pull nginx:latest: "))
	}
	for range 20 {
		y.clock.Step(10 * time.Minute)
		y.Expect(y.taken()).To(BeEmpty(), "for ever")
		y.Expect(y.pullingNodes()).To(Or(BeEmpty(), Equal([]string{"node-2", "node-3"})), "a few try again")
	}
	y.taken()
	y.says("node-3", pulled)
	y.says("node-2", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-3"}), "it goes on by itself")
}

// What two nodes say of an image counts for one that says nothing.
func TestImageThatCannotBePulledTakesNoPodOfASilentNode(t *testing.T) {
	y := newYard(t, 3)
	y.workload.MaxUnavailable = 3
	y.taken()
	y.fails("node-2", "node-1")
	for range 10 {
		y.Expect(y.taken()).To(BeEmpty())
		y.clock.Step(10 * time.Minute)
	}
}

func TestFailedPullIsTriedAgain(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	y.says("node-0", failed)
	y.taken()
	first := y.pullers()["node-0"].UID
	_, plan := y.plan()
	y.Expect(plan.Recheck).To(BeTemporally("<=", y.clock.Now().Add(freshPull)), "time alone brings the next try")
	y.clock.Step(freshPull)
	y.taken()
	y.taken()
	y.Expect(y.pullers()).To(HaveKey("node-0"))
	y.Expect(y.pullers()["node-0"].CreationTimestamp.Time).To(BeTemporally(">", builders.Start.Add(time.Hour+freshPull)), "not %s", first)
	y.says("node-0", begun)
	y.Expect(y.why("sample-0")).To(HavePrefix("Stuck ImageNotPullable"), "a try is no success")
}

// The kubelet ends a puller after an hour. The pull of a large image goes on with the next one.
func TestPullThatTakesLongIsNotGivenUp(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	y.says("node-0", begun)
	y.taken()
	y.clock.Step(time.Hour)
	y.says("node-0", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"})
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(BeEmpty(), "not at once")
	y.clock.Step(refusalPeriod)
	y.Expect(y.taken()).To(BeEmpty())
	y.says("node-0", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
}

func TestPodsWaitForTheirTurnToPull(t *testing.T) {
	y := newYard(t, 2)
	y.workload.MaxUnavailable, y.workload.Target.Pull.Parallelism = 2, 1
	y.Expect(y.why("sample-0")).To(Equal("Waiting ImagePull: node-0 is to pull nginx:latest when other nodes have done so"))
	y.says("node-1", begun)
	y.taken()
	y.clock.Step(time.Hour)
	y.Expect(y.taken()).To(BeEmpty())
	y.says("node-1", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-1"}))
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
}

func TestPreferPullGoesOnInTime(t *testing.T) {
	y := newYard(t, 1)
	y.workload.Target.Pull.Policy = appsv1beta1.PreferImagePull
	y.taken()
	y.says("node-0", failed)
	y.Expect(y.why("sample-0")).To(Equal("Waiting ImagePull: the kubelet on node-0 cannot pull nginx:latest: ErrImagePull: nginx:latest: not found; " +
		"the update goes on without at 2026-01-02T13:05:01Z"))
	_, plan := y.plan()
	y.Expect(plan.Recheck).NotTo(BeZero())
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
	y.taken()
	y.Expect(y.pullingNodes()).To(BeEmpty())
}

// A kubelet that says nothing, as one that is down, holds nothing up for ever.
func TestPullWithoutAnswerIsGivenUp(t *testing.T) {
	y := newYard(t, 1)
	_, plan := y.plan()
	y.Expect(plan.Recheck).To(BeTemporally("~", y.clock.Now().Add(5*time.Minute), time.Second))
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
}

func TestPullerThatIsRefusedHoldsUpForATime(t *testing.T) {
	for name, refuse := range map[string]func(*yard){
		"by a quota": func(y *yard) {
			y.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: pods"))
		},
		"by the kubelet": func(y *yard) {
			if y.pullers()["node-0"] == nil {
				y.taken()
			}
			y.says("node-0", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "exceeded quota: pods"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, 1)
			for range 4 {
				refuse(y)
				y.Expect(y.taken()).To(BeEmpty())
				y.Expect(y.why("sample-0")).To(And(HavePrefix("Waiting ImagePull: no pod pulls nginx:latest onto node-0: "),
					ContainSubstring("exceeded quota: pods"), ContainSubstring("the update goes on without at 2026-01-02T13:05:0")))
				y.clock.Step(time.Minute)
			}
			refuse(y)
			y.clock.Step(time.Minute)
			y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
			y.refuses = nil
			y.taken()
			y.Expect(y.pullingNodes()).To(BeEmpty())
		})
	}
}

func TestManagerWithoutRightsToNodesPulls(t *testing.T) {
	y := newYard(t, 1)
	y.hides = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-0", errors.New("no"))
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
}

func TestManagerWithRightsInNamespacesAsksForNoNode(t *testing.T) {
	y := newYard(t, 1)
	y.rig.executor.Puller.WithoutNodes = true
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
}

func TestPullersGoWithWhatTheyWereFor(t *testing.T) {
	for name, change := range map[string]func(*yard){
		"another image": func(y *yard) {
			template, err := inplace.ParseTemplate([]byte(`{"spec":{"containers":[{"name":"main","image":"nginx:other"}]}}`))
			y.Expect(err).NotTo(HaveOccurred())
			y.workload.Target.Revision = inplace.Revision{Name: "c", Template: template}
			y.lists("node-0", "docker.io/library/nginx:other")
			y.lists("node-1", "docker.io/library/nginx:other")
		},
		"the image before": func(y *yard) { y.workload.Target.Revision = *y.workload.Pods[0].From },
		"a pause":          func(y *yard) { y.workload.Stopped = true },
		"no pull any more": func(y *yard) { y.workload.Target.Pull.Policy = appsv1beta1.NoImagePull },
		"another manager": func(y *yard) {
			y.restart()
			y.lists("node-0", "docker.io/library/nginx:latest")
			y.says("node-1", pulled)
		},
		"all stay as it is": func(y *yard) { y.workload.Pods[0].Held, y.workload.Pods[1].Held = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, 2)
			y.taken()
			y.Expect(y.pullingNodes()).To(Equal([]string{"node-0", "node-1"}))
			change(y)
			y.taken()
			y.Expect(y.pullingNodes()).NotTo(ContainElement("node-1"))
			if name != "another manager" {
				y.Expect(y.pullingNodes()).To(BeEmpty())
			}
		})
	}
}

// unready has the containers of a pod not ready, and marks the pod as out of service.
func unready(pod *corev1.Pod, isMarked bool) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	pod.Status.ContainerStatuses[0].Ready = false
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || isMarked && c.Type == appsv1beta1.InPlaceUpdateReady {
			c.Status = corev1.ConditionFalse
		}
	}
}

// What is out of service loses nothing, and the update may help it: also when it has been drained.
func TestBrokenPodsWaitForNoPull(t *testing.T) {
	for _, isMarked := range []bool{false, true} {
		y := newYard(t, 1)
		unready(y.workload.Pods[0].Pod, isMarked)
		plan := y.moves()
		y.Expect(plan).To(HaveLen(1))
		y.Expect(plan[0].Step.Action).NotTo(Equal(inplace.MarkReady))
		y.Expect(y.pullingNodes()).To(BeEmpty())
	}
}

// drained has a pod out of service by the operator, with containers that are ready.
func (y *yard) drained(pod string) {
	for i := range y.workload.Pods {
		if p := y.workload.Pods[i].Pod; p.Name == pod {
			node := p.Spec.NodeName
			p = builders.Pod(pod, "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).
				Condition(corev1.ContainersReady, corev1.ConditionTrue, builders.Start).Build()
			p.Spec.NodeName = node
			y.workload.Pods[i].Pod = p
		}
	}
}

// A pod that is drained, and whose image is overtaken by another one, serves while that is pulled.
func TestDrainedPodServesDuringALongPull(t *testing.T) {
	y := newYard(t, 1)
	y.drained("sample-0")
	y.Expect(y.moves()).To(BeEmpty())
	y.says("node-0", begun)
	_, recheck := y.movesAnd()
	y.Expect(recheck).To(BeTemporally("<=", y.clock.Now().Add(pullWhileOut)))
	y.clock.Step(pullWhileOut)
	moves := y.moves()
	y.Expect(moves).To(HaveLen(1))
	y.Expect(moves[0].Step.Action).To(Equal(inplace.MarkReady))
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}), "the pull goes on")
}

func TestDrainedPodServesIfItsImageCannotBePulled(t *testing.T) {
	y := newYard(t, 1)
	y.drained("sample-0")
	y.moves()
	y.says("node-0", failed)
	moves := y.moves()
	y.Expect(moves).To(HaveLen(1))
	y.Expect(moves[0].Step.Action).To(Equal(inplace.MarkReady))
}

// A pod that has gone out of service with all images that it needs goes on to its last one, whatever
// other nodes say of that meanwhile.
func TestPodInTheMiddleOfItsUpdateGoesOn(t *testing.T) {
	y := newYard(t, 3)
	y.workload.MaxUnavailable = 3
	y.moves()
	y.fails("node-0", "node-1")
	y.drained("sample-2")
	known := y.rig.executor.memory.verdictsOn(y.rig.workload.GetUID(), "b")
	known.settle(inplace.Pull{Node: "node-2", Images: []inplace.Image{{Name: "nginx:latest"}, {Name: "other:1"}}})
	clear(known.pulls)
	moves := y.moves()
	y.Expect(moves).To(HaveLen(1))
	y.Expect(moves[0].Step.Action).To(Equal(inplace.Patch))
}

// What is known of an image that one account may have says nothing of another account.
func TestSettledPullsAreThoseOfAnAccount(t *testing.T) {
	y := newYard(t, 1)
	known := y.rig.executor.memory.verdictsOn(y.rig.workload.GetUID(), "b")
	pull := inplace.Pull{Node: "node-0", Images: []inplace.Image{{Name: "nginx:latest"}}}
	known.settle(pull)
	y.Expect(known.onPull(pull, true).isDone()).To(BeTrue())
	pull.As, pull.OtherAccount = &inplace.PullAccount{ServiceAccountName: "api"}, true
	y.Expect(known.onPull(pull, true).isDone()).To(BeFalse())
}

// What does not run waits for no other node, either.
func TestBrokenPodsDoNotWaitForWhatOtherNodesCannotPull(t *testing.T) {
	for policy, action := range map[appsv1beta1.PodUpdateStrategyType]inplace.Action{
		appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType: inplace.MarkNotReady, appsv1beta1.RecreatePodUpdateStrategyType: inplace.Recreate,
	} {
		y := newYard(t, 3)
		y.workload.MaxUnavailable, y.workload.Target.Policy = 3, policy
		y.moves()
		y.fails("node-0", "node-1")
		y.Expect(y.moves()).To(BeEmpty())
		unready(y.workload.Pods[0].Pod, false)
		moves := y.moves()
		y.Expect(moves).To(HaveExactElements(And(HaveField("Pod.Name", "sample-2"), HaveField("Step.Action", action))), string(policy))
	}
}

// A pull that is given up keeps no pod in service, either.
func TestDrainedPodGoesOnWhenThePullIsGivenUp(t *testing.T) {
	y := newYard(t, 1)
	y.workload.Target.Pull.Policy = appsv1beta1.PreferImagePull
	y.drained("sample-0")
	y.moves()
	y.says("node-0", begun)
	y.clock.Step(5 * time.Minute)
	moves := y.moves()
	y.Expect(moves).To(HaveLen(1))
	y.Expect(moves[0].Step.Action).To(Equal(inplace.Patch))
}

// A new manager finds pods that pull, and counts from when they were made.
func TestPullIsGivenUpInTimeByAnotherManager(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	y.clock.Step(4 * time.Minute)
	y.restart()
	_, plan := y.plan()
	y.Expect(plan.Recheck).To(BeTemporally("<", y.clock.Now().Add(61*time.Second)))
	y.clock.Step(time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
}

// Where pods get no sandbox, as where addresses are used up, the kubelet has not begun to pull.
func TestPullerWithoutASandboxIsGivenUp(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	status := *begun.DeepCopy()
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
	y.says("node-0", status)
	y.taken()
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
}

// A quota that has no room for one pod has none for the next one.
func TestRefusedPullersAreWaitedForOnce(t *testing.T) {
	y := newYard(t, 6)
	y.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: pods"))
	y.taken()
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-5"}))
	y.workload.MaxUnavailable = 6
	y.Expect(y.taken()).To(HaveLen(6))
}

// The kubelet deletes images that nothing uses.
func TestProofOfAnImageExpires(t *testing.T) {
	y := newYard(t, 1)
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
	y.lists("node-0")
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
	y.clock.Step(proofAge)
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
}

// Another client may delete what pulls, as a drain of the node does.
func TestPullerThatIsDeletedIsNotMadeAtOnce(t *testing.T) {
	y := newYard(t, 1)
	for range 3 {
		y.taken()
		y.Expect(y.client.Delete(t.Context(), y.pullers()["node-0"])).To(Succeed())
		y.taken()
		y.Expect(y.pullingNodes()).To(BeEmpty())
		y.clock.Step(refusalPeriod)
	}
}

// A pull that fills the disk has its pod evicted. That is no answer of a registry.
func TestPullerThatIsEvictedIsGivenUp(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	y.says("node-0", begun)
	y.taken()
	y.clock.Step(time.Hour)
	y.says("node-0", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on resource: ephemeral-storage"})
	y.Expect(y.taken()).To(BeEmpty())
	y.Expect(y.why("sample-0")).To(ContainSubstring("no pod pulls nginx:latest onto node-0: the kubelet does not take it: Evicted"))
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
}

// Where two kubelets have said nothing, the others are not waited for as long.
func TestNodesThatDoNotAnswerAreWaitedForTogether(t *testing.T) {
	y := newYard(t, 4)
	y.workload.Target.Pull.RefusedTimeout, y.workload.Target.Pull.Parallelism = 30*time.Second, 2
	y.taken()
	y.clock.Step(5 * time.Minute)
	y.Expect(y.taken()).To(Equal([]string{"sample-3"}))
	y.workload.MaxUnavailable = 4
	y.taken()
	y.clock.Step(30 * time.Second)
	y.Expect(y.taken()).To(HaveLen(4))
}

// What is wrong with the API server for a moment says nothing of pods that pull.
func TestServerThatFailsForAMomentIsAskedAgain(t *testing.T) {
	y := newYard(t, 2)
	y.workload.Target.Pull.RefusedTimeout = 30 * time.Second
	y.refuses = apierrors.NewTooManyRequests("busy", 1)
	y.taken()
	y.clock.Step(time.Minute)
	y.Expect(y.taken()).To(BeEmpty())
	y.refuses = nil
	y.clock.Step(refusalPeriod)
	y.taken()
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0", "node-1"}))
}

// A rollout that is stuck for another reason has no more images pulled than come next.
func TestStuckRolloutPullsNoFurther(t *testing.T) {
	y := newYard(t, 6)
	y.taken()
	for _, node := range []string{"node-5", "node-4"} {
		y.says(node, pulled)
	}
	y.Expect(y.taken()).To(Equal([]string{"sample-5"}))
	y.workload.MaxUnavailable = 0 // as while another pod does not become ready
	y.workload.Target.Pull.Parallelism = 2
	var made []string
	for range 20 {
		y.taken()
		for node, puller := range y.pullers() {
			if puller.Status.Phase == "" {
				made = append(made, node)
				y.says(node, pulled)
			}
		}
		y.clock.Step(proofAge)
	}
	y.Expect(made).To(ConsistOf("node-3", "node-2"), "twice as many as pull at a time, once")
}

// After a failed pull that the manager cannot repeat now, and without an event, there is a next time.
func TestPostponedPullIsTriedAgain(t *testing.T) {
	y := newYard(t, 1)
	y.taken()
	y.says("node-0", failed)
	y.taken()
	y.pulling.MaxConcurrent = 1
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web-pull-1", Labels: map[string]string{appsv1beta1.PullerLabel: "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pull-0"}}},
		Status:     begun,
	}
	y.clock.Step(freshPull)
	y.Expect(y.client.Create(t.Context(), other)).To(Succeed())
	y.taken() // deletes the one that failed
	_, plan := y.plan()
	y.Expect(y.pullers()).To(BeEmpty())
	y.Expect(plan.Recheck).To(And(BeTemporally(">", y.clock.Now()), BeTemporally("<=", y.clock.Now().Add(pullPause))))
	y.clock.Step(slowPull) // the other one may be on a node that is dead
	y.taken()
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
}

// A node that is full is waited for, and then those that are, too, are not.
func TestFullNodesAreWaitedForOnce(t *testing.T) {
	y := newYard(t, 4)
	full := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods"}
	y.workload.Target.Pull.RefusedTimeout, y.workload.Target.Pull.Parallelism = 30*time.Second, 3
	y.taken()
	y.says("node-3", full)
	y.says("node-2", full)
	y.says("node-1", begun)
	y.clock.Step(30 * time.Second)
	y.workload.MaxUnavailable = 3
	y.Expect(y.taken()).To(Equal([]string{"sample-3", "sample-2"}), "node-1 has room, and is waited for")
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-0", "node-1"}))
	y.says("node-0", full)
	y.workload.MaxUnavailable = 4
	y.Expect(y.taken()).To(Equal([]string{"sample-3", "sample-2", "sample-0"}))
}

func TestPolicyOfWorkloadsThatSayNone(t *testing.T) {
	for name, test := range map[string]struct {
		manager, workload appsv1beta1.ImagePullPolicyType
		waits             bool
	}{
		"required by default":      {"", "", true},
		"as the manager says":      {appsv1beta1.NoImagePull, "", false},
		"as the workload says":     {appsv1beta1.NoImagePull, appsv1beta1.RequireImagePull, true},
		"as the workload says not": {appsv1beta1.RequireImagePull, appsv1beta1.NoImagePull, false},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, 1)
			y.pulling.Policy, y.workload.Target.Pull.Policy = test.manager, test.workload
			if test.waits {
				y.Expect(y.taken()).To(BeEmpty())
				y.Expect(y.pullingNodes()).To(Equal([]string{"node-0"}))
			} else {
				y.Expect(y.taken()).To(Equal([]string{"sample-0"}))
				y.Expect(y.pullingNodes()).To(BeEmpty())
			}
		})
	}
}

func TestPullsAheadWaitForPodsThatAreUpdated(t *testing.T) {
	y := newYard(t, 5)
	y.workload.Target.Pull.MinUpdatedReady, y.workload.Target.Pull.Parallelism = 1, 3
	y.taken()
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-4"}), "that of the next pod")
	y.says("node-4", pulled)
	y.Expect(y.taken()).To(Equal([]string{"sample-4"}))
	y.Expect(y.pullingNodes()).To(BeEmpty())

	updated := y.workload.Pods[slices.IndexFunc(y.workload.Pods, func(f inplace.PodFacts) bool { return f.Pod.Name == "sample-4" })].Pod
	updated.Labels["controller-revision-hash"], updated.Spec.Containers[0].Image = y.workload.Target.Name, "nginx:latest"
	y.taken()
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-1", "node-2", "node-3"}))
}

// The pods of other workloads count, those whose pulls fail do not.
func TestManagerPullsSoManyAtATime(t *testing.T) {
	y := newYard(t, 4)
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web-pull-1", Labels: map[string]string{appsv1beta1.PullerLabel: "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pull-0"}}},
		Status:     begun,
	}
	y.Expect(y.client.Create(t.Context(), other)).To(Succeed())
	y.pulling.MaxConcurrent, y.workload.MaxUnavailable = 3, 4
	y.taken()
	y.Expect(y.pullers()).To(HaveLen(2))
	_, plan := y.plan()
	y.Expect(plan.Recheck).To(BeTemporally("<=", y.clock.Now().Add(pullPause)))
	y.Expect(y.why("sample-1")).To(Equal("Waiting ImagePull: node-1 is to pull nginx:latest when other nodes have done so"))
	y.clock.Step(pullPause)
	y.taken()
	y.Expect(y.pullers()).To(HaveLen(2))
	other.Status = failed
	y.Expect(y.client.Status().Update(t.Context(), other)).To(Succeed())
	y.clock.Step(pullPause)
	y.taken()
	y.Expect(y.pullers()).To(HaveLen(3))
	y.says("node-3", pulled)
	y.clock.Step(pullPause)
	y.taken()
	y.Expect(y.pullingNodes()).To(ContainElement("node-0"), "the last one")
}

func TestPullsAtATime(t *testing.T) {
	for name, test := range map[string]struct{ set, unavailable, want int }{
		"twice as many as may be out": {0, 3, 6},
		"as set":                      {4, 3, 4},
		"one at least":                {0, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, 10)
			y.workload.MaxUnavailable, y.workload.Target.Pull.Parallelism = test.unavailable, test.set
			y.taken()
			y.Expect(y.pullers()).To(HaveLen(test.want))
		})
	}
}
