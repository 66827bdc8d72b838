// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/resize"
)

// What the manager itself needs; what the controllers need is said there.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=insitu-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=insitu-system,resources=events,verbs=create;patch

const (
	// fieldOwner names the manager in managedFields.
	fieldOwner = resize.FieldManager

	// reconcileTimeout ends a reconciliation that waits for the cache to show
	// its own writes while the watch is broken. The next one starts from what
	// is there, so nothing is lost.
	reconcileTimeout = 2 * time.Minute
)

// runManager runs the manager until ctx ends or leadership is lost.
func runManager(ctx context.Context, config *configv1alpha1.InsituConfiguration) error {
	if err := setUpLogging(config.Logging, os.Stderr); err != nil {
		return err
	}
	connection, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	measured := metrics.New()
	if err := measured.Register(ctrlmetrics.Registry, measuredBuild()); err != nil {
		return err
	}
	manager, err := newManager(ctx, connection, config, measured)
	if err != nil {
		return err
	}
	b := thisBuild()
	klog.FromContext(ctx).Info("Starting manager", "version", b.Version, "commit", b.Commit, "namespaces", config.Namespaces)
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run manager: %w", err)
	}

	return nil
}

// newManager returns a manager with every controller, index and probe, ready to
// start.
func newManager(
	ctx context.Context, connection *rest.Config, config *configv1alpha1.InsituConfiguration, measured metrics.Metrics,
) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := managerOptions(config, scheme)
	if options.Metrics, err = metricsOptions(config.Metrics); err != nil {
		return nil, err
	}
	return newManagerWith(ctx, connection, options, config, measured)
}

// newManagerWith is newManager with options of the manager.
func newManagerWith(
	ctx context.Context, connection *rest.Config, options ctrl.Options, config *configv1alpha1.InsituConfiguration, measured metrics.Metrics,
) (ctrl.Manager, error) {
	limited := limitConnection(connection, config.ClientConnection)
	limited.Wrap(measured.Writes.Wrap)
	manager, err := ctrl.NewManager(limited, options)
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	if err := podcache.AddIndexes(ctx, manager.GetFieldIndexer()); err != nil {
		return nil, err
	}
	served, err := servedOf(manager.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	for _, kind := range served.lacking() {
		klog.FromContext(ctx).Info("Not serving " + kind + ": their definitions are not there; install them and restart the manager")
	}
	// Watched from the start, as what is indexed: a replica that is not the
	// leader is ready only when it could take over.
	for _, object := range slices.Concat(watched(config.Scope), served.pullJobs, served.recreateRequests) {
		if _, err := manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	if err := addControllers(ctx, manager, config, measured, served); err != nil {
		return nil, err
	}
	if err := manager.Add(measured.Rollouts); err != nil {
		return nil, fmt.Errorf("add metrics of rollouts: %w", err)
	}
	if err := addHeartbeat(manager, config); err != nil {
		return nil, err
	}
	if err := addProbes(manager); err != nil {
		return nil, err
	}

	return manager, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, appsv1beta1.AddToScheme, snapshotv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}

	return scheme, nil
}

// limitConnection returns a copy of the connection with the name of this build
// and the configured limits.
func limitConnection(connection *rest.Config, config configv1alpha1.ClientConnectionConfiguration) *rest.Config {
	limited := rest.CopyConfig(connection)
	limited.UserAgent = userAgent()
	limited.QPS = float32(*config.QPS)
	limited.Burst = int(*config.Burst)

	return limited
}

// managerOptions returns the options of the manager, but for metrics.
func managerOptions(config *configv1alpha1.InsituConfiguration, scheme *runtime.Scheme) ctrl.Options {
	election := config.LeaderElection

	return ctrl.Options{
		Scheme: scheme,
		Logger: klog.Background(),
		Cache:  podcache.Options(config.Namespaces),
		Client: client.Options{
			FieldOwner: fieldOwner,
			// A reconciliation never decides on what it has itself changed
			// since. This is why there is one namespace at most: of several,
			// controller-runtime keeps the newest version of all together.
			Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)},
		},
		Controller: ctrlconfig.Controller{
			EnableWarmup:          ptr.To(true),
			ReconciliationTimeout: reconcileTimeout,
		},
		LeaderElection:          *election.Enabled,
		LeaderElectionID:        election.ResourceName,
		LeaderElectionNamespace: election.ResourceNamespace,
		LeaseDuration:           &election.LeaseDuration.Duration,
		RenewDeadline:           &election.RenewDeadline.Duration,
		RetryPeriod:             &election.RetryPeriod.Duration,
		// Safe because main ends the process when Start returns.
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        config.Health.BindAddress,
		GracefulShutdownTimeout:       &config.GracefulShutdownTimeout.Duration,
	}
}

func addProbes(manager ctrl.Manager) error {
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add liveness probe: %w", err)
	}
	if err := manager.AddReadyzCheck("caches", cachesSynced(manager.GetCache())); err != nil {
		return fmt.Errorf("add readiness probe: %w", err)
	}

	return nil
}
