// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HealthCheckExprs is an entry of healthCheckExprs of a Kustomization of Flux.
type HealthCheckExprs struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

// Status returns what Flux says of an object by the expressions: it is in progress
// while its generation is not observed, then the first that is true counts, and without
// one it is in progress.
func (e HealthCheckExprs) Status(ctx context.Context, obj *unstructured.Unstructured) (status.Status, error) {
	if observed, ok := (fields{obj}).number("status", "observedGeneration"); ok && observed != obj.GetGeneration() {
		return InProgress, nil
	}
	for _, check := range []struct {
		expression string
		says       status.Status
	}{{e.InProgress, InProgress}, {e.Failed, Failed}, {e.Current, Current}} {
		holds, err := evaluate(ctx, check.expression, obj)
		if err != nil {
			return "", fmt.Errorf("evaluate %q: %w", check.expression, err)
		}
		if holds {
			return check.says, nil
		}
	}
	return InProgress, nil
}

// environment is that of Flux.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
})

// evaluate evaluates an expression. Flux does not compile it: the variables are the
// fields at the top of the object.
func evaluate(ctx context.Context, expression string, obj *unstructured.Unstructured) (bool, error) {
	env, err := environment()
	if err != nil {
		return false, err
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return false, issues.Err()
	}
	program, err := env.Program(parsed)
	if err != nil {
		return false, err
	}
	value, _, err := program.ContextEval(ctx, obj.Object)
	if err != nil {
		return false, err
	}
	holds, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("found a %s, expected a bool", value.Type())
	}
	return holds, nil
}
