// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

const (
	flatInPlace = appsv1beta1.InPlaceIfPossibleCloneSetUpdateStrategyType
	nested      = appsv1beta1.RollingUpdateCloneSetUpdateStrategyType
	onDelete    = appsv1beta1.OnDeleteCloneSetUpdateStrategyType
)

func number(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

func text(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }

// clones returns a set with an update strategy.
func clones(replicas int32, strategy appsv1beta1.CloneSetUpdateStrategy) *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{}
	set.Spec.Replicas = &replicas
	set.Spec.UpdateStrategy = strategy

	return set
}

// written returns the same parameters in both ways to write them.
func written(parameters appsv1beta1.CloneSetUpdateParameters) map[string]appsv1beta1.CloneSetUpdateStrategy {
	return map[string]appsv1beta1.CloneSetUpdateStrategy{
		"flat": {Type: flatInPlace, CloneSetUpdateParameters: parameters},
		"nested": {Type: nested, RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, CloneSetUpdateParameters: parameters,
		}},
	}
}

func TestDefaultsOfAnEmptyCloneSet(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1beta1.CloneSet{}

	g.Expect(set.GetReplicas()).To(Equal(int32(1)))
	g.Expect(set.GetRevisionHistoryLimit()).To(Equal(int32(10)))
	g.Expect(set.GetMinReadySeconds()).To(BeZero())
	g.Expect(set.GetUpdateStrategyType()).To(Equal(nested))
	g.Expect(set.GetPodUpdatePolicy()).To(Equal(appsv1beta1.RecreatePodUpdateStrategyType))
	g.Expect(set.GetPartition()).To(BeZero())
	g.Expect(set.GetMaxUnavailable()).To(Equal(int32(1)))
	g.Expect(set.GetMaxSurge()).To(BeZero())
	g.Expect(set.IsPaused()).To(BeFalse())
	g.Expect(set.GetPriorityStrategy()).To(BeNil())
	g.Expect(set.GetScatterStrategy()).To(BeEmpty())
	g.Expect(set.GetInPlaceUpdateStrategy()).To(BeZero())
	g.Expect(set.GetGracePeriod()).To(BeZero())
	g.Expect(set.ReusesClaims()).To(BeTrue())
	g.Expect(set.ExcludesPreparingDelete()).To(BeFalse())

	_, limited := set.GetScaleMaxUnavailable()
	g.Expect(limited).To(BeFalse())
	_, limited = set.GetProgressDeadline()
	g.Expect(limited).To(BeFalse())
}

func TestBothSpellingsMeanTheSame(t *testing.T) {
	priority := &appsv1beta1.UpdatePriorityStrategy{OrderPriority: []appsv1beta1.UpdatePriorityOrderTerm{{OrderedKey: "order"}}}
	scatter := []appsv1beta1.CloneSetUpdateScatterTerm{{Key: "app", Value: "web"}}

	for name, strategy := range written(appsv1beta1.CloneSetUpdateParameters{
		Partition:             number(4),
		MaxUnavailable:        text("25%"),
		MaxSurge:              text("21%"),
		Paused:                true,
		PriorityStrategy:      priority,
		ScatterStrategy:       scatter,
		InPlaceUpdateStrategy: &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 90, KeepReady: []string{"log"}},
	}) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := clones(10, strategy)

			g.Expect(set.GetUpdateStrategyType()).To(Equal(nested))
			g.Expect(set.GetPodUpdatePolicy()).To(Equal(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))
			g.Expect(set.GetPartition()).To(Equal(int32(4)))
			g.Expect(set.GetMaxSurge()).To(Equal(int32(3)))
			g.Expect(set.GetMaxUnavailable()).To(Equal(int32(2)))
			g.Expect(set.IsPaused()).To(BeTrue())
			g.Expect(set.GetPriorityStrategy()).To(Equal(priority))
			g.Expect(set.GetScatterStrategy()).To(Equal(scatter))
			g.Expect(set.GetInPlaceUpdateStrategy().KeepReady).To(ConsistOf("log"))
			g.Expect(set.GetGracePeriod()).To(Equal(90 * time.Second))
		})
	}
}

func TestCloneSetUpdateStrategyType(t *testing.T) {
	const (
		recreate    = appsv1beta1.RecreatePodUpdateStrategyType
		ifPossible  = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
		inPlaceOnly = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	)

	cases := map[string]struct {
		typ        appsv1beta1.CloneSetUpdateStrategyType
		policy     appsv1beta1.PodUpdateStrategyType
		wantType   appsv1beta1.CloneSetUpdateStrategyType
		wantPolicy appsv1beta1.PodUpdateStrategyType
	}{
		"nothing":                   {"", "", nested, recreate},
		"nested":                    {nested, "", nested, recreate},
		"nested in place":           {nested, ifPossible, nested, ifPossible},
		"nested in place only":      {nested, inPlaceOnly, nested, inPlaceOnly},
		"nested without type":       {"", ifPossible, nested, ifPossible},
		"flat recreate":             {appsv1beta1.RecreateCloneSetUpdateStrategyType, "", nested, recreate},
		"flat in place":             {flatInPlace, "", nested, ifPossible},
		"flat in place only":        {appsv1beta1.InPlaceOnlyCloneSetUpdateStrategyType, "", nested, inPlaceOnly},
		"on delete":                 {onDelete, "", onDelete, recreate},
		"on delete with a policy":   {onDelete, ifPossible, onDelete, ifPossible},
		"disagreeing, type counts":  {flatInPlace, recreate, nested, ifPossible},
		"unknown type is careful":   {"Sometimes", "", onDelete, recreate},
		"unknown policy is careful": {nested, "InPlace", nested, recreate},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := clones(1, appsv1beta1.CloneSetUpdateStrategy{
				Type: test.typ, RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: test.policy},
			})

			g.Expect(set.GetUpdateStrategyType()).To(Equal(test.wantType))
			g.Expect(set.GetPodUpdatePolicy()).To(Equal(test.wantPolicy))
		})
	}
}

// TestPrecedence reads strategies that are written in both ways.
func TestPrecedence(t *testing.T) {
	full := appsv1beta1.CloneSetUpdateParameters{
		Partition: number(1), MaxUnavailable: number(1), MaxSurge: number(1), Paused: true,
		PriorityStrategy:      &appsv1beta1.UpdatePriorityStrategy{},
		ScatterStrategy:       []appsv1beta1.CloneSetUpdateScatterTerm{{Key: "one"}},
		InPlaceUpdateStrategy: &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 1},
	}
	other := appsv1beta1.CloneSetUpdateParameters{
		Partition: number(2), MaxUnavailable: number(2), MaxSurge: number(2),
		PriorityStrategy:      &appsv1beta1.UpdatePriorityStrategy{OrderPriority: []appsv1beta1.UpdatePriorityOrderTerm{{OrderedKey: "two"}}},
		ScatterStrategy:       []appsv1beta1.CloneSetUpdateScatterTerm{{Key: "two"}},
		InPlaceUpdateStrategy: &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 2},
	}
	otherAndPaused := other
	otherAndPaused.Paused = true
	none := appsv1beta1.CloneSetUpdateParameters{}
	// What the API server fills in.
	filled := appsv1beta1.CloneSetUpdateParameters{
		Partition: number(0), MaxUnavailable: ptr.To(intstr.FromString("20%")), MaxSurge: number(0),
	}

	cases := map[string]struct {
		typ                appsv1beta1.CloneSetUpdateStrategyType
		flat, nested, want appsv1beta1.CloneSetUpdateParameters
	}{
		"flat fields of a nested type":    {nested, full, none, full},
		"nested fields of a flat type":    {flatInPlace, none, full, full},
		"flat fields without type":        {"", full, none, full},
		"nested fields without type":      {"", none, full, full},
		"flat fields of OnDelete":         {onDelete, full, none, full},
		"disagreeing with a nested type":  {nested, full, other, otherAndPaused},
		"disagreeing with a flat type":    {flatInPlace, other, full, otherAndPaused},
		"disagreeing without type":        {"", full, other, otherAndPaused},
		"disagreeing with OnDelete":       {onDelete, full, other, otherAndPaused},
		"filled in beside, nested type":   {nested, filled, full, full},
		"filled in beside, flat type":     {flatInPlace, filled, full, full},
		"filled in inside, nested type":   {nested, full, filled, full},
		"filled in inside, flat type":     {flatInPlace, full, filled, full},
		"filled in both":                  {nested, filled, filled, filled},
		"filled in one, none in another":  {nested, none, filled, filled},
		"flat partition, the rest nested": {nested, appsv1beta1.CloneSetUpdateParameters{Partition: number(2)}, appsv1beta1.CloneSetUpdateParameters{Paused: true}, appsv1beta1.CloneSetUpdateParameters{Partition: number(2), Paused: true}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := clones(10, appsv1beta1.CloneSetUpdateStrategy{
				Type: test.typ, CloneSetUpdateParameters: test.flat,
				RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{CloneSetUpdateParameters: test.nested},
			})

			NewWithT(t).Expect(set.GetRollingUpdate().CloneSetUpdateParameters).To(Equal(test.want))
		})
	}
}

func TestCloneSetPartition(t *testing.T) {
	cases := map[string]struct {
		value    *intstr.IntOrString
		replicas int32
		want     int32
	}{
		"absent":                     {nil, 10, 0},
		"number":                     {number(3), 10, 3},
		"all":                        {number(10), 10, 10},
		"beyond all":                 {number(30), 10, 10},
		"percent":                    {text("50%"), 10, 5},
		"percent rounds up":          {text("41%"), 10, 5},
		"almost all updates one":     {text("99%"), 10, 9},
		"of one updates it":          {text("50%"), 1, 0},
		"0%":                         {text("0%"), 10, 0},
		"0% of one":                  {text("0%"), 1, 0},
		"100%":                       {text("100%"), 10, 10},
		"100% of one":                {text("100%"), 1, 1},
		"percent of no replicas":     {text("50%"), 0, 0},
		"number and no replicas":     {number(3), 0, 0},
		"negative is malformed":      {number(-3), 10, 0},
		"words are malformed":        {text("half"), 10, 10},
		"beyond 100% is as careful":  {text("150%"), 10, 10},
		"most of very many replicas": {text("99%"), math.MaxInt32, 2126008811},
	}

	for name, test := range cases {
		for spelling, strategy := range written(appsv1beta1.CloneSetUpdateParameters{Partition: test.value}) {
			t.Run(name+"/"+spelling, func(t *testing.T) {
				NewWithT(t).Expect(clones(test.replicas, strategy).GetPartition()).To(Equal(test.want))
			})
		}
	}
}

func TestCloneSetBudgets(t *testing.T) {
	cases := map[string]struct {
		unavailable, surge         *intstr.IntOrString
		replicas                   int32
		wantUnavailable, wantSurge int32
	}{
		"absent":                           {nil, nil, 10, 2, 0},
		"absent, few replicas":             {nil, nil, 3, 1, 0},
		"absent rounds up":                 {nil, nil, 11, 3, 0},
		"absent with surge rounds down":    {nil, number(1), 14, 2, 1},
		"absent with surge, few replicas":  {nil, number(1), 3, 0, 1},
		"numbers":                          {number(3), number(2), 10, 3, 2},
		"number beyond replicas":           {number(30), number(20), 10, 30, 20},
		"percent rounds up without surge":  {text("31%"), nil, 10, 4, 0},
		"percent rounds down with surge":   {text("39%"), text("1%"), 10, 3, 1},
		"surge rounds up":                  {number(0), text("11%"), 10, 0, 2},
		"surge of more than all":           {number(0), text("150%"), 10, 0, 15},
		"none unavailable":                 {number(0), number(1), 10, 0, 1},
		"surge 0% counts as none":          {text("31%"), text("0%"), 10, 4, 0},
		"surge of no replicas is none":     {text("50%"), text("50%"), 0, 1, 0},
		"both 0 is malformed":              {number(0), number(0), 10, 1, 0},
		"both 0% is malformed":             {text("0%"), text("0%"), 10, 1, 0},
		"no replicas":                      {nil, nil, 0, 1, 0},
		"negative is malformed":            {number(-3), number(-3), 10, 1, 0},
		"words are malformed":              {text("half"), text("half"), 10, 1, 0},
		"all of very many, and more":       {text("100%"), text("999%"), math.MaxInt32, math.MaxInt32, math.MaxInt32},
		"words with surge are as careful":  {text("half"), number(1), 10, 0, 1},
		"surge in words is as if not said": {number(2), text("half"), 10, 2, 0},
	}

	for name, test := range cases {
		for spelling, strategy := range written(appsv1beta1.CloneSetUpdateParameters{
			MaxUnavailable: test.unavailable, MaxSurge: test.surge,
		}) {
			t.Run(name+"/"+spelling, func(t *testing.T) {
				g := NewWithT(t)
				set := clones(test.replicas, strategy)

				g.Expect(set.GetMaxUnavailable()).To(Equal(test.wantUnavailable), "maxUnavailable")
				g.Expect(set.GetMaxSurge()).To(Equal(test.wantSurge), "maxSurge")
			})
		}
	}
}

func TestCloneSetScaleMaxUnavailable(t *testing.T) {
	cases := map[string]struct {
		value    *intstr.IntOrString
		replicas int32
		want     int32
		limited  bool
	}{
		"absent":                 {nil, 10, 0, false},
		"number":                 {number(3), 10, 3, true},
		"percent rounds up":      {text("21%"), 10, 3, true},
		"percent of no replicas": {text("50%"), 0, 1, true},
		"zero is malformed":      {number(0), 10, 1, true},
		"words are malformed":    {text("half"), 10, 1, true},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := clones(test.replicas, appsv1beta1.CloneSetUpdateStrategy{})
			set.Spec.ScaleStrategy.MaxUnavailable = test.value

			got, limited := set.GetScaleMaxUnavailable()
			g.Expect(got).To(Equal(test.want))
			g.Expect(limited).To(Equal(test.limited))
		})
	}
}

func TestReusesClaims(t *testing.T) {
	partition := appsv1beta1.CloneSetUpdateParameters{Partition: number(0)}
	flat := appsv1beta1.CloneSetUpdateStrategy{Type: flatInPlace}
	none := appsv1beta1.CloneSetUpdateStrategy{}

	cases := map[string]struct {
		strategy        appsv1beta1.CloneSetUpdateStrategy
		enable, disable *bool
		want            bool
	}{
		"nothing":                           {none, nil, nil, true},
		"nested":                            {appsv1beta1.CloneSetUpdateStrategy{Type: nested}, nil, nil, true},
		"flat":                              {flat, nil, nil, true},
		"flat parameter without type":       {appsv1beta1.CloneSetUpdateStrategy{CloneSetUpdateParameters: partition}, nil, nil, true},
		"OnDelete alone":                    {appsv1beta1.CloneSetUpdateStrategy{Type: onDelete}, nil, nil, true},
		"enabled":                           {none, ptr.To(true), nil, true},
		"not enabled":                       {flat, ptr.To(false), nil, false},
		"disabled":                          {flat, nil, ptr.To(true), false},
		"not disabled":                      {none, nil, ptr.To(false), true},
		"both, agreeing":                    {none, ptr.To(true), ptr.To(false), true},
		"contradiction, the stored version": {flat, ptr.To(false), ptr.To(false), false},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := clones(1, test.strategy)
			set.Spec.ScaleStrategy.EnablePVCReuse = test.enable
			set.Spec.ScaleStrategy.DisablePVCReuse = test.disable

			NewWithT(t).Expect(set.ReusesClaims()).To(Equal(test.want))
		})
	}
}

func TestExcludesPreparingDelete(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1beta1.CloneSet{}

	set.Spec.ScaleStrategy.ExcludePreparingDelete = true
	g.Expect(set.ExcludesPreparingDelete()).To(BeTrue())

	set.Spec.ScaleStrategy.ExcludePreparingDelete = false
	set.Labels = map[string]string{"apps.kruise.io/cloneset-scaling-exclude-preparing-delete": "true"}
	g.Expect(set.ExcludesPreparingDelete()).To(BeTrue())

	set.Labels[appsv1beta1.CloneSetScalingExcludePreparingDeleteKey] = "false"
	g.Expect(set.ExcludesPreparingDelete()).To(BeFalse())
}

func TestProgressDeadline(t *testing.T) {
	cases := map[string]struct {
		value   *int32
		want    time.Duration
		limited bool
	}{
		"absent":                {nil, 0, false},
		"off":                   {ptr.To[int32](math.MaxInt32), 0, false},
		"ten minutes":           {ptr.To[int32](600), 10 * time.Minute, true},
		"negative is malformed": {ptr.To[int32](-1), 0, true},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := &appsv1beta1.CloneSet{}
			set.Spec.ProgressDeadlineSeconds = test.value

			got, limited := set.GetProgressDeadline()
			g.Expect(got).To(Equal(test.want))
			g.Expect(limited).To(Equal(test.limited))
		})
	}
}

func TestMalformedCloneSetCountsAsCareful(t *testing.T) {
	g := NewWithT(t)
	set := clones(-1, appsv1beta1.CloneSetUpdateStrategy{Type: flatInPlace})
	set.Spec.RevisionHistoryLimit = ptr.To[int32](-1)
	set.Spec.MinReadySeconds = -1
	set.Spec.UpdateStrategy.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: -1}

	g.Expect(set.GetReplicas()).To(BeZero())
	g.Expect(set.GetRevisionHistoryLimit()).To(BeZero())
	g.Expect(set.GetMinReadySeconds()).To(BeZero())
	g.Expect(set.GetGracePeriod()).To(BeZero())
}
