// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// remains is a ReplicaSet with pods that are left behind, and its Deployment. All of it
// was read from the API server: pods go for what it says.
type remains struct {
	deployment *appsv1.Deployment
	replicaSet *replicaSet
	// pods are those of the ReplicaSet, leftovers the ones among them that are left behind.
	pods      []*corev1.Pod
	leftovers []leftover
	// isAlone: no other ReplicaSet of the Deployment has pods.
	isAlone bool
	now     metav1.Time
}

// lookForLeftovers looks for pods of a ReplicaSet that are left behind; nil if there are
// none, or the ReplicaSet is of no Deployment: no Deployment reports its pods as updated
// then.
func lookForLeftovers(ctx context.Context, live client.Reader, key client.ObjectKey, now metav1.Time) (*remains, error) {
	r := &remains{deployment: &appsv1.Deployment{}, now: now}
	rs := &appsv1.ReplicaSet{}
	if isThere, err := readLive(ctx, live, key, "", rs); !isThere {
		return nil, err
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if !workloads.IsKind(owner, Deployment.groupVersionKind()) {
		return nil, nil
	}
	if isThere, err := readLive(ctx, live, client.ObjectKey{Namespace: key.Namespace, Name: owner.Name}, owner.UID, r.deployment); !isThere {
		return nil, err
	}
	found, err := replicaSets([]appsv1.ReplicaSet{*rs})
	if err != nil {
		return nil, err
	}
	r.replicaSet = found[0]
	if err := r.readPods(ctx, live); err != nil {
		return nil, err
	}
	if r.leftovers, err = leftoversOf(ctx, live, r.replicaSet, r.pods, now); err != nil || len(r.leftovers) == 0 {
		return nil, err
	}
	return r, r.readOthers(ctx, live)
}

// readLive reads an object, and reports whether it is there to stay. An UID that is not
// empty is that of the one that is meant.
func readLive(ctx context.Context, live client.Reader, key client.ObjectKey, uid types.UID, into client.Object) (bool, error) {
	err := live.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %T %s: %w", into, key, err)
	}
	return into.GetDeletionTimestamp() == nil && (uid == "" || into.GetUID() == uid), nil
}

// readPods reads the pods of the ReplicaSet that are not about to go, by their names.
func (r *remains) readPods(ctx context.Context, live client.Reader) error {
	selector, err := metav1.LabelSelectorAsSelector(r.replicaSet.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector of ReplicaSet %s/%s: %w", r.replicaSet.Namespace, r.replicaSet.Name, err)
	}
	list := &corev1.PodList{}
	if err := live.List(ctx, list, client.InNamespace(r.replicaSet.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list pods of ReplicaSet %s/%s: %w", r.replicaSet.Namespace, r.replicaSet.Name, err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.IsControlledBy(pod, r.replicaSet) && pod.DeletionTimestamp == nil {
			r.pods = append(r.pods, pod)
		}
	}
	slices.SortFunc(r.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// readOthers reads whether other ReplicaSets of the Deployment have pods.
func (r *remains) readOthers(ctx context.Context, live client.Reader) error {
	selector, err := metav1.LabelSelectorAsSelector(r.deployment.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector of Deployment %s/%s: %w", r.deployment.Namespace, r.deployment.Name, err)
	}
	list := &appsv1.ReplicaSetList{}
	if err := live.List(ctx, list, client.InNamespace(r.deployment.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list ReplicaSets of Deployment %s/%s: %w", r.deployment.Namespace, r.deployment.Name, err)
	}
	r.isAlone = !slices.ContainsFunc(list.Items, func(rs appsv1.ReplicaSet) bool {
		return rs.UID != r.replicaSet.UID && metav1.IsControlledBy(&rs, r.deployment) && isLive(&rs)
	})
	return nil
}

// isRecreated reports whether Kubernetes recreates the pods, since the Deployment has
// another template.
func (r *remains) isRecreated() bool { return !r.replicaSet.isOf(&r.deployment.Spec.Template) }

// isStanding reports whether Kubernetes takes the pods for updated, and no controller is
// about to do anything to them.
func (r *remains) isStanding() bool {
	d, rs := r.deployment, r.replicaSet
	return !hasHold(d) && !d.Spec.Paused && !r.isRecreated() &&
		d.Status.ObservedGeneration >= d.Generation && rs.Status.ObservedGeneration >= rs.Generation
}

// next returns the pod that is to go now; nil if none is, or that cannot be told. One that
// does not serve goes first, and at any time. Any other waits for the end of the rollout,
// and until so many pods serve that one may be missing.
func (r *remains) next() *leftover {
	if !r.isStanding() {
		return nil
	}
	serving, first := 0, (*leftover)(nil)
	for _, pod := range r.pods {
		if r.serves(pod) {
			serving++
		}
	}
	for i := range r.leftovers {
		l := &r.leftovers[i]
		switch {
		case l.lacks == "":
		case !r.serves(l.pod):
			return l
		case first == nil:
			first = l
		}
	}
	if !r.isAlone || serving <= int(ptr.Deref(r.deployment.Spec.Replicas, 1))-mayMiss(r.deployment) {
		return nil
	}
	return first
}

// hasNoRoom reports whether pods that serve wait for room that only a rollout makes: the
// strategy lets none be missing, and there are no others.
func (r *remains) hasNoRoom() bool { return r.isAlone && mayMiss(r.deployment) == 0 }

// whyWaiting says what keeps pods that serve from being evicted, and what a user can do.
func (r *remains) whyWaiting() (why, wayOut string) {
	switch {
	case r.deployment.Spec.Paused:
		return "it is paused", "resume it, or delete them"
	case r.hasNoRoom():
		return "its strategy lets no pod be missing", "bring all pods to the template with kubectl rollout restart"
	case !r.isAlone:
		return "its rollout is not over", "delete them"
	default:
		return "not enough others serve", "delete them"
	}
}

// serves reports whether a pod is available, and its containers are not about to restart.
func (r *remains) serves(pod *corev1.Pod) bool {
	return podutils.IsPodAvailable(pod, r.deployment.Spec.MinReadySeconds, r.now) &&
		!inplace.IsMarkedNotReady(pod) && inplace.Observe(pod, r.now.Time).Complete
}

// known returns the names of the pods of which is known what they lack, unknown those of
// the others.
func (r *remains) known() []string   { return r.names(func(l leftover) bool { return l.lacks != "" }) }
func (r *remains) unknown() []string { return r.names(func(l leftover) bool { return l.lacks == "" }) }

func (r *remains) names(which func(leftover) bool) []string {
	var names []string
	for _, l := range r.leftovers {
		if which(l) {
			names = append(names, l.pod.Name)
		}
	}
	return names
}

// hasHold reports whether a workload is opted in, and held.
func hasHold(object client.Object) bool {
	_, isOptedIn := object.GetLabels()[native.UpdatePolicyLabel]
	return isOptedIn && object.GetLabels()[native.HeldLabel] != ""
}
