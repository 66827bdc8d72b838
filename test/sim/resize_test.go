// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The model of a resize: what the server takes and the kubelet makes of it. The
// operator is away.

// sizedPod is a pod of its own, on a node that the operator does not watch.
type sizedPod struct {
	Gomega

	world *World
}

func newSizedPod(t *testing.T, change func(*resizes)) sizedPod {
	t.Helper()
	g := NewWithT(t)
	s := reference()
	s.replicas, s.maxUnavailable, s.gated = 1, 1, false
	s.resizes = resizes{on: true, class: corev1.PodQOSBurstable, cpu: 1000, early: true}
	if change != nil {
		change(&s.resizes)
	}
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(time.Hour)
	return sizedPod{g, w}
}

func (p sizedPod) pod() *corev1.Pod {
	pod, ok := get[*corev1.Pod](p.world.server, setName+"-0")
	p.Expect(ok).To(BeTrue())
	return pod
}

// patch sends a patch of a subresource.
func (p sizedPod) patch(subresource, manager, body string) error {
	_, err := p.world.server.patch(patchRequest{
		key: objectKey{"Pod", setName + "-0"}, kind: types.StrategicMergePatchType, body: []byte(body), subresource: subresource, manager: manager,
	})
	return err
}

// resize sets numbers of the first container: "requests.cpu=150m".
func (p sizedPod) resize(numbers ...string) error {
	return p.resizeAs("insitu", numbers...)
}

func (p sizedPod) resizeAs(manager string, numbers ...string) error {
	resources := map[string]map[string]any{}
	for _, number := range numbers {
		where, value, _ := strings.Cut(number, "=")
		list, name, _ := strings.Cut(where, ".")
		if resources[list] == nil {
			resources[list] = map[string]any{}
		}
		resources[list][name] = value
		if value == "" {
			resources[list][name] = nil
		}
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "resources": resources}}}})
	p.Expect(err).NotTo(HaveOccurred())
	return p.patch(resizeSubresource, manager, string(body))
}

// shows returns what can be seen of the size of the first container, in words.
func (p sizedPod) shows() string {
	pod := p.pod()
	status := statusOf(pod, "app")
	words := fmt.Sprintf("observed %d of %d, restarts %d, ready %t, allocated %s, has %s", pod.Status.ObservedGeneration, pod.Generation,
		status.RestartCount, conditionIs(pod, corev1.PodReady, corev1.ConditionTrue), status.AllocatedResources.Cpu(), status.Resources.Requests.Cpu())
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			words += fmt.Sprintf(", %s %s at %d", c.Type, c.Reason, c.ObservedGeneration)
		}
	}
	return words
}

// after returns what is to be seen one after the other in the next seconds.
func (p sizedPod) after(seconds int) []string {
	var seen []string
	for range seconds {
		p.world.step()
		if words := p.shows(); len(seen) == 0 || seen[len(seen)-1] != words {
			seen = append(seen, words)
		}
	}
	return seen
}

func TestResizeWithoutRestart(t *testing.T) {
	p := newSizedPod(t, nil)
	p.Expect(p.resize("requests.cpu=150m")).To(Succeed())
	p.Expect(p.after(10)).To(Equal([]string{
		"observed 2 of 2, restarts 0, ready true, allocated 150m, has 100m, PodResizeInProgress  at 2",
		"observed 2 of 2, restarts 0, ready true, allocated 150m, has 150m",
	}))
}

func TestResizeWithRestart(t *testing.T) {
	p := newSizedPod(t, func(r *resizes) { r.restarts = corev1.ResourceCPU })
	id := statusOf(p.pod(), "app").ContainerID
	p.Expect(p.resize("requests.cpu=150m")).To(Succeed())
	p.Expect(p.after(10)).To(Equal([]string{
		"observed 2 of 2, restarts 0, ready true, allocated 150m, has 100m, PodResizeInProgress  at 2",
		"observed 2 of 2, restarts 1, ready false, allocated 150m, has 150m",
		"observed 2 of 2, restarts 1, ready true, allocated 150m, has 150m",
	}))
	p.Expect(statusOf(p.pod(), "app").ContainerID).NotTo(Equal(id))
	p.Expect(p.resize("requests.memory=96Mi")).To(Succeed())
	p.after(10)
	p.Expect(p.shows()).To(ContainSubstring("observed 3 of 3, restarts 1"))
}

// A kubelet that sees both at once restarts the container once; the real one begins
// with what was written first.
func TestResizeWithRestartAndImage(t *testing.T) {
	for _, bothAtOnce := range []bool{true, false} {
		p := newSizedPod(t, func(r *resizes) { r.restarts = corev1.ResourceCPU })
		p.world.choices.given = make([]byte, len(p.world.choices.taken)+400)
		if !bothAtOnce {
			for i := range p.world.choices.given {
				p.world.choices.given[i] = 1
			}
		}
		p.Expect(p.resize("requests.cpu=150m")).To(Succeed())
		p.Expect(p.patch("", "", `{"spec":{"containers":[{"name":"app","image":"app:b"}]}}`)).To(Succeed())
		p.after(20)
		restarts := map[bool]int{true: 1, false: 2}[bothAtOnce]
		p.Expect(p.shows()).To(Equal(fmt.Sprintf("observed 3 of 3, restarts %d, ready true, allocated 150m, has 150m", restarts)))
	}
}

func TestResizeDeferred(t *testing.T) {
	p := newSizedPod(t, nil)
	node := p.world.node(p.pod())
	node.others = 800
	p.Expect(p.resize("requests.cpu=300m")).To(Succeed())
	p.Expect(p.after(5)).To(Equal([]string{"observed 2 of 2, restarts 0, ready true, allocated 100m, has 100m, PodResizePending Deferred at 2"}))
	p.Expect(p.patch("", "", `{"spec":{"containers":[{"name":"app","image":"app:b"}]}}`)).To(Succeed())
	p.after(10)
	p.Expect(p.shows()).To(Equal("observed 3 of 3, restarts 1, ready true, allocated 100m, has 100m, PodResizePending Deferred at 2"))
	p.world.worker(p.pod()).crash("app")
	p.after(5)
	p.Expect(p.shows()).To(Equal("observed 3 of 3, restarts 2, ready true, allocated 100m, has 100m, PodResizePending Deferred at 2"))
	node.others = 0
	p.Expect(p.after(5)).To(Equal([]string{
		"observed 3 of 3, restarts 2, ready true, allocated 300m, has 100m, PodResizeInProgress  at 3",
		"observed 3 of 3, restarts 2, ready true, allocated 300m, has 300m",
	}))
	node.others = 700
	p.Expect(p.resize("requests.cpu=400m")).To(Succeed())
	p.after(2)
	p.Expect(p.shows()).To(ContainSubstring("Deferred"))
	p.Expect(p.resize("requests.cpu=300m")).To(Succeed())
	p.Expect(p.after(5)).To(Equal([]string{"observed 5 of 5, restarts 2, ready true, allocated 300m, has 300m"}))
}

func TestResizeInfeasible(t *testing.T) {
	p := newSizedPod(t, func(r *resizes) { r.early = false })
	p.Expect(p.resize("requests.cpu=99")).To(Succeed())
	p.Expect(p.after(5)).To(Equal([]string{"observed 2 of 2, restarts 0, ready true, allocated 100m, has 100m, PodResizePending Infeasible at 2"}))
}

func TestResizeReportedInexactly(t *testing.T) {
	for how, has := range map[reports]string{rounded: "151m", never: "100m"} {
		p := newSizedPod(t, func(r *resizes) { r.reports = how })
		p.Expect(p.resize("requests.cpu=150m")).To(Succeed())
		p.after(5)
		p.Expect(p.shows()).To(Equal("observed 2 of 2, restarts 0, ready true, allocated 150m, has " + has))
	}
}

func TestMemoryBelowUse(t *testing.T) {
	p := newSizedPod(t, func(r *resizes) { r.limited = true })
	p.Expect(p.resize("requests.memory=8Mi", "limits.memory=8Mi")).To(Succeed())
	p.after(20)
	p.Expect(p.shows()).To(ContainSubstring("restarts 0, ready true"))
	p.Expect(p.shows()).To(ContainSubstring("PodResizeInProgress Error at 2"))
	p.Expect(p.resize("requests.cpu=150m")).To(Succeed())
	p.after(20)
	p.Expect(p.shows()).To(ContainSubstring("allocated 150m, has 100m, PodResizeInProgress Error at 3"), "a kubelet that cannot make all makes nothing")
	p.Expect(p.resize("requests.memory=64Mi", "limits.memory=64Mi")).To(Succeed())
	p.after(5)
	p.Expect(p.shows()).To(Equal("observed 4 of 4, restarts 0, ready true, allocated 150m, has 150m"))
}

// A container that was killed for its memory has it raised, and is tried at once.
func TestTooLittleMemory(t *testing.T) {
	p := newSizedPod(t, func(r *resizes) { r.limited = true })
	p.Expect(p.resize("requests.memory=8Mi", "limits.memory=8Mi")).To(Succeed())
	p.after(5)
	p.world.worker(p.pod()).crash("app")
	p.after(60)
	p.Expect(p.shows()).To(ContainSubstring("ready false"))
	tries := statusOf(p.pod(), "app").RestartCount
	p.Expect(tries).To(BeNumerically(">", 2))
	p.Expect(p.resize("requests.memory=64Mi", "limits.memory=64Mi")).To(Succeed())
	p.after(5)
	p.Expect(p.shows()).To(Equal(fmt.Sprintf("observed 3 of 3, restarts %d, ready true, allocated 100m, has 100m", tries+1)))
}

func TestResizeRefused(t *testing.T) {
	for _, refused := range []struct {
		numbers []string
		code    int32
		words   string
		cause   metav1.CauseType
	}{
		{[]string{"requests.cpu=", "requests.memory=", "limits.memory="}, 422, "Pod QOS Class may not change as a result of resizing", metav1.CauseTypeFieldValueInvalid},
		{[]string{"limits.memory="}, 422, "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed", "FieldValueForbidden"},
		{[]string{"requests.memory=128Mi"}, 422, "must be less than or equal to memory limit of 64Mi", metav1.CauseTypeFieldValueInvalid},
		{[]string{"requests.example.io/disk=1"}, 422, "only cpu and memory resources are mutable", "FieldValueForbidden"},
		{[]string{"requests.cpu=99"}, 403, "node didn't have enough allocatable resources: cpu, requested: 99100, allocatable: 1000", "NodeCapacity"},
		{[]string{"requests.cpu=400m"}, 403, "exceeded quota", ""},
	} {
		p := newSizedPod(t, func(r *resizes) {
			r.limited = true
			if strings.HasPrefix(refused.words, "Pod QOS") {
				r.class, r.limited = corev1.PodQOSGuaranteed, false
			}
		})
		p.world.server.sizes.refuse = refusesAbove(300)
		err := p.resize(refused.numbers...)
		p.Expect(err).To(MatchError(ContainSubstring(refused.words)))
		status := apierrors.APIStatus(nil)
		p.Expect(errors.As(err, &status)).To(BeTrue())
		p.Expect(status.Status().Code).To(Equal(refused.code))
		if refused.cause == "" {
			p.Expect(status.Status().Details.Causes).To(BeEmpty())
		} else {
			p.Expect(status.Status().Details.Causes[0].Type).To(Equal(refused.cause))
		}
		p.Expect(p.pod().Generation).To(BeEquivalentTo(1))
	}
}

func TestResizeChangesNothingElse(t *testing.T) {
	p := newSizedPod(t, nil)
	before := p.pod()
	p.Expect(p.patch(resizeSubresource, "insitu", `{"metadata":{"labels":{"tier":"web"},"annotations":{"a":"b"}},"spec":{"containers":[{"name":"app","image":"app:b"}]}}`)).To(Succeed())
	p.Expect(p.pod()).To(Equal(before))
	p.Expect(p.patch("", "insitu", `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"150m"}}}]}}`)).To(MatchError(ContainSubstring("pod updates may not change fields other than")))
	p.Expect(p.patch(resizeSubresource, "insitu", `{"metadata":{"uid":"another"}}`)).To(MatchError(ContainSubstring("field is immutable")))
	p.Expect(apierrors.IsConflict(p.patch(resizeSubresource, "insitu", `{"metadata":{"resourceVersion":"1"}}`))).To(BeTrue())
}

func TestOwnersOfSizes(t *testing.T) {
	p := newSizedPod(t, nil)
	fields := func() map[string]string {
		owned := map[string]string{}
		for _, entry := range p.pod().ManagedFields {
			p.Expect(entry.Subresource).To(Equal("resize"))
			owned[entry.Manager] = entry.FieldsV1.GetRawString()
		}
		return owned
	}
	of := func(list string) string {
		return `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:resources":{"f:requests":{` + list + `}}}}}}`
	}
	p.Expect(p.resize("requests.cpu=150m", "requests.memory=96Mi")).To(Succeed())
	p.Expect(fields()).To(Equal(map[string]string{"insitu": of(`"f:cpu":{},"f:memory":{}`)}))
	p.Expect(p.resizeAs("autoscaler", "requests.cpu=0.15")).To(Succeed())
	p.Expect(fields()).To(HaveLen(1), "the value is the same")
	p.Expect(p.resizeAs("autoscaler", "requests.cpu=200m", "requests.memory=96Mi")).To(Succeed())
	p.Expect(fields()).To(Equal(map[string]string{"insitu": of(`"f:memory":{}`), "autoscaler": of(`"f:cpu":{}`)}))
	p.Expect(p.patch("", "insitu", `{"metadata":{"labels":{"tier":"web"}}}`)).To(Succeed())
	p.Expect(fields()).To(HaveLen(2))
	p.Expect(p.resizeAs("autoscaler", "requests.memory=80Mi")).To(Succeed())
	p.Expect(fields()).To(Equal(map[string]string{"autoscaler": of(`"f:cpu":{},"f:memory":{}`)}))
}
