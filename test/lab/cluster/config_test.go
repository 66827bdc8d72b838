// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
	"sigs.k8s.io/yaml"
)

// written returns a lab with two nodes whose files are written.
func written(t *testing.T) *Lab {
	t.Helper()
	g := NewWithT(t)
	lab := &Lab{Spec: Spec{Nodes: 2}, Dir: t.TempDir()}
	g.Expect(lab.writePKI()).To(Succeed())
	g.Expect(lab.writeConfigs()).To(Succeed())
	g.Expect(lab.writeKubeconfigs()).To(Succeed())
	return lab
}

func TestKubeletConfigIsUnderstood(t *testing.T) {
	g := NewWithT(t)
	node := written(t).RealNodes()[1]
	loader, err := kubeletconfig.NewFsLoader(&utilfs.DefaultFs{}, node.state("config", kubeletConfig))
	g.Expect(err).NotTo(HaveOccurred())
	config, err := loader.Load(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.CgroupRoot).To(Equal("/insitu-lab-0/node-2"))
	g.Expect(config.Address).To(Equal("198.18.0.12"))
	g.Expect(config.ClusterDNS).To(Equal([]string{"198.18.0.2"}))
	g.Expect(config.SerializeImagePulls).To(BeFalse())
	g.Expect(config.FailCgroupV1).To(BeFalse())
}

func TestAuditPolicyIsUnderstood(t *testing.T) {
	g := NewWithT(t)
	policy, err := auditpolicy.LoadPolicyFromFile(written(t).config(auditPolicy))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(policy.Rules).NotTo(BeEmpty())
}

func TestOtherFilesAreWellFormed(t *testing.T) {
	g := NewWithT(t)
	lab := written(t)
	node := lab.RealNodes()[0]
	var network map[string]any
	data, err := os.ReadFile(node.state("config", "cni", networkConfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(data, &network)).To(Succeed())
	g.Expect(string(data)).To(ContainSubstring("198.18.1.0/24"))

	var proxy map[string]any
	data, err = os.ReadFile(lab.config(proxyConfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(data, &proxy)).To(Succeed())
	g.Expect(proxy).To(HaveKeyWithValue("clusterCIDR", "198.18.0.0/20"))

	data, err = os.ReadFile(node.state("config", containerdConfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(ContainSubstring(`address = "/run/insitu-lab/0/node-1/containerd.sock"`))
	data, err = os.ReadFile(node.state("config", "mirrors", "_default", registryHosts))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(ContainSubstring(`server = "http://198.18.0.2:5000"`))
}

func TestCertificatesAreIssuedOnceAndAreValid(t *testing.T) {
	g := NewWithT(t)
	lab := written(t)
	roots, err := certutil.NewPool(lab.pki(clusterCA + ".crt"))
	g.Expect(err).NotTo(HaveOccurred())
	for name, host := range map[string]string{apiServer: "198.18.12.1", "node-2-serving": "198.18.0.12", metricsServing: "metrics-server.kube-system.svc"} {
		certs, err := certutil.CertsFromFile(lab.pki(name + ".crt"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = certs[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		g.Expect(err).NotTo(HaveOccurred(), name)
	}
	before, err := os.ReadFile(lab.pki("admin.crt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lab.writePKI()).To(Succeed())
	g.Expect(os.ReadFile(lab.pki("admin.crt"))).To(Equal(before))
}

func TestEveryUserIsKnownByItsName(t *testing.T) {
	lab := written(t)
	for _, user := range lab.users() {
		config, err := clientcmd.BuildConfigFromFlags("", lab.config(user.file+".kubeconfig"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		certs, err := certutil.ParseCertsPEM(config.CertData)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(certs[0].Subject.CommonName).To(Equal(user.name))
		NewWithT(t).Expect(certs[0].ExtKeyUsage).To(ConsistOf(x509.ExtKeyUsageClientAuth), user.name)
	}
}

func TestKubeletsAreNodesAndNothingMore(t *testing.T) {
	g := NewWithT(t)
	certs, err := certutil.CertsFromFile(written(t).pki("node-1.crt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certs[0].Subject.CommonName).To(Equal("system:node:node-1"))
	g.Expect(certs[0].Subject.Organization).To(Equal([]string{"system:nodes"}))
}

func TestKubeconfigIsPrivateAndComplete(t *testing.T) {
	g := NewWithT(t)
	lab := written(t)
	info, err := os.Stat(lab.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	config, err := clientcmd.BuildConfigFromFlags("", lab.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://198.18.0.2:6443"))
	g.Expect(config.CertData).NotTo(BeEmpty())
	g.Expect(config.CAData).NotTo(BeEmpty())
}

func TestProgramsStartAfterProgramsThatAreThere(t *testing.T) {
	for _, lab := range []*Lab{
		{Spec: Spec{Nodes: 2, SimulatedNodes: 1}, Dir: "/lab"},
		{Spec: Spec{SimulatedNodes: 1}, Dir: "/lab", Ports: &Ports{}},
	} {
		names := sets.New[string]()
		for _, process := range append(lab.controlPlane(), lab.services()...) {
			names.Insert(process.Name)
			NewWithT(t).Expect(names.HasAll(process.After...)).To(BeTrue(), "%s after %v", process.Name, process.After)
		}
		NewWithT(t).Expect(names.HasAll(proxy, coreDNS, metricsServer)).To(Equal(lab.Nodes > 0))
	}
}

// Thousands of simulated nodes share the control plane: their heartbeats are rarer, and it waits
// for two of them.
func TestNodesAreMissedAfterTwoHeartbeats(t *testing.T) {
	for nodes, want := range map[int]string{0: "20s", 4: "20s", 1000: "20s", 5000: "1m40s"} {
		lab := &Lab{Spec: Spec{SimulatedNodes: nodes}, Dir: "/lab"}
		NewWithT(t).Expect(lab.controllerManagerArgs()).To(ContainElement("--node-monitor-grace-period="+want), "%d nodes", nodes)
	}
}

func TestCanonicalOfAFolderBehindALink(t *testing.T) {
	g := NewWithT(t)
	folder, err := filepath.EvalSymlinks(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(folder, filepath.Join(folder, "link"))).To(Succeed())
	g.Expect(Canonical(filepath.Join(folder, "link", "not", "there"))).To(Equal(filepath.Join(folder, "not", "there")))
}

func TestOnlyFilesOfALabAreRemoved(t *testing.T) {
	g := NewWithT(t)
	lab := written(t)
	g.Expect(lab.save()).To(Succeed())
	mine := filepath.Join(lab.Dir, "notes")
	g.Expect(checkUnused(lab.Dir)).To(MatchError(ContainSubstring("and no lab")))
	g.Expect(os.WriteFile(mine, nil, 0o644)).To(Succeed())
	g.Expect(lab.removeFiles()).To(Succeed())
	g.Expect(mine).To(BeAnExistingFile())
	g.Expect(lab.Kubeconfig()).NotTo(BeAnExistingFile())
	g.Expect(lab.state()).NotTo(BeADirectory())
}

// CoreDNS takes a path with a space for two words, unless it is quoted.
func TestFoldersWithSpaces(t *testing.T) {
	g := NewWithT(t)
	lab := &Lab{Spec: Spec{Nodes: 1}, Dir: filepath.Join(t.TempDir(), "a lab")}
	g.Expect(lab.writePKI()).To(Succeed())
	g.Expect(lab.writeConfigs()).To(Succeed())
	data, err := os.ReadFile(lab.config(corefile))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(ContainSubstring(`kubeconfig "` + lab.config(coreDNS+".kubeconfig") + `"`))
}
