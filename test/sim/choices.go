// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"
)

// Choices decides whatever a run leaves open. Its choices are bytes: first those
// that it was given, then random ones or zeros. Zero always is the choice in
// which the least happens, so a run whose bytes are cut off or cleared is a
// simpler run.
type Choices struct {
	given  []byte
	random *rand.Rand
	taken  []byte
}

// FromSeed returns the random choices of a seed.
func FromSeed(seed uint64) *Choices {
	return &Choices{random: rand.New(rand.NewPCG(seed, 1))}
}

// FromBytes returns the given choices, and after them zeros.
func FromBytes(given []byte) *Choices {
	return &Choices{given: given}
}

// Taken returns the choices that were made, as bytes for FromBytes.
func (c *Choices) Taken() []byte {
	return c.taken
}

// intN returns a number from 0 to n-1, for an n up to 256.
func (c *Choices) intN(n int) int {
	var b byte
	switch {
	case len(c.taken) < len(c.given):
		b = c.given[len(c.taken)]
	case c.random != nil:
		b = byte(c.random.IntN(n))
	}
	c.taken = append(c.taken, b)
	return int(b) % n
}

// oneIn is true once in n times; never for an n of 0.
func (c *Choices) oneIn(n int) bool {
	return n > 0 && c.intN(n) == n-1
}

func (c *Choices) seconds(upTo int) time.Duration {
	return time.Duration(c.intN(upTo+1)) * time.Second
}

func pick[T any](c *Choices, from []T) T {
	return from[c.intN(len(from))]
}
