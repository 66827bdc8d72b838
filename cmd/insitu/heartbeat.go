// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/apis/native"
)

// The heartbeat is an annotation of the switch; the switch itself has no right, and no pod
// runs as it.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=insitu-holds,verbs=patch

// heartbeatPeriod is how often the leader says that it is there. The policies begin no hold
// when it has not done so for 5 minutes.
const heartbeatPeriod = time.Minute

// heartbeat says on the switch that there is a manager, see native.HeartbeatAnnotation.
type heartbeat struct {
	client client.Client
	clock  clock.PassiveClock
	// namespace is where the switch is.
	namespace string
	// gone: the switch was not there the last time.
	gone bool
}

// addHeartbeat adds the heartbeat to the manager, unless it runs outside of a cluster and
// nothing says in which namespace the switch could be.
func addHeartbeat(manager ctrl.Manager, config *configv1alpha1.InsituConfiguration) error {
	namespace, err := switchNamespace(config, namespaceFile)
	if err != nil || namespace == "" {
		return err
	}
	if err := manager.Add(&heartbeat{client: manager.GetClient(), clock: clock.RealClock{}, namespace: namespace}); err != nil {
		return fmt.Errorf("add the heartbeat: %w", err)
	}
	return nil
}

// switchNamespace returns the namespace of the switch: that of the manager's pod, of which
// the file has the name, or outside of a cluster that of its Lease; or, where the manager acts
// in one namespace only, that one. It is empty if nothing says it.
func switchNamespace(config *configv1alpha1.InsituConfiguration, file string) (string, error) {
	if config.Scope == configv1alpha1.NamespaceScope && len(config.Namespaces) > 0 {
		return config.Namespaces[0], nil
	}
	own, err := ownNamespace(file)
	return cmp.Or(own, config.LeaderElection.ResourceNamespace), err
}

// NeedLeaderElection says that the leader has the heartbeat: a replica that waits ends no hold.
func (h *heartbeat) NeedLeaderElection() bool { return true }

// Start writes the heartbeat until ctx ends.
func (h *heartbeat) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := h.beat(ctx)
		switch isGone := apierrors.IsNotFound(err); {
		case err == nil:
			h.gone = false
		case isGone && !h.gone:
			h.gone = true
			klog.FromContext(ctx).Info("There is no switch, so that nothing is held", "ServiceAccount", klog.KRef(h.namespace, native.SwitchName))
		case !isGone && ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "The policies hold nothing new when the last heartbeat is 5 minutes old")
		}
	}, heartbeatPeriod)
	return nil
}

// beat writes the heartbeat once.
func (h *heartbeat) beat(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{native.HeartbeatAnnotation: h.clock.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	account := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: native.SwitchName}}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err = h.client.Patch(ctx, account, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("write the heartbeat to ServiceAccount %s/%s: %w", h.namespace, native.SwitchName, err)
	}
	return nil
}
