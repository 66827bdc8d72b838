// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// defaulter fills in what the API server fills in after each policy: the numbers of
// strategies. The rest is given by whoever writes a request.
type defaulter struct{}

func (defaulter) Default(obj runtime.Object) {
	switch workload := obj.(type) {
	case *appsv1.StatefulSet:
		strategy := &workload.Spec.UpdateStrategy
		if strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || strategy.RollingUpdate == nil {
			return
		}
		setDefault(&strategy.RollingUpdate.Partition, 0)
		setDefault(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	case *appsv1.DaemonSet:
		strategy := &workload.Spec.UpdateStrategy
		if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
			return
		}
		setDefault(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefault(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
