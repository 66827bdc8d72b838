// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHeldByNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		turns        []Turn
		vacant, room int
		want         []bool
		free         int
	}{
		"none":                                 {room: 3, want: []bool{}},
		"the first ones go":                    {turns: []Turn{Resting, Resting, Resting}, room: 1, want: []bool{false, true, true}},
		"the earlier turn goes":                {turns: []Turn{Resting, Vacant, Displaced}, room: 1, want: []bool{true, true, false}},
		"updated ones use up the room":         {turns: []Turn{Resting, Updated}, room: 1, want: []bool{true, false}},
		"updated ones stay, however many":      {turns: []Turn{Updated, Updated, Resting}, room: 1, want: []bool{false, false, true}},
		"no room":                              {turns: []Turn{Resting, Displaced}, room: -2, want: []bool{true, true}},
		"room for all":                         {turns: []Turn{Lost, Resting}, room: 9, want: []bool{false, false}},
		"vacant ones go before those that run": {turns: []Turn{Resting, Begun}, vacant: 2, room: 2, want: []bool{true, false}, free: 1},
		"vacant ones leave room":               {turns: []Turn{Resting, Resting}, vacant: 2, room: 3, want: []bool{false, true}, free: 2},
		"more vacant ones than any memory holds": {
			turns: []Turn{Resting, Displaced}, vacant: math.MaxInt32, room: math.MaxInt32 / 2, want: []bool{true, false}, free: math.MaxInt32/2 - 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			held, free := HeldByNumber(tc.turns, tc.vacant, tc.room)
			NewWithT(t).Expect(held).To(Equal(tc.want))
			NewWithT(t).Expect(free).To(Equal(tc.free))
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
		vacant, room := random.IntN(4), random.IntN(12)-1
		held, free := HeldByNumber(turns, vacant, room)
		for i := range held {
			NewWithT(t).Expect(held[i] && turns[i] == Updated).To(BeFalse(), "%v, room %d: an updated one is held", turns, room)
			if !held[i] {
				free++
			}
		}
		NewWithT(t).Expect(free).To(Equal(max(updated, min(room, len(turns)+vacant), 0)), "%v and %d, room %d", turns, vacant, room)
	}
}
