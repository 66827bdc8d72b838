// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The defaults of absent fields.
const (
	DefaultMaxConcurrentReconciles = int32(10)
	DefaultMaxConcurrentPulls      = int32(100)
	DefaultLeaseDuration           = 15 * time.Second
	DefaultRenewDeadline           = 10 * time.Second
	DefaultRetryPeriod             = 2 * time.Second
	DefaultLeaseName               = "insitu-manager"
	DefaultMetricsBindAddress      = ":8443"
	DefaultHealthBindAddress       = ":8081"
	DefaultGracefulShutdownTimeout = 30 * time.Second

	// NoLimit is the qps that sets no limit.
	NoLimit = int32(-1)

	// BindNothing is the bindAddress that serves nothing.
	BindNothing = "0"
)

// SetDefaults sets every absent field to its default. Afterwards no pointer of
// the configuration is nil.
func SetDefaults(c *InsituConfiguration) {
	setDefaultString(&c.Scope, ClusterScope)
	setDefault(&c.Controllers.CloneSet.MaxConcurrentReconciles, DefaultMaxConcurrentReconciles)
	setDefault(&c.Controllers.StatefulSet.MaxConcurrentReconciles, DefaultMaxConcurrentReconciles)
	setDefault(&c.Controllers.DaemonSet.MaxConcurrentReconciles, DefaultMaxConcurrentReconciles)
	setDefault(&c.Controllers.Native.MaxConcurrentReconciles, DefaultMaxConcurrentReconciles)
	setDefaultString(&c.ImagePull.Policy, RequireImagePull)
	setDefault(&c.ImagePull.MaxConcurrent, DefaultMaxConcurrentPulls)
	setLeaderElectionDefaults(&c.LeaderElection)
	setDefault(&c.ClientConnection.QPS, NoLimit)
	setDefault(&c.ClientConnection.Burst, *c.ClientConnection.QPS)
	setDefaultString(&c.Metrics.BindAddress, DefaultMetricsBindAddress)
	setDefault(&c.Metrics.Secure, true)
	setDefaultString(&c.Health.BindAddress, DefaultHealthBindAddress)
	setDefaultString(&c.Logging.Format, LogFormatJSON)
	setDefault(&c.Logging.Verbosity, 0)
	setDefault(&c.GracefulShutdownTimeout, metav1.Duration{Duration: DefaultGracefulShutdownTimeout})
}

func setLeaderElectionDefaults(l *LeaderElectionConfiguration) {
	setDefault(&l.Enabled, true)
	setDefault(&l.LeaseDuration, metav1.Duration{Duration: DefaultLeaseDuration})
	setDefault(&l.RenewDeadline, metav1.Duration{Duration: DefaultRenewDeadline})
	setDefault(&l.RetryPeriod, metav1.Duration{Duration: DefaultRetryPeriod})
	setDefaultString(&l.ResourceName, DefaultLeaseName)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}

func setDefaultString[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
