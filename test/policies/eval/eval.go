// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package eval evaluates admission policies in process, with the compiler and the
// dispatchers of the API server: the same expressions, selectors, parameters, failure
// policies and second pass. What it does not have is what comes before admission and
// after it: most defaults, validation, storage, and other plugins.
package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Set is a number of compiled policies with their bindings. It may be used by many at
// a time.
type Set struct {
	mutating   []mutating.PolicyHook
	validating []validating.PolicyHook
}

// Request is one write of a Deployment, StatefulSet or DaemonSet, or of the status of one or of a pod.
type Request struct {
	// Old is what is stored; nil for a create. New is what is written.
	Old, New client.Object
	// Status says that the write is one of the status of a workload. That of a pod always is.
	Status bool
	// FieldManager is that of the request's options; many clients give none.
	FieldManager string
	// Params are the parameters that there are in the cluster.
	Params []client.Object
	// Order has the names of the mutating policies in the order in which they are
	// evaluated. Those that are not in it are not installed. Nil is all, by name.
	Order []string
	// Webhook is what mutating webhooks make of the object between the two passes; nil
	// if there are none.
	Webhook func(client.Object) error
}

// Strict returns the set with policies that refuse what they cannot judge, so that no
// failure of an expression goes unseen.
func (s *Set) Strict() *Set {
	strict := &Set{mutating: slices.Clone(s.mutating), validating: slices.Clone(s.validating)}
	for i, hook := range strict.mutating {
		strict.mutating[i].Policy = hook.Policy.DeepCopy()
		strict.mutating[i].Policy.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	}
	for i, hook := range strict.validating {
		strict.validating[i].Policy = hook.Policy.DeepCopy()
		strict.validating[i].Policy.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	}

	return strict
}

// Names returns the names of the mutating policies, sorted.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.mutating))
	for _, hook := range s.mutating {
		names = append(names, hook.Policy.Name)
	}
	slices.Sort(names)

	return names
}

// Admit returns the object as it is after admission, in an object of its own, or the
// error by which the write is refused.
func (s *Set) Admit(ctx context.Context, r Request) (client.Object, error) {
	attributes, err := attributesOf(r)
	if err != nil {
		return nil, err
	}
	if err := s.mutate(ctx, r, attributes); err != nil {
		return nil, err
	}
	hooks := slices.Clone(s.validating)
	for i := range hooks {
		hooks[i].ParamInformer = informerOf(r.Params)
	}
	if err := validating.NewDispatcher(nil, policyMatcher).Dispatch(ctx, attributes, interfaces, hooks); err != nil {
		return nil, err
	}
	admitted, isObject := attributes.GetObject().(client.Object)
	if !isObject {
		return nil, fmt.Errorf("admit: the result is a %T", attributes.GetObject())
	}

	return admitted, nil
}

// mutate has two passes, as admission has if anything of the first pass changes the
// object.
func (s *Set) mutate(ctx context.Context, r Request, attributes admission.Attributes) error {
	hooks, err := s.inOrder(r)
	if err != nil {
		return err
	}
	dispatcher := mutating.NewDispatcher(nil, matcher, converters{})
	if err := dispatcher.Dispatch(ctx, attributes, interfaces, hooks); err != nil {
		return err
	}
	again := attributes.GetReinvocationContext()
	if r.Webhook != nil {
		written, isObject := attributes.GetObject().(client.Object)
		if !isObject {
			return errors.New("admit: webhooks take no such object")
		}
		if err := r.Webhook(written); err != nil {
			return fmt.Errorf("admit: %w", err)
		}
		again.SetShouldReinvoke()
	}
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()

	return dispatcher.Dispatch(ctx, attributes, interfaces, hooks)
}

func (s *Set) inOrder(r Request) ([]mutating.PolicyHook, error) {
	order := r.Order
	if order == nil {
		order = s.Names()
	}
	hooks := make([]mutating.PolicyHook, 0, len(order))
	for _, name := range order {
		i := slices.IndexFunc(s.mutating, func(hook mutating.PolicyHook) bool { return hook.Policy.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no policy %q; policies: %q", name, s.Names())
		}
		hook := s.mutating[i]
		hook.ParamInformer = informerOf(r.Params)
		hooks = append(hooks, hook)
	}

	return hooks, nil
}

// attributesOf returns what admission knows of a request.
func attributesOf(r Request) (admission.Attributes, error) {
	target, err := targetOf(r.New)
	if err != nil {
		return nil, err
	}
	if r.Status {
		target.subresource = "status"
	}
	operation := admission.Update
	var old, options runtime.Object = r.Old, &metav1.UpdateOptions{FieldManager: r.FieldManager}
	if r.Old == nil {
		operation, old, options = admission.Create, nil, &metav1.CreateOptions{FieldManager: r.FieldManager}
	}

	written := r.New.DeepCopyObject()
	interfaces.GetObjectDefaulter().Default(written)

	return admission.NewAttributesRecord(written, old, target.version.WithKind(target.kind), r.New.GetNamespace(), r.New.GetName(),
		target.version.WithResource(target.resource), target.subresource, operation, options, false, &user.DefaultInfo{Name: "user"}), nil
}

// target is what a request is sent to.
type target struct {
	version                     schema.GroupVersion
	kind, resource, subresource string
}

func targetOf(obj client.Object) (target, error) {
	switch obj.(type) {
	case *appsv1.Deployment:
		return target{appsv1.SchemeGroupVersion, "Deployment", "deployments", ""}, nil
	case *appsv1.StatefulSet:
		return target{appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", ""}, nil
	case *appsv1.DaemonSet:
		return target{appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", ""}, nil
	case *corev1.Pod:
		return target{corev1.SchemeGroupVersion, "Pod", "pods", "status"}, nil
	default:
		return target{}, fmt.Errorf("admit: found a %T; accepted are Deployments, StatefulSets, DaemonSets and Pods", obj)
	}
}
