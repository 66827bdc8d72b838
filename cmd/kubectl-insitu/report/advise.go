// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "cmp"

// advise says for every blocker of a workload what to do about it, with commands that can be run as they
// are.
func advise(w *Workload) {
	claims := map[[2]string]string{}
	for i := range w.Pods {
		for _, claim := range w.Pods[i].Claims {
			key := [2]string{w.Pods[i].Name, claim.Reason}
			claims[key] = cmp.Or(claims[key], claim.Name)
		}
	}
	for i := range w.Blockers {
		b := &w.Blockers[i]
		if b.Pod == "" && w.Phase == Unknown {
			b.Advice = AdviceOnOperator
		} else {
			b.Advice = AdviceOn(b.Reason, w.Ref, b.Pod, claims[[2]string{b.Pod, b.Reason}])
		}
	}
}
