// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
		objects, err := c.optedIn(ctx, kind)
		switch {
		case err != nil:
			findings = append(findings, finding{
				f.subject, fmt.Sprintf("%ss cannot be listed: %v", kind, err), "grant the rights that are missing above",
			})
		case len(objects) == 0:
			kinds = append(kinds, kind)
		default:
			findings = append(findings, c.tryHolds(ctx, kind, objects)...)
		}
	}
	if len(kinds) > 0 {
		f.found = fmt.Sprintf("no %s is opted in and could be held, so none was tried", strings.Join(kinds, ", "))
		findings = append(findings, f)
	}
	return findings
}

// tryHolds tries the hold in each namespace: an administrator can leave namespaces out.
func (c *checker) tryHolds(ctx context.Context, kind string, objects []client.Object) []finding {
	var findings []finding
	var held []string
	for _, object := range objects {
		if f := c.tryHold(ctx, kind, object); f != nil {
			findings = append(findings, *f)
		} else {
			held = append(held, object.GetNamespace()+"/"+object.GetName())
		}
	}
	if len(held) == 0 {
		return findings
	}
	f := finding{subject: "hold policies", found: fmt.Sprintf("a change of %s %s would be held (dry run)", kind, held[0])}
	if more := len(held) - 1; more > 0 {
		f.found = fmt.Sprintf("a change of %s %s would be held (dry run), and so would one in each other namespace (%d)", kind, held[0], more)
	}
	return append(findings, f)
}

// tryHold begins a rollout of a workload in a dry run; nil if it is held.
func (c *checker) tryHold(ctx context.Context, kind string, object client.Object) *finding {
	name := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(dryRun)), client.DryRunAll)
	switch _, isHeld := object.GetLabels()[native.HeldLabel]; {
	case apierrors.IsNotFound(err):
		return nil // it was deleted meanwhile
	case err != nil:
		return &finding{"hold policies", fmt.Sprintf("a dry-run change of %s is refused: %v", name, err), "mend what the API server says"}
	case isHeld:
		return nil
	default:
		return &finding{
			"hold policies", fmt.Sprintf("a change of %s would not be held (dry run): Kubernetes would recreate its pods", name),
			fmt.Sprintf("have the policies installed for namespace %s (holdPolicies of the chart), or take label %s off", object.GetNamespace(), native.UpdatePolicyLabel),
		}
	}
}

// optedIn returns of each namespace a workload whose change would be held.
func (c *checker) optedIn(ctx context.Context, kind string) ([]client.Object, error) {
	namespaces := c.config.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{everywhere}
	}
	seen := sets.New[string]()
	var found []client.Object
	for _, namespace := range namespaces {
		candidates, err := c.candidates(ctx, kind, client.InNamespace(namespace), client.HasLabels{native.UpdatePolicyLabel})
		if err != nil {
			return nil, err
		}
		for _, object := range candidates {
			_, isHeld := object.GetLabels()[native.HeldLabel]
			if isHeld || object.GetDeletionTimestamp() != nil || seen.Has(object.GetNamespace()) {
				continue
			}
			seen.Insert(object.GetNamespace())
			found = append(found, object)
		}
	}
	return found, nil
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
