// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// Names of authorities and certificates; each is a pair of files NAME.crt and
// NAME.key.
const (
	clusterCA      = "ca"
	frontProxyCA   = "front-proxy-ca"
	frontProxy     = "front-proxy-client"
	apiServer      = "kube-apiserver"
	kubeletClient  = "kube-apiserver-kubelet-client"
	metricsServing = "metrics-server-serving"
	serviceAccount = "service-account"
)

// Groups that Kubernetes knows from the start.
const (
	mastersGroup = "system:masters"
	nodesGroup   = "system:nodes"
)

// algorithm of all keys: RSA takes seconds to make as many.
const algorithm = kubeadm.EncryptionAlgorithmECDSAP256

// authority signs certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority reads an authority from the folder, or makes it there.
func newAuthority(dir, name string) (*authority, error) {
	if cert, key, err := pkiutil.TryLoadCertAndKeyFromDisk(dir, name); err == nil {
		return &authority{dir: dir, cert: cert, key: key}, nil
	}
	cert, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config:              certutil.Config{CommonName: "insitu-lab-" + name},
		EncryptionAlgorithm: algorithm,
	})
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	if err := pkiutil.WriteCertAndKey(dir, name, cert, key); err != nil {
		return nil, fmt.Errorf("write authority %s: %w", name, err)
	}
	return &authority{dir: dir, cert: cert, key: key}, nil
}

// issue writes a certificate and its key as NAME.crt and NAME.key, unless
// they are there.
func (a *authority) issue(name string, config certutil.Config) error {
	if _, _, err := pkiutil.TryLoadCertAndKeyFromDisk(a.dir, name); err == nil {
		return nil
	}
	cert, key, err := pkiutil.NewCertAndKey(a.cert, a.key, &pkiutil.CertConfig{Config: config, EncryptionAlgorithm: algorithm})
	if err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	if err := pkiutil.WriteCertAndKey(a.dir, name, cert, key); err != nil {
		return fmt.Errorf("write certificate %s: %w", name, err)
	}
	return nil
}

func (a *authority) issueClient(name, user string, groups ...string) error {
	return a.issue(name, certutil.Config{
		CommonName:   user,
		Organization: groups,
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issueServer(name string, dnsNames []string, addresses ...netip.Addr) error {
	ips := make([]net.IP, 0, len(addresses))
	for _, address := range addresses {
		ips = append(ips, address.AsSlice())
	}
	return a.issue(name, certutil.Config{
		CommonName: name,
		AltNames:   certutil.AltNames{DNSNames: dnsNames, IPs: ips},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// user is a client that talks to the API server by kubeconfig.
type user struct {
	file   string // name of certificate and kubeconfig
	name   string
	groups []string
}

// users returns all that need a kubeconfig.
func (l *Lab) users() []user {
	all := []user{
		{file: "admin", name: "kubernetes-admin", groups: []string{mastersGroup}},
		{file: "kube-controller-manager", name: "system:kube-controller-manager"},
		{file: "kube-scheduler", name: "system:kube-scheduler"},
		{file: "kube-proxy", name: "system:kube-proxy"},
		{file: coreDNS, name: coreDNSUser},
		{file: metricsServer, name: metricsServerUser},
		{file: storageVerb, name: storageUser, groups: []string{mastersGroup}},
		// Stands in for the kubelets of all simulated nodes.
		{file: simulatedNodes, name: "insitu-lab:simulated-nodes", groups: []string{mastersGroup}},
	}
	for _, node := range l.RealNodes() {
		all = append(all, user{file: node.Name(), name: "system:node:" + node.Name(), groups: []string{nodesGroup}})
	}
	return all
}

// writePKI makes what is missing of authorities, certificates and keys.
func (l *Lab) writePKI() error {
	ca, err := newAuthority(l.pki(""), clusterCA)
	if err != nil {
		return err
	}
	proxyCA, err := newAuthority(l.pki(""), frontProxyCA)
	if err != nil {
		return err
	}
	names := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain,
	}
	addresses := []netip.Addr{netip.MustParseAddr(loopback), netip.MustParseAddr(l.address()), l.apiService()}
	errs := []error{
		ca.issueServer(apiServer, names, addresses...),
		ca.issueServer(metricsServing, []string{metricsServer + ".kube-system.svc"}),
		ca.issueClient(kubeletClient, kubeletClient, mastersGroup),
		proxyCA.issueClient(frontProxy, frontProxy),
		l.writeServiceAccountKey(),
	}
	for _, node := range l.RealNodes() {
		errs = append(errs, ca.issueServer(node.serving(), []string{node.Name()}, node.address()))
	}
	for _, user := range l.users() {
		errs = append(errs, ca.issueClient(user.file, user.name, user.groups...))
	}
	return errors.Join(errs...)
}

// serving is the name of the certificate that the node's kubelet serves with.
func (n Node) serving() string { return n.Name() + "-serving" }

// writeServiceAccountKey makes the key that service account tokens are signed with.
func (l *Lab) writeServiceAccountKey() error {
	if _, err := os.Stat(l.pki(serviceAccount + ".key")); err == nil {
		return nil
	}
	key, err := pkiutil.NewPrivateKey(algorithm)
	if err != nil {
		return fmt.Errorf("make key of service accounts: %w", err)
	}
	if err := pkiutil.WriteKey(l.pki(""), serviceAccount, key); err != nil {
		return fmt.Errorf("write key of service accounts: %w", err)
	}
	if err := pkiutil.WritePublicKey(l.pki(""), serviceAccount, key.Public()); err != nil {
		return fmt.Errorf("write key of service accounts: %w", err)
	}
	return nil
}
