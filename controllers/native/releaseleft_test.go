// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What ReleaseAll leaves behind, no controller brings back.
func TestReleaseAllLeavesNothingBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*left)
		evicted  []string
		out, err string
	}{
		"nothing is left behind": {change: func(l *left) { l.pods = l.pods[1:] }},
		"a pod went ahead": {
			evicted: []string{"web-1-0"},
			out:     "Deployment shop/web: evicted pod web-1-0, which an update in place that ended early left behind: image of main: app:b to app:a\n",
		},
		"Kubernetes recreates it": {
			change: func(l *left) { l.deployment.Spec.Template = webTemplate("app:b") },
			out:    "Deployment shop/web: Kubernetes recreates pods web-1-0, which were updated in place; until it has, do not set the template back\n",
		},
		"its revision is gone": {
			change: func(l *left) { l.revision = nil },
			out: "Deployment shop/web: what pods web-1-0 were updated to in place is not known, since the ControllerRevision in their label is gone: " +
				"delete those that are not as the template says\n",
		},
		"a budget refuses": {
			change: func(l *left) { l.refusal = apierrors.NewTooManyRequests("the budget says no", 0) },
			err: "an update in place that ended early left pods web-1-0 of Deployment shop/web at another revision, " +
				"and they cannot be evicted: the budget says no; delete them",
		},
		"it is the only pod": {
			change: func(l *left) { l.single(); strategy("25%", "25%")(l) },
			err: "an update in place that ended early left pods web-1-0 of Deployment shop/web at another revision, " +
				"and they cannot be evicted: its strategy lets no pod be missing; bring all pods to the template with kubectl rollout restart",
		},
		"it is paused": {
			change: func(l *left) { l.deployment.Spec.Paused = true },
			err: "an update in place that ended early left pods web-1-0 of Deployment shop/web at another revision, " +
				"and they cannot be evicted: it is paused; resume it, or delete them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// In a bubble, the patience is over at once where everybody waits.
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				l := newLeft(g)
				if tc.change != nil {
					tc.change(l)
				}
				var evicted []string
				out := &bytes.Buffer{}

				err := evictAllLeftovers(t.Context(), l.client(g, &evicted), []string{""}, out)

				if tc.err == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(tc.err))
				}
				g.Expect(evicted).To(Equal(tc.evicted))
				g.Expect(out.String()).To(Equal(tc.out))
			})
		})
	}
}
