// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time {
	return metav1.NewTime(now.Add(-d))
}

const (
	oldImage = "registry.example.com/shop/database:15.4"
	newImage = "registry.example.com/shop/database:16.0"
)

// set is a StatefulSet with pods that have the wanted revision and are ready.
func set(replicas int) report.Workload {
	w := report.Workload{
		Ref:    report.Ref{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Namespace: "shop", Name: "db"},
		Driver: report.Insitu, Phase: report.Healthy, Reason: "Available", Policy: "InPlaceIfPossible", MaxUnavailable: 1,
		Revisions: []report.Revision{{Name: "db-7c9f6d5b44", Number: 3, Images: []string{newImage}, IsUpdate: true}},
	}
	for i := range replicas {
		w.Pods = append(w.Pods, pod(i))
	}
	return counted(w)
}

// counted is the workload with counts that fit its pods.
func counted(w report.Workload) report.Workload {
	w.Replicas, w.Updated, w.Ready, w.Available, w.InPlace, w.Recreated = int32(len(w.Pods)), 0, 0, 0, 0, 0
	for i := range w.Revisions {
		w.Revisions[i].Pods = 0
	}
	for _, p := range w.Pods {
		for i := range w.Revisions {
			if w.Revisions[i].Name == p.Revision {
				w.Revisions[i].Pods++
			}
		}
		add(&w.Updated, p.Updated)
		add(&w.Ready, p.Ready)
		add(&w.Available, p.Available)
		add(&w.InPlace, p.Updated && p.InPlace)
		add(&w.Recreated, p.Updated && !p.InPlace)
	}
	return w
}

func add(sum *int32, counts bool) {
	if counts {
		*sum++
	}
}

func pod(i int) report.Pod {
	return report.Pod{
		Name: fmt.Sprintf("db-%d", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), Node: fmt.Sprintf("node-%d", i%3+1),
		Revision: "db-7c9f6d5b44", State: "Settled", Updated: true, Ready: true, Available: true, InPlace: true,
		Restarts: 1, CreationTimestamp: ago(5 * 24 * time.Hour),
		Containers: []report.Container{{Name: "main", State: "Running", Ready: true, Restarts: 1, Image: newImage}},
		Claims:     []report.Claim{{Name: fmt.Sprintf("data-db-%d", i), Template: "data", Capacity: "1Gi", Requested: "1Gi", Class: "fast", Phase: "Bound"}},
	}
}

// waiting makes the pods from the first on wait at the revision before, for their turn.
func waiting(w report.Workload, from, to int) report.Workload {
	w.Phase, w.Reason = report.Progressing, "Updating"
	if len(w.Revisions) == 1 {
		w.Revisions = append(w.Revisions, report.Revision{Name: "db-5d8f7b6c99", Number: 2, Images: []string{oldImage}, IsCurrent: true})
	}
	for i := from; i < to; i++ {
		p := &w.Pods[i]
		p.Revision, p.State, p.Updated, p.InPlace, p.Restarts = "db-5d8f7b6c99", "Waiting", false, false, 0
		p.Reason, p.Message = inplace.ReasonBudget, "1 pod is unavailable, maxUnavailable is 1"
		p.Containers[0].Image, p.Containers[0].WantedImage, p.Containers[0].Restarts = oldImage, newImage, 0
		w.Blockers = append(w.Blockers, blocker(w, *p, ago(2*time.Minute)))
	}
	return counted(w)
}

func blocker(w report.Workload, p report.Pod, since metav1.Time) report.Blocker {
	return report.Blocker{
		Pod: p.Name, Step: p.State, Reason: p.Reason, Message: p.Message, Since: since,
		Advice: report.AdviceOn(p.Reason, w.Ref, p.Name, ""), NeedsHelp: p.State == "Stuck",
	}
}

// rolling is in the middle of an update: the last pod is done, one restarts.
func rolling() report.Workload {
	w := waiting(set(3), 0, 1)
	p := &w.Pods[1]
	p.State, p.Reason, p.Message, p.Ready, p.Available = "Restarting", inplace.ReasonContainerRestarting, "container main is being restarted", false, false
	p.RestartsSinceUpdate, p.Containers[0].State, p.Containers[0].Ready = 1, "ContainerCreating", false
	w.Blockers = append([]report.Blocker{blocker(w, *p, ago(8*time.Second))}, w.Blockers...)
	return counted(w)
}

// stuck has a pod that does not get on.
func stuck(change func(p *report.Pod)) report.Workload {
	w := waiting(set(3), 0, 2)
	p := &w.Pods[2]
	p.State = "Stuck"
	change(p)
	w.Phase, w.Reason, w.Message = report.Stalled, p.Reason, "pod "+p.Name+": "+p.Message
	w.Blockers = append([]report.Blocker{blocker(w, *p, ago(4*time.Minute))}, w.Blockers...)
	return counted(w)
}

func badImage() report.Workload {
	return stuck(func(p *report.Pod) {
		p.Ready, p.Available = false, false
		p.Reason, p.Message = "ImagePullBackOff", `container main: Back-off pulling image "registry.example.com/shop/database:16.O"`
		p.Containers[0].State, p.Containers[0].Ready, p.Containers[0].Image = "ImagePullBackOff", false, "registry.example.com/shop/database:16.O"
	})
}

func hookHeld() report.Workload {
	return stuck(func(p *report.Pod) {
		p.Revision, p.Updated = "db-5d8f7b6c99", false
		p.Reason, p.Message = inplace.ReasonInPlaceUpdateHook, "longer than 1m0s: held before its update by finalizer example.io/drain"
		p.Containers[0].Image, p.Containers[0].WantedImage = oldImage, newImage
	})
}

func infeasible() report.Workload {
	return stuck(func(p *report.Pod) {
		p.Reason, p.Message = inplace.ReasonResizeInfeasible, "Node didn't have enough capacity: cpu, requested: 64000, capacity: 8000; it keeps its sizes"
		p.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}}
		p.Containers[0].WantedResources = &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("64")},
		}
	})
}

func claimBlocked() report.Workload {
	return stuck(func(p *report.Pod) {
		p.State = "Settled"
		c := &p.Claims[0]
		c.Wanted, c.Reason = "2Gi", volumes.ReasonExpansionNotAllowed
		c.Message = "claim data-db-2: storage class fast does not allow expansion: allowVolumeExpansion is not true"
		p.State, p.Reason, p.Message = "Stuck", c.Reason, c.Message
	})
}

func paused() report.Workload {
	w := waiting(set(3), 0, 2)
	w.Phase, w.Reason, w.Message, w.Paused, w.Blockers = report.Paused, "Paused", "updateStrategy.rollingUpdate.paused keeps 2 pods from starting", true, nil
	for i := range 2 {
		w.Pods[i].Reason, w.Pods[i].Message = "Paused", "the update is paused"
	}
	return w
}

func partitioned() report.Workload {
	w := waiting(set(3), 0, 2)
	w.Phase, w.Reason, w.Message, w.Partition, w.Blockers = report.Paused, "PartitionReached", "1 of 3 pods is updated; partition 2 keeps the others", "2", nil
	for i := range 2 {
		p := &w.Pods[i]
		p.State, p.Reason, p.Message, p.Kept, p.Containers[0].WantedImage = "Settled", "", "", true, ""
	}
	return w
}

func unseenWorkload() report.Workload {
	w := set(3)
	w.Phase, w.Reason, w.Message = report.Unknown, "NotObserved", "generation is 4, the operator has seen 3"
	return w
}

func nativeHeld() report.Workload {
	w := rolling()
	w.Ref = report.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	w.Held, w.Reason, w.Message = true, "Updating", "1 of 3 pods are updated"
	for i, name := range []string{"web-6bd469df5c-dcsft", "web-6bd469df5c-ggtr6", "web-6bd469df5c-r2pbv"} {
		w.Pods[i].Name, w.Pods[i].Claims = name, nil
	}
	w.Blockers = []report.Blocker{blocker(w, w.Pods[1], ago(8*time.Second)), blocker(w, w.Pods[0], ago(2*time.Minute))}
	return w
}

// large has 1000 pods: most have arrived, two have not started, five cannot.
func large() report.Workload {
	w := waiting(set(1000), 0, 200)
	for i := 200; i < 205; i++ {
		p := &w.Pods[i]
		p.State, p.Reason, p.Message = "Stuck", "CrashLoopBackOff", fmt.Sprintf("container main: back-off 5m0s restarting failed container=main pod=%s_shop(%s)", p.Name, p.UID)
		p.Ready, p.Available, p.Restarts, p.RestartsSinceUpdate = false, false, 9, 8
		p.Containers[0].State, p.Containers[0].Ready = "CrashLoopBackOff", false
		w.Blockers = append([]report.Blocker{blocker(w, *p, ago(time.Duration(i-190)*time.Minute))}, w.Blockers...)
	}
	w.Phase, w.Reason, w.Message, w.MaxUnavailable = report.Stalled, "CrashLoopBackOff", "pod db-204: container main: back-off 5m0s restarting failed container", 5
	return counted(w)
}

// plan is of every kind of fate.
func plan() report.Plan {
	resizes := []string{"main: requests.cpu 500m -> 1, limits.memory 1Gi -> 2Gi"}
	p := report.Plan{
		Workload: set(0).Ref,
		Changes:  []string{"spec.template.spec.containers[main].image: " + oldImage + " -> " + newImage, "spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi -> 2Gi"},
	}
	for i := range 4 {
		p.Pods = append(p.Pods, report.PlannedPod{
			Name: fmt.Sprintf("db-%d", i), Way: report.InPlace, Restarts: []string{"main"}, Resizes: resizes, Drains: true, Feasibility: "Fits",
		})
	}
	p.Pods = append(p.Pods,
		report.PlannedPod{Name: "db-4", Way: report.InPlace, Restarts: []string{"main"}, Resizes: resizes, Drains: true, Feasibility: "Infeasible",
			FeasibilityMessage: "node-2 has 8 cpu in all, and the pod is to have 64"},
		report.PlannedPod{Name: "db-5", Way: report.Recreate, Reason: inplace.ReasonFieldImmutable, Message: "spec.containers[main].ports was changed"},
		report.PlannedPod{Name: "db-6", Way: report.Kept, Reason: "PartitionReached", Message: "partition 7 keeps it"},
		report.PlannedPod{Name: "db-7", Way: report.Refused, Reason: inplace.ReasonAdmissionDenied, Message: `admission webhook "images.example.io" denied the request: no digest`},
	)
	for i := range 2 {
		p.Claims = append(p.Claims, report.PlannedClaim{Name: fmt.Sprintf("data-db-%d", i), Pod: fmt.Sprintf("db-%d", i), Change: "1Gi -> 2Gi"})
	}
	p.Claims = append(p.Claims, report.PlannedClaim{
		Name: "data-db-2", Pod: "db-2", Change: "1Gi -> 2Gi", Blocked: true, Reason: volumes.ReasonExpansionNotAllowed, Message: "storage class fast does not allow expansion",
	})
	p.Pulls = []report.TriedPull{
		{Node: "node-1", Images: []string{newImage}, Result: report.Pulled, Seconds: 12.34},
		{Node: "node-2", Images: []string{newImage}, Result: report.OnNode},
		{Node: "node-3", Images: []string{newImage, "log:2"}, Result: report.PullFailed, Seconds: 1, Message: "ErrImagePull: log:2: not found"},
	}
	p.Refusals = []string{`pods "db-7": admission webhook "images.example.io" denied the request: no digest`}
	p.Notes = []string{"nodes may not be listed by you: whether they have room was not asked"}
	return p
}

// recreated keeps volumes and snapshots of claims that were recreated.
func recreated() report.Workload {
	w := set(2)
	oldest := ago(50 * time.Hour)
	w.Kept = &appsv1beta1.VolumeClaimKeptStatus{Volumes: 2, Capacity: ptr.To(resource.MustParse("20Gi")), Snapshots: 1, OldestTimestamp: &oldest, Overdue: 1}
	return w
}
