// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// TestLikeARealKubelet repeats what was done to a pod on a kubelet 1.37 with
// containerd 1.6, and expects the statuses that were recorded there.
func TestLikeARealKubelet(t *testing.T) {
	pod := newPod("main", "nginx:alpine", "b", "insitu-dev/sleeper:v1")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
	w := newWorld(t, pod)
	w.annotate(StopSecondsAnnotation, "b=3")
	w.pass(5 * time.Second)

	w.setImage("b", "insitu-dev/sleeper:v2") // keeps the kubelet busy for 3 s
	w.pass(time.Second)
	w.setImage("main", "nginx:latest")
	w.pass(500 * time.Millisecond)
	w.setImage("main", "nginx:alpine")
	w.pass(5 * time.Second)

	w.setImage("main", "nginx:missing-x")
	w.pass(5 * time.Second)
	w.setImage("main", "nginx:latest")
	w.pass(5 * time.Second)
	w.setImage("main", "nginx:stable") // the same digest
	w.pass(5 * time.Second)
	w.delete(30)
	w.pass(5 * time.Second)

	const update = "Initialized ContainersReady"
	w.Expect(w.seen).To(HaveExactElements(
		// Start.
		"1/1 Pending | b ContainerCreating | main ContainerCreating | Initialized",
		"1/1 Pending | b ContainerCreating | main ContainerCreating | StartContainers Initialized",
		"1/1 Running | b running ready v1 | main running ready alpine | StartContainers "+update,
		// b to v2. It is seen that main went to latest and back, but not before
		// b is done, and main is never restarted.
		"2/2 Running | b running ready v1 | main running ready alpine | StartContainers "+update,
		"2/3 Running | b running ready v1 | main running ready alpine | StartContainers "+update,
		"2/4 Running | b running ready v1 | main running ready alpine | StartContainers "+update,
		"4/4 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready alpine | StartContainers "+update,
		// main to an image that does not exist: the old one is gone.
		"5/5 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready alpine | StartContainers "+update,
		"5/5 Running | b running ready restarts=1 last=Completed(0) v2 | main ErrImagePull last=Completed(0) alpine | StartContainers Initialized",
		"5/5 Running | b running ready restarts=1 last=Completed(0) v2 | main ImagePullBackOff last=Completed(0) alpine | StartContainers Initialized",
		// On to one that exists.
		"6/6 Running | b running ready restarts=1 last=Completed(0) v2 | main ImagePullBackOff last=Completed(0) alpine | StartContainers Initialized",
		"6/6 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready restarts=1 last=Completed(0) latest | StartContainers "+update,
		// Another tag of the same digest: a restart, under the old name.
		"7/7 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready restarts=1 last=Completed(0) latest | StartContainers "+update,
		"7/7 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready restarts=2 last=Completed(0) latest | StartContainers "+update,
		// Deletion makes a generation too.
		"8/8 Running | b running ready restarts=1 last=Completed(0) v2 | main running ready restarts=2 last=Completed(0) latest | StartContainers "+update,
		"8/8 Succeeded | b Completed(0) restarts=1 last=Completed(0) v2 | main Completed(0) restarts=2 last=Completed(0) latest | Initialized",
	))
	w.Expect(w.outcome.Finished).To(BeTrue())
}
