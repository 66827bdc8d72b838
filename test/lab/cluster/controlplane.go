// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// Names of programs, as in package components, and of their logs.
const (
	etcd              = "etcd"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	proxy             = "kube-proxy"
	coreDNS           = "coredns"
	metricsServer     = "metrics-server"
	registry          = "registry"
	simulatedNodes    = "simulated-nodes"
)

// controlPlane returns the programs that every lab has.
func (l *Lab) controlPlane() []supervise.Process {
	return []supervise.Process{
		l.program(etcd, l.etcdArgs(), l.etcdReady()),
		l.program(apiServer, l.apiServerArgs(), l.secure(l.ports().APIServer, "/readyz"), etcd),
		l.program(controllerManager, l.controllerManagerArgs(), l.secure(l.ports().ControllerManager, "/healthz"), apiServer),
		l.program(scheduler, l.schedulerArgs(), l.secure(l.ports().Scheduler, "/healthz"), apiServer),
	}
}

// program is a component of the lab's own binary.
func (l *Lab) program(name string, args []string, ready *supervise.Probe, after ...string) supervise.Process {
	return supervise.Process{
		Name:  name,
		Path:  selfPath(),
		Args:  append([]string{name}, args...),
		Log:   l.Log(name),
		Ready: ready,
		After: after,
	}
}

func (l *Lab) secure(port int, path string) *supervise.Probe {
	return &supervise.Probe{URL: fmt.Sprintf("https://%s:%d%s", loopback, port, path)}
}

// bind is the address that what pods and the host may reach listens on.
func (l *Lab) bind() string {
	if l.Isolated() {
		return "0.0.0.0"
	}
	return loopback
}

func (l *Lab) etcdURL() string { return fmt.Sprintf("http://%s:%d", loopback, l.ports().Etcd) }

func (l *Lab) etcdReady() *supervise.Probe { return &supervise.Probe{URL: l.etcdURL() + "/readyz"} }

func (l *Lab) etcdArgs() []string {
	peers := fmt.Sprintf("http://%s:%d", loopback, l.ports().EtcdPeers)
	return []string{
		"--name=lab",
		"--data-dir=" + l.state(etcd),
		"--listen-client-urls=" + l.etcdURL(),
		"--advertise-client-urls=" + l.etcdURL(),
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=lab=" + peers,
		// A lab is disposable; it need not survive a power cut.
		"--unsafe-no-fsync",
	}
}

func (l *Lab) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + l.etcdURL(),
		"--bind-address=" + l.bind(),
		"--advertise-address=" + l.address(),
		fmt.Sprintf("--secure-port=%d", l.ports().APIServer),
		"--service-cluster-ip-range=" + l.serviceRange().String(),
		"--cert-dir=" + l.pki(""),
		"--tls-cert-file=" + l.pki(apiServer+".crt"),
		"--tls-private-key-file=" + l.pki(apiServer+".key"),
		"--client-ca-file=" + l.pki(clusterCA+".crt"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc." + domain,
		"--service-account-key-file=" + l.pki(serviceAccount+".pub"),
		"--service-account-signing-key-file=" + l.pki(serviceAccount+".key"),
		"--kubelet-client-certificate=" + l.pki(kubeletClient+".crt"),
		"--kubelet-client-key=" + l.pki(kubeletClient+".key"),
		"--kubelet-certificate-authority=" + l.pki(clusterCA+".crt"),
		// Otherwise logs and exec look up nodes by name in DNS.
		"--kubelet-preferred-address-types=InternalIP",
		// Webhooks are reached at their pods, also without kube-proxy.
		"--enable-aggregator-routing=true",
		"--requestheader-client-ca-file=" + l.pki(frontProxyCA+".crt"),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.pki(frontProxy+".crt"),
		"--proxy-client-key-file=" + l.pki(frontProxy+".key"),
		"--audit-policy-file=" + l.config(auditPolicy),
		"--audit-log-path=" + l.AuditLog(),
		"--audit-log-format=json",
		// One file, however long: who counts in it starts at its beginning.
		"--audit-log-maxsize=0",
	}
	if !l.Isolated() {
		// An endpoint at 127.0.0.1 is not valid, and no client could use it.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return args
}

func (l *Lab) controllerManagerArgs() []string {
	kubeconfig := l.config(controllerManager + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", l.ports().ControllerManager),
		"--cert-dir=" + l.state(controllerManager),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + l.pki(clusterCA+".crt"),
		"--service-account-private-key-file=" + l.pki(serviceAccount+".key"),
		"--cluster-signing-cert-file=" + l.pki(clusterCA+".crt"),
		"--cluster-signing-key-file=" + l.pki(clusterCA+".key"),
		// At the default rate the controllers take 5 s to get their accounts.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		// A dead node is noticed after 20 s instead of 50 s. Its kubelet
		// would have renewed its lease four times, see nodeLeaseDurationSeconds.
		"--node-monitor-period=2s",
		fmt.Sprintf("--node-monitor-grace-period=%s", 2*l.leasePeriod()),
		// An autoscaler acts on a measurement soon after it was made.
		"--horizontal-pod-autoscaler-sync-period=2s",
	}
}

// leasePeriod is how often a simulated node renews its lease: every 10 s as a kubelet does, and
// less often where there are so many that this would be most of what the control plane does.
func (l *Lab) leasePeriod() time.Duration {
	return max(10*time.Second, time.Duration(l.SimulatedNodes)*10*time.Millisecond)
}

func (l *Lab) schedulerArgs() []string {
	kubeconfig := l.config(scheduler + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", l.ports().Scheduler),
		"--cert-dir=" + l.state(scheduler),
		"--leader-elect=false",
		// At the default rate, 10,000 pods are bound in more than 3 minutes.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}
