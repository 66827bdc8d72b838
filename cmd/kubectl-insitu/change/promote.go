// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Promotion says how far a partition is lowered: To a value, or By so many pods; both
// are numbers or percentages. If neither is said, no pod is kept any more.
type Promotion struct {
	To, By string
}

// Promote lowers the partition, so that more pods are updated. It never raises it.
func Promote(promotion Promotion) Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{}
		view, err := w.view()
		if err != nil {
			return outcome, err
		}
		if !w.isDriven() {
			return outcome, w.errNotDriven("a partition", "")
		}
		if view.NotRolling != "" {
			return outcome, fmt.Errorf("a partition keeps no pod: %s", view.NotRolling)
		}
		p, err := w.partition(view)
		if err != nil {
			return outcome, err
		}
		target, err := promotion.target(p)
		if err != nil {
			return outcome, err
		}
		if p.isRaisedBy(target) {
			return outcome, fmt.Errorf("%s is %s, and %s would keep more pods: promote only lowers it", p.field, p.current.String(), target.String())
		}
		outcome.Nothing = "already promoted to partition " + target.String()
		outcome.Done = fmt.Sprintf("promoted: partition %s to %s", p.current.String(), target.String())
		if view.Paused {
			outcome.Notes = append(outcome.Notes, fmt.Sprintf("paused: no pod is updated before kubectl insitu resume %s", w))
		}
		if view.KeepsToo != "" {
			outcome.Notes = append(outcome.Notes, view.KeepsToo)
		}
		if target == p.current {
			return outcome, nil
		}
		return outcome, w.writePartition(p, target)
	}
}

// target returns what the partition is to be.
func (promotion Promotion) target(p *partition) (intstr.IntOrString, error) {
	switch {
	case promotion.To != "" && promotion.By != "":
		return intstr.IntOrString{}, errors.New("found --to and --by: accepted is one of them")
	case promotion.To != "":
		to, err := parseCount(promotion.To)
		if err != nil {
			return to, fmt.Errorf("--to: found %q, %w", promotion.To, err)
		}
		if to.Type == intstr.String && !p.TakesPercentages {
			if p.replicas == 0 {
				return to, fmt.Errorf("--to: found %q of 0 replicas: accepted is a number of pods", promotion.To)
			}
			return p.keepingPods(share(to, p.replicas)), nil
		}
		return to, nil
	case promotion.By != "":
		by, err := parseCount(promotion.By)
		if err != nil {
			return by, fmt.Errorf("--by: found %q, %w", promotion.By, err)
		}
		if p.replicas == 0 && (p.current.Type == intstr.Int || by.Type == intstr.Int) {
			return by, fmt.Errorf("--by: found %q of 0 replicas: say with --to how many pods are to stay", promotion.By)
		}
		return p.loweredBy(by), nil
	default:
		return intstr.FromInt32(0), nil
	}
}

// loweredBy returns the partition that keeps so many pods less. A percentage of a
// percentage stays one.
func (p *partition) loweredBy(by intstr.IntOrString) intstr.IntOrString {
	if p.current.Type == intstr.String && by.Type == intstr.String {
		return intstr.FromString(fmt.Sprintf("%d%%", max(number(p.current)-number(by), 0)))
	}
	if isZero(by) {
		return p.current
	}
	return p.keepingPods(max(p.Keeps(p.current)-share(by, p.replicas), 0))
}

// share returns how many of the pods a count is. A percentage is rounded up.
func share(count intstr.IntOrString, replicas int) int {
	pods, err := intstr.GetScaledValueFromIntOrPercent(&count, replicas, true)
	if err != nil {
		return 0
	}
	return pods
}
