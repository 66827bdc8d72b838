// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// reserving returns a set with reserved ordinals, numbers as int, ranges as
// string.
func reserving(replicas, start int32, reserved ...any) *appsv1beta1.StatefulSet {
	set := &appsv1beta1.StatefulSet{}
	set.Spec.Replicas = ptr.To(replicas)
	set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: start}

	for _, entry := range reserved {
		switch e := entry.(type) {
		case int:
			set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, intstr.FromInt(e))
		case string:
			set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, intstr.FromString(e))
		}
	}

	return set
}

func TestGetReservedOrdinals(t *testing.T) {
	type set = appsv1beta1.OrdinalSet

	cases := map[string]struct {
		reserved []any
		want     set
	}{
		"number":                 {[]any{3}, set{{3, 3}}},
		"number as string":       {[]any{"3"}, set{{3, 3}}},
		"range":                  {[]any{"3-5"}, set{{3, 5}}},
		"range of one":           {[]any{"3-3"}, set{{3, 3}}},
		"sorted":                 {[]any{9, "3-5", 0}, set{{0, 0}, {3, 5}, {9, 9}}},
		"overlapping":            {[]any{"3-6", "5-8"}, set{{3, 8}}},
		"one within the other":   {[]any{"3-9", "5-6", 9}, set{{3, 9}}},
		"touching":               {[]any{"3-5", 6, "7-8"}, set{{3, 8}}},
		"twice":                  {[]any{1, 1, "1"}, set{{1, 1}}},
		"huge costs nothing":     {[]any{"0-999999999"}, set{{0, 999999999}}},
		"malformed are left out": {[]any{-1, "5-3", "a", "1-b", "-", "", "1-2-3", "99999999999", 4}, set{{4, 4}}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(reserving(1, 0, test.reserved...).GetReservedOrdinals()).To(Equal(test.want))
		})
	}
}

func TestOrdinalSetHas(t *testing.T) {
	g := NewWithT(t)
	set := reserving(1, 0, "3-5", 9, "11-12").GetReservedOrdinals()

	members := []int{}
	for ordinal := range 20 {
		if set.Has(ordinal) {
			members = append(members, ordinal)
		}
	}

	g.Expect(members).To(Equal([]int{3, 4, 5, 9, 11, 12}))
	g.Expect(appsv1beta1.OrdinalSet(nil).Has(0)).To(BeFalse())
}

func TestMoreOrdinalsThanAnyMemoryHolds(t *testing.T) {
	g := NewWithT(t)
	wanted := reserving(math.MaxInt32, 2, "5-9", 0, 3).GetWantedOrdinals()

	g.Expect(wanted.First(6).List()).To(Equal([]int{2, 4, 10, 11, 12, 13}))
	g.Expect(wanted.First(0)).To(BeEmpty())
	g.Expect(wanted.Has(9)).To(BeFalse())
	g.Expect(wanted.Has(math.MaxInt32 + 7)).To(BeTrue())
	g.Expect(wanted.Has(math.MaxInt32 + 8)).To(BeFalse())
}

func TestGetOrdinals(t *testing.T) {
	cases := map[string]struct {
		set  *appsv1beta1.StatefulSet
		want []int
	}{
		"none":                    {reserving(0, 0), nil},
		"from 0":                  {reserving(3, 0), []int{0, 1, 2}},
		"from a start":            {reserving(3, 5), []int{5, 6, 7}},
		"migrating one":           {reserving(3, 0, 1), []int{0, 2, 3}},
		"removing one":            {reserving(2, 0, 1), []int{0, 2}},
		"the first":               {reserving(2, 0, 0), []int{1, 2}},
		"a range":                 {reserving(3, 1, "2-3"), []int{1, 4, 5}},
		"several":                 {reserving(4, 0, 0, "2-3", 5), []int{1, 4, 6, 7}},
		"reserved below start":    {reserving(2, 5, "0-4"), []int{5, 6}},
		"start in a range":        {reserving(2, 5, "3-6"), []int{7, 8}},
		"beyond a range of 10^9":  {reserving(2, 0, "1-999999998"), []int{0, 999999999}},
		"reserved above the last": {reserving(2, 0, 2, 9), []int{0, 1}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(test.set.GetOrdinals()).To(Equal(test.want))
		})
	}
}
