// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	controllers "github.com/insitu-dev/insitu/controllers/native"
)

// policyVersion serves the kind of the hold policies, since Kubernetes 1.36.
const policyVersion = "admissionregistration.k8s.io/v1"

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
	for _, kind := range controllers.Kinds() {
		objects, err := c.perNamespace(ctx, kind, controllers.OnePerNamespace)
		switch {
		case err != nil:
			findings = append(findings, finding{
				f.subject, fmt.Sprintf("%ss cannot be listed: %v", kind, err), "grant the rights that are missing above",
			})
		case len(objects) == 0:
			kinds = append(kinds, string(kind))
		default:
			findings = append(findings, c.tryHolds(ctx, kind, objects)...)
		}
		held, err := c.perNamespace(ctx, kind, controllers.HeldPerNamespace)
		if err != nil {
			findings = append(findings, finding{f.subject, fmt.Sprintf("held %ss cannot be listed: %v", kind, err), "grant the rights that are missing above"})
		}
		findings = append(findings, c.tryReleases(ctx, kind, held)...)
	}
	if len(kinds) > 0 {
		f.found = fmt.Sprintf("no %s is opted in and could be held, so none was tried", strings.Join(kinds, ", "))
		findings = append(findings, f)
	}
	return findings
}

// tryHolds tries the hold in each namespace: an administrator can leave namespaces out.
func (c *checker) tryHolds(ctx context.Context, kind controllers.Kind, objects []client.Object) []finding {
	var findings []finding
	var held []string
	for _, object := range objects {
		switch f, isHeld := c.tryHold(ctx, kind, object); {
		case f != nil:
			findings = append(findings, *f)
		case isHeld:
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

// tryHold begins a rollout of a workload in a dry run, and reports whether it is held. There
// is nothing to say of a workload that was deleted meanwhile.
func (c *checker) tryHold(ctx context.Context, kind controllers.Kind, object client.Object) (f *finding, isHeld bool) {
	name := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	isHeld, err := controllers.WouldBeHeld(ctx, c.client, kind, object)
	switch {
	case apierrors.IsNotFound(err), isHeld:
		return nil, isHeld
	case err != nil:
		return &finding{"hold policies", fmt.Sprintf("a dry run is refused: %v", err), "correct what the API server says"}, false
	default:
		return &finding{
			"hold policies", fmt.Sprintf("a change of %s would not be held (dry run): Kubernetes would recreate its pods", name),
			fmt.Sprintf("have the policies installed for namespace %s (holdPolicies of the chart), or take label %s off", object.GetNamespace(), native.UpdatePolicyLabel),
		}, false
	}
}

// tryReleases tries in each namespace whether a hold would end that is asked to.
func (c *checker) tryReleases(ctx context.Context, kind controllers.Kind, held []client.Object) []finding {
	var findings []finding
	for _, object := range held {
		name := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
		f := finding{subject: "hold policies", found: fmt.Sprintf("the hold of %s would end when that is asked for (dry run)", name)}
		switch isReleased, err := controllers.WouldBeReleased(ctx, c.client, kind, object); {
		case apierrors.IsNotFound(err):
			continue // it was deleted meanwhile
		case err != nil:
			f.found, f.advice = fmt.Sprintf("a dry run is refused: %v", err), "correct what the API server says"
		case !isReleased:
			f.found = fmt.Sprintf("the hold of %s would not end when that is asked for (dry run): only the manager could end it", name)
			f.advice = "have the policies that release installed (holdPolicies of the chart): they stay after an uninstall, for this"
		}
		findings = append(findings, f)
	}
	return findings
}

// perNamespace returns some workloads of each namespace of the manager.
func (c *checker) perNamespace(
	ctx context.Context, kind controllers.Kind,
	find func(context.Context, client.Reader, controllers.Kind, ...client.ListOption) ([]client.Object, error),
) ([]client.Object, error) {
	namespaces := c.config.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{everywhere}
	}
	var all []client.Object
	for _, namespace := range namespaces {
		found, err := find(ctx, c.client, kind, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
