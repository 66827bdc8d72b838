// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
)

// What this needs beside the reads that the cache is for is the right to evict pods, see
// package statefulset.

const (
	// reasonLeftBehind: an update that ended early left pods at another revision.
	reasonLeftBehind = "LeftBehind"
	// actionEvict is what is done about them, in events.
	actionEvict = "Evict"
)

const (
	// leftoverDelay is when a ReplicaSet is looked at again whose pods go one by one.
	leftoverDelay = 2 * time.Second
	// leftoverPeriod is when one is looked at again whose pods cannot go now.
	leftoverPeriod = 30 * time.Second
)

// Leftovers evicts the pods of Deployments that an update in place left behind when its
// hold was ended early: Kubernetes takes them for updated, and makes new ones for them.
//
// Each reconciliation is about one ReplicaSet. At rest nothing is read but the cache, and
// nothing written.
type Leftovers struct {
	// client reads from the cache, live from the API server.
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// NewLeftovers returns a Leftovers. The client and live are as those of a [Reconciler].
func NewLeftovers(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *Leftovers {
	return &Leftovers{client: c, live: live, recorder: recorder, clock: clock}
}

// Reconcile evicts one pod of a ReplicaSet that is left behind, if one may go.
func (l *Leftovers) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := metav1.NewTime(l.clock.Now())
	if may, err := l.mayHaveSome(ctx, request.NamespacedName, now); !may || err != nil {
		return ctrl.Result{}, err
	}
	found, err := lookForLeftovers(ctx, l.live, request.NamespacedName, now)
	if found == nil || err != nil {
		return ctrl.Result{}, err
	}
	l.tellUnknown(found)
	next := found.next()
	switch {
	case len(found.known()) == 0:
		return ctrl.Result{}, nil
	case next == nil && !found.isStanding():
		return ctrl.Result{RequeueAfter: leftoverPeriod}, nil
	case next == nil && found.hasNoRoom():
		why, wayOut := found.whyWaiting()
		l.tell(found, fmt.Sprintf("pods %s were left behind by an update in place, and are not evicted: %s; %s",
			strings.Join(found.known(), ", "), why, wayOut))
		return ctrl.Result{RequeueAfter: leftoverPeriod}, nil
	case next == nil:
		l.tell(found, "pods that an update in place left behind wait to be evicted until enough others serve")
		return ctrl.Result{RequeueAfter: leftoverDelay}, nil
	}
	return l.evict(ctx, found, next)
}

// mayHaveSome reports whether the cache shows pods that are left behind, of a Deployment
// that is not held: those of a held one are brought where they are to be.
func (l *Leftovers) mayHaveSome(ctx context.Context, key client.ObjectKey, now metav1.Time) (bool, error) {
	rs := &appsv1.ReplicaSet{}
	if err := l.client.Get(ctx, key, rs); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if !workloads.IsKind(owner, Deployment.groupVersionKind()) || !podcache.HasTemplate(rs) {
		return false, nil
	}
	d := &appsv1.Deployment{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: owner.Name}, d); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if d.UID == owner.UID && hasHold(d) {
		return false, nil
	}
	list := &corev1.PodList{}
	if err := podcache.ByOwner(ctx, l.client, rs, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	sets, err := replicaSets([]appsv1.ReplicaSet{*rs})
	if err != nil {
		return false, err
	}
	found, err := leftoversOf(ctx, l.client, sets[0], pods, now)
	return len(found) > 0, err
}

// evict evicts a pod that is left behind.
func (l *Leftovers) evict(ctx context.Context, found *remains, next *leftover) (ctrl.Result, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("Pod", klog.KObj(next.pod))
	log.Info("Evicting pod that an update in place left behind", "note", next.lacks)
	err := executor.Evict(ctx, l.client, next.pod)
	switch {
	case err == nil:
		l.tell(found, next.evicted())
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
	case apierrors.IsTooManyRequests(err), apierrors.IsForbidden(err):
		l.tell(found, "pod "+next.pod.Name+" was left behind by an update in place, and cannot be evicted: "+executor.RefusalOf(err))
		return ctrl.Result{RequeueAfter: leftoverPeriod}, nil
	default:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: leftoverDelay}, nil
}

// evicted says that the pod was evicted, and why.
func (l *leftover) evicted() string {
	return "evicted pod " + l.pod.Name + ", which an update in place that ended early left behind: " + l.lacks
}

// tellUnknown tells of pods whose revision is gone, if Kubernetes takes them for updated.
func (l *Leftovers) tellUnknown(found *remains) {
	if names := found.unknown(); len(names) > 0 && found.isStanding() {
		l.tell(found, unknownRevision(names))
	}
}

// unknownRevision says of pods that it cannot be told whether they are left behind.
func unknownRevision(names []string) string {
	return "what pods " + strings.Join(names, ", ") + " were updated to in place is not known, since the ControllerRevision in their label " +
		"is gone: delete those that are not as the template says"
}

func (l *Leftovers) tell(found *remains, note string) {
	l.recorder.Eventf(found.deployment, nil, corev1.EventTypeWarning, reasonLeftBehind, actionEvict, "%s", executor.Shorten(note))
}
