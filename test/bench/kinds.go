// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// What every workload has.
const (
	namespace    = metav1.NamespaceDefault
	workloadName = "bench"
	selector     = "app=" + workloadName
)

// image returns the image of the i-th rollout; 0 is what the pods start with. On
// simulated nodes every image exists. None comes back: a kubelet delays the start
// of what it has started a short time ago.
func image(i int) string { return fmt.Sprintf("nginx:%d", i) }

// kind is a kind of workload that can be measured.
type kind struct {
	// build returns a workload with a number of pods at the first image.
	build func(pods int) client.Object
	// update lets a workload go to an image with a budget.
	update func(workload client.Object, image string, maxUnavailable intstr.IntOrString)
	// progress reads the status of a workload.
	progress func(workload client.Object) progress
}

// progress is how far a workload has come.
type progress struct {
	// observed is true if the status is about the present spec.
	observed bool
	// available is the number of pods that are at the update revision and
	// available.
	available int
	// settled is true if no pod needs the current revision any more.
	settled bool
}

// kinds are the kinds by the name that --kind takes.
var kinds = map[string]kind{
	"StatefulSet": {
		build: func(pods int) client.Object {
			set := builders.StatefulSet(namespace, workloadName, image(0)).Replicas(int32(pods)).Build()
			tolerateSimulation(&set.Spec.Template.Spec)
			return set
		},
		update: func(workload client.Object, image string, maxUnavailable intstr.IntOrString) {
			spec := &workload.(*appsv1beta1.StatefulSet).Spec
			spec.Template.Spec.Containers[0].Image = image
			spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &maxUnavailable
		},
		progress: func(workload client.Object) progress {
			status := workload.(*appsv1beta1.StatefulSet).Status
			return progress{
				observed:  status.ObservedGeneration == workload.GetGeneration(),
				available: int(status.UpdatedAvailableReplicas),
				settled:   status.CurrentRevision == status.UpdateRevision,
			}
		},
	},
	"CloneSet": {
		build: func(pods int) client.Object {
			set := builders.CloneSet(namespace, workloadName, image(0)).Replicas(int32(pods)).Build()
			tolerateSimulation(&set.Spec.Template.Spec)
			return set
		},
		update: func(workload client.Object, image string, maxUnavailable intstr.IntOrString) {
			spec := &workload.(*appsv1beta1.CloneSet).Spec
			spec.Template.Spec.Containers[0].Image = image
			spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &maxUnavailable
		},
		progress: func(workload client.Object) progress {
			status := workload.(*appsv1beta1.CloneSet).Status
			return progress{
				observed:  status.ObservedGeneration == workload.GetGeneration(),
				available: int(status.UpdatedAvailableReplicas),
				settled:   status.CurrentRevision == status.UpdateRevision,
			}
		},
	},
}

func kindNamed(name string) (kind, error) {
	k, ok := kinds[name]
	if !ok {
		return kind{}, fmt.Errorf("kind %q cannot be measured", name)
	}
	return k, nil
}

// simulatedKey is the key of the taint that simulated nodes have.
const simulatedKey = "insitu.dev/simulated"

// tolerateSimulation lets pods go to the simulated nodes.
func tolerateSimulation(spec *corev1.PodSpec) {
	spec.Tolerations = []corev1.Toleration{{Key: simulatedKey, Operator: corev1.TolerationOpExists}}
}

// newService returns a Service that sends traffic to the pods.
func newService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workloadName},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  map[string]string{"app": workloadName},
			Ports:     []corev1.ServicePort{{Port: 80}},
		},
	}
}
