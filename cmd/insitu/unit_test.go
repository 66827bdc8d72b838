// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

func TestParseFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want flags
		// err is part of the error; empty if there is none.
		err string
	}{
		"nothing":          {},
		"a file":           {args: []string{"--config=/etc/insitu/config.yaml"}, want: flags{config: "/etc/insitu/config.yaml"}},
		"the version":      {args: []string{"--version"}, want: flags{version: true}},
		"a check":          {args: []string{"--check"}, want: flags{check: true}},
		"a release":        {args: []string{"--release-held"}, want: flags{releaseHeld: true}},
		"help":             {args: []string{"-h"}, want: flags{help: true}},
		"an unknown flag":  {args: []string{"--leader-elect"}, err: "flag provided but not defined: -leader-elect"},
		"an argument":      {args: []string{"config.yaml"}, err: `found argument "config.yaml": accepted are flags only`},
		"a flag too short": {args: []string{"--config"}, err: "flag needs an argument: -config"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var output bytes.Buffer

			got, err := parseFlags(test.args, &output)

			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
			if test.want.help {
				g.Expect(output.String()).To(And(ContainSubstring("-config file"), ContainSubstring("-version"), ContainSubstring("-kubeconfig")))
			}
		})
	}
}

func TestRunSaysWhatIsWrongWithTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	content := "apiVersion: config.insitu.dev/v1alpha1\nkind: InsituConfiguration\nleaderElect: true\n"
	g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())

	err := run(t.Context(), []string{"--config=" + file})

	g.Expect(err).To(MatchError(And(ContainSubstring(file), ContainSubstring(`unknown field "leaderElect"`))))
}

func TestNameOwnNamespace(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "namespace")
	g.Expect(os.WriteFile(file, []byte("shop"), 0o600)).To(Succeed())
	named := func(scope configv1alpha1.Scope, namespaces ...string) []string {
		config := &configv1alpha1.InsituConfiguration{Scope: scope, Namespaces: namespaces}
		g.Expect(nameOwnNamespace(config, file)).To(Succeed())
		return config.Namespaces
	}

	g.Expect(named(configv1alpha1.NamespaceScope)).To(Equal([]string{"shop"}))
	g.Expect(named(configv1alpha1.NamespaceScope, "bank")).To(Equal([]string{"bank"}))
	g.Expect(named(configv1alpha1.ClusterScope)).To(BeEmpty(), "all namespaces")
	g.Expect(nameOwnNamespace(&configv1alpha1.InsituConfiguration{Scope: configv1alpha1.NamespaceScope}, file+"x")).
		To(MatchError(ContainSubstring("namespaces: found none with scope Namespace, outside a cluster")))
}

func TestLimitConnection(t *testing.T) {
	g := NewWithT(t)
	connection := &rest.Config{Host: "https://192.0.2.1", UserAgent: "other"}

	unlimited := limitConnection(connection, defaults().ClientConnection)
	limited := limitConnection(connection, configv1alpha1.ClientConnectionConfiguration{QPS: ptr.To[int32](5), Burst: ptr.To[int32](8)})

	g.Expect(unlimited.QPS).To(BeNumerically("<", 0), "client-go reads a negative QPS as no limit")
	g.Expect(unlimited.UserAgent).To(HavePrefix("insitu/"))
	g.Expect(unlimited.Host).To(Equal("https://192.0.2.1"))
	g.Expect(limited.QPS).To(BeEquivalentTo(5))
	g.Expect(limited.Burst).To(Equal(8))
	g.Expect(connection.UserAgent).To(Equal("other"), "what is given is not changed")
}

func TestManagerOptions(t *testing.T) {
	g := NewWithT(t)
	config := defaults()
	config.Namespaces = []string{"shop"}
	config.LeaderElection.ResourceNamespace = "ops"
	config.GracefulShutdownTimeout.Duration = 7 * time.Second

	options := managerOptions(config, runtime.NewScheme())

	g.Expect(options.Cache.DefaultNamespaces).To(HaveKey("shop"))
	g.Expect(*options.Client.Cache.EnableReadYourWritesConsistency).To(BeTrue())
	g.Expect(options.LeaderElection).To(BeTrue())
	g.Expect(options.LeaderElectionReleaseOnCancel).To(BeTrue())
	g.Expect(options.LeaderElectionID).To(Equal("insitu-manager"))
	g.Expect(options.LeaderElectionNamespace).To(Equal("ops"))
	g.Expect(*options.LeaseDuration).To(Equal(15 * time.Second))
	g.Expect(*options.RenewDeadline).To(Equal(10 * time.Second))
	g.Expect(*options.RetryPeriod).To(Equal(2 * time.Second))
	g.Expect(options.HealthProbeBindAddress).To(Equal(":8081"))
	g.Expect(*options.GracefulShutdownTimeout).To(Equal(7 * time.Second))
	g.Expect(options.Controller.ReconciliationTimeout).To(BeNumerically(">", 0), "a read that waits for a write must end")
}

func TestMetricsOptions(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	secure, err := metricsOptions(defaults().Metrics)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secure.SecureServing).To(BeTrue())
	g.Expect(secure.FilterProvider).NotTo(BeNil(), "secure metrics are for those who may read them")
	g.Expect(secure.CertDir).To(BeEmpty())

	plain, err := metricsOptions(configv1alpha1.MetricsConfiguration{BindAddress: ":1", Secure: ptr.To(false)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plain.SecureServing).To(BeFalse())
	g.Expect(plain.FilterProvider).To(BeNil())

	provided := configv1alpha1.MetricsConfiguration{BindAddress: ":1", Secure: ptr.To(true), CertDir: folder}
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), nil, 0o600)).To(Succeed())
	_, err = metricsOptions(provided)
	g.Expect(err).To(MatchError(And(ContainSubstring("metrics.certDir"), ContainSubstring("tls.key"))))

	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), nil, 0o600)).To(Succeed())
	withFiles, err := metricsOptions(provided)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(withFiles.CertDir).To(Equal(folder))
}

// stalledCache never syncs. It notes how long it was given.
type stalledCache struct{ given time.Duration }

func (c *stalledCache) WaitForCacheSync(ctx context.Context) bool {
	deadline, isLimited := ctx.Deadline()
	if !isLimited {
		c.given = math.MaxInt64

		return false
	}
	c.given = time.Until(deadline)
	<-ctx.Done()

	return false
}

// syncedCache has synced.
type syncedCache struct{}

func (syncedCache) WaitForCacheSync(context.Context) bool { return true }

func TestCachesSynced(t *testing.T) {
	g := NewWithT(t)
	request := httptest.NewRequest(http.MethodGet, "/readyz", nil)

	g.Expect(cachesSynced(syncedCache{})(request)).To(Succeed())

	stalled := &stalledCache{}
	g.Expect(cachesSynced(stalled)(request)).To(MatchError("caches have not synced"))
	g.Expect(stalled.given).To(BeNumerically("<", time.Second), "a kubelet waits no longer")
}

// defaults returns a configuration of defaults.
func defaults() *configv1alpha1.InsituConfiguration {
	config := &configv1alpha1.InsituConfiguration{}
	configv1alpha1.SetDefaults(config)

	return config
}
