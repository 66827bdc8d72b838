// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/netip"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// An isolated lab has a /20 out of 198.18.0.0/15, which RFC 2544 reserves for
// tests, so that it hides no real network. Slot 0 has, for example:
//
//	198.18.0.0/24    the link: host .1, lab .2, nodes from .11 on
//	198.18.1.0/24    pods of node-1, and so on up to 198.18.8.0/24
//	198.18.12.0/22   services: kubernetes .12.1, DNS .12.10
const (
	firstAddress  = "198.18.0.0"
	labBits       = 20
	linkBits      = 24
	podBits       = 24
	serviceBits   = 22
	serviceSubnet = 12 // third byte, counted from the lab's range
)

// loopback is where a lab without namespaces listens.
const loopback = "127.0.0.1"

// at returns an address in the lab's range, such as (12, 10) for DNS.
func (l *Lab) at(subnet, number int) netip.Addr {
	base := netip.MustParseAddr(firstAddress).As4()
	offset := l.Slot<<(32-labBits) + subnet<<8 + number
	base[1] += byte(offset >> 16)
	base[2] += byte(offset >> 8)
	base[3] += byte(offset)
	return netip.AddrFrom4(base)
}

// allRange holds every address of the lab.
func (l *Lab) allRange() netip.Prefix { return netip.PrefixFrom(l.at(0, 0), labBits) }

func (l *Lab) serviceRange() netip.Prefix {
	return netip.PrefixFrom(l.at(serviceSubnet, 0), serviceBits)
}

// apiService is the cluster address of the Service kubernetes: the first of
// the range, by rule of the API server.
func (l *Lab) apiService() netip.Addr { return l.at(serviceSubnet, 1) }

func (l *Lab) dnsService() netip.Addr { return l.at(serviceSubnet, 10) }

// address is where the control plane is reached, from pods and the host.
func (l *Lab) address() string {
	if l.Isolated() {
		return l.at(0, 2).String()
	}
	return loopback
}

// link describes the lab's connection to the host.
func (l *Lab) link() host.Link {
	link := host.Link{
		Name:  fmt.Sprintf("insitu-lab%d", l.Slot),
		Host:  netip.PrefixFrom(l.at(0, 1), linkBits),
		Lab:   netip.PrefixFrom(l.at(0, 2), linkBits),
		Range: l.allRange(),
	}
	for _, node := range l.RealNodes() {
		link.Nodes = append(link.Nodes, node.address())
	}
	return link
}

func (n Node) address() netip.Addr { return n.lab.at(0, 11+n.index) }

func (n Node) podRange() netip.Prefix { return netip.PrefixFrom(n.lab.at(1+n.index, 0), podBits) }

// APIServer returns the address of the API server, reachable from the host.
func (l *Lab) APIServer() string {
	return fmt.Sprintf("https://%s:%d", l.address(), l.ports().APIServer)
}

// Registry returns the address of the registry, reachable from the host and
// from nodes.
func (l *Lab) Registry() string {
	return fmt.Sprintf("http://%s:%d", l.address(), l.ports().Registry)
}
