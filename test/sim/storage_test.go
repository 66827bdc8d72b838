// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The model of storage: what the server takes, and what resizer and kubelet make of
// it. The operator is away.

type claimed struct {
	Gomega

	world *World
}

const theClaim = "data-" + setName + "-0"

// newClaimed returns a world with one pod and its claim of 1Gi.
func newClaimed(t *testing.T, class string, change func(*volumes)) claimed {
	t.Helper()
	g := NewWithT(t)
	s := reference()
	s.replicas, s.maxUnavailable, s.gated = 1, 1, false
	s.volumes = volumes{on: true, wish: claimWish{class: class, size: "1Gi"}}
	if change != nil {
		change(&s.volumes)
	}
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(1000*time.Hour)
	return claimed{g, w}
}

func (c claimed) claim() *corev1.PersistentVolumeClaim {
	claim, ok := get[*corev1.PersistentVolumeClaim](c.world.server, theClaim)
	c.Expect(ok).To(BeTrue())
	return claim
}

func (c claimed) patch(spec map[string]any) error {
	body, err := json.Marshal(map[string]any{"spec": spec})
	c.Expect(err).NotTo(HaveOccurred())
	_, err = c.world.server.patch(patchRequest{key: objectKey{"PersistentVolumeClaim", theClaim}, kind: types.MergePatchType, body: body})
	return err
}

func (c claimed) resize(size string) error {
	return c.patch(map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}})
}

func (c claimed) modify(class string) error {
	return c.patch(map[string]any{"volumeAttributesClassName": class})
}

// after returns what is to be seen of the claim one after the other.
func (c claimed) after(seconds int) []string {
	var seen []string
	for range seconds {
		c.world.step()
		if words := describeClaim(c.claim()); len(seen) == 0 || seen[len(seen)-1] != words {
			seen = append(seen, words)
		}
	}
	return seen
}

// shows waits until the claim shows something.
func (c claimed) shows(words string) {
	for range 2000 {
		c.world.step()
		if describeClaim(c.claim()) == words {
			return
		}
	}
	c.Expect(describeClaim(c.claim())).To(Equal(words), c.world.story.String())
}

func (c claimed) deletePod() {
	c.Expect(c.world.server.delete(objectKey{"Pod", setName + "-0"}, nil)).To(Succeed())
	for range 60 {
		c.world.step()
	}
	c.Expect(all[*corev1.Pod](c.world.server)).To(BeEmpty())
}

// makePod recreates the pod, as its set would.
func (c claimed) makePod(pod *corev1.Pod) {
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Labels: pod.Labels}, Spec: *pod.Spec.DeepCopy()}
	again.Spec.NodeName = ""
	c.Expect(c.world.server.create(again)).To(Succeed())
}

func (c claimed) pod() *corev1.Pod {
	pod, ok := get[*corev1.Pod](c.world.server, setName+"-0")
	c.Expect(ok).To(BeTrue())
	return pod
}

func TestGrowthOnline(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.Expect(c.after(20)).To(Equal([]string{
		"Bound, 2Gi of which 1Gi",
		"Bound, 2Gi of which 1Gi, ControllerResizeInProgress to 2Gi, Resizing",
		"Bound, 2Gi of which 1Gi, NodeResizePending to 2Gi, FileSystemResizePending, Resizing",
		"Bound, 2Gi of which 1Gi, NodeResizeInProgress to 2Gi, FileSystemResizePending, Resizing",
		"Bound, 2Gi of which 2Gi",
	}))
	c.Expect(statusOf(c.pod(), "app").RestartCount).To(BeZero())
}

func TestGrowthByTheControllerOnly(t *testing.T) {
	c := newClaimed(t, "whole", nil)
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.Expect(c.after(20)).To(Equal([]string{
		"Bound, 2Gi of which 1Gi",
		"Bound, 2Gi of which 1Gi, ControllerResizeInProgress to 2Gi, Resizing",
		"Bound, 2Gi of which 2Gi",
	}))
}

func TestGrowthThatTheServerRefuses(t *testing.T) {
	for _, refused := range []struct {
		class  string
		before func(claimed)
		spec   map[string]any
		code   int32
		words  string
	}{
		{"fixed", nil, size("2Gi"), 403, "the storageclass that provisions the pvc must support resize"},
		{"standard", func(c claimed) { c.world.server.remove(objectKey{"StorageClass", "standard"}) }, size("2Gi"), 403, "must support resize"},
		{"standard", func(c claimed) { c.world.storage.refuse = refusesStorage }, size("2Gi"), 403, "exceeded quota"},
		{"standard", nil, size("1000Mi"), 422, "field can not be less than status.capacity"},
		{"standard", func(c claimed) { c.Expect(c.resize("2Gi")).To(Succeed()) }, size("1Gi"), 422, "field can not be less than status.capacity"},
		{"standard", nil, map[string]any{"storageClassName": "wait"}, 422, "spec is immutable after creation except"},
		{"standard", nil, map[string]any{"accessModes": []string{"ReadWriteMany"}}, 422, "spec is immutable after creation except"},
		{"standard", nil, map[string]any{"volumeMode": "Block"}, 422, "spec is immutable after creation except"},
		{"standard", func(c claimed) {
			c.Expect(c.modify("gold")).To(Succeed())
			c.shows("Bound, 1Gi of which 1Gi, gold")
		}, map[string]any{"volumeAttributesClassName": nil}, 422, "update to nil is forbidden"},
		{"standard", func(c claimed) {
			c.world.storage.write(theClaim, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimPending })
		}, size("2Gi"), 422, "except resources.requests and volumeAttributesClassName for bound claims"},
	} {
		c := newClaimed(t, refused.class, nil)
		if refused.before != nil {
			refused.before(c)
		}
		before := c.claim()
		err := c.patch(refused.spec)
		c.Expect(err).To(MatchError(ContainSubstring(refused.words)))
		status := apierrors.APIStatus(nil)
		c.Expect(errors.As(err, &status)).To(BeTrue())
		c.Expect(status.Status().Code).To(Equal(refused.code))
		c.Expect(c.claim()).To(Equal(before))
	}
}

func size(size string) map[string]any {
	return map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}
}

// What is too large is tried for ever; a size that is smaller is tried at once.
func TestGrowthThatCannotBe(t *testing.T) {
	c := newClaimed(t, "limited", nil)
	c.Expect(c.resize("5Gi")).To(Succeed())
	c.Expect(c.after(900)).To(Equal([]string{
		"Bound, 5Gi of which 1Gi",
		"Bound, 5Gi of which 1Gi, ControllerResizeInProgress to 5Gi, Resizing",
		"Bound, 5Gi of which 1Gi, ControllerResizeInfeasible to 5Gi, ControllerResizeError, Resizing",
	}))
	c.Expect(claimCondition(c.claim(), corev1.PersistentVolumeClaimControllerResizeError).Message).To(
		Equal("failed to expand pvc with rpc error: code = OutOfRange desc = no volume is larger than 3Gi"))
	c.Expect(c.resize("3Gi")).To(Succeed())
	c.Expect(c.after(10)).To(HaveExactElements(ContainSubstring("Infeasible"), ContainSubstring("ControllerResizeInProgress to 3Gi, Resizing"),
		ContainSubstring("NodeResizePending"), ContainSubstring("NodeResizeInProgress"), Equal("Bound, 3Gi of which 3Gi")))
}

func TestGrowthThatFailsAtFirst(t *testing.T) {
	c := newClaimed(t, "failing", nil)
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.Expect(c.after(60)).To(HaveExactElements(Equal("Bound, 2Gi of which 1Gi"), ContainSubstring("ControllerResizeInProgress to 2Gi, Resizing"),
		ContainSubstring("ControllerResizeInProgress to 2Gi, ControllerResizeError, Resizing"), ContainSubstring("NodeResizePending"),
		ContainSubstring("NodeResizeInProgress"), Equal("Bound, 2Gi of which 2Gi")))
}

// After a timeout, the resizer does not know what the driver does: it goes on with the
// size that it asked for, also if a user asks for less by then.
func TestGrowthThatStalls(t *testing.T) {
	c := newClaimed(t, "stalled", nil)
	c.Expect(c.resize("3Gi")).To(Succeed())
	c.Expect(c.after(20)).To(Equal([]string{"Bound, 3Gi of which 1Gi", "Bound, 3Gi of which 1Gi, ControllerResizeInProgress to 3Gi, Resizing"}))
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.shows("Bound, 2Gi of which 3Gi")
}

// A driver that grows what is not in use needs the pod to be away until the resizer
// tries again.
func TestGrowthOffline(t *testing.T) {
	c := newClaimed(t, "offline", nil)
	pod := c.pod()
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.after(300)
	c.Expect(describeClaim(c.claim())).To(Equal("Bound, 2Gi of which 1Gi, ControllerResizeInProgress to 2Gi, ControllerResizeError, Resizing"))
	c.Expect(claimCondition(c.claim(), corev1.PersistentVolumeClaimControllerResizeError).Message).To(ContainSubstring("code = FailedPrecondition"))
	c.deletePod()
	c.makePod(pod)
	c.after(400)
	c.Expect(describeClaim(c.claim())).To(ContainSubstring("ControllerResizeError"), "it is in use again, and was tried too late")
	c.deletePod()
	c.shows("Bound, 2Gi of which 1Gi, NodeResizePending to 2Gi, ControllerResizeError, FileSystemResizePending, Resizing")
	c.makePod(pod)
	c.shows("Bound, 2Gi of which 2Gi")
}

func TestGrowthWhenMountedAgain(t *testing.T) {
	c := newClaimed(t, "remount", nil)
	pod := c.pod()
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.after(300)
	c.Expect(describeClaim(c.claim())).To(Equal("Bound, 2Gi of which 1Gi, NodeResizeInProgress to 2Gi, FileSystemResizePending, NodeResizeError, Resizing"))
	c.deletePod()
	c.makePod(pod)
	c.shows("Bound, 2Gi of which 2Gi")
}

func TestGrowthThatFailsOnTheNode(t *testing.T) {
	for _, class := range []string{"node-fails", "node-never"} {
		c := newClaimed(t, class, nil)
		c.Expect(c.resize("2Gi")).To(Succeed())
		c.Expect(c.after(120)).To(ContainElement(ContainSubstring("NodeResizeError")))
		c.Expect(describeClaim(c.claim())).To(Equal("Bound, 2Gi of which 2Gi"))
	}
}

// What was rounded up cannot be asked for: the resizer goes on with what was asked
// for before.
func TestGrowthThatIsRounded(t *testing.T) {
	c := newClaimed(t, "rounds", nil)
	c.Expect(c.resize("1500Mi")).To(Succeed())
	c.shows("Bound, 1500Mi of which 1500Mi")
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.after(300)
	c.Expect(describeClaim(c.claim())).To(HavePrefix("Bound, 2Gi of which 1500Mi"))
	c.Expect(c.resize("3Gi")).To(Succeed())
	c.shows("Bound, 3Gi of which 3Gi")
}

// What is asked for while a volume cools down is done later.
func TestGrowthAfterGrowth(t *testing.T) {
	c := newClaimed(t, "cool-down", nil)
	c.Expect(c.resize("2Gi")).To(Succeed())
	c.shows("Bound, 2Gi of which 2Gi")
	c.Expect(c.resize("3Gi")).To(Succeed())
	c.Expect(c.after(20)).To(HaveLen(2))
	c.shows("Bound, 3Gi of which 3Gi")
}

func TestAttributes(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.Expect(c.modify("gold")).To(Succeed())
	c.Expect(c.after(10)).To(Equal([]string{
		`Bound, 1Gi of which 1Gi, "" instead of "gold"`,
		`Bound, 1Gi of which 1Gi, "" instead of "gold", InProgress to gold, ModifyingVolume`,
		"Bound, 1Gi of which 1Gi, gold",
	}))
	c.Expect(c.modify("refused")).To(Succeed())
	c.after(400)
	c.Expect(describeClaim(c.claim())).To(Equal(`Bound, 1Gi of which 1Gi, "gold" instead of "refused", Infeasible to refused, ModifyVolumeError, ModifyingVolume`))
	c.Expect(c.modify("silver")).To(Succeed())
	c.shows("Bound, 1Gi of which 1Gi, silver")
	// The resizer is not told that a class has come.
	c.Expect(c.modify("none")).To(Succeed())
	c.after(10)
	c.Expect(c.world.server.create(&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "none"}})).To(Succeed())
	c.after(900)
	c.Expect(describeClaim(c.claim())).To(Equal(`Bound, 1Gi of which 1Gi, "silver" instead of "none", Pending to `))
	// A call that was not answered is made again, before another class.
	c.Expect(c.modify("slow")).To(Succeed())
	c.after(15)
	c.Expect(c.modify("gold")).To(Succeed())
	c.Expect(c.after(60)).To(ContainElement(HavePrefix(`Bound, 1Gi of which 1Gi, "slow" instead of "gold"`)))
	c.shows("Bound, 1Gi of which 1Gi, gold")
}

func TestVolumesOfDeadNodes(t *testing.T) {
	c := newClaimed(t, "wait", nil)
	pod := c.pod()
	c.world.node(pod).deadSince = c.world.clock.Now()
	c.world.server.finish(objectKey{"Pod", pod.Name})
	c.makePod(pod)
	c.after(300)
	c.Expect(conditionIs(c.pod(), corev1.PodReady, corev1.ConditionTrue)).To(BeFalse(), "its volume is on the node that is dead")
	c.after(120)
	c.Expect(conditionIs(c.pod(), corev1.PodReady, corev1.ConditionTrue)).To(BeTrue())
}

func TestClaimsInUseAreProtected(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.Expect(c.world.server.delete(objectKey{"PersistentVolumeClaim", theClaim}, nil)).To(Succeed())
	c.after(30)
	c.Expect(c.claim().DeletionTimestamp).NotTo(BeNil())
	c.deletePod()
	c.Expect(all[*corev1.PersistentVolumeClaim](c.world.server)).To(BeEmpty())
}
