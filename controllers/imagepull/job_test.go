// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
)

func TestJobPullsOntoAllNodesAFewAtATime(t *testing.T) {
	w := newWorld(t, append(nodes("a", "b", "c", "d", "e"), node("v", "type", "virtual-kubelet"))...)
	w.addJob("pull", `{image: "web:2", parallelism: 2}`)

	w.run(2)
	w.Expect(w.job("pull").Status).To(And(HaveField("Desired", int32(5)), HaveField("Active", int32(2)), HaveField("Message", "job is running, progress 40.0%")))
	w.run(8)

	w.Expect(result(w.job("pull"))).To(Equal([]any{int32(5), int32(0), int32(5), int32(0), "", "job has completed", true}))
	w.Expect(w.most).To(Equal(2))
	w.Expect(w.tries).To(HaveLen(5))
	for name := range w.tries {
		w.Expect(w.triesOn(name)).To(Equal(1), name)
	}
	w.Expect(w.pods()).To(BeEmpty(), "nothing is left")
	w.Expect(w.job("pull").Status.SucceededNodes).To(BeEmpty(), "it may be long")
}

func TestNodeThatCannotPullFailsAfterItsTries(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c")...)
	w.lacks["b"] = true
	w.addJob("pull", `{image: "web:2", parallelism: 3, pullPolicy: {backoffLimit: 4, timeoutSeconds: 60}}`)

	w.run(5)
	w.Expect(result(w.job("pull"))[1:4]).To(Equal([]any{int32(1), int32(2), int32(0)}), "it tries again")
	w.run(20)

	job := w.job("pull")
	w.Expect(result(job)).To(Equal([]any{int32(3), int32(0), int32(2), int32(1), "b", "job has completed", true}))
	w.Expect(job.Status.LastFailure).To(Equal("b: ErrImagePull: not found"))
	w.Expect(w.triesOn("b")).To(Equal(4))
	w.Expect(w.pods()).To(BeEmpty())
	w.Expect(w.recorder.Events).To(Receive(Equal("Warning ImageNotPullable b cannot pull web:2: ErrImagePull: not found")))
}

// What comes of the nodes of a job is counted once each, and how long those took that have pulled.
func TestPullsAreCounted(t *testing.T) {
	w, metrics := newWorld(t, nodes("a", "b", "c")...), executor.NewMetrics()
	w.jobs.metrics = metrics.PullsOf(appsv1beta1.ImagePullJobKind)
	w.lacks["b"] = true
	w.addJob("pull", `{image: "web:2", parallelism: 3, pullPolicy: {backoffLimit: 2, timeoutSeconds: 60}, completionPolicy: {type: Never}}`)

	w.run(30)

	registry := prometheus.NewPedanticRegistry()
	for _, collector := range metrics.Collectors() {
		w.Expect(registry.Register(collector)).To(Succeed())
	}
	families, err := registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			w.Expect(metric.Label[0].GetValue()).To(Or(Equal("ImagePullJob.apps.kruise.io"), Equal("Done"), Equal("Failed")), family.GetName())
			if family.GetName() == "insitu_image_pulls_total" {
				counts[metric.Label[1].GetValue()] = metric.GetCounter().GetValue()
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				counts["times"] = float64(histogram.GetSampleCount())
				w.Expect(histogram.GetSampleSum()).To(And(BeNumerically(">", 0), BeNumerically("<", 10)), "seconds")
			}
		}
	}
	w.Expect(counts).To(Equal(map[string]float64{"Pulled": 2, "Failed": 1, "times": 2}))
}

// A pod that is left of a node that the status has is counted no more.
func TestPullThatTheStatusHasIsNotCounted(t *testing.T) {
	g := NewWithT(t)
	job := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Spec: appsv1beta1.ImagePullJobSpec{Image: "web:2"}}
	a := target{name: "a", isReady: true}
	pod := puller(job, attempt{target: a, number: 1})
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError"}},
	}}
	know := func() *memory { return &memory{tries: map[string]try{}} }
	seen := observe(job, know(), []target{a}, []*corev1.Pod{pod}, time.Now())
	g.Expect(seen.pulls).To(HaveLen(1))

	seen.describe(&job.Status, "", "")
	seen = observe(job, know(), []target{a}, []*corev1.Pod{pod}, time.Now())
	g.Expect(seen.succeeded).To(Equal([]string{"a"}))
	g.Expect(seen.pulls).To(BeEmpty())
}

func TestNodeWhoseRegistryComesBackHasTheImage(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.lacks["a"] = true
	w.addJob("pull", `{image: "web:2"}`)
	w.run(3)
	w.lacks["a"] = false
	w.run(5)

	w.Expect(result(w.job("pull"))[2:4]).To(Equal([]any{int32(1), int32(0)}))
}

func TestTryThatTakesTooLongHasFailed(t *testing.T) {
	w := newWorld(t, nodes("dead", "slow")...)
	w.dead["dead"], w.slow["slow"] = true, true
	w.addJob("pull", `{image: "web:2", parallelism: 2, pullPolicy: {backoffLimit: 2, timeoutSeconds: 30}}`)

	w.run(32)
	w.Expect(result(w.job("pull"))[:5]).To(Equal([]any{int32(2), int32(1), int32(0), int32(1), "dead"}), "another pod would not be answered either")
	w.Expect(w.job("pull").Status.LastFailure).To(Equal("dead: no kubelet has answered for 30s"))
	w.run(32)

	w.Expect(result(w.job("pull"))[:5]).To(Equal([]any{int32(2), int32(0), int32(0), int32(2), "dead slow"}))
	w.Expect(w.job("pull").Status.LastFailure).To(Equal("slow: the kubelet still pulls after 30s"))
	w.Expect([]int{w.triesOn("dead"), w.triesOn("slow")}).To(Equal([]int{1, 2}))
	w.Expect(w.pods()).To(BeEmpty())
}

func TestDeadlineEndsTheJob(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c")...)
	w.slow["b"] = true
	w.addJob("pull", `{image: "web:2", pullPolicy: {timeoutSeconds: 20}, completionPolicy: {activeDeadlineSeconds: 20, ttlSecondsAfterFinished: 30}}`)

	w.run(22)
	job := w.job("pull")
	w.Expect(result(job)).To(Equal([]any{int32(3), int32(0), int32(1), int32(2), "b c", "job exceeds activeDeadlineSeconds", true}))
	w.Expect(job.Status.CompletionTime.Sub(job.Status.StartTime.Time)).To(Equal(20 * time.Second))
	w.Expect(w.pods()).To(BeEmpty())

	w.run(28)
	w.job("pull")
	w.run(2)
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pull"}, &appsv1beta1.ImagePullJob{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "its time is over")
}

func TestEndlessJobServesNewNodesWhenTheyAreReady(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.lacks["b"] = true
	w.addJob("pull", `{image: "web:2", parallelism: 5, completionPolicy: {type: Never}}`)
	w.run(20)
	w.Expect(result(w.job("pull"))).To(Equal([]any{int32(2), int32(0), int32(1), int32(1), "b", "job is running, progress 100.0%", false}))

	late := node("c")
	late.Status.Conditions[0].Status = corev1.ConditionFalse
	w.Expect(w.client.Create(t.Context(), late)).To(Succeed())
	w.run(5)
	w.Expect(result(w.job("pull"))[:3]).To(Equal([]any{int32(3), int32(0), int32(1)}))
	w.Expect(w.tries).NotTo(HaveKey("c"))

	late.Status.Conditions[0].Status = corev1.ConditionTrue
	w.Expect(w.client.Status().Update(t.Context(), late)).To(Succeed())
	w.run(5)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(3), int32(0), int32(2), int32(1)}))

	w.Expect(w.client.Delete(t.Context(), late)).To(Succeed())
	w.run(2)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(2), int32(0), int32(1), int32(1)}))
	w.Expect(w.job("pull").Status.SucceededNodes).To(Equal([]string{"a"}))
	w.Expect(w.pods()).To(BeEmpty())
}

// Nodes that have failed try again after ten minutes, and all nodes pull again each day: kubelets
// delete images that nothing uses.
func TestEndlessJobTriesAgain(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.lacks["b"] = true
	w.addJob("pull", `{image: "web:2", parallelism: 5, completionPolicy: {type: Never}}`)
	w.run(20)
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{1, 3}))
	w.Expect(w.look("pull")).To(BeNumerically("~", failurePeriod, 20*time.Second))

	w.clock.Step(failurePeriod - 30*time.Second)
	w.run(5)
	w.Expect(w.triesOn("b")).To(Equal(3), "not yet")
	w.lacks["b"] = false
	w.clock.Step(30 * time.Second)
	w.run(5)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(2), int32(0), int32(2), int32(0)}))
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{1, 4}))
	w.Expect(w.look("pull")).To(BeNumerically("~", roundPeriod, 15*time.Minute))

	w.clock.Step(roundPeriod)
	w.slow["b"] = true
	w.run(5)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(2), int32(1), int32(1), int32(0)}))
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{2, 5}))
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.PullPolicy.TimeoutSeconds = ptr.To[int32](1e6) })
	w.clock.Step(roundPeriod)
	w.run(5)
	w.Expect(w.triesOn("a")).To(Equal(2), "a day that has not ended goes on")
}

func TestChangedSpecLetsFailedNodesTryAgain(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.lacks["b"] = true
	w.addJob("pull", `{image: "web:2", parallelism: 2, completionPolicy: {type: Never}}`)
	w.run(20)
	w.Expect(w.job("pull").Status.FailedNodes).To(Equal([]string{"b"}))

	w.lacks["b"] = false
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Image = "web:3" })
	w.run(5)

	w.Expect(result(w.job("pull"))[:5]).To(Equal([]any{int32(2), int32(0), int32(2), int32(0), ""}))
	w.Expect(w.job("pull").Status.LastFailure).To(BeEmpty())
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{2, 4}), "all nodes pull another image")

	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Parallelism.IntVal = 1 })
	w.run(3)
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{2, 4}), "those that have it need not pull")
}

func TestCompleteJobIsNotBegunAgain(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.addJob("pull", `{image: "web:2"}`)
	w.run(3)
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Image = "web:3" })
	w.Expect(w.client.Create(t.Context(), node("b"))).To(Succeed())
	w.run(5)

	w.Expect(w.tries).To(HaveLen(1))
	w.Expect(result(w.job("pull"))[0]).To(Equal(int32(1)))
}

func TestPausedJob(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addJob("pull", `{image: "web:2", parallelism: "0"}`)
	w.run(5)
	w.Expect(w.tries).To(BeEmpty())
	w.Expect(result(w.job("pull"))).To(Equal([]any{int32(2), int32(0), int32(0), int32(0), "", "job is running, progress 0.0%", false}))

	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Parallelism.StrVal = "5" })
	w.run(3)
	w.Expect(result(w.job("pull"))[2]).To(Equal(int32(2)))
}

func TestJobWithoutNodesIsCompleteAtOnce(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.addJob("pull", `{image: "web:2", selector: {names: [gone]}}`)
	w.run(1)
	w.Expect(result(w.job("pull"))).To(Equal([]any{int32(0), int32(0), int32(0), int32(0), "", "job has completed", true}))
}

func TestTargets(t *testing.T) {
	pod := func(name, app, on string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
			Spec:       corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	elsewhere := pod("web-9", "web", "e", corev1.PodRunning)
	elsewhere.Namespace = "bank"
	objects := []client.Object{
		node("a"), node("b", "disk", "ssd"), node("c", "disk", "ssd"), node("d", "disk", "none"), node("e"),
		pod("web-0", "web", "c", corev1.PodRunning), pod("web-1", "web", "", corev1.PodPending), pod("web-2", "web", "d", corev1.PodFailed),
		pod("db-0", "db", "a", corev1.PodRunning), elsewhere,
	}
	tests := map[string]struct {
		spec string
		// want are the nodes; inNamespaces those of a manager without rights to nodes, nil for none.
		want, inNamespaces []string
	}{
		"all":         {`{image: x}`, []string{"a", "b", "c", "d", "e"}, nil},
		"empty":       {`{image: x, selector: {}}`, []string{"a", "b", "c", "d", "e"}, nil},
		"names":       {`{image: x, selector: {names: [c, a, z]}}`, []string{"a", "c"}, []string{"a", "c", "z"}},
		"labels":      {`{image: x, selector: {matchLabels: {disk: ssd}}}`, []string{"b", "c"}, nil},
		"expressions": {`{image: x, selector: {matchExpressions: [{key: disk, operator: DoesNotExist}]}}`, []string{"a", "e"}, nil},
		"pods":        {`{image: x, podSelector: {matchLabels: {app: web}}}`, []string{"c"}, []string{"c"}},
		"all pods":    {`{image: x, podSelector: {}}`, []string{"a", "c"}, []string{"a", "c"}},
		"no pods":     {`{image: x, podSelector: {matchLabels: {app: none}}}`, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objects...)
			job := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
			w.Expect(yaml.UnmarshalStrict([]byte("spec: "+test.spec), job)).To(Succeed())

			w.Expect(namesOf(w.jobs.targets(t.Context(), job, nil))).To(HaveExactElements(test.want))
			w.jobs.namespaceScope = true
			w.Expect(namesOf(w.jobs.targets(t.Context(), job, nil))).To(HaveExactElements(test.inNamespaces))
		})
	}
}

func namesOf(targets []target, _ string, _ error) []string {
	var names []string
	for _, node := range targets {
		names = append(names, node.name)
	}
	return names
}

func TestManagerWithoutNodesSaysSo(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.jobs.namespaceScope = true
	w.addJob("pull", `{image: "web:2"}`)
	w.run(2)

	w.Expect(w.job("pull").Status.Message).To(ContainSubstring("name the nodes in selector.names, or select pods"))
	w.Expect(w.job("pull").Status.CompletionTime).To(BeNil())
	w.Expect(w.tries).To(BeEmpty())
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) {
		spec.Selector = &appsv1beta1.ImagePullJobNodeSelector{Names: []string{"a"}}
	})
	w.run(3)
	w.Expect(result(w.job("pull"))[2:]).To(Equal([]any{int32(1), int32(0), "", "job has completed", true}))
}

func TestReadyNodesBeginFirst(t *testing.T) {
	late := node("a")
	late.Status.Conditions[0].Status = corev1.ConditionUnknown
	w := newWorld(t, late, node("b"), node("c"))
	w.dead["a"] = true
	w.addJob("pull", `{image: "web:2", pullPolicy: {timeoutSeconds: 10}}`)
	w.run(5)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(3), int32(1), int32(2), int32(0)}))
	w.run(10)
	w.Expect(w.job("pull").Status.FailedNodes).To(Equal([]string{"a"}), "a job that completes does not wait for ever")
}

func TestRefusedPodsAreMadeLater(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.refuses = quota
	w.addJob("pull", `{image: "web:2", parallelism: 2}`)
	w.run(3)
	w.Expect(w.job("pull").Status).To(And(
		HaveField("Active", int32(0)), HaveField("Failed", int32(0)),
		HaveField("Message", ContainSubstring("job is running, progress 0.0%; the API server does not take the pod that pulls: ")),
		HaveField("Message", ContainSubstring("exceeded quota")),
	))
	w.Expect(w.recorder.Events).To(Receive(ContainSubstring("Warning FailedCreate the API server does not take the pod that pulls")))

	w.refuses = nil
	w.run(32)
	w.Expect(result(w.job("pull"))[2:]).To(Equal([]any{int32(2), int32(0), "", "job has completed", true}))
}

// A server that refuses pods is not asked at each event, and nodes that are refused do not keep
// others. When it takes none for as long as a try may take, the nodes have failed.
func TestNodesThatAreRefused(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c", "d", "e", "f", "g", "h")...)
	w.refuses, w.refusesOn = quota, map[string]bool{"a": true, "b": true, "c": true, "d": true}
	w.addJob("pull", `{image: "web:2", parallelism: 4, pullPolicy: {timeoutSeconds: 300}}`)
	w.run(90)
	w.Expect(w.job("pull").Status.SucceededNodes).To(Equal([]string{"e", "f", "g", "h"}))
	w.Expect(w.refused).To(BeNumerically("<=", 16))
	w.Expect(w.job("pull").Status.Message).To(ContainSubstring("exceeded quota"))
	w.run(300)
	w.Expect(result(w.job("pull"))[1:4]).To(Equal([]any{int32(0), int32(4), int32(0)}), "not given up yet")
	w.run(330)
	w.Expect(result(w.job("pull"))).To(Equal([]any{int32(8), int32(0), int32(4), int32(4), "a b c d", "job has completed", true}))
	w.Expect(w.job("pull").Status.LastFailure).To(ContainSubstring("exceeded quota"))
	w.Expect(w.refused).To(BeNumerically("<=", 100))
	for len(w.recorder.Events) > 0 {
		w.Expect(<-w.recorder.Events).To(ContainSubstring("exceeded quota"))
	}
}

// Nodes that are refused are asked for one after the other, so that none waits behind them.
func TestNodesBehindThoseThatAreRefused(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c", "d", "e", "f")...)
	w.refuses, w.refusesOn = quota, map[string]bool{"a": true, "b": true}
	w.addJob("pull", `{image: "web:2", parallelism: 1, pullPolicy: {timeoutSeconds: 1}}`)
	w.run(12)
	w.Expect(w.job("pull").Status.SucceededNodes).To(Equal([]string{"c", "d", "e", "f"}))
	w.Expect(w.job("pull").Status.FailedNodes).To(BeEmpty())
}

// A job that has given up asks again: an endless one after ten minutes, one whose spec has changed at
// once. Time in which it does not ask does not count.
func TestRefusalsThatAreOver(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c", "d")...)
	w.refuses = quota
	w.addJob("pull", `{image: "web:2", parallelism: 4, completionPolicy: {type: Never}}`)
	w.run(650)
	w.Expect(w.job("pull").Status.FailedNodes).To(HaveLen(4))
	w.refuses = nil
	w.run(500)
	w.Expect(w.tries).To(BeEmpty())
	w.run(120)
	w.Expect(w.job("pull").Status.SucceededNodes).To(HaveLen(4))

	w.refuses = quota
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Image = "web:3" })
	w.run(60)
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Parallelism.IntVal = 0 })
	w.run(700)
	w.Expect(w.job("pull").Status.FailedNodes).To(BeEmpty(), "it is paused")
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Parallelism.IntVal = 4 })
	w.run(60)
	w.Expect(w.job("pull").Status.FailedNodes).To(BeEmpty(), "it has asked for a minute")
	w.refuses = nil
	w.run(32)
	w.Expect(w.job("pull").Status.SucceededNodes).To(HaveLen(4))
}

// A pull that is another one begins with the first try.
func TestChangedPullPolicy(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.slow["a"] = true
	w.addJob("pull", `{image: "web:2", pullPolicy: {backoffLimit: 1}}`)
	w.run(3)
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.ImagePullPolicy = corev1.PullAlways })
	w.run(3)
	w.Expect(w.nodesWithPods()).To(Equal([]string{"a"}))
	w.slow["a"] = false
	w.run(3)
	w.Expect(result(w.job("pull"))[2:4]).To(Equal([]any{int32(1), int32(0)}))
}

// Three pods that are refused end an attempt: there may be thousands.
func TestServerThatRefusesAllPodsIsAskedForFew(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c", "d", "e", "f", "g", "h")...)
	w.refuses = quota
	w.addJob("pull", `{image: "web:2", parallelism: 8}`)
	w.run(61)
	w.Expect(w.refused).To(Equal(3 * enoughRefusals))
	w.Expect(w.tries).To(BeEmpty())
	w.refuses = nil
	w.run(40)
	w.Expect(result(w.job("pull"))[2]).To(Equal(int32(8)))
}

func TestNextLook(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addJob("pull", `{image: "web:2", parallelism: 2, pullPolicy: {timeoutSeconds: 90}, completionPolicy: {ttlSecondsAfterFinished: 120}}`)
	w.refuses = quota
	w.Expect(w.look("pull")).To(Equal(passPeriod), "other nodes may be accepted")
	w.Expect(w.look("pull")).To(Equal(passPeriod), "what comes at the same time is looked at together")
	w.clock.Step(time.Second)
	w.Expect(w.look("pull")).To(Equal(refusalPeriod - time.Second))
	w.clock.Step(refusalPeriod)
	w.refuses, w.pulling.MaxConcurrent = nil, 3
	w.Expect(w.look("pull")).To(Equal(limitPeriod))
	w.Expect(w.nodesWithPods()).To(HaveLen(1), "the other half is for updates")
	w.pulling.MaxConcurrent = 0
	w.clock.Step(limitPeriod)
	w.Expect(w.look("pull")).To(Equal(85*time.Second), "the first try ends then")
	w.kubelets()
	w.clock.Step(time.Second)
	w.Expect(w.look("pull")).To(Equal(120 * time.Second))
}

func TestJobThatWaitsForOthersSaysSo(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.slow["a"] = true
	w.pulling.MaxConcurrent = 3
	w.addJob("pull", `{image: "web:2", parallelism: 2}`)
	w.run(2)
	w.Expect(w.nodesWithPods()).To(Equal([]string{"a"}))
	w.Expect(w.job("pull").Status.Message).To(Equal("job is running, progress 0.0%; it waits for others that pull: jobs have half of config.imagePull.maxConcurrent"))
}

// A job of many nodes does not keep others from beginning.
func TestJobsShareWhatTheManagerPulls(t *testing.T) {
	var many []string
	for i := range 80 {
		many = append(many, fmt.Sprintf("node-%02d", i))
	}
	w := newWorld(t, append(nodes(many...), nodes("z-1", "z-2")...)...)
	w.pulling.MaxConcurrent = 8
	names, err := json.Marshal(many)
	w.Expect(err).NotTo(HaveOccurred())
	w.addJob("a-large", `{image: "web:2", parallelism: 80, selector: {names: `+string(names)+`}}`)
	w.run(2)
	w.addJob("small", `{image: "db:5", parallelism: 2, selector: {names: [z-1, z-2]}}`)
	w.run(10)
	w.Expect(w.job("small").Status.CompletionTime).NotTo(BeNil())
	w.Expect(w.job("a-large").Status.CompletionTime).To(BeNil())
	w.run(40)
	w.Expect(w.job("a-large").Status.Succeeded).To(Equal(int32(80)), "it has all for itself in the end")
}

// Thousands of nodes change the status less than once for each.
func TestStatusIsWrittenOnceInASecond(t *testing.T) {
	w := newWorld(t, nodes("a", "b", "c", "d")...)
	w.addJob("pull", `{image: "web:2"}`)
	versions := map[string]bool{}
	for range 8 {
		w.look("pull")
		w.kubelets()
		versions[w.job("pull").ResourceVersion] = true
		w.clock.Step(passPeriod)
	}
	w.Expect(w.tries).To(HaveLen(4))
	w.Expect(versions).To(HaveLen(2))
	w.run(2)
	w.Expect(result(w.job("pull"))[2]).To(Equal(int32(4)))
}

// Where the container waits since its command is not there, the image is: with CRI-O.
func TestContainerThatWaitsWithoutItsCommand(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.waits["a"] = true
	w.addJob("pull", `{image: "web:2"}`)
	w.run(3)
	w.Expect(result(w.job("pull"))[2:]).To(Equal([]any{int32(1), int32(0), "", "job has completed", true}))
}

func TestPodThatPulls(t *testing.T) {
	w := newWorld(t, node("win", corev1.LabelOSStable, "windows"))
	w.addJob("pull", `{image: "web:2", imagePullPolicy: Always, pullSecrets: [mirror, own], pullPolicy: {timeoutSeconds: 7200},
  sandboxConfig: {labels: {team: web, insitu.dev/image-puller: mine}, annotations: {registry/hint: fast}}}`)
	w.run(1)
	w.Expect(w.pods()).To(HaveLen(1))
	for _, pod := range w.pods() {
		w.Expect(pod.Labels).To(And(HaveKeyWithValue("team", "web"), HaveKeyWithValue(appsv1beta1.PullerLabel, string(w.job("pull").UID))))
		w.Expect(pod.Annotations).To(HaveKeyWithValue("registry/hint", "fast"))
		w.Expect(metav1.GetControllerOf(pod)).To(And(HaveField("Kind", "ImagePullJob"), HaveField("Name", "pull")))
		w.Expect(pod.Spec.ImagePullSecrets).To(HaveExactElements(HaveField("Name", "mirror"), HaveField("Name", "own")))
		w.Expect(pod.Spec.Tolerations).To(HaveExactElements(corev1.Toleration{Operator: corev1.TolerationOpExists}))
		w.Expect(pod.Spec.OS).To(HaveField("Name", corev1.Windows))
		w.Expect(pod.Spec.Containers).To(HaveExactElements(And(HaveField("Image", "web:2"), HaveField("ImagePullPolicy", corev1.PullAlways))))
		w.Expect(pod.Spec.ActiveDeadlineSeconds).To(Equal(ptr.To[int64](7260)), "longer than the try")
	}
}

// Other hands: pods that are deleted, evicted or rejected cost a try, and the job goes on.
func TestPodsThatEndOtherwise(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.slow["a"], w.slow["b"] = true, true
	w.addJob("pull", `{image: "web:2", parallelism: 2, pullPolicy: {backoffLimit: 2}}`)
	w.run(3)
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == "a" {
			w.Expect(w.client.Delete(t.Context(), pod)).To(Succeed())
			continue
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "too many"}
		w.Expect(w.client.Status().Update(t.Context(), pod)).To(Succeed())
	}
	w.run(3)
	w.Expect([]int{w.triesOn("b"), len(w.pods())}).To(Equal([]int{2, 2}))
	w.Expect(w.tries["a"]).To(HaveExactElements(HaveSuffix("-1"), HaveSuffix("-2")))
	w.slow["a"], w.slow["b"] = false, false
	w.run(3)
	w.Expect(result(w.job("pull"))[2:4]).To(Equal([]any{int32(2), int32(0)}))
}

// How often a node has tried is known also when the next pod is refused, and by a manager that is
// new; the server is not asked again at once.
func TestTriesThatAreRefused(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.lacks["a"] = true
	w.addJob("pull", `{image: "web:2", pullPolicy: {backoffLimit: 2, timeoutSeconds: 300}}`)
	w.run(1)
	w.restart()
	w.refuses = quota
	w.run(59)
	w.Expect(w.refused).To(Equal(2))
	w.Expect(w.job("pull").Status.Active).To(Equal(int32(1)))
	w.refuses = nil
	w.run(35)
	w.Expect(w.triesOn("a")).To(Equal(2))
	w.Expect(result(w.job("pull"))[3:]).To(Equal([]any{int32(1), "a", "job has completed", true}))
}

func TestTriesThatAreRefusedForLong(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.lacks["a"] = true
	w.addJob("pull", `{image: "web:2", completionPolicy: {type: Never}}`)
	w.run(1)
	w.refuses = quota
	w.run(640)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(1), int32(0), int32(0), int32(1)}))
}

// While pods are accepted, those that are refused are not given up.
func TestRefusalsBetweenPodsThatAreAccepted(t *testing.T) {
	g, know := NewWithT(t), &memory{tries: map[string]try{}}
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 3*refusalEnd; at += refusalPeriod {
		if at%(5*time.Minute) == 0 {
			know.accept("b", 1, start.Add(at))
		}
		g.Expect(know.refuse("a", "no", start.Add(at))).To(BeFalse(), at.String())
	}
}

// A client that deletes each pod that pulls cannot have them made for ever.
func TestPodsThatAreDeletedAgainAndAgain(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.slow["a"], w.slow["b"] = true, true
	w.addJob("pull", `{image: "web:2", parallelism: 2}`)
	for range 30 {
		for _, pod := range w.pods() {
			w.Expect(w.client.Delete(t.Context(), pod)).To(Succeed())
		}
		w.run(1)
	}
	w.Expect(result(w.job("pull"))[3:]).To(Equal([]any{int32(2), "a b", "job has completed", true}))
	w.Expect(w.job("pull").Status.LastFailure).To(Equal("b: its pod was deleted"))
	w.Expect([]int{w.triesOn("a"), w.triesOn("b")}).To(Equal([]int{3, 3}))
}

// The pod for which a node pulls may restart: the pull goes on.
func TestPodsThatMoveWhileTheirNodesPull(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0", Labels: map[string]string{"app": "web"}}}
	web.Spec.NodeName = "a"
	w := newWorld(t, append(nodes("a", "b"), web)...)
	w.slow["a"] = true
	w.addJob("pull", `{image: "web:2", podSelector: {matchLabels: {app: web}}}`)
	w.run(3)
	w.Expect(w.client.Delete(t.Context(), web)).To(Succeed())
	w.run(3)
	w.Expect(w.nodesWithPods()).To(Equal([]string{"a"}))
	w.Expect(w.job("pull").Status.CompletionTime).To(BeNil())
	w.slow["a"] = false
	w.run(3)
	w.Expect(w.job("pull").Status.CompletionTime).NotTo(BeNil())
	w.Expect(w.triesOn("a")).To(Equal(1))
}

// That holds for the image that the spec has.
func TestPodsThatAreGoneWhenTheImageChanges(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0", Labels: map[string]string{"app": "web"}}}
	web.Spec.NodeName = "a"
	w := newWorld(t, node("a"), web)
	w.slow["a"] = true
	w.addJob("pull", `{image: "web:2", podSelector: {matchLabels: {app: web}}, completionPolicy: {type: Never}}`)
	w.run(3)
	w.Expect(w.client.Delete(t.Context(), web)).To(Succeed())
	w.edit("pull", func(spec *appsv1beta1.ImagePullJobSpec) { spec.Image = "web:3" })
	w.run(3)
	w.Expect(w.pods()).To(BeEmpty())
	w.Expect(w.job("pull").Status.Desired).To(BeZero())
}

// A node that is one of the job again begins with its first try.
func TestNodeThatComesBack(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.slow["a"] = true
	w.addJob("pull", `{image: "web:2", selector: {matchExpressions: [{key: out, operator: DoesNotExist}]}, pullPolicy: {backoffLimit: 1}, completionPolicy: {type: Never}}`)
	mark := func(labels map[string]string) {
		w.Expect(w.client.Update(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}})).To(Succeed())
	}
	w.run(3)
	mark(map[string]string{"out": "yes"})
	w.run(3)
	w.Expect(w.pods()).To(BeEmpty())
	mark(nil)
	w.slow["a"] = false
	ready := node("a")
	w.Expect(w.client.Status().Update(t.Context(), ready)).To(Succeed())
	w.run(5)
	w.Expect(result(w.job("pull"))[:4]).To(Equal([]any{int32(2), int32(0), int32(2), int32(0)}))
}

// What the API server does not know to be wrong, the job says.
func TestSelectorThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.addJob("pull", `{image: "web:2", podSelector: {matchLabels: {"a b": c}}, completionPolicy: {activeDeadlineSeconds: 600}}`)
	w.run(2)
	w.Expect(w.job("pull").Status.Message).To(ContainSubstring(`spec.podSelector: Invalid value`))
	w.clock.Step(600 * time.Second)
	w.run(1)
	w.Expect(w.job("pull").Status.Message).To(Equal("job exceeds activeDeadlineSeconds"))
}

// The manager may be killed at each write, before and after it is done: the job ends as it would
// have, and nothing is left.
func TestManagerKilledAtAnyWrite(t *testing.T) {
	for _, isDone := range []bool{false, true} {
		for after := range everyFew(40) {
			t.Run(fmt.Sprintf("after %d done %t", after, isDone), func(t *testing.T) {
				w := newWorld(t, nodes("a", "b", "c")...)
				w.lacks["b"] = true
				w.left, w.isDone = after, isDone
				w.addJob("pull", `{image: "web:2", parallelism: 2, pullPolicy: {backoffLimit: 2}}`)
				w.run(40)

				w.Expect(result(w.job("pull"))).To(Equal([]any{int32(3), int32(0), int32(2), int32(1), "b", "job has completed", true}))
				w.Expect(w.job("pull").Status.LastFailure).To(Equal("b: ErrImagePull: not found"))
				w.Expect(w.pods()).To(BeEmpty())
				w.Expect(w.most).To(BeNumerically("<=", 2))
				w.Expect([]int{w.triesOn("a"), w.triesOn("c")}).To(Equal([]int{1, 1}))
			})
		}
	}
}

// A write that fails, while the manager goes on with what it knows.
func TestWriteThatFails(t *testing.T) {
	conflict := apierrors.NewConflict(appsv1beta1.Resource("imagepulljobs"), "pull", errors.New("changed meanwhile"))
	for _, fails := range []error{conflict, apierrors.NewInternalError(errors.New("etcd"))} {
		for after := range everyFew(30) {
			t.Run(fmt.Sprintf("%s after %d", apierrors.ReasonForError(fails), after), func(t *testing.T) {
				w := newWorld(t, nodes("a", "b", "c")...)
				w.lacks["b"] = true
				w.left, w.fails = after, fails
				w.addJob("pull", `{image: "web:2", parallelism: 2, pullPolicy: {backoffLimit: 2}}`)
				w.run(40)

				w.Expect(result(w.job("pull"))).To(Equal([]any{int32(3), int32(0), int32(2), int32(1), "b", "job has completed", true}))
				w.Expect(w.pods()).To(BeEmpty())
				w.Expect([]int{w.triesOn("a"), w.triesOn("b"), w.triesOn("c")}).To(Equal([]int{1, 2, 1}))
			})
		}
	}
}

// What a live OpenKruise has left is served as it is.
func TestJobsOfOpenKruise(t *testing.T) {
	text, err := os.ReadFile("testdata/openkruise.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	list := &appsv1beta1.ImagePullJobList{}
	NewWithT(t).Expect(yaml.UnmarshalStrict(text, list)).To(Succeed())
	objects := nodes("fake-000", "fake-001", "fake-002")
	for i := range list.Items {
		list.Items[i].Namespace, list.Items[i].ResourceVersion = namespace, ""
		objects = append(objects, &list.Items[i])
	}
	w := newWorld(t, objects...)
	before := w.job("pull-deadline")
	w.run(10)

	w.Expect(w.job("pull-deadline").Status).To(Equal(before.Status), "it was complete")
	w.Expect(result(w.job("pull-never"))).To(Equal([]any{int32(2), int32(0), int32(2), int32(0), "", "job is running, progress 100.0%", false}))
	w.Expect(w.job("pull-never").Status.SucceededNodes).To(Equal([]string{"fake-000", "fake-001"}))
	for _, name := range []string{"pull-deadline", "pull-never"} {
		w.Expect(w.job(name).Finalizers).To(BeEmpty(), "nothing would take it off when the job is deleted")
	}
}

// A job that has nothing to do costs no write, whatever happens around it, and neither does a manager
// that is new.
func TestAJobAtRestCostsNoWrite(t *testing.T) {
	w := newWorld(t, nodes("a", "b")...)
	w.addJob("endless", "{image: web:1, parallelism: 2, completionPolicy: {type: Never}}")
	w.run(20)
	before := w.job("endless")
	w.Expect(before.Status.SucceededNodes).To(Equal([]string{"a", "b"}))

	for second := range 120 {
		beat := &corev1.Node{}
		w.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: "a"}, beat)).To(Succeed())
		beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.clock.Now())
		if second == 60 { // its kubelet does not answer for a while
			beat.Status.Conditions[0].Status = corev1.ConditionUnknown
		}
		if second == 80 {
			beat.Status.Conditions[0].Status = corev1.ConditionTrue
			w.restart()
		}
		w.Expect(w.client.Status().Update(t.Context(), beat)).To(Succeed())
		w.run(1)
	}

	w.Expect(w.job("endless").ResourceVersion).To(Equal(before.ResourceVersion))
	w.Expect(w.triesOn("a") + w.triesOn("b")).To(Equal(2))
}
