// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"fmt"
	"net/netip"
	"sync"
)

// addresses hands out the IP addresses of a range, each to one holder at a
// time.
type addresses struct {
	mu   sync.Mutex
	cidr netip.Prefix
	next netip.Addr
	used map[netip.Addr]bool
}

// newAddresses refuses a range that is not one. The network's own address is
// never handed out.
func newAddresses(cidr string) (*addresses, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("read address range %q: %w", cidr, err)
	}
	prefix = prefix.Masked()
	return &addresses{cidr: prefix, next: prefix.Addr().Next(), used: map[netip.Addr]bool{}}, nil
}

// take returns an address that no pod holds. It goes round the whole range
// before it comes back to one that was released.
func (a *addresses) take() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for start := a.next; ; {
		candidate := a.next
		a.next = candidate.Next()
		if !a.cidr.Contains(a.next) {
			a.next = a.cidr.Addr().Next()
		}
		if !a.used[candidate] {
			a.used[candidate] = true
			return candidate.String(), nil
		}
		if a.next == start {
			return "", fmt.Errorf("take an address of %s: all %d are in use", a.cidr, len(a.used))
		}
	}
}

// hold marks an address as taken by a pod that got it from an earlier run.
func (a *addresses) hold(address string) {
	if parsed, err := netip.ParseAddr(address); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used[parsed] = true
	}
}

func (a *addresses) release(address string) {
	if parsed, err := netip.ParseAddr(address); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.used, parsed)
	}
}
