// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHeldByNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		turns []Turn
		room  int
		want  []bool
	}{
		"none":                            {nil, 3, []bool{}},
		"the first ones go":               {[]Turn{Resting, Resting, Resting}, 1, []bool{false, true, true}},
		"the earlier turn goes":           {[]Turn{Resting, Vacant, Displaced}, 1, []bool{true, true, false}},
		"updated ones use up the room":    {[]Turn{Resting, Updated}, 1, []bool{true, false}},
		"updated ones stay, however many": {[]Turn{Updated, Updated, Resting}, 1, []bool{false, false, true}},
		"no room":                         {[]Turn{Resting, Displaced}, -2, []bool{true, true}},
		"room for all":                    {[]Turn{Lost, Resting}, 9, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(HeldByNumber(tc.turns, tc.room)).To(Equal(tc.want))
		})
	}
}

func TestAsManyAreHeldAsThereIsNoRoomFor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		turns := make([]Turn, random.IntN(8))
		updated := 0
		for i := range turns {
			turns[i] = Turn(random.IntN(int(Lost) + 1))
			if turns[i] == Updated {
				updated++
			}
		}
		room := random.IntN(10) - 1
		free := 0
		for i, held := range HeldByNumber(turns, room) {
			NewWithT(t).Expect(held && turns[i] == Updated).To(BeFalse(), "%v, room %d: an updated one is held", turns, room)
			if !held {
				free++
			}
		}
		NewWithT(t).Expect(free).To(Equal(max(updated, min(room, len(turns)), 0)), "%v, room %d", turns, room)
	}
}
