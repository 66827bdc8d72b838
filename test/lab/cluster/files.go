// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/insitu-dev/insitu/test/lab/host"
	"github.com/insitu-dev/insitu/test/lab/images"
)

// Names of configuration files and of the templates they are made from.
const (
	auditPolicy      = "audit-policy.yaml"
	corefile         = "Corefile"
	proxyConfig      = "kube-proxy.yaml"
	kubeletConfig    = "kubelet.yaml"
	containerdConfig = "containerd.toml"
	networkConfig    = "10-lab.conflist"
	registryHosts    = "hosts.toml"
)

//go:embed files
var files embed.FS

// labFile is what the templates of lab-wide files may use.
type labFile struct {
	Config, Domain                     string
	AllRange, DNSService, Endpoint     string
	ProxyKubeconfig, CoreDNSKubeconfig string
	ProxyHealthPort, CoreDNSReadyPort  int
	DNSPort, MetricsPort               int
	FirstNode                          string
	// CABundle is the cluster's authority, as objects hold it.
	CABundle string
}

// nodeFile is what the templates of a node's files may use.
type nodeFile struct {
	State, Socket, Snapshotter, PauseImage string
	CNIFolder, CNIConfig, Mirrors          string
	PodRange, Address, Domain, DNS, Cgroup string
	ClientCA, ServingCert, ServingKey      string
	KubeletRoot, PodLogs                   string
	KubeletHealthPort                      int
	Registry                               string
	RestrictOOMScore                       bool
}

// writeConfigs writes every configuration file of the lab and its nodes.
func (l *Lab) writeConfigs() error {
	ca, err := os.ReadFile(l.pki(clusterCA + ".crt"))
	if err != nil {
		return fmt.Errorf("read authority: %w", err)
	}
	values := labFile{
		Config:            l.config(""),
		Domain:            domain,
		AllRange:          l.allRange().String(),
		DNSService:        l.dnsService().String(),
		Endpoint:          l.address(),
		ProxyKubeconfig:   l.config(proxy + ".kubeconfig"),
		CoreDNSKubeconfig: l.config(coreDNS + ".kubeconfig"),
		ProxyHealthPort:   proxyHealthPort,
		CoreDNSReadyPort:  coreDNSReadyPort,
		DNSPort:           dnsPort,
		MetricsPort:       metricsPort,
		CABundle:          base64.StdEncoding.EncodeToString(ca),
		FirstNode:         Node{lab: l}.Name(),
	}
	for _, name := range []string{auditPolicy, corefile, proxyConfig, addons, storageObjects} {
		if err := render(name, l.config(name), values); err != nil {
			return err
		}
	}
	for _, node := range l.RealNodes() {
		if err := node.writeConfigs(); err != nil {
			return err
		}
	}
	return nil
}

func (n Node) writeConfigs() error {
	values := nodeFile{
		State:             n.state(containerd),
		Socket:            n.containerdSocket(),
		Snapshotter:       snapshotter(n.lab.Dir),
		PauseImage:        "docker.io/" + images.PauseRef,
		CNIFolder:         host.CNIFolder,
		CNIConfig:         n.state("config", "cni"),
		Mirrors:           n.state("config", "mirrors"),
		PodRange:          n.podRange().String(),
		Address:           n.address().String(),
		Domain:            domain,
		DNS:               n.lab.address(),
		Cgroup:            n.cgroup(),
		ClientCA:          n.lab.pki(clusterCA + ".crt"),
		ServingCert:       n.lab.pki(n.serving() + ".crt"),
		ServingKey:        n.lab.pki(n.serving() + ".key"),
		KubeletRoot:       kubeletRoot,
		PodLogs:           n.state("log", "pods"),
		KubeletHealthPort: kubeletHealthPort,
		Registry:          n.lab.Registry(),
		RestrictOOMScore:  !host.CanLowerOOMScore(),
	}
	targets := map[string]string{
		containerdConfig: n.state("config", containerdConfig),
		kubeletConfig:    n.state("config", kubeletConfig),
		networkConfig:    n.state("config", "cni", networkConfig),
		// The registry answers for every other one, so that no name in a
		// manifest makes a node look for the internet.
		registryHosts: n.state("config", "mirrors", "_default", registryHosts),
	}
	for name, target := range targets {
		if err := render(name, target, values); err != nil {
			return err
		}
	}
	return nil
}

// snapshotter returns how containerd lays images over each other.
func snapshotter(dir string) string {
	if host.OnOverlay(dir) {
		return "native"
	}
	return "overlayfs"
}

// render writes the template of that name, filled in, to the target.
func render(name, target string, values any) error {
	text, err := template.New(name).Option("missingkey=error").ParseFS(files, filepath.Join("files", name))
	if err != nil {
		return fmt.Errorf("read template %s: %w", name, err)
	}
	var filled bytes.Buffer
	if err := text.Execute(&filled, values); err != nil {
		return fmt.Errorf("fill in template %s: %w", name, err)
	}
	return writeFile(target, filled.Bytes(), 0o644)
}
