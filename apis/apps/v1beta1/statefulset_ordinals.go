// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// OrdinalRange is a range of ordinals with both ends included: {3, 5} is 3, 4
// and 5.
//
// +kubebuilder:object:generate=false
type OrdinalRange struct {
	First int
	Last  int
}

// OrdinalSet is a set of ordinals as ranges, sorted and without overlap. It
// costs the same for {0, 5} as for {0, 1000000}.
//
// +kubebuilder:object:generate=false
type OrdinalSet []OrdinalRange

// Has reports whether the ordinal is in the set.
func (s OrdinalSet) Has(ordinal int) bool {
	_, found := slices.BinarySearchFunc(s, ordinal, func(r OrdinalRange, ordinal int) int {
		switch {
		case r.Last < ordinal:
			return -1
		case r.First > ordinal:
			return 1
		default:
			return 0
		}
	})

	return found
}

// First returns the lowest ordinals of the set, at most count.
func (s OrdinalSet) First(count int) OrdinalSet {
	var first OrdinalSet

	for _, r := range s {
		if count <= 0 {
			break
		}

		last := min(r.Last, r.First+count-1)
		first = append(first, OrdinalRange{First: r.First, Last: last})
		count -= last - r.First + 1
	}

	return first
}

// List returns the ordinals one by one, ascending.
func (s OrdinalSet) List() []int {
	var ordinals []int

	for _, r := range s {
		for ordinal := r.First; ordinal <= r.Last; ordinal++ {
			ordinals = append(ordinals, ordinal)
		}
	}

	return ordinals
}

// GetOrdinalsStart returns the first ordinal.
func (s *StatefulSet) GetOrdinalsStart() int {
	return max(int(ptr.Deref(s.Spec.Ordinals, StatefulSetOrdinals{}).Start), 0)
}

// GetReservedOrdinals returns the ordinals that no pod may have. Entries that
// are neither a number nor a range are left out; the schema refuses them.
func (s *StatefulSet) GetReservedOrdinals() OrdinalSet {
	ranges := make([]OrdinalRange, 0, len(s.Spec.ReserveOrdinals))
	for _, entry := range s.Spec.ReserveOrdinals {
		if r, ok := parseOrdinalRange(entry); ok {
			ranges = append(ranges, r)
		}
	}

	slices.SortFunc(ranges, func(a, b OrdinalRange) int { return cmp.Compare(a.First, b.First) })

	return mergeOverlaps(ranges)
}

// GetWantedOrdinals returns the ordinals of the pods wanted: as many as replicas, from
// the start on, without the reserved ones. With replicas 3, start 1 and reserved "2-3"
// that is 1, 4, 5.
func (s *StatefulSet) GetWantedOrdinals() OrdinalSet {
	var (
		wanted  OrdinalSet
		next    = s.GetOrdinalsStart()
		missing = int(s.GetReplicas())
	)

	for _, reserved := range s.GetReservedOrdinals() {
		if free := min(reserved.First-next, missing); free > 0 {
			wanted = append(wanted, OrdinalRange{First: next, Last: next + free - 1})
			missing -= free
		}

		next = max(next, reserved.Last+1)
	}

	if missing > 0 {
		wanted = append(wanted, OrdinalRange{First: next, Last: next + missing - 1})
	}

	return wanted
}

// GetOrdinals returns the ordinals of the pods wanted one by one, ascending.
func (s *StatefulSet) GetOrdinals() []int {
	return s.GetWantedOrdinals().List()
}

// parseOrdinalRange reads 3, "3" or "3-5".
func parseOrdinalRange(entry intstr.IntOrString) (OrdinalRange, bool) {
	if entry.Type == intstr.Int {
		return OrdinalRange{First: int(entry.IntVal), Last: int(entry.IntVal)}, entry.IntVal >= 0
	}

	first, last, isRange := strings.Cut(entry.StrVal, "-")
	if !isRange {
		last = first
	}

	from, errFirst := strconv.ParseUint(first, 10, 31)
	to, errLast := strconv.ParseUint(last, 10, 31)
	if errFirst != nil || errLast != nil || from > to {
		return OrdinalRange{}, false
	}

	return OrdinalRange{First: int(from), Last: int(to)}, true
}

// mergeOverlaps joins ranges that overlap or touch. They must be sorted.
func mergeOverlaps(ranges []OrdinalRange) OrdinalSet {
	var merged OrdinalSet

	for _, r := range ranges {
		if n := len(merged); n > 0 && r.First <= merged[n-1].Last+1 {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)

			continue
		}

		merged = append(merged, r)
	}

	return merged
}
