// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// insideLink is the name of the link inside the lab.
const insideLink = "eth0"

// Link is the virtual link between the host and a lab.
type Link struct {
	// Name of the host's end, at most 15 bytes.
	Name string
	// Host and Lab are the addresses of the two ends, with the prefix of the
	// network between them.
	Host, Lab netip.Prefix
	// Nodes are further addresses of the lab's end.
	Nodes []netip.Addr
	// Range is everything that is reached through the lab's end: pods and
	// services.
	Range netip.Prefix
}

// Connect makes the link, as seen from the host. The other end goes into the
// network namespace of the process.
func (l Link) Connect(pid int) error {
	if err := l.Disconnect(); err != nil {
		return err
	}
	link := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: l.Name},
		PeerName:      insideLink,
		PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("create link %s: %w", l.Name, err)
	}
	if err := configure(l.Name, l.Host); err != nil {
		return err
	}
	route := &netlink.Route{Dst: ipNet(l.Range), Gw: l.Lab.Addr().AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s to the lab: %w", l.Range, err)
	}
	return nil
}

// Disconnect removes the link. It is no error if it is not there.
func (l Link) Disconnect() error {
	link, err := netlink.LinkByName(l.Name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find link %s: %w", l.Name, err)
	}
	// Its network namespace may be taking it away at the same moment.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove link %s: %w", l.Name, err)
	}
	return nil
}

// Settle configures the lab's end of the link, seen from inside.
func (l Link) Settle() error {
	if err := configure("lo"); err != nil {
		return err
	}
	addresses := []netip.Prefix{l.Lab}
	for _, node := range l.Nodes {
		addresses = append(addresses, netip.PrefixFrom(node, node.BitLen()))
	}
	if err := configure(insideLink, addresses...); err != nil {
		return err
	}
	if err := netlink.RouteReplace(&netlink.Route{Gw: l.Host.Addr().AsSlice()}); err != nil {
		return fmt.Errorf("route to the host: %w", err)
	}
	// Only this network namespace forwards, not the host.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enable forwarding: %w", err)
	}
	return nil
}

func configure(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	for _, address := range addresses {
		if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
			return fmt.Errorf("give %s to link %s: %w", address, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("enable link %s: %w", name, err)
	}
	return nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
