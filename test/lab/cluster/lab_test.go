// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/test/lab/host"
)

func TestSpecSaysWhatIsPossible(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Nodes: -1}, "nodes: -1 is not possible, 0 to 8 are"},
		{Spec{Nodes: 9}, "nodes: 9 is not possible, 0 to 8 are"},
		{Spec{SimulatedNodes: -2}, "simulated nodes: -2 is not possible"},
	} {
		NewWithT(t).Expect(c.spec.Validate()).To(MatchError(ContainSubstring(c.want)))
	}
	NewWithT(t).Expect(Spec{Nodes: MaxNodes, SimulatedNodes: 1000}.Validate()).To(Succeed())
}

func TestSpecInWords(t *testing.T) {
	for want, spec := range map[string]Spec{
		"no nodes":                     {},
		"1 node":                       {Nodes: 1},
		"2 nodes and 1 simulated node": {Nodes: 2, SimulatedNodes: 1},
		"10 simulated nodes":           {SimulatedNodes: 10},
	} {
		NewWithT(t).Expect(spec.String()).To(Equal(want))
	}
}

func TestAddressesOfTheFirstSlot(t *testing.T) {
	g := NewWithT(t)
	lab := &Lab{Spec: Spec{Nodes: 2}}
	g.Expect(lab.address()).To(Equal("198.18.0.2"))
	g.Expect(lab.APIServer()).To(Equal("https://198.18.0.2:6443"))
	g.Expect(lab.serviceRange().String()).To(Equal("198.18.12.0/22"))
	g.Expect(lab.apiService().String()).To(Equal("198.18.12.1"))
	g.Expect(lab.dnsService().String()).To(Equal("198.18.12.10"))
	g.Expect(lab.RealNodes()[1].address().String()).To(Equal("198.18.0.12"))
	g.Expect(lab.RealNodes()[1].podRange().String()).To(Equal("198.18.2.0/24"))
}

func TestRangesDoNotOverlap(t *testing.T) {
	g := NewWithT(t)
	reserved := netip.MustParsePrefix("198.18.0.0/15")
	var labs []netip.Prefix
	for slot := range host.MaxSlots {
		lab := &Lab{Spec: Spec{Nodes: MaxNodes}, Slot: slot}
		g.Expect(reserved.Overlaps(lab.allRange())).To(BeTrue())
		g.Expect(reserved.Contains(lab.at(15, 255))).To(BeTrue())
		for _, other := range labs {
			g.Expect(lab.allRange().Overlaps(other)).To(BeFalse(), "%s and %s", lab.allRange(), other)
		}
		labs = append(labs, lab.allRange())
		g.Expect(len(lab.link().Name)).To(BeNumerically("<=", 15))

		parts := []netip.Prefix{lab.serviceRange(), netip.PrefixFrom(lab.at(0, 0), linkBits)}
		for _, node := range lab.RealNodes() {
			parts = append(parts, node.podRange())
		}
		for i, part := range parts {
			g.Expect(lab.allRange().Contains(part.Addr())).To(BeTrue())
			g.Expect(part.Masked()).To(Equal(part))
			for _, other := range parts[:i] {
				g.Expect(part.Overlaps(other)).To(BeFalse(), "%s and %s", part, other)
			}
		}
	}
}

func TestSocketsAreShortHoweverLongTheFolder(t *testing.T) {
	lab := &Lab{Spec: Spec{Nodes: MaxNodes}, Slot: host.MaxSlots - 1, Dir: "/" + strings.Repeat("long/", 40)}
	for _, node := range lab.RealNodes() {
		// The limit of a Unix address, less what containerd appends.
		NewWithT(t).Expect(len(node.containerdSocket())).To(BeNumerically("<", 108-len(".ttrpc")))
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	_, err := Load(dir)
	g.Expect(err).To(MatchError(ErrNoLab))
	ports, err := freePorts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	lab := &Lab{Spec: Spec{SimulatedNodes: 4}, Dir: dir, Ports: ports, Complete: true}
	g.Expect(lab.save()).To(Succeed())
	g.Expect(Load(dir)).To(Equal(lab))

	g.Expect(os.WriteFile(filepath.Join(dir, recordFile), []byte("{\"nodes\": 99}"), 0o644)).To(Succeed())
	_, err = Load(dir)
	g.Expect(err).To(MatchError(ContainSubstring("nodes: 99")))
}

func TestFreePortsDiffer(t *testing.T) {
	g := NewWithT(t)
	ports, err := freePorts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	all := map[int]bool{}
	for _, port := range []int{
		ports.Etcd, ports.EtcdPeers, ports.APIServer, ports.ControllerManager, ports.Scheduler, ports.Registry,
	} {
		all[port] = true
	}
	g.Expect(all).To(HaveLen(6))
	g.Expect(all).NotTo(HaveKey(0))
}
