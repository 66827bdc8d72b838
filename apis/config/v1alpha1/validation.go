// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxVerbosity is the highest verbosity that any log line of a Kubernetes
// library asks for.
const maxVerbosity = 10

// retryJitter is how much longer than retryPeriod the time between two tries of
// an election may get.
// Source: k8s.io/client-go/tools/leaderelection.JitterFactor.
const retryJitter = 1.2

// Validate returns every mistake in a configuration that has its defaults set.
// Each error names the field, what was found and what is accepted.
func Validate(c *InsituConfiguration) field.ErrorList {
	errs := validateScope(c)
	errs = append(errs, validateNamespaces(c.Namespaces, field.NewPath("namespaces"))...)
	errs = append(errs, validateController(c.Controllers.CloneSet, field.NewPath("controllers", "cloneSet"))...)
	errs = append(errs, validateController(c.Controllers.StatefulSet, field.NewPath("controllers", "statefulSet"))...)
	errs = append(errs, validateController(c.Controllers.DaemonSet, field.NewPath("controllers", "daemonSet"))...)
	errs = append(errs, validateController(c.Controllers.Native, field.NewPath("controllers", "native"))...)
	errs = append(errs, validateImagePull(c.ImagePull, field.NewPath("imagePull"))...)
	errs = append(errs, validateLeaderElection(c.LeaderElection, field.NewPath("leaderElection"))...)
	errs = append(errs, validateClientConnection(c.ClientConnection, field.NewPath("clientConnection"))...)
	errs = append(errs, validateMetrics(c.Metrics, field.NewPath("metrics"))...)
	errs = append(errs, validateBindAddress(c.Health.BindAddress, field.NewPath("health", "bindAddress"))...)
	errs = append(errs, validateLogging(c.Logging, field.NewPath("logging"))...)

	return append(errs, validateAtLeast(c.GracefulShutdownTimeout, 0, field.NewPath("gracefulShutdownTimeout"))...)
}

func validateScope(c *InsituConfiguration) field.ErrorList {
	switch c.Scope {
	case ClusterScope:
		return nil
	case NamespaceScope:
		if *c.Metrics.Secure && c.Metrics.BindAddress != BindNothing {
			return field.ErrorList{field.Invalid(field.NewPath("metrics", "secure"), true,
				`must be false with scope Namespace, or metrics.bindAddress "0": who may read metrics is a question that takes rights in the whole cluster`)}
		}
		return nil
	default:
		return field.ErrorList{field.NotSupported(field.NewPath("scope"), c.Scope, []Scope{ClusterScope, NamespaceScope})}
	}
}

func validateNamespaces(namespaces []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, namespace := range namespaces {
		for _, message := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Index(i), namespace, message))
		}
	}
	// The cache has a watch for each of several namespaces, and what waits for our own writes
	// looks at the newest version of all watches: a busy namespace would speak for another.
	if len(namespaces) > 1 {
		errs = append(errs, field.Invalid(path, namespaces, "must be one namespace, or none for all: run a manager in each of several namespaces"))
	}

	return errs
}

func validateController(c ControllerConfiguration, path *field.Path) field.ErrorList {
	if *c.MaxConcurrentReconciles >= 1 {
		return nil
	}

	return field.ErrorList{field.Invalid(path.Child("maxConcurrentReconciles"), *c.MaxConcurrentReconciles, "must be at least 1")}
}

func validateImagePull(c ImagePullConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	accepted := []ImagePullPolicy{RequireImagePull, PreferImagePull, NoImagePull}
	if !slices.Contains(accepted, c.Policy) {
		errs = append(errs, field.NotSupported(path.Child("policy"), c.Policy, accepted))
	}
	if *c.MaxConcurrent < 1 {
		errs = append(errs, field.Invalid(path.Child("maxConcurrent"), *c.MaxConcurrent, "must be at least 1"))
	}
	return errs
}

func validateLeaderElection(l LeaderElectionConfiguration, path *field.Path) field.ErrorList {
	if !*l.Enabled {
		return nil
	}
	errs := validateAtLeast(l.LeaseDuration, time.Second, path.Child("leaseDuration"))
	if l.LeaseDuration.Duration%time.Second != 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDuration"), l.LeaseDuration.Duration.String(),
			"must be whole seconds: that is what a Lease can hold"))
	}
	if l.RenewDeadline.Duration >= l.LeaseDuration.Duration {
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), l.RenewDeadline.Duration.String(),
			"must be shorter than leaseDuration ("+l.LeaseDuration.Duration.String()+")"))
	}
	errs = append(errs, validateAtLeast(l.RetryPeriod, time.Millisecond, path.Child("retryPeriod"))...)
	if retryJitter*l.RetryPeriod.Seconds() >= l.RenewDeadline.Seconds() {
		errs = append(errs, field.Invalid(path.Child("retryPeriod"), l.RetryPeriod.Duration.String(),
			"with a jitter of 20% must be shorter than renewDeadline ("+l.RenewDeadline.Duration.String()+")"))
	}
	for _, message := range validation.IsDNS1123Subdomain(l.ResourceName) {
		errs = append(errs, field.Invalid(path.Child("resourceName"), l.ResourceName, message))
	}
	if l.ResourceNamespace == "" {
		return errs
	}
	for _, message := range validation.IsDNS1123Label(l.ResourceNamespace) {
		errs = append(errs, field.Invalid(path.Child("resourceNamespace"), l.ResourceNamespace, message))
	}

	return errs
}

func validateClientConnection(c ClientConnectionConfiguration, path *field.Path) field.ErrorList {
	qps, burst := *c.QPS, *c.Burst
	switch {
	case qps != NoLimit && qps < 1:
		return field.ErrorList{field.Invalid(path.Child("qps"), qps, "must be at least 1, or -1 for no limit")}
	case qps == NoLimit && burst != NoLimit:
		return field.ErrorList{field.Invalid(path.Child("burst"), burst, "has no meaning without a limit: set qps as well, or leave burst out")}
	case burst < qps:
		return field.ErrorList{field.Invalid(path.Child("burst"), burst, "must be at least qps ("+strconv.Itoa(int(qps))+")")}
	default:
		return nil
	}
}

func validateMetrics(m MetricsConfiguration, path *field.Path) field.ErrorList {
	errs := validateBindAddress(m.BindAddress, path.Child("bindAddress"))
	if m.CertDir != "" && !*m.Secure {
		errs = append(errs, field.Forbidden(path.Child("certDir"), "may be set only if secure is true"))
	}

	return errs
}

func validateBindAddress(address string, path *field.Path) field.ErrorList {
	const accepted = `must be "host:port" or ":port" with a port from 1 to 65535, or "0" to serve nothing`
	if address == BindNothing {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, accepted)}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return field.ErrorList{field.Invalid(path, address, accepted)}
	}

	return nil
}

func validateLogging(l LoggingConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l.Format != LogFormatJSON && l.Format != LogFormatText {
		errs = append(errs, field.NotSupported(path.Child("format"), l.Format, []LogFormat{LogFormatJSON, LogFormatText}))
	}
	if *l.Verbosity < 0 || *l.Verbosity > maxVerbosity {
		errs = append(errs, field.Invalid(path.Child("verbosity"), *l.Verbosity, "must be from 0 to 10"))
	}

	return errs
}

func validateAtLeast(d *metav1.Duration, least time.Duration, path *field.Path) field.ErrorList {
	if d.Duration >= least {
		return nil
	}

	return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be at least "+least.String())}
}
