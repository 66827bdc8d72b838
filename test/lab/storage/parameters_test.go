// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestClassForAClaim(t *testing.T) {
	all := map[string]string{
		"provisionError": "Aborted", "provisionStall": "true",
		"expand": "offline", "nodeExpand": "offline", "expandLimit": "3Gi", "expandError": "Internal", "expandStall": "true",
		"nodeExpandError": "Aborted", "coolDownSeconds": "30", "claims": "-[12]$", "csi.storage.k8s.io/pvc/name": "x",
	}
	g := NewWithT(t)
	g.Expect(parseClass(all, "data-2")).To(Equal(class{
		provision: fault{code: codes.Aborted, stall: true},
		expansion: expansion{
			offline: true, nodeOffline: true, limit: 3 << 30, coolDown: 30 * time.Second,
			controller: fault{code: codes.Internal, stall: true}, node: fault{code: codes.Aborted},
		},
	}))
	g.Expect(parseClass(all, "data-0")).To(Equal(class{expansion: expansion{offline: true, nodeOffline: true}}), "another claim")
	g.Expect(parseClass(nil, "data-0")).To(Equal(class{}), "no parameters")
}

func TestParametersThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		value, want string
	}{
		"expnad":          {"online", "parameter expnad is not known, there are claims, coolDownSeconds, expand, expandError,"},
		"provisionError":  {"broken", `parameter provisionError: found "broken"`},
		"provisionStall":  {"yes", `parameter provisionStall: found "yes", true and false are accepted`},
		"expand":          {"never", `parameter expand: found "never", online and offline are accepted`},
		"nodeExpand":      {"", `parameter nodeExpand: found "", online and offline are accepted`},
		"expandLimit":     {"much", "parameter expandLimit: quantities must match"},
		"expandError":     {"OK", `parameter expandError: found "OK", the name of a gRPC code such as Internal is accepted`},
		"nodeExpandError": {"internal", `parameter nodeExpandError: found "internal"`},
		"expandStall":     {"yes", `parameter expandStall: found "yes", true and false are accepted`},
		"coolDownSeconds": {"-1", "parameter coolDownSeconds: "},
		"claims":          {"(", "parameter claims: error parsing regexp"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := parseClass(map[string]string{name: c.value}, "")
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(status.Code(err)).To(Equal(codes.InvalidArgument))
		})
	}
}
