// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShippedHealth returns what the scripts say that Argo CD ships for the StatefulSet, the
// CloneSet and the DaemonSet of apps.kruise.io. They read counts and no conditions, so they
// know nothing of Stalled or of claims, and call everything that is under way Degraded, but
// for DaemonSets. A script that fails, as they do where a strategy has no rollingUpdate,
// gives Unknown.
func ShippedHealth(obj *unstructured.Unstructured) HealthStatus {
	fields := fields{obj}
	if obj.GetDeletionTimestamp() != nil || !fields.isObserved() {
		return Progressing
	}
	strategy := []string{"spec", "updateStrategy"}
	if obj.GetKind() != "CloneSet" {
		strategy = append(strategy, "rollingUpdate")
	}
	if _, ok, _ := unstructured.NestedMap(obj.Object, strategy...); !ok {
		return Unknown
	}
	if obj.GetKind() == "DaemonSet" {
		return fields.shippedDaemonSet(strategy)
	}
	paused, _, _ := unstructured.NestedBool(obj.Object, append(strategy, "paused")...)
	updatedAvailable, counted := fields.number("status", "updatedAvailableReplicas")
	// For Lua, no partition is another than 0.
	partition, hasPartition := fields.number(append(strategy, "partition")...)
	switch {
	case paused || !counted:
		return Suspended
	case (!hasPartition || partition != 0) && obj.GetGeneration() > 1:
		return fields.partitioned(partition, hasPartition)
	case updatedAvailable == fields.count("status", "replicas"):
		return Healthy
	default:
		return Degraded
	}
}

// fields reads the fields of an object.
type fields struct {
	*unstructured.Unstructured
}

// partitioned is the part of ShippedHealth for a partition that is not 0.
func (f fields) partitioned(partition int64, isNumber bool) HealthStatus {
	updated := f.count("status", "updatedReplicas")
	switch {
	case f.GetKind() == "CloneSet" && updated >= f.count("status", "expectedUpdatedReplicas"):
		return Suspended
	case f.GetKind() == "StatefulSet" && !isNumber:
		return Unknown
	case f.GetKind() == "StatefulSet" && updated > f.count("status", "replicas")-partition:
		return Suspended
	default:
		return Progressing
	}
}

// shippedDaemonSet is the part of ShippedHealth for a DaemonSet. For Lua, a count that is not
// there is no 0, and a partition that is none or a percentage is no number to count with.
func (f fields) shippedDaemonSet(strategy []string) HealthStatus {
	wanted := f.count("status", "desiredNumberScheduled")
	updated, counted := f.number("status", "updatedNumberScheduled")
	available, hasAvailable := f.number("status", "numberAvailable")
	unavailable, hasUnavailable := f.number("status", "numberUnavailable")
	paused, _, _ := unstructured.NestedBool(f.Object, append(strategy, "paused")...)
	partition, isNumber := f.number(append(strategy, "partition")...)
	isPartitioned := (!isNumber || partition != 0) && f.GetGeneration() > 1
	switch {
	case paused || !counted:
		return Suspended
	case isPartitioned && !isNumber:
		return Unknown
	case isPartitioned && updated > wanted-partition:
		return Suspended
	case isPartitioned:
		return Progressing
	case updated == wanted && hasAvailable && available == wanted:
		return Healthy
	case updated == wanted && hasUnavailable && unavailable == wanted:
		return Degraded
	default:
		return Progressing
	}
}

// BuiltinHealth returns what Argo CD says of the Deployments, StatefulSets and
// DaemonSets of Kubernetes.
func BuiltinHealth(obj *unstructured.Unstructured) HealthStatus {
	fields := fields{obj}
	if obj.GetDeletionTimestamp() != nil {
		return Progressing
	}
	switch obj.GetKind() {
	case "Deployment":
		return fields.deployment()
	case "StatefulSet":
		return fields.statefulSet()
	case "DaemonSet":
		return fields.daemonSet()
	default:
		return Unknown
	}
}

func (f fields) deployment() HealthStatus {
	replicas, updated := f.count("spec", "replicas"), f.count("status", "updatedReplicas")
	paused, _, _ := unstructured.NestedBool(f.Object, "spec", "paused")
	switch {
	case paused:
		return Suspended
	case !f.isObserved():
		return Progressing
	case f.condition("Progressing")["reason"] == "ProgressDeadlineExceeded":
		return Degraded
	case updated < replicas, f.count("status", "replicas") > updated, f.count("status", "availableReplicas") < updated:
		return Progressing
	default:
		return Healthy
	}
}

func (f fields) statefulSet() HealthStatus {
	replicas := f.count("spec", "replicas")
	strategy, _, _ := unstructured.NestedString(f.Object, "spec", "updateStrategy", "type")
	_, hasNumbers, _ := unstructured.NestedMap(f.Object, "spec", "updateStrategy", "rollingUpdate")
	partition, isPartitioned := f.number("spec", "updateStrategy", "rollingUpdate", "partition")
	update, _, _ := unstructured.NestedString(f.Object, "status", "updateRevision")
	current, _, _ := unstructured.NestedString(f.Object, "status", "currentRevision")
	switch {
	case !f.isObserved(), f.count("status", "readyReplicas") < replicas:
		return Progressing
	case strategy != "RollingUpdate":
		return Healthy
	case hasNumbers && isPartitioned && f.count("status", "updatedReplicas") < replicas-partition:
		return Progressing
	case !hasNumbers && update != current:
		return Progressing
	default:
		return Healthy
	}
}

func (f fields) daemonSet() HealthStatus {
	wanted := f.count("status", "desiredNumberScheduled")
	strategy, _, _ := unstructured.NestedString(f.Object, "spec", "updateStrategy", "type")
	switch {
	case !f.isObserved():
		return Progressing
	case strategy == "OnDelete":
		return Healthy
	case f.count("status", "updatedNumberScheduled") < wanted, f.count("status", "numberAvailable") < wanted:
		return Progressing
	default:
		return Healthy
	}
}

func (f fields) number(path ...string) (int64, bool) {
	value, ok, err := unstructured.NestedInt64(f.Object, path...)
	return value, ok && err == nil
}

// count returns a number, 0 if it is not there.
func (f fields) count(path ...string) int64 {
	value, _ := f.number(path...)
	return value
}

func (f fields) isObserved() bool {
	return f.count("status", "observedGeneration") == f.GetGeneration()
}

// condition returns a condition of the status, nil if it is not there.
func (f fields) condition(conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(f.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == conditionType {
			return condition
		}
	}
	return nil
}
