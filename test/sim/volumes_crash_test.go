// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"

// withClaims gives the pods claims of 1Gi of a class.
func withClaims(class string, change func(*settings)) func(*settings) {
	return func(s *settings) {
		s.claims = true
		s.volumes = volumes{on: true, wish: claimWish{class: class, size: "1Gi"}}
		s.volumes.strategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
		if change != nil {
			change(s)
		}
	}
}

// claimsOfSize asks for claims of another size, with what the pods are to run.
func claimsOfSize(size, revision string) func(*World) {
	return func(w *World) {
		wish := w.claims
		wish.size = size
		w.askAll(revisionNamed(revision), wish)
	}
}

// claimsWith asks for claims that are otherwise.
func claimsWith(change func(*claimWish)) func(*World) {
	return func(w *World) {
		wish := w.claims
		change(&wish)
		w.askClaims(wish)
	}
}

// andThen does one after the other, each after what was before has come to rest.
func andThen(changes ...func(*World)) func(*World) {
	return func(w *World) {
		for i, change := range changes {
			if i > 0 {
				w.settle()
			}
			change(w)
		}
	}
}

// limitedOnOne lets the claim of one pod not grow above a size.
func limitedOnOne(s *settings) {
	s.volumes.driver = &driver{limit: "3Gi", only: "-1"}
}

// volumeRollouts are the reference rollouts of sets whose claims change.
var volumeRollouts = []rollout{
	{"claims grow", 6, withClaims("standard", nil), claimsOfSize("2Gi", "a")},
	{"claims grow, with an image", 12, withClaims("standard", nil), claimsOfSize("2Gi", "b")},
	{"claims grow while no pod has them", 15, withClaims("offline", nil), claimsOfSize("2Gi", "a")},
	{"claims grow when pods mount them", 15, withClaims("remount", nil), claimsOfSize("2Gi", "a")},
	{"claims get a class of attributes", 6, withClaims("standard", nil), claimsWith(func(w *claimWish) { w.attributes = "gold" })},
	{"claims grow, and one does not", 12, withClaims("limited", limitedOnOne), claimsOfSize("5Gi", "b")},
	{"claims grow, one does not, and back", 9, withClaims("limited", limitedOnOne), andThen(claimsOfSize("5Gi", "b"), claimsOfSize("1Gi", "a"))},
	{
		"claims grow, one does not, and to less", 4, withClaims("limited", limitedOnOne),
		andThen(claimsOfSize("5Gi", "b"), claimsOfSize("1Gi", "b"), claimsOfSize("2Gi", "b")),
	},
	{"a claim template is added", 12, withClaims("standard", nil), claimsWith(func(w *claimWish) { w.second = "standard" })},
	{"a claim template is removed", 9, withClaims("standard", func(s *settings) { s.volumes.wish.second = "standard" }), claimsWith(func(w *claimWish) { w.second = "" })},
	{"clones, claims grow, with an image", 12, asClones(withClaims("standard", nil)), claimsOfSize("2Gi", "b")},
	{"clones, claims grow while no pod has them", 15, asClones(withClaims("offline", func(s *settings) { s.clones.reuse = true })), claimsOfSize("2Gi", "a")},
}
