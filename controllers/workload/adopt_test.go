// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Two sets of which one has the other's name as its beginning may have the same labels.
func TestRevisionsOfOtherWorkloadsAreNotAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		revision string
		labels   map[string]string
		want     bool
	}{
		"ours":                          {"web-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, true},
		"of OpenKruise":                 {"web-696d978558", map[string]string{"controller.kubernetes.io/hash": "696d978558"}, true},
		"of a set with a longer name":   {"web-api-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, false},
		"of a set with another name":    {"db-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, false},
		"with another hash in its name": {"web-5b7c89bf46", map[string]string{"controller-revision-hash": "696d978558"}, false},
		"without a hash":                {"web-", map[string]string{"controller-revision-hash": ""}, false},
		"without labels":                {"web-5b7c89bf46", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: test.revision, Labels: test.labels}}
			NewWithT(t).Expect(isRevisionOf(set, revision)).To(Equal(test.want))
		})
	}
}
