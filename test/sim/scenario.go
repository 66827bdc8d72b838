// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// newScenario returns a world at rest in which nothing happens by chance.
func newScenario(s settings) (*World, error) {
	w, err := newWorld(FromBytes(nil), s)
	if err != nil {
		return nil, err
	}
	w.calm = true
	if s.wider.first != "" { // there is no rest before the user corrects it
		w.settleOr(time.Minute)
		return w, w.failure
	}
	w.settle()
	w.rules.checkRest()
	return w, w.failure
}

// revisionNamed returns one of the revisions.
func revisionNamed(name string) revision {
	all := slices.Concat(revisions, resizeRevisions, splitRevisions)
	i := slices.IndexFunc(all, func(r revision) bool { return r.name == name })
	return all[i]
}

// uids returns the UIDs of the pods, by name.
func (w *World) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for name, pod := range all[*corev1.Pod](w.server) {
		uids[name] = pod.UID
	}
	return uids
}

// outcome tells what there is, without what differs from run to run. Pods that
// are in before are told from those that were made since.
func (w *World) outcome(before map[string]types.UID) string {
	var lines []string
	pods := all[*corev1.Pod](w.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[name]
		kept := map[bool]string{true: "kept", false: "made again"}[before[name] == pod.UID]
		line := fmt.Sprintf("pod %s, %s, at %s, %s", name, kept, pod.Labels[appsv1beta1.ControllerRevisionHashLabel], containerWords(pod))
		if w.settings.resizes.on {
			line += ", " + sizesOf(&pod.Spec).String()
		}
		lines = append(lines, line)
	}
	for _, key := range w.server.keys() {
		if key.kind == "ControllerRevision" || key.kind == "PersistentVolumeClaim" {
			lines = append(lines, key.kind+" "+key.name)
		}
		if claim, ok := w.server.objects[key].(*corev1.PersistentVolumeClaim); ok && w.storage != nil {
			lines = append(lines, claim.Name+" "+describeClaim(claim))
		}
	}
	if w.settings.hasMadeUpNames() {
		lines = contentOnly(lines)
	}
	status := w.set().Status.DeepCopy()
	status.CollisionCount = nil // it spares a try to make a revision, and is not needed
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range status.Blockers {
		status.Blockers[i].Since = metav1.Time{}
	}
	for _, claims := range status.VolumeClaims {
		if claims.Kept != nil {
			claims.Kept.OldestTimestamp = nil
		}
	}
	words, err := json.Marshal(status)
	if err != nil {
		words = []byte(err.Error())
	}
	return strings.Join(append(lines, string(words)), "\n")
}

func containerWords(pod *corev1.Pod) string {
	words := make([]string, 0, len(pod.Status.ContainerStatuses))
	for _, status := range pod.Status.ContainerStatuses {
		words = append(words, fmt.Sprintf("%s from %s after %d restarts", status.Name, status.Image, status.RestartCount))
	}
	return strings.Join(words, ", ")
}

// restarts returns how often containers of pods in before were restarted, and
// how many of those pods were made again.
func (w *World) restarts(before map[string]types.UID) (restarts, remade int) {
	for name, pod := range all[*corev1.Pod](w.server) {
		uid, was := before[name]
		if (was || w.settings.hasMadeUpNames()) && uid != pod.UID {
			remade++
		}
		for _, status := range pod.Status.ContainerStatuses {
			restarts += int(status.RestartCount)
		}
	}
	return restarts, remade
}
