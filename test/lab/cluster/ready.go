// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/insitu-dev/insitu/test/lab/supervise"
)

const (
	pollPeriod = 200 * time.Millisecond
	// readyTimeout is many times what a slow machine needs; of thousands of simulated nodes,
	// each may take nodeTimeout besides.
	readyTimeout = 5 * time.Minute
	nodeTimeout  = 150 * time.Millisecond
	// tellPeriod is how often a long wait says what it waits for.
	tellPeriod = 20 * time.Second
)

// awaitReady returns when pods can run in the lab.
func (l *Lab) awaitReady(ctx context.Context, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout+time.Duration(l.SimulatedNodes)*nodeTimeout)
	defer cancel()
	checks, err := l.readyChecks(say)
	if err != nil {
		return err
	}
	for _, check := range checks {
		if err := await(ctx, say, check); err != nil {
			return err
		}
	}
	say("Pods can run")
	return nil
}

// readyChecks returns what must be without error for pods to run, in the order
// in which it comes true.
func (l *Lab) readyChecks(say func(string)) ([]func(context.Context) error, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	ready := l.processCheck(say)
	return []func(context.Context) error{
		ready(apiServer),
		// CoreDNS and metrics-server become ready only with the rights that are
		// among them.
		func(ctx context.Context) error { return l.applyAddons(ctx, config) },
		ready(),
		l.checkDNS,
		func(context.Context) error { return l.checkMetrics(client) },
		func(ctx context.Context) error { return l.checkNodes(ctx, client) },
		func(ctx context.Context) error { return l.checkStorage(ctx, client) },
		func(ctx context.Context) error { return checkServiceAccount(ctx, client) },
	}, nil
}

// RESTConfig returns how to reach the API server as administrator.
func (l *Lab) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// await repeats the check until it returns nil, and tells from time to time
// what it waits for.
func await(ctx context.Context, say func(string), check func(context.Context) error) error {
	told := time.Now()
	for {
		began := time.Now()
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Since(told) > tellPeriod {
			say("Still waiting: " + err.Error())
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, while waiting: %w", context.Cause(ctx), err)
		// A check that takes long keeps the lab from what it waits for.
		case <-time.After(max(pollPeriod, 2*time.Since(began))):
		}
	}
}

// processCheck returns a function that makes checks that the named programs,
// all if none are named, are ready. The checks tell once of every program that
// has become so.
func (l *Lab) processCheck(say func(string)) func(names ...string) func(context.Context) error {
	told := sets.New[string]()
	return func(names ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			all, err := supervise.Client{Socket: l.ControlSocket()}.Status(ctx)
			if err != nil {
				return err
			}
			for _, process := range all {
				if process.State == supervise.StateReady && !told.Has(process.Name) {
					told.Insert(process.Name)
					say(process.Name + " is ready")
				}
			}
			return l.firstUnready(slices.DeleteFunc(all, func(process supervise.Status) bool {
				return len(names) > 0 && !slices.Contains(names, process.Name)
			}))
		}
	}
}

// firstUnready returns an error about the first program that is not ready.
// Nodes that a user stopped do not count.
func (l *Lab) firstUnready(all []supervise.Status) error {
	for _, process := range all {
		switch {
		case process.State == supervise.StateReady || process.State == supervise.StateStopped:
		case process.LastExit != "":
			return fmt.Errorf("%s is not ready, it ended %d times, last with %s, see %s",
				process.Name, process.Restarts+1, process.LastExit, l.Log(process.Name))
		default:
			return fmt.Errorf("%s is not ready, see %s", process.Name, l.Log(process.Name))
		}
	}
	return nil
}

// checkDNS returns nil if the cluster's DNS knows the API server, or if there
// is no DNS because there are no pods to ask it.
func (l *Lab) checkDNS(ctx context.Context) error {
	if l.Nodes == 0 {
		return nil
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("%s:%d", l.address(), dnsPort))
	}}
	name := "kubernetes.default.svc." + domain + "."
	addresses, err := resolver.LookupHost(ctx, name)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", name, err)
	}
	if want := l.apiService().String(); !slices.Contains(addresses, want) {
		return fmt.Errorf("DNS says that %s is %v, not %s", name, addresses, want)
	}
	return nil
}

// checkMetrics returns nil if the API server reaches metrics-server, or if
// there is none. While it does not, namespaces cannot be deleted.
func (l *Lab) checkMetrics(client kubernetes.Interface) error {
	if l.Nodes == 0 {
		return nil
	}
	if _, err := client.Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1"); err != nil {
		return fmt.Errorf("reach %s: %w", metricsServer, err)
	}
	return nil
}

// checkNodes returns nil if every node that runs takes pods.
func (l *Lab) checkNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	stopped, err := l.stoppedNodes(ctx)
	if err != nil {
		return err
	}
	if want := l.Nodes + l.SimulatedNodes - stopped.Len(); len(nodes.Items) < want {
		return fmt.Errorf("%d nodes have registered, not %d", len(nodes.Items), want)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !stopped.Has(node.Name) && !takesPods(node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

func (l *Lab) stoppedNodes(ctx context.Context) (sets.Set[string], error) {
	all, err := supervise.Client{Socket: l.ControlSocket()}.Status(ctx)
	if err != nil {
		return nil, err
	}
	stopped := sets.New[string]()
	for _, process := range all {
		if process.State == supervise.StateStopped {
			stopped.Insert(process.Name)
		}
	}
	return stopped, nil
}

// takesPods reports whether a node is Ready, and without the taints that say
// otherwise.
func takesPods(node *corev1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
	})
	return ready != nil && ready.Status == corev1.ConditionTrue && !tainted
}

// checkServiceAccount returns nil if pods can be made in the namespace
// default, for which they need its service account.
func checkServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("find service account: %w", err)
	}
	return nil
}
