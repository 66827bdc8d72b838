// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// BenchmarkObserve is what one look costs at a job of 5,000 nodes, half of which have the image,
// while 50 pull.
func BenchmarkObserve(b *testing.B) {
	const number, pulling = 5000, 50
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	job := &appsv1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull", UID: "uid"}}
	job.Spec.Image, job.Status.Image = "web:2", "web:2"
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(pulling))
	var targets []target
	var pods []*corev1.Pod
	for i := range number {
		node := target{name: fmt.Sprintf("node-%04d.example.com", i), isReady: true}
		targets = append(targets, node)
		switch {
		case i < number/2:
			job.Status.SucceededNodes = append(job.Status.SucceededNodes, node.name)
		case i < number/2+pulling:
			pod := puller(job, attempt{target: node, number: 1})
			pod.CreationTimestamp = metav1.NewTime(now)
			pods = append(pods, pod)
		}
	}
	know := &memory{tries: map[string]try{}}
	for b.Loop() {
		if seen := observe(job, know, targets, pods, now); seen.active != pulling || len(seen.succeeded) != number/2 {
			b.Fatalf("found %d active, %d succeeded", seen.active, len(seen.succeeded))
		}
	}
}
