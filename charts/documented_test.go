// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// documentedRule is a row of the table of permissions: resources, their namespace or their
// name, verbs.
var documentedRule = regexp.MustCompile("(?m)^\\| `([a-z0-9./]+)`(, own namespace|, named `[a-z-]+`)? \\| ([a-z, ]+) \\| .+ \\|$")

// TestPermissionsAreDocumented compares the table of docs/permissions.md with config/rbac.
func TestPermissionsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	documented := map[string][]string{}
	for _, row := range documentedRule.FindAllStringSubmatch(readFile(t, "../docs/permissions.md"), -1) {
		verbs := strings.Split(row[3], ", ")
		slices.Sort(verbs)
		documented[row[1]+row[2]] = verbs
	}

	granted := map[string][]string{}
	for _, obj := range decode(t, readFile(t, "../config/rbac/role.yaml")) {
		var role rbacv1.ClusterRole // a Role has the same rules
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role)).To(Succeed())
		where := ""
		if obj.GetKind() == "Role" {
			where = ", own namespace"
		}
		for _, rule := range role.Rules {
			where := where
			for _, name := range rule.ResourceNames {
				where += ", named `" + name + "`"
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					name, sub, _ := strings.Cut(resource, "/")
					name = strings.TrimSuffix(name+"."+group, ".")
					key := strings.TrimSuffix(name+"/"+sub, "/") + where
					granted[key] = append(granted[key], rule.Verbs...)
					slices.Sort(granted[key])
				}
			}
		}
	}

	g.Expect(documented).To(Equal(granted))
}
