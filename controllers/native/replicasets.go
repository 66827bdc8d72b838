// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// replicaSet is a ReplicaSet, and its template as that of its Deployment.
type replicaSet struct {
	*appsv1.ReplicaSet
	template *inplace.Template
}

// isOf reports whether the controller of Deployments takes the ReplicaSet for that of
// a template. It looks closer than we do: {} is another security context than none.
func (rs *replicaSet) isOf(template *corev1.PodTemplateSpec) bool {
	a, b := rs.Spec.Template.DeepCopy(), template.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(a, b)
}

// replicaSets returns ReplicaSets with their templates.
func replicaSets(objects []appsv1.ReplicaSet) ([]*replicaSet, error) {
	found := make([]*replicaSet, 0, len(objects))
	for i := range objects {
		template, err := inplace.NewTemplate(objects[i].Spec.Template)
		if err != nil {
			return nil, fmt.Errorf("read template of ReplicaSet %s/%s: %w", objects[i].Namespace, objects[i].Name, err)
		}
		found = append(found, &replicaSet{ReplicaSet: &objects[i], template: template.Native()})
	}
	return found, nil
}

// readPromoted reads the ReplicaSet that is being promoted from the API server, if its
// pods were taken off meanwhile: the cache does not have its template then.
func readPromoted(ctx context.Context, live client.Reader, objects []appsv1.ReplicaSet) error {
	for i := range objects {
		rs := &replicaSet{ReplicaSet: &objects[i]}
		if !rs.isPromoted() || podcache.HasTemplate(rs.ReplicaSet) {
			continue
		}
		if err := live.Get(ctx, client.ObjectKeyFromObject(rs), rs.ReplicaSet); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
	}
	return nil
}

// liveReplicaSets returns those that have pods, or are to have some, and the one that
// is being promoted.
func liveReplicaSets(objects []appsv1.ReplicaSet) ([]*replicaSet, error) {
	live := slices.DeleteFunc(objects, func(rs appsv1.ReplicaSet) bool {
		return !isLive(&rs) && (!(&replicaSet{ReplicaSet: &rs}).isPromoted() || rs.DeletionTimestamp != nil)
	})
	return replicaSets(live)
}

// lastNumber returns the highest number that a ReplicaSet has in the history.
func lastNumber(objects []appsv1.ReplicaSet) int {
	last := 0
	for i := range objects {
		if number, err := strconv.Atoi(objects[i].Annotations[revisionAnnotation]); err == nil {
			last = max(last, number)
		}
	}
	return last
}

func isLive(rs *appsv1.ReplicaSet) bool {
	return rs.DeletionTimestamp == nil && (ptr.Deref(rs.Spec.Replicas, 1) > 0 || rs.Status.Replicas > 0)
}

// chooseKeeper returns the ReplicaSet whose pods stay: one that is being promoted, the
// one that the Deployment takes for that of its template or, if there is none, the one with the most pods. It
// is nil if none is to have pods.
func chooseKeeper(live []*replicaSet, target *corev1.PodTemplateSpec) *replicaSet {
	wanted := slices.DeleteFunc(slices.Clone(live), func(rs *replicaSet) bool {
		return ptr.Deref(rs.Spec.Replicas, 1) == 0 && !rs.isPromoted()
	})
	if len(wanted) == 0 {
		return nil
	}
	slices.SortStableFunc(wanted, func(a, b *replicaSet) int {
		return cmp.Or(
			workloads.CompareBools(b.isPromoted(), a.isPromoted()),
			compareEqual(a, b, target),
			cmp.Compare(ptr.Deref(b.Spec.Replicas, 1), ptr.Deref(a.Spec.Replicas, 1)),
			compareAge(a, b),
		)
	})
	return wanted[0]
}

// compareEqual orders those with the template first, the older one of two such.
func compareEqual(a, b *replicaSet, target *corev1.PodTemplateSpec) int {
	switch isA, isB := a.isOf(target), b.isOf(target); {
	case isA && isB:
		return compareAge(a, b)
	case isA:
		return -1
	case isB:
		return 1
	default:
		return 0
	}
}

// compareAge orders as the controller of Deployments does when it looks for the
// ReplicaSet of a template.
func compareAge(a, b *replicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// promote gives the keeper the template of the Deployment. Its number in the history
// is given by the controller of Deployments; the one that it had is kept for the
// template that it had.
func (w deployment) promote(ctx context.Context, r *Reconciler, s *scope) error {
	before := previous{
		revision: s.history.Find(s.keeper.template).Name(),
		number:   s.keeper.Annotations[revisionAnnotation], cause: s.keeper.Annotations[changeCauseAnnotation],
	}
	return patchTemplate(ctx, r.client, s.keeper.ReplicaSet, &w.Spec.Template, map[string]any{
		native.PreviousRevisionAnnotation: before.String(), changeCauseAnnotation: nil,
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
	return rs.Annotations[native.PreviousRevisionAnnotation] != ""
}

// previous returns what a promoted ReplicaSet was before; the zero value for others.
func (rs *replicaSet) previous() previous {
	parts := append(strings.SplitN(rs.Annotations[native.PreviousRevisionAnnotation], " ", 3), "", "")
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

// preserve sees to it that an empty ReplicaSet has the template that the keeper had,
// and that none that is older than the keeper has the one that it has now: the
// Deployment would take that for its own, and recreate every pod.
func (w deployment) preserve(ctx context.Context, r *Reconciler, s *scope) error {
	before := s.history.Get(s.keeper.previous().revision)
	if before == nil {
		return nil // somebody deleted it: there is nothing to preserve
	}
	empty, err := w.emptyReplicaSets(ctx, r)
	if err != nil {
		return err
	}
	empty = slices.DeleteFunc(empty, func(rs *replicaSet) bool { return rs.UID == s.keeper.UID })
	isPreserved := slices.ContainsFunc(empty, func(rs *replicaSet) bool { return rs.template.Equal(before.Template) })
	for _, twin := range empty {
		if !twin.isOf(&s.keeper.Spec.Template) || isPreserved && compareAge(twin, s.keeper) > 0 {
			continue
		}
		if err := w.giveTemplate(ctx, r, twin, s.keeper, before.Template); err != nil {
			return err
		}
		isPreserved = true
	}
	if isPreserved || ptr.Deref(w.Spec.RevisionHistoryLimit, 1) == 0 {
		return nil
	}
	return w.createEmpty(ctx, r, s.keeper, before.Template)
}

// emptyReplicaSets reads those without pods, with their templates, from the API
// server.
func (w deployment) emptyReplicaSets(ctx context.Context, r *Reconciler) ([]*replicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read spec.selector of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	list := &appsv1.ReplicaSetList{}
	if err := r.live.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ReplicaSets of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	empty := slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool {
		return isLive(&rs) || rs.DeletionTimestamp != nil || !metav1.IsControlledBy(&rs, w.Deployment)
	})
	found, err := replicaSets(empty)
	slices.SortFunc(found, compareAge)
	return found, err
}

// giveTemplate makes an empty ReplicaSet what the keeper was in the history.
func (w deployment) giveTemplate(ctx context.Context, r *Reconciler, to, keeper *replicaSet, before *inplace.Template) error {
	template, err := podTemplate(before)
	if err != nil {
		return err
	}
	annotations := replacing(to.Annotations, w.annotationsInHistory(keeper.previous()))
	return patchTemplate(ctx, r.client, to.ReplicaSet, template, annotations)
}

// podTemplate returns a template of the history as that of a ReplicaSet.
func podTemplate(template *inplace.Template) (*corev1.PodTemplateSpec, error) {
	raw, err := template.MarshalJSON()
	if err != nil {
		return nil, err
	}
	found := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, fmt.Errorf("read template of the history: %w", err)
	}
	return found, nil
}

// patchTemplate replaces the template of a ReplicaSet, but for the label by which it
// selects its pods, if it still is as it was read.
func patchTemplate(
	ctx context.Context, c client.Writer, rs *appsv1.ReplicaSet, template *corev1.PodTemplateSpec, annotations map[string]any,
) error {
	template = template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey])
	raw, err := json.Marshal(template)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	fields["$patch"] = "replace"
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": rs.UID, "resourceVersion": rs.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"template": fields},
	})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, (&replicaSet{ReplicaSet: rs}).reference(), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("write template of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return nil
}

// reference names a ReplicaSet for a write, whose answer goes into it.
func (rs *replicaSet) reference() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: rs.Namespace, Name: rs.Name}}
}

// createEmpty makes an empty ReplicaSet that is what the keeper was in the history.
func (w deployment) createEmpty(ctx context.Context, r *Reconciler, keeper *replicaSet, before *inplace.Template) error {
	template, err := podTemplate(before)
	if err != nil {
		return err
	}
	hash := hashOf(keeper)
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := w.Spec.Selector.DeepCopy()
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name + "-" + hash, Namespace: w.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     w.annotationsInHistory(keeper.previous()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Deployment, Deployment.groupVersionKind())},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0), MinReadySeconds: w.Spec.MinReadySeconds, Selector: selector, Template: *template,
		},
	}
	if err := r.client.Create(ctx, rs); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return nil
}

// hashOf names what a promoted ReplicaSet had. No other controller makes the same name
// from it.
func hashOf(keeper *replicaSet) string {
	h := fnv.New32a()
	// Writes to a hash never fail.
	_, _ = h.Write([]byte(string(keeper.UID) + " " + keeper.Annotations[native.PreviousRevisionAnnotation]))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// truncateHistory deletes the revisions that no pod is at any more.
func (s *scope) truncateHistory(ctx context.Context, r *Reconciler) error {
	inUse := sets.New[string]()
	for _, facts := range s.pods {
		if revision := s.history.GetByHash(podRevision(facts.Pod)); revision != nil {
			inUse.Insert(revision.Name())
		}
	}
	return history.NewKeeper(r.client).Truncate(ctx, s.history, inUse, 0)
}
