// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

// policyVersion serves the kind of the hold policies, since Kubernetes 1.36.
const policyVersion = "admissionregistration.k8s.io/v1"

// dryRun begins a rollout, as far as a policy can see.
const dryRun = `{"spec":{"template":{"metadata":{"annotations":{"insitu.dev/check":"dry-run"}}}}}`

// holdPolicies looks whether rollouts of opted-in workloads are held, by trying with a dry
// run. The policies themselves the manager may not read.
func (c *checker) holdPolicies(ctx context.Context) []finding {
	f := finding{subject: "hold policies"}
	isServed, err := c.serves(ctx, policyVersion, "mutatingadmissionpolicies")
	if err != nil {
		f.found, f.advice = "it cannot be seen whether the API server has them: "+err.Error(), "see whether the API server is well, and try again"
		return []finding{f}
	}
	if !isServed {
		f.found = "this API server has none (Kubernetes 1.36 and newer have), so the workloads of Kubernetes are not updated in place; those of apps.kruise.io are"
		return []finding{f}
	}
	var findings []finding
	var kinds []string
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		object, err := c.optedIn(ctx, kind)
		switch {
		case err != nil:
			findings = append(findings, finding{
				f.subject, fmt.Sprintf("%ss cannot be listed: %v", kind, err), "grant the rights that are missing above",
			})
		case object == nil:
			kinds = append(kinds, kind)
		default:
			findings = append(findings, c.tryHold(ctx, kind, object))
		}
	}
	if len(kinds) > 0 {
		f.found = fmt.Sprintf("no %s is opted in and could be held, so none was tried", strings.Join(kinds, ", "))
		findings = append(findings, f)
	}
	return findings
}

// tryHold begins a rollout of a workload in a dry run.
func (c *checker) tryHold(ctx context.Context, kind string, object client.Object) finding {
	name := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	f := finding{subject: "hold policies"}
	err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(dryRun)), client.DryRunAll)
	_, isHeld := object.GetLabels()[native.HeldLabel]
	switch {
	case err != nil:
		f.found, f.advice = fmt.Sprintf("a dry-run change of %s is refused: %v", name, err), "mend what the API server says"
	case isHeld:
		f.found = "a change of " + name + " would be held (dry run)"
	default:
		f.found = fmt.Sprintf("a change of %s would not be held (dry run): Kubernetes would recreate its pods", name)
		f.advice = fmt.Sprintf("have the policies installed for namespace %s (holdPolicies of the chart), or take label %s off", object.GetNamespace(), native.UpdatePolicyLabel)
	}
	return f
}

// optedIn returns a workload whose change would be held; nil if there is none.
func (c *checker) optedIn(ctx context.Context, kind string) (client.Object, error) {
	namespaces := c.config.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{everywhere}
	}
	for _, namespace := range namespaces {
		candidates, err := c.candidates(ctx, kind, client.InNamespace(namespace), client.HasLabels{native.UpdatePolicyLabel})
		if err != nil {
			return nil, err
		}
		for _, object := range candidates {
			if _, isHeld := object.GetLabels()[native.HeldLabel]; !isHeld && object.GetDeletionTimestamp() == nil {
				return object, nil
			}
		}
	}
	return nil, nil
}

// candidates returns the workloads of a kind that Kubernetes rolls out by itself, and that
// have pods: no others are held.
func (c *checker) candidates(ctx context.Context, kind string, options ...client.ListOption) ([]client.Object, error) {
	var found []client.Object
	switch kind {
	case "Deployment":
		list := &appsv1.DeploymentList{}
		if err := c.client.List(ctx, list, options...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			spec, pods := list.Items[i].Spec, list.Items[i].Status.Replicas
			if pods > 0 && !spec.Paused && spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
				found = append(found, &list.Items[i])
			}
		}
	case "StatefulSet":
		list := &appsv1.StatefulSetList{}
		if err := c.client.List(ctx, list, options...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].Status.Replicas > 0 && list.Items[i].Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
				found = append(found, &list.Items[i])
			}
		}
	default:
		list := &appsv1.DaemonSetList{}
		if err := c.client.List(ctx, list, options...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			pods := list.Items[i].Status.CurrentNumberScheduled
			if pods > 0 && list.Items[i].Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
				found = append(found, &list.Items[i])
			}
		}
	}
	return found, nil
}
