// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Add adds the controller to a manager, whose client must show its own writes
// and whose cache must have the indexes of package podcache.
func Add(mgr ctrl.Manager, options engine.Options) error {
	name := engine.ControllerName(kind)
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{})
	r.Measure(options.Metrics)
	err := r.Controller(mgr, options, &appsv1beta1.StatefulSet{}, workload.SpecPredicate(), r.adoptingSets).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.claimingSets)).
		Complete(r)
	if err == nil && !r.NamespaceScope {
		err = mgr.Add(manager.RunnableFunc(r.unprotectAll))
	}
	if err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// unprotectAll does for the sets that were deleted while no manager ran what Reconcile does
// for others.
func (r *Reconciler) unprotectAll(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, unprotectPeriod, true, func(ctx context.Context) (bool, error) {
		err := r.recreate.Unprotect(ctx, metav1.NamespaceAll)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to take finalizers off the volumes of deleted sets")
		}
		return err == nil, nil
	})
	return nil
}

// unprotectPeriod is after how long unprotectAll is tried again.
const unprotectPeriod = time.Minute

// adoptingSets maps a pod without a controller to the set that may have to adopt
// it.
func (r *Reconciler) adoptingSets(ctx context.Context, pod client.Object) []reconcile.Request {
	return workload.Adopting(ctx, r.Client, pod, &appsv1beta1.StatefulSet{})
}

// claimingSets maps a claim to the sets that may have made it. Claims may
// outlive their sets and need not have an owner; they are told by their names.
func (r *Reconciler) claimingSets(ctx context.Context, claim client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range setNames(claim.GetName()) {
		key := client.ObjectKey{Namespace: claim.GetNamespace(), Name: name}
		err := r.Client.Get(ctx, key, &appsv1beta1.StatefulSet{}, client.DisableReadYourWritesConsistency)
		if err == nil {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		} else if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to map claim", "PersistentVolumeClaim", klog.KObj(claim))
		}
	}
	return requests
}

// setNames returns the names of the sets whose claim may have a name: those of
// data-my-db-0 are my-db and db.
func setNames(claim string) []string {
	last := strings.LastIndex(claim, "-")
	if last < 0 {
		return nil
	}
	rest, ordinal := claim[:last], claim[last+1:]
	if _, err := strconv.Atoi(ordinal); err != nil {
		return nil
	}
	var names []string
	for {
		_, after, found := strings.Cut(rest, "-")
		if !found {
			return names
		}
		names, rest = append(names, after), after
	}
}
