// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// conclude makes the ReplicaSet of the updated pods the one of the present template,
// and leaves the template that it had in an empty one, for the history.
//
// The keeper is first: an empty ReplicaSet more than the history limit allows is
// deleted at once, and until then it would be that. What the keeper had before is in
// a ControllerRevision, and the keeper names it until the others are as they should
// be. The Deployment is held meanwhile: its controller acts on nothing of this.
func (w deployment) conclude(ctx context.Context, r *Reconciler, s *scope) (bool, error) {
	switch {
	case s.keeper == nil:
		return true, nil
	case !s.keeper.isPromoted() && s.keeper.isOf(s.spec.template):
		if isOver, err := w.dismissOthers(ctx, r, s); !isOver {
			return false, err
		}
		return true, w.clean(ctx, r, s)
	case !s.isComplete():
		// Its controller may be about to make a pod from the template before.
		return false, nil
	case s.spec.isPaused && !s.keeper.isPromoted():
		return false, nil // its user has a rollout wait
	case !s.keeper.isPromoted() && w.isAboutToSurge(s):
		// The controller of Deployments may be about to make a second ReplicaSet of the
		// present template. No event tells when it has seen that.
		s.Requeue.Within(time.Second)
		return false, nil
	}
	if s.spec.surges && !s.keeper.isPromoted() && !s.retireOthers(ctx, r) {
		return false, nil // before Kubernetes may take them away
	}
	s.isConcluding = true
	if err := r.withdraw(ctx, s); err != nil {
		return false, err
	}
	if !s.keeper.isPromoted() {
		return false, w.promote(ctx, r, s)
	}
	if err := w.preserve(ctx, r, s); err != nil {
		return false, err
	}
	// Of two with the present template, the older one is that of the Deployment, and would grow.
	if isOver, err := w.dismissOthers(ctx, r, s); !isOver {
		return false, err
	}
	return false, w.settle(ctx, r, s)
}

// clean leaves nothing of an update behind. The controller of Deployments has copied to
// the keeper what was said meanwhile, if its template was the present one already.
func (w deployment) clean(ctx context.Context, r *Reconciler, s *scope) error {
	s.isConcluding = true
	if err := r.withdraw(ctx, s); err != nil {
		return err
	}
	if err := w.sweep(ctx, r, s.keeper); err != nil {
		return err
	}
	return s.truncateHistory(ctx, r)
}

// sweep takes off a ReplicaSet what its Deployment does not say any more.
func (w deployment) sweep(ctx context.Context, r *Reconciler, rs *replicaSet) error {
	stale := w.staleAnnotations(rs)
	if len(stale) == 0 {
		return nil
	}
	return workloads.PatchMetadata(ctx, r.client, rs.ReplicaSet, rs.reference(), map[string]any{"annotations": stale})
}

// sweepAll takes off every ReplicaSet, also those without pods, what tells of a hold that is
// over. What is promoted loses it later.
func (w deployment) sweepAll(ctx context.Context, r *Reconciler) error {
	list := &appsv1.ReplicaSetList{}
	if err := podcache.ByOwner(ctx, r.client, w.Deployment, list); err != nil {
		return err
	}
	for i := range list.Items {
		rs := &replicaSet{ReplicaSet: &list.Items[i]}
		if !tellsOfHold(rs) || rs.isPromoted() {
			continue
		}
		if err := w.sweep(ctx, r, rs); err != nil {
			return err
		}
	}
	return nil
}

// tidy ends a promotion that the end of the hold has overtaken: the history is to be
// true all the same. It takes off what kubectl rollout undo has brought of another one, and
// what the controller of Deployments has copied during the hold. A Deployment that has lost
// nothing but the label of its hold, by a policy that is older or in a manifest that was saved
// meanwhile, gets its fields back.
func (w deployment) tidy(ctx context.Context, r *Reconciler, s *scope) error {
	if w.surges() {
		return r.unhold(ctx, s)
	}
	if err := r.withdraw(ctx, s); err != nil {
		return err
	}
	if err := w.sweepAll(ctx, r); err != nil {
		return err
	}
	if _, err := w.observeReplicaSets(ctx, r, s); err != nil {
		return err
	}
	if s.keeper == nil || !s.keeper.isPromoted() {
		return nil
	}
	if err := s.readHistory(ctx, r.client); err != nil {
		return err
	}
	if err := w.preserve(ctx, r, s); err != nil {
		return err
	}
	return w.settle(ctx, r, s)
}

// isComplete reports whether the keeper has all its pods, as it is now, and they are
// the ones that were observed. Those that cannot be made are not waited for: with the
// new template, they may be.
func (s *scope) isComplete() bool {
	pods := 0
	for i := range s.pods {
		if !s.isOfOther(i) {
			pods++
		}
	}
	status := s.keeper.Status
	if status.ObservedGeneration < s.keeper.Generation || int(status.Replicas) != pods {
		return false
	}
	return status.Replicas == ptr.Deref(s.keeper.Spec.Replicas, 1) || s.keeper.failure() != nil
}

// promote gives the keeper the template of the Deployment. Its number in the history
// is given by the controller of Deployments; the one that it had is kept for the
// template that it had. Of fields that are newer than this program it is not known whether
// they can change in place: where one changes, Kubernetes recreates the pods.
func (w deployment) promote(ctx context.Context, r *Reconciler, s *scope) error {
	whole, newer, err := r.readWhole(ctx, Deployment.groupVersionKind(), w.Deployment, &w.Spec.Template)
	if err != nil {
		return err
	}
	_, newerBefore, err := r.readWhole(ctx, replicaSetKind, s.keeper.ReplicaSet, &s.keeper.Spec.Template)
	if err != nil {
		return err
	}
	if path := differing(newerBefore, newer, ""); path != "" {
		why := fmt.Sprintf("field %s of the template is newer than this release of Insitu, and changes", strings.TrimPrefix(path, "."))
		if s.options.policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
			return errors.New(why)
		}
		if s.ending = recreated(s, why); r.staysHeld(ctx, s) {
			s.nameKept()
			return nil
		}
		return r.release(ctx, s)
	}
	before := previous{
		revision: s.history.Find(s.keeper.template).Name(),
		number:   s.keeper.Annotations[revisionAnnotation], cause: s.keeper.Annotations[changeCauseAnnotation],
	}
	if s.isNumberTwice {
		before.number = strconv.Itoa(s.lastNumber + 1)
	}
	return patchTemplate(ctx, r.client, s.keeper.ReplicaSet, whole, map[string]any{
		native.PreviousRevisionAnnotation: s.keeper.promotionFrom(before), changeCauseAnnotation: nil, revisionAnnotation: before.number,
	})
}

// previous is what a promoted ReplicaSet was in the history.
type previous struct {
	// revision is the name of the ControllerRevision with its template, number the one
	// in the history of the Deployment.
	revision, number string
	// cause is its change cause; empty if there is none.
	cause string
}

func (p previous) String() string {
	return strings.TrimSpace(p.revision + " " + p.number + " " + p.cause)
}

// isPromoted reports whether a ReplicaSet has got its template here, and others are to
// be changed for that.
func (rs *replicaSet) isPromoted() bool {
	return rs.previous().revision != ""
}

// promotionFrom returns what says that a ReplicaSet is promoted. It names the
// ReplicaSet, so that a copy on another one says nothing.
func (rs *replicaSet) promotionFrom(before previous) string {
	return string(rs.UID) + " " + before.String()
}

// previous returns what a promoted ReplicaSet was before; the zero value for others. An
// annotation that names another ReplicaSet was copied, by way of the Deployment.
func (rs *replicaSet) previous() previous {
	text := rs.Annotations[native.PreviousRevisionAnnotation]
	parts := append(strings.SplitN(text, " ", 4), "", "", "")
	if parts[0] == string(rs.UID) {
		return previous{parts[1], parts[2], parts[3]}
	}
	// Releases before this one named no ReplicaSet: the number came second.
	if _, err := strconv.Atoi(parts[1]); err != nil {
		return previous{}
	}
	parts = append(strings.SplitN(text, " ", 3), "")
	return previous{parts[0], parts[1], parts[2]}
}

// settle ends the promotion of the keeper. The controller of Deployments gives it the
// next number in the history, unless the Deployment has yet another template by now,
// or keeps no other ReplicaSet.
func (w deployment) settle(ctx context.Context, r *Reconciler, s *scope) error {
	keeper, annotations := s.keeper, w.staleAnnotations(s.keeper)
	isLeft := !keeper.isOf(s.spec.template) || ptr.Deref(w.Spec.RevisionHistoryLimit, 1) == 0
	if isLeft && keeper.Annotations[revisionAnnotation] == keeper.previous().number {
		annotations[revisionAnnotation] = strconv.Itoa(s.lastNumber + 1)
	}
	return workloads.PatchMetadata(ctx, r.client, keeper.ReplicaSet, keeper.reference(), map[string]any{"annotations": annotations})
}

// truncateHistory deletes the revisions that no pod is at any more.
func (s *scope) truncateHistory(ctx context.Context, r *Reconciler) error {
	inUse := sets.New[string]()
	for _, facts := range s.pods {
		if revision := s.history.GetByHash(inplace.RevisionOf(facts.Pod)); revision != nil {
			inUse.Insert(revision.Name())
		}
	}
	return history.NewKeeper(r.client).Truncate(ctx, s.history, inUse, 0)
}
