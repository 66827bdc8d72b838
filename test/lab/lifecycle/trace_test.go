// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"k8s.io/apimachinery/pkg/util/sets"
)

// traces is all that a lab may leave on a machine, one line each, with the
// kind of the trace in front.
type traces = sets.Set[string]

// lookAround collects the traces that are there.
func lookAround(g Gomega) traces {
	found := sets.New[string]()
	add := func(kind string, values ...string) {
		for _, value := range values {
			found.Insert(kind + " " + value)
		}
	}
	for pid, commandLine := range processes(g) {
		if lab := labOf(pid); lab != "" {
			add("processes in", lab)
		} else if strings.Contains(commandLine, os.TempDir()+"/Test") {
			add("process", strconv.Itoa(pid)+" "+commandLine)
		}
	}
	add("mount", lines(g, "/proc/self/mounts")...)
	for _, file := range glob(g, "/sys/block/loop*/loop/backing_file") {
		backing, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(backing), os.TempDir()+"/Test") {
			add("loop device of", strings.TrimSpace(string(backing)))
		}
	}
	links, err := netlink.LinkList()
	g.Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		add("link", link.Attrs().Name)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range routes {
		add("route", routes[i].String())
	}
	add("network namespace", networkNamespaces(g)...)
	add("firewall rule", firewallRules(g)...)
	add("control group", glob(g, "/sys/fs/cgroup/insitu*")...)
	add("control group", glob(g, "/sys/fs/cgroup/*/insitu*")...)
	for _, pattern := range []string{"/run/*", "/run/insitu-lab/*", "/run/netns/*", "/var/log/*", "/var/lib/cni/*", "/tmp/insitu-lab-*"} {
		add("file", glob(g, pattern)...)
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		add("setting "+name, lines(g, "/proc/sys/"+name)...)
	}
	return found
}

// expectNoTrace fails if something stays that was not there before. On a busy machine the
// kernel takes its time to remove what belonged to a network namespace.
func expectNoTrace(g Gomega, before traces) {
	g.Eventually(func() []string {
		return sets.List(lookAround(g).Difference(before))
	}, podTimeout, time.Second).Should(BeEmpty(), "these are left of the lab")
}

// processes returns the command line of every process that has one.
func processes(g Gomega) map[int]string {
	found := map[int]string{}
	for _, folder := range glob(g, "/proc/[0-9]*") {
		data, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(data) == 0 {
			continue // Gone meanwhile, or of the kernel.
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		g.Expect(err).NotTo(HaveOccurred())
		found[pid] = strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
	}
	return found
}

func networkNamespaces(g Gomega) []string {
	var found []string
	for pid := range processes(g) {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue // Gone meanwhile.
		}
		if lab := labOf(pid); lab != "" {
			target = "of " + lab
		}
		found = append(found, target)
	}
	return found
}

// labGroup is in the control groups of every process of a lab with nodes.
var labGroup = regexp.MustCompile(`/insitu-lab-\d+`)

// labOf returns the control group of the lab that the process belongs to, ""
// for none. Pods come and go in other labs meanwhile, so their processes are
// not told apart.
func labOf(pid int) string {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "" // Gone meanwhile.
	}
	return labGroup.FindString(string(groups))
}

func firewallRules(g Gomega) []string {
	output, err := exec.Command("iptables-save").Output()
	g.Expect(err).NotTo(HaveOccurred())
	var rules []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "-A") {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	return rules
}

func glob(g Gomega, pattern string) []string {
	found, err := filepath.Glob(pattern)
	g.Expect(err).NotTo(HaveOccurred())
	return found
}

func lines(g Gomega, file string) []string {
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
