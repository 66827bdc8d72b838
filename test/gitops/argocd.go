// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HealthStatus is a word of Argo CD.
type HealthStatus string

// The words that are used here.
const (
	Healthy     HealthStatus = "Healthy"
	Progressing HealthStatus = "Progressing"
	Degraded    HealthStatus = "Degraded"
	Suspended   HealthStatus = "Suspended"
	// Unknown is also what a script gives that fails.
	Unknown HealthStatus = "Unknown"
)

// Health is what Argo CD says of an object.
type Health struct {
	Status  HealthStatus `json:"status"`
	Message string       `json:"message,omitempty"`
}

// RunHealth runs a health script as Argo CD does if it is in argocd-cm: with the base
// and table libraries.
func RunHealth(ctx context.Context, script string, obj *unstructured.Unstructured) (Health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return Health{}, fmt.Errorf("open the Lua library %q: %w", name, err)
		}
	}
	// Argo CD gives it a second, in which a loaded machine may not get to it.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", luaValue(state, obj.Object))
	if err := state.DoString(script); err != nil {
		return Health{}, fmt.Errorf("run health script: %w", err)
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return Health{}, fmt.Errorf("the health script returned a %s, expected a table", state.Get(-1).Type())
	}
	health := Health{Status: HealthStatus(lua.LVAsString(table.RawGetString("status"))), Message: lua.LVAsString(table.RawGetString("message"))}
	if !slices.Contains([]HealthStatus{Healthy, Progressing, Degraded, Suspended}, health.Status) {
		return Health{}, fmt.Errorf("the health script returned %q, which is no health", health.Status)
	}
	return health, nil
}

// luaValue turns what was read from JSON into a value of Lua.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case string:
		return lua.LString(typed)
	case bool:
		return lua.LBool(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case []any:
		list := state.NewTable()
		for _, item := range typed {
			list.Append(luaValue(state, item))
		}
		return list
	case map[string]any:
		table := state.NewTable()
		for key, item := range typed {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
