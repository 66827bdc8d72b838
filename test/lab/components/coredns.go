// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	// The plugins that the lab's Corefile names, and no others: CoreDNS with
	// every plugin pulls in the clients of all cloud providers.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// runCoreDNS serves DNS as its Corefile says. Directives lists the plugins in
// the order in which a query passes them.
func runCoreDNS() {
	dnsserver.Directives = []string{"errors", "health", "ready", "cache", "kubernetes"}
	coremain.Run()
}
