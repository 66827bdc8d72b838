// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

func TestDefaultsAreValid(t *testing.T) {
	g := NewWithT(t)
	c := &configv1alpha1.InsituConfiguration{}
	configv1alpha1.SetDefaults(c)

	g.Expect(configv1alpha1.Validate(c)).To(BeEmpty())
}

func TestValidate(t *testing.T) {
	seconds := func(n float64) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
	}
	tests := map[string]struct {
		change func(c *configv1alpha1.InsituConfiguration)
		// want is empty for a change that is accepted.
		want string
	}{
		"a namespace": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Namespaces = []string{"shop"} },
		},
		"two namespaces": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Namespaces = []string{"shop", "bank"} },
			want:   `namespaces: Invalid value: ["shop","bank"]: must be one namespace, or none for all: run a manager in each of several namespaces`,
		},
		"a scope that there is not": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Scope = "Tenant" },
			want:   `scope: Unsupported value: "Tenant": supported values: "Cluster", "Namespace"`,
		},
		"secure metrics without rights in the cluster": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Scope = configv1alpha1.NamespaceScope },
			want:   `metrics.secure: Invalid value: true: must be false with scope Namespace, or metrics.bindAddress "0"`,
		},
		"plain metrics without rights in the cluster": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.Scope, c.Metrics.Secure = configv1alpha1.NamespaceScope, ptr.To(false)
			},
		},
		"no metrics without rights in the cluster": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.Scope, c.Metrics.BindAddress = configv1alpha1.NamespaceScope, configv1alpha1.BindNothing
			},
		},
		"a namespace that is no DNS label": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Namespaces = []string{"*"} },
			want:   `namespaces[0]: Invalid value: "*"`,
		},
		"no worker": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.Controllers.StatefulSet.MaxConcurrentReconciles = ptr.To[int32](0)
			},
			want: "controllers.statefulSet.maxConcurrentReconciles: Invalid value: 0: must be at least 1",
		},
		"an unknown policy of pulls": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.ImagePull.Policy = "Always" },
			want:   `imagePull.policy: Unsupported value: "Always": supported values: "Require", "Prefer", "None"`,
		},
		"no pull": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.ImagePull.MaxConcurrent = ptr.To[int32](0) },
			want:   "imagePull.maxConcurrent: Invalid value: 0: must be at least 1",
		},
		"a lease of half seconds": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.LeaseDuration = seconds(15.5) },
			want:   `leaderElection.leaseDuration: Invalid value: "15.5s": must be whole seconds`,
		},
		"a lease of no time": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.LeaseDuration = seconds(0) },
			want:   `leaderElection.leaseDuration: Invalid value: "0s": must be at least 1s`,
		},
		"a deadline as long as the lease": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.RenewDeadline = seconds(15) },
			want:   `leaderElection.renewDeadline: Invalid value: "15s": must be shorter than leaseDuration (15s)`,
		},
		"a retry period that reaches the deadline with its jitter": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.RetryPeriod = seconds(9) },
			want:   `leaderElection.retryPeriod: Invalid value: "9s": with a jitter of 20% must be shorter than renewDeadline (10s)`,
		},
		"a negative retry period": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.RetryPeriod = seconds(-1) },
			want:   `leaderElection.retryPeriod: Invalid value: "-1s": must be at least 1ms`,
		},
		"a lease name that is no DNS name": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.ResourceName = "a_b" },
			want:   `leaderElection.resourceName: Invalid value: "a_b"`,
		},
		"a lease namespace that is no DNS label": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.ResourceNamespace = "a.b" },
			want:   `leaderElection.resourceNamespace: Invalid value: "a.b"`,
		},
		"times without leader election": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.LeaderElection.Enabled = ptr.To(false)
				c.LeaderElection.LeaseDuration = seconds(0)
			},
		},
		"qps of 0": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.ClientConnection.QPS = ptr.To[int32](0) },
			want:   "clientConnection.qps: Invalid value: 0: must be at least 1, or -1 for no limit",
		},
		"a limit": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.ClientConnection = configv1alpha1.ClientConnectionConfiguration{QPS: ptr.To[int32](20), Burst: ptr.To[int32](40)}
			},
		},
		"a burst below qps": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.ClientConnection = configv1alpha1.ClientConnectionConfiguration{QPS: ptr.To[int32](20), Burst: ptr.To[int32](10)}
			},
			want: "clientConnection.burst: Invalid value: 10: must be at least qps (20)",
		},
		"a burst without a limit": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.ClientConnection.Burst = ptr.To[int32](10) },
			want:   "clientConnection.burst: Invalid value: 10: has no meaning without a limit",
		},
		"metrics without a port": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Metrics.BindAddress = "localhost" },
			want:   `metrics.bindAddress: Invalid value: "localhost": must be "host:port"`,
		},
		"metrics at port 0": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Metrics.BindAddress = ":0" },
			want:   `metrics.bindAddress: Invalid value: ":0"`,
		},
		"metrics at an IPv6 address": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Metrics.BindAddress = "[::1]:8443" },
		},
		"a certificate for plain text": {
			change: func(c *configv1alpha1.InsituConfiguration) {
				c.Metrics.Secure, c.Metrics.CertDir = ptr.To(false), "/certs"
			},
			want: "metrics.certDir: Forbidden: may be set only if secure is true",
		},
		"probes at a port that is too high": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Health.BindAddress = ":65536" },
			want:   `health.bindAddress: Invalid value: ":65536"`,
		},
		"no probes": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Health.BindAddress = "0" },
		},
		"an unknown log format": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Logging.Format = "xml" },
			want:   `logging.format: Unsupported value: "xml": supported values: "json", "text"`,
		},
		"a negative verbosity": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.Logging.Verbosity = ptr.To[int32](-1) },
			want:   "logging.verbosity: Invalid value: -1: must be from 0 to 10",
		},
		"a negative shutdown timeout": {
			change: func(c *configv1alpha1.InsituConfiguration) { c.GracefulShutdownTimeout = seconds(-1) },
			want:   `gracefulShutdownTimeout: Invalid value: "-1s": must be at least 0s`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &configv1alpha1.InsituConfiguration{}
			configv1alpha1.SetDefaults(c)
			test.change(c)

			errs := configv1alpha1.Validate(c)

			if test.want == "" {
				g.Expect(errs).To(BeEmpty())
				return
			}
			g.Expect(errs.ToAggregate()).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
