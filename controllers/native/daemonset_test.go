// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/insitu-dev/insitu/controllers/history"
)

// daemonRevision returns a revision of a DaemonSet, whose template has an image and
// perhaps a field that our types do not have.
func daemonRevision(hash string, number int64, fields string) appsv1.ControllerRevision {
	return appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}},
		Data: runtime.RawExtension{Raw: []byte(
			`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"main","image":"nginx:1","resources":{}}]` + fields + `}}}}`)},
		Revision: number,
	}
}

// The target is the revision that Kubernetes has made of the template, also where that
// has fields that are newer than this program.
func TestDaemonSetsFindTheRevisionOfANewerTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		revisions []appsv1.ControllerRevision
		target    string
	}{
		"that changed":           {[]appsv1.ControllerRevision{daemonRevision("a", 1, ""), daemonRevision("b", 2, `,"orbit":7`)}, "b"},
		"that went":              {[]appsv1.ControllerRevision{daemonRevision("a", 2, ""), daemonRevision("b", 1, `,"orbit":7`)}, "a"},
		"the only one":           {[]appsv1.ControllerRevision{daemonRevision("b", 1, `,"orbit":7`)}, "b"},
		"of another template":    {[]appsv1.ControllerRevision{daemonRevision("b", 1, `,"hostNetwork":true,"orbit":7`)}, ""},
		"seen late, and known":   {[]appsv1.ControllerRevision{daemonRevision("a", 1, ""), daemonRevision("c", 2, `,"hostNetwork":true`)}, "a"},
		"no revision at present": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: templateOf("nginx:1")}}
			s := newScope(set, DaemonSet, metav1.Now().Time)
			g.Expect(s.readTemplate()).To(Succeed())
			var err error
			s.history, err = history.Read(test.revisions)
			g.Expect(err).NotTo(HaveOccurred())

			daemonSet{set}.setTarget(s)

			if test.target == "" {
				g.Expect(s.target).To(BeNil())
				return
			}
			g.Expect(s.target).NotTo(BeNil())
			g.Expect(s.target.Name).To(Equal(test.target))
		})
	}
}
