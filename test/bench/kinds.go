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

// kind is a kind of workload that can be measured.
type kind struct {
	// build returns a workload with a number of pods.
	build func(pods int) client.Object
	// parts returns what rollouts change in a workload.
	parts func(workload client.Object) parts
	// progress reads the status of a workload.
	progress func(workload client.Object) progress
}

// parts are pointers into the spec of a workload; inPlace is nil if it has none.
type parts struct {
	pod            *corev1.PodSpec
	maxUnavailable **intstr.IntOrString
	inPlace        **appsv1beta1.InPlaceUpdateStrategy
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
	"Deployment": deploymentKind,
	"StatefulSet": {
		build: func(pods int) client.Object {
			return builders.StatefulSet(namespace, workloadName, image(0)).Replicas(int32(pods)).Build()
		},
		parts: func(workload client.Object) parts {
			spec := &workload.(*appsv1beta1.StatefulSet).Spec
			strategy := spec.UpdateStrategy.RollingUpdate
			return parts{&spec.Template.Spec, &strategy.MaxUnavailable, &strategy.InPlaceUpdateStrategy}
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
			return builders.CloneSet(namespace, workloadName, image(0)).Replicas(int32(pods)).Build()
		},
		parts: func(workload client.Object) parts {
			spec := &workload.(*appsv1beta1.CloneSet).Spec
			strategy := spec.UpdateStrategy.RollingUpdate
			return parts{&spec.Template.Spec, &strategy.MaxUnavailable, &strategy.InPlaceUpdateStrategy}
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
	"DaemonSet": {
		// It has as many pods as there are nodes, see hack/bench.
		build: func(int) client.Object {
			return builders.DaemonSet(namespace, workloadName, image(0)).Build()
		},
		parts: func(workload client.Object) parts {
			spec := &workload.(*appsv1beta1.DaemonSet).Spec
			strategy := spec.UpdateStrategy.RollingUpdate
			return parts{&spec.Template.Spec, &strategy.MaxUnavailable, &strategy.InPlaceUpdateStrategy}
		},
		progress: func(workload client.Object) progress {
			status := workload.(*appsv1beta1.DaemonSet).Status
			return progress{
				observed:  status.ObservedGeneration == workload.GetGeneration(),
				available: int(min(status.UpdatedNumberScheduled, status.NumberAvailable)),
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
