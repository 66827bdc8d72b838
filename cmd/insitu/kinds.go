// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/daemonset"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/controllers/statefulset"
)

// driven are workloads that the manager drives.
type driven struct {
	// workloads are empty objects of the kinds. ofCluster are those of what else is watched that
	// belongs to the cluster: a manager with rights in namespaces only does without.
	workloads, ofCluster []client.Object
	// add adds their controllers to a manager.
	add func(ctrl.Manager, engine.Options) error
	// of returns what is configured for each of them.
	of func(configv1alpha1.ControllersConfiguration) configv1alpha1.ControllerConfiguration
}

var kinds = []driven{
	{
		[]client.Object{&appsv1beta1.CloneSet{}}, nil, cloneset.Add,
		func(c configv1alpha1.ControllersConfiguration) configv1alpha1.ControllerConfiguration {
			return c.CloneSet
		},
	},
	{
		[]client.Object{&appsv1beta1.StatefulSet{}}, nil, statefulset.Add,
		func(c configv1alpha1.ControllersConfiguration) configv1alpha1.ControllerConfiguration {
			return c.StatefulSet
		},
	},
	{
		[]client.Object{&appsv1beta1.DaemonSet{}}, []client.Object{&corev1.Node{}}, daemonset.Add,
		func(c configv1alpha1.ControllersConfiguration) configv1alpha1.ControllerConfiguration {
			return c.DaemonSet
		},
	},
	{
		[]client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}}, nil, native.Add,
		func(c configv1alpha1.ControllersConfiguration) configv1alpha1.ControllerConfiguration {
			return c.Native
		},
	},
}

// watched returns empty objects of what the manager watches for its kinds.
func watched(scope configv1alpha1.Scope) []client.Object {
	var objects []client.Object
	for _, kind := range kinds {
		objects = append(objects, kind.workloads...)
		if scope != configv1alpha1.NamespaceScope {
			objects = append(objects, kind.ofCluster...)
		}
	}
	return objects
}
