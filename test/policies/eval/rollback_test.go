// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// TestReleaseAfterARollback has the policy of release 0.1.0, after a rollback of the chart,
// beside the one that releases, which has stayed. That policy holds whatever has lost its
// label.
func TestReleaseAfterARollback(t *testing.T) {
	all, err := policies.Objects()
	must(t, err)
	objects := former(t)
	for _, obj := range all {
		if strings.HasPrefix(obj.GetName(), "insitu-release-") {
			objects = append(objects, obj)
		}
	}
	set, err := eval.Load(objects)
	must(t, err)
	cases, err := policies.Cases()
	must(t, err)
	for _, one := range cases["Deployment"] {
		if !isHeld(one.Old) || isHeld(one.Want) || one.Webhook != nil || one.Manager != "" || slices.Contains(notBefore, one.Name) {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			for _, order := range orders(of("Deployment", set.Names())) {
				asked := request(one)
				asked.Order = order
				got, err := set.Strict().Admit(t.Context(), asked)

				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(text(t, got)).To(Equal(text(t, one.Want)), "in the order %q", order)
			}
		})
	}
}

// notBefore are cases of which that policy has no notion: it pauses what it takes for held, and
// takes every pause of such a Deployment for its own.
var notBefore = []string{"a release of what the user paused", "Recreate in the middle", "any write of the manager's own workload"}

func former(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("testdata/release-0.1.0.yaml")
	must(t, err)
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for range 2 {
		document, err := reader.Read()
		must(t, err)
		obj := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(document, &obj.Object))
		objects = append(objects, obj)
	}

	return objects
}
