// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// ReasonByKubernetes is why pods are recreated that only Kubernetes updates.
const ReasonByKubernetes = "ByKubernetes"

// PlannedPods returns what would become of the pods of a workload that the operator
// drives.
func PlannedPods(w inplace.Workload, plan inplace.Plan, now time.Time) []PlannedPod {
	planned := make([]PlannedPod, 0, len(plan.Pods))
	w.Target.CannotDrain = plan.CannotDrain // the API server was asked since
	for i, state := range plan.Pods {
		planned = append(planned, plannedPod(w, w.Pods[i], state, now))
	}
	for _, pod := range w.Condemned {
		planned = append(planned, PlannedPod{Name: pod.Name, Way: Delete, Reason: inplace.ReasonScaleIn, Message: "fewer pods are wanted"})
	}
	slices.SortFunc(planned, func(a, b PlannedPod) int { return compareNames(a.Name, b.Name) })
	return planned
}

func plannedPod(w inplace.Workload, facts inplace.PodFacts, state inplace.PodState, now time.Time) PlannedPod {
	told := PlannedPod{Name: facts.Pod.Name}
	if facts.Surges && !state.Updated {
		told.Way, told.Reason, told.Message = Recreate, "Surge", "it goes when the new pod beside it is available"
		return told
	}
	if facts.Held && !state.Updated {
		told.Way, told.Reason, told.Message = Kept, "Partition", "the partition keeps it at its revision"
		return told
	}
	if i := slices.IndexFunc(facts.Claims, func(claim volumes.Step) bool { return claim.Recreates }); i >= 0 {
		told.Way, told.Reason, told.Message = Recreate, facts.Claims[i].Reason, facts.Claims[i].Message
		return told
	}
	step := state.Step
	if step.State == inplace.UpdatingClaims && step.Action != inplace.Recreate {
		facts.Claims = nil // what becomes of the pod then
		step = inplace.Next(facts, w.Target, now)
	}
	told.Reason, told.Message = step.Reason, step.Message
	switch {
	case step.Action == inplace.Recreate, step.Reason == inplace.ReasonPreDeleteHook:
		told.Way = Recreate
	case step.LeadsToPatch && isLabelOnly(step.Change):
		told.Way, told.Reason, told.Message = Unchanged, "", ""
	case step.LeadsToPatch, !state.Updated && step.State != inplace.Stuck:
		told.Way, told.Message = InPlace, wordsOn(step)
		told.Restarts = step.Change.RestartedContainers()
		for _, delta := range step.Change.Resizes() {
			told.Resizes = append(told.Resizes, delta.String())
		}
		undrained := w.Target.WhyNotDrained(facts.Pod, step.Change)
		told.Drains = len(told.Restarts) > 0 && undrained == ""
		if undrained != "" {
			told.Message = strings.TrimPrefix(told.Message+"; not drained: "+undrained, "; ")
		}
	case step.State == inplace.Stuck && !state.Updated:
		told.Way = Refused
	default:
		told.Way, told.Reason, told.Message = Unchanged, "", ""
	}
	return told
}

// isLabelOnly reports whether nothing of a pod changes but the label of its revision.
func isLabelOnly(change inplace.Change) bool {
	return len(change.Images)+len(change.Later)+len(change.Labels)+len(change.Annotations)+len(change.Tolerations)+len(change.Resizes()) == 0
}

// wordsOn says what changes in place beside the resources, and what holds it up.
func wordsOn(step inplace.Step) string {
	var words []string
	for _, image := range slices.Concat(step.Change.Images, step.Change.Later) {
		words = append(words, image.String())
	}
	if step.State == inplace.HookHeld {
		words = append(words, step.Message)
	}
	return strings.Join(words, "; ")
}

// PlannedClaims returns what would become of the claims of the pods.
func PlannedClaims(w inplace.Workload) []PlannedClaim {
	var planned []PlannedClaim
	for _, facts := range w.Pods {
		for _, step := range facts.Claims {
			if step.State == volumes.Settled || step.Claim == nil {
				continue
			}
			planned = append(planned, PlannedClaim{
				Name: step.Claim.Name, Pod: facts.Pod.Name, Change: changeOf(step), Blocked: step.State == volumes.Blocked,
				Reason: step.Reason, Message: step.Message,
			})
		}
	}
	slices.SortFunc(planned, func(a, b PlannedClaim) int { return compareNames(a.Name, b.Name) })
	return planned
}

// changeOf says what changes of a claim.
func changeOf(step volumes.Step) string {
	has := step.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case step.Recreates:
		return "recreated"
	case step.Patch.Size != nil && step.Patch.AttributesClass != "":
		return fmt.Sprintf("%s to %s, VolumeAttributesClass %s", has.String(), step.Patch.Size, step.Patch.AttributesClass)
	case step.Patch.Size != nil:
		return fmt.Sprintf("%s to %s", has.String(), step.Patch.Size)
	case step.Patch.AttributesClass != "":
		return "VolumeAttributesClass " + step.Patch.AttributesClass
	default:
		return ""
	}
}

// ByKubernetes returns what Kubernetes does with the pods of a workload whose template
// changes: it recreates all that the workload does not keep.
func ByKubernetes(view kinds.View, pods []*corev1.Pod, why string) []PlannedPod {
	planned := make([]PlannedPod, 0, len(pods))
	for _, pod := range pods {
		told := PlannedPod{Name: pod.Name, Way: Recreate, Reason: ReasonByKubernetes, Message: why}
		if reason, message := keptByKubernetes(view, pod); reason != "" {
			told.Way, told.Reason, told.Message = Kept, reason, message
		}
		planned = append(planned, told)
	}
	slices.SortFunc(planned, func(a, b PlannedPod) int { return compareNames(a.Name, b.Name) })
	return planned
}

// keptByKubernetes returns why Kubernetes does not recreate a pod for a new template;
// empty if it does.
func keptByKubernetes(view kinds.View, pod *corev1.Pod) (reason, message string) {
	switch {
	case view.OnDelete:
		return appsv1beta1.ReasonOnDelete, "updateStrategy OnDelete: it gets the new revision when it is deleted"
	case view.PausedInSpec:
		return appsv1beta1.ReasonPaused, "spec.paused keeps Kubernetes from rolling it out"
	case view.KeptBelow != nil && ordinalOf(pod.Name) < *view.KeptBelow:
		return "Partition", "the partition keeps it at its revision"
	default:
		return "", ""
	}
}

// ordinalOf returns the number at the end of the name of a pod; -1 if there is none.
func ordinalOf(name string) int {
	ordinal, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return ordinal
}
