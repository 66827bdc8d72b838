// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compilation compiles the expressions of one policy.
type compilation struct {
	*cel.CompositedCompiler

	name          string
	failurePolicy *admissionregistrationv1.FailurePolicyType
	options       cel.OptionalVariableDeclarations
}

func newCompilation(name string, failurePolicy *admissionregistrationv1.FailurePolicyType, hasParams bool, variables []admissionregistrationv1.Variable) (*compilation, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, fmt.Errorf("set up the compiler: %w", err)
	}
	c := &compilation{compiler, name, failurePolicy, cel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}}
	named := make([]cel.NamedExpressionAccessor, 0, len(variables))
	for _, v := range variables {
		named = append(named, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	c.CompileAndStoreVariables(named, c.options, environment.StoredExpressions)

	return c, nil
}

// matcher returns nil if there are no conditions.
func (c *compilation) matcher(conditions []admissionregistrationv1.MatchCondition) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	accessors := make([]cel.ExpressionAccessor, 0, len(conditions))
	for i := range conditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&conditions[i]))
	}

	return matchconditions.NewMatcher(c.conditions(accessors, c.options), c.failurePolicy, "policy", "validate", c.name)
}

func (c *compilation) conditions(accessors []cel.ExpressionAccessor, options cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
	return c.CompileCondition(accessors, options, environment.StoredExpressions)
}

func compileMutating(policy *admissionregistrationv1.MutatingAdmissionPolicy) (mutating.PolicyEvaluator, error) {
	c, err := newCompilation(policy.Name, policy.Spec.FailurePolicy, policy.Spec.ParamKind != nil, policy.Spec.Variables)
	if err != nil {
		return mutating.PolicyEvaluator{}, err
	}
	evaluator := mutating.PolicyEvaluator{Matcher: c.matcher(policy.Spec.MatchConditions), CompositedCompiler: c.CompositedCompiler}
	options := c.options
	options.HasPatchTypes = true
	for _, mutation := range policy.Spec.Mutations {
		if mutation.JSONPatch == nil {
			return mutating.PolicyEvaluator{}, fmt.Errorf("mutation of type %s: accepted is JSONPatch", mutation.PatchType)
		}
		compiled := c.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, options, environment.StoredExpressions)
		evaluator.Mutators = append(evaluator.Mutators, patch.NewJSONPatcher(compiled))
	}

	return evaluator, nil
}

func compileValidating(policy *admissionregistrationv1.ValidatingAdmissionPolicy) (validating.Validator, error) {
	c, err := newCompilation(policy.Name, policy.Spec.FailurePolicy, policy.Spec.ParamKind != nil, policy.Spec.Variables)
	if err != nil {
		return nil, err
	}
	validations := make([]cel.ExpressionAccessor, len(policy.Spec.Validations))
	messages := make([]cel.ExpressionAccessor, len(policy.Spec.Validations))
	for i, v := range policy.Spec.Validations {
		validations[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	ofMessages := cel.OptionalVariableDeclarations{HasParams: c.options.HasParams}

	return validating.NewValidator(c.conditions(validations, c.options), c.matcher(policy.Spec.MatchConditions), c.conditions(nil, c.options),
		c.conditions(messages, ofMessages), c.failurePolicy, nil), nil
}
