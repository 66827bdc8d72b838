// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InsituConfiguration is the configuration of the manager.
//
// +kubebuilder:object:root=true
type InsituConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// scope is how far the permissions of the manager reach. With Namespace it needs
	// none but those of Roles: config/namespaced in its namespace, and the
	// Role of config/rbac in that of its own pod. It then does without what belongs to
	// the cluster: it changes claims without knowing their storage classes, which leaves
	// it to the API server to refuse, it recreates no claims, and it serves no secure
	// metrics.
	// Default: Cluster.
	// +optional
	Scope Scope `json:"scope,omitempty"`

	// namespaces names the namespace that the manager acts in. It watches no other,
	// and needs no permission on workloads in any other. Empty means all namespaces;
	// with the scope Namespace, that of the manager's own pod, and outside a cluster it
	// must be set then. There is one at most: several namespaces have a manager each.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`

	// controllers holds what can be set for each controller.
	// +optional
	Controllers ControllersConfiguration `json:"controllers,omitzero"`

	// imagePull is how images are pulled onto nodes before pods are taken out of service
	// for them.
	// +optional
	ImagePull ImagePullConfiguration `json:"imagePull,omitzero"`

	// leaderElection elects the one replica of the manager that acts.
	// +optional
	LeaderElection LeaderElectionConfiguration `json:"leaderElection,omitzero"`

	// clientConnection limits the requests to the API server.
	// +optional
	ClientConnection ClientConnectionConfiguration `json:"clientConnection,omitzero"`

	// metrics serves Prometheus metrics at /metrics.
	// +optional
	Metrics MetricsConfiguration `json:"metrics,omitzero"`

	// health serves the probes /healthz and /readyz.
	// +optional
	Health HealthConfiguration `json:"health,omitzero"`

	// logging says what is logged and how.
	// +optional
	Logging LoggingConfiguration `json:"logging,omitzero"`

	// gracefulShutdownTimeout is how long the manager waits, when told to stop,
	// for what it is doing to end. "0s" does not wait. The pod's
	// terminationGracePeriodSeconds should be longer.
	// Default: 30s.
	// +optional
	GracefulShutdownTimeout *metav1.Duration `json:"gracefulShutdownTimeout,omitempty"`
}

// Scope is how far the permissions of the manager reach.
type Scope string

// The scopes.
const (
	// ClusterScope is the whole cluster, by a ClusterRole.
	ClusterScope Scope = "Cluster"
	// NamespaceScope is one namespace, by Roles.
	NamespaceScope Scope = "Namespace"
)

// ControllersConfiguration holds what can be set for each controller.
type ControllersConfiguration struct {
	// cloneSet is for the controller of CloneSets of group apps.kruise.io.
	// +optional
	CloneSet ControllerConfiguration `json:"cloneSet,omitzero"`

	// statefulSet is for the controller of StatefulSets of group
	// apps.kruise.io.
	// +optional
	StatefulSet ControllerConfiguration `json:"statefulSet,omitzero"`

	// daemonSet is for the controller of DaemonSets of group apps.kruise.io.
	// +optional
	DaemonSet ControllerConfiguration `json:"daemonSet,omitzero"`

	// native is for the controllers of Deployments, StatefulSets and DaemonSets of
	// Kubernetes, each.
	// +optional
	Native ControllerConfiguration `json:"native,omitzero"`
}

// ControllerConfiguration holds what can be set for one controller.
type ControllerConfiguration struct {
	// maxConcurrentReconciles is how many objects the controller works on at a
	// time. One object is never worked on twice at a time.
	// Default: 10.
	// +optional
	MaxConcurrentReconciles *int32 `json:"maxConcurrentReconciles,omitempty"`
}

// ImagePullConfiguration is how images are pulled for all workloads.
type ImagePullConfiguration struct {
	// policy is for workloads that do not say it themselves, in imagePull of their
	// inPlaceUpdateStrategy or in the annotation insitu.dev/imagePull: Require, Prefer or
	// None, as there.
	// Default: Require.
	// +optional
	Policy ImagePullPolicy `json:"policy,omitempty"`

	// maxConcurrent is how many pods pull images at a time, for all workloads together.
	// Default: 100.
	// +optional
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
}

// ImagePullPolicy says what an update waits for.
type ImagePullPolicy string

// The policies, as those of workloads.
const (
	// RequireImagePull waits until the images are on the node.
	RequireImagePull ImagePullPolicy = "Require"
	// PreferImagePull waits for that, for a time.
	PreferImagePull ImagePullPolicy = "Prefer"
	// NoImagePull does not wait.
	NoImagePull ImagePullPolicy = "None"
)

// LeaderElectionConfiguration elects the one replica that acts, by a Lease.
type LeaderElectionConfiguration struct {
	// enabled turns leader election on. Without it, only one replica may run.
	// Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// leaseDuration is how long the other replicas wait after the last sign of
	// life of the leader before one takes over. Whole seconds.
	// Default: 15s.
	// +optional
	LeaseDuration *metav1.Duration `json:"leaseDuration,omitempty"`

	// renewDeadline is how long the leader tries to renew the Lease before it
	// gives up and exits. It is shorter than leaseDuration.
	// Default: 10s.
	// +optional
	RenewDeadline *metav1.Duration `json:"renewDeadline,omitempty"`

	// retryPeriod is the time between two tries. With a jitter of 20% it is
	// shorter than renewDeadline.
	// Default: 2s.
	// +optional
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`

	// resourceName is the name of the Lease.
	// Default: insitu-manager.
	// +optional
	ResourceName string `json:"resourceName,omitempty"`

	// resourceNamespace is the namespace of the Lease.
	// Default: the namespace of the manager's own pod. Outside a cluster it must
	// be set.
	// +optional
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
}

// ClientConnectionConfiguration limits the requests to the API server.
type ClientConnectionConfiguration struct {
	// qps is how many requests per second the manager sends on average. -1 sets
	// no limit: the API server's priority and fairness decides.
	// Default: -1.
	// +optional
	QPS *int32 `json:"qps,omitempty"`

	// burst is how many requests may be sent at once, at least qps. It has no
	// meaning without a limit.
	// Default: qps.
	// +optional
	Burst *int32 `json:"burst,omitempty"`
}

// MetricsConfiguration serves Prometheus metrics at /metrics.
type MetricsConfiguration struct {
	// bindAddress is "host:port" or ":port" to serve at; "0" serves nothing.
	// Default: ":8443".
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// secure serves over TLS, and only to clients whose token the API server
	// accepts and who may "get" the non-resource URL /metrics. Without it,
	// metrics are served in plain text to everybody who reaches the port.
	// Default: true.
	// +optional
	Secure *bool `json:"secure,omitempty"`

	// certDir is a directory with the files tls.crt and tls.key, which are
	// followed when they change.
	// Default: none, a self-signed certificate is made at each start.
	// +optional
	CertDir string `json:"certDir,omitempty"`
}

// HealthConfiguration serves the probes.
type HealthConfiguration struct {
	// bindAddress is "host:port" or ":port" to serve /healthz and /readyz at;
	// "0" serves nothing.
	// Default: ":8081".
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
}

// LoggingConfiguration says what is logged and how.
type LoggingConfiguration struct {
	// format is how a log line looks.
	// Default: json.
	// +optional
	Format LogFormat `json:"format,omitempty"`

	// verbosity is how much is logged, from 0 to 10, with the meaning it has in
	// Kubernetes: 0 what an operator of the cluster must see, 2 the steady state,
	// 4 debugging, 6 and more requests to the API server.
	// Default: 0.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
}

// LogFormat is how a log line looks.
type LogFormat string

// The formats of log lines.
const (
	// LogFormatJSON is one JSON object per line.
	LogFormatJSON LogFormat = "json"
	// LogFormatText is the text format of Kubernetes components.
	LogFormatText LogFormat = "text"
)
