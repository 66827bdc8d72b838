// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/utils/ptr"
)

// Load compiles the policies among the objects, each with its bindings, and leaves
// other objects alone. An expression that does not compile is an error of the writes
// that it is asked for, as in the API server.
func Load(objects []*unstructured.Unstructured) (*Set, error) {
	set := &Set{}
	for _, obj := range objects {
		var err error
		switch obj.GetKind() {
		case "MutatingAdmissionPolicy":
			err = set.addMutating(obj, objects)
		case "ValidatingAdmissionPolicy":
			err = set.addValidating(obj, objects)
		}
		if err != nil {
			return nil, fmt.Errorf("load %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}

	return set, nil
}

func (s *Set) addMutating(obj *unstructured.Unstructured, objects []*unstructured.Unstructured) error {
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := decode(obj, policy); err != nil {
		return err
	}
	setDefaults(policy.Spec.MatchConstraints)
	evaluator, err := compileMutating(policy)
	if err != nil {
		return err
	}
	hook := mutating.PolicyHook{Policy: policy, Evaluator: evaluator, ParamScope: meta.RESTScopeNamespace}
	for _, other := range objects {
		if other.GetKind() != "MutatingAdmissionPolicyBinding" {
			continue
		}
		binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
		if err := decode(other, binding); err != nil {
			return err
		}
		if binding.Spec.PolicyName == policy.Name {
			setDefaults(binding.Spec.MatchResources)
			hook.Bindings = append(hook.Bindings, binding)
		}
	}
	s.mutating = append(s.mutating, hook)

	return nil
}

func (s *Set) addValidating(obj *unstructured.Unstructured, objects []*unstructured.Unstructured) error {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := decode(obj, policy); err != nil {
		return err
	}
	setDefaults(policy.Spec.MatchConstraints)
	evaluator, err := compileValidating(policy)
	if err != nil {
		return err
	}
	hook := validating.PolicyHook{Policy: policy, Evaluator: evaluator, ParamScope: meta.RESTScopeNamespace}
	for _, other := range objects {
		if other.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		if err := decode(other, binding); err != nil {
			return err
		}
		if binding.Spec.PolicyName == policy.Name {
			setDefaults(binding.Spec.MatchResources)
			hook.Bindings = append(hook.Bindings, binding)
		}
	}
	s.validating = append(s.validating, hook)

	return nil
}

func decode(from *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, into, true)
}

// setDefaults does what the API server does when it stores a policy or a binding.
func setDefaults(match *admissionregistrationv1.MatchResources) {
	if match == nil {
		return
	}
	if match.NamespaceSelector == nil {
		match.NamespaceSelector = &metav1.LabelSelector{}
	}
	if match.ObjectSelector == nil {
		match.ObjectSelector = &metav1.LabelSelector{}
	}
	if match.MatchPolicy == nil {
		match.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
}
