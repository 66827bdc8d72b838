// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// Annotations of ReplicaSets and revisions.
const (
	revisionAnnotation    = "deployment.kubernetes.io/revision"
	changeCauseAnnotation = "kubernetes.io/change-cause"
)

// Revision is one that a workload can go back to.
type Revision struct {
	// Number is its place in the history; 0 if it has none yet.
	Number int64
	// Name is that of the ControllerRevision or the ReplicaSet.
	Name        string
	Created     metav1.Time
	ChangeCause string
	// Template is the pod template, Claims the claim templates; nil if the revision says
	// nothing of claims.
	Template map[string]any
	Claims   []any
	// Pods is how many pods have it, as their labels say.
	Pods int
	// IsUpdate: it is what the workload says now. IsCurrent: it is what the pods are or
	// come from.
	IsUpdate, IsCurrent bool

	content history.Content
	// labels are the values by which pods name it, hash that of pods of its ReplicaSet.
	labels sets.Set[string]
	hash   string
}

// History is the revisions of a workload, the oldest first.
type History struct {
	Revisions []*Revision
	workload  *Workload
	selector  client.MatchingLabelsSelector
	// owners are the objects whose pods are counted.
	owners sets.Set[string]
}

// ReadHistory reads the revisions of a workload: ControllerRevisions, and ReplicaSets where
// its kind has them.
func ReadHistory(ctx context.Context, reader client.Reader, w *Workload) (*History, error) {
	h := &History{workload: w, owners: sets.New(string(w.GetUID()))}
	view, err := w.view()
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(view.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	h.selector = client.MatchingLabelsSelector{Selector: selector}
	if w.Kind.ThroughReplicaSets {
		if err := h.readReplicaSets(ctx, reader); err != nil {
			return nil, err
		}
	}
	if err := h.readControllerRevisions(ctx, reader); err != nil {
		return nil, err
	}
	present, err := view.Content()
	if err != nil {
		return nil, err
	}
	h.mark(present, view.CurrentRevision)
	return h, nil
}

// readReplicaSets reads the revisions that the controller of Deployments has numbered.
func (h *History) readReplicaSets(ctx context.Context, reader client.Reader) error {
	list := &appsv1.ReplicaSetList{}
	if err := reader.List(ctx, list, client.InNamespace(h.workload.GetNamespace()), h.selector); err != nil {
		return fmt.Errorf("list ReplicaSets: %w", err)
	}
	for i := range list.Items {
		rs := &list.Items[i]
		if !metav1.IsControlledBy(rs, h.workload) {
			continue
		}
		h.owners.Insert(string(rs.UID))
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rs.Spec.Template)
		if err != nil {
			return fmt.Errorf("read template of ReplicaSet %s: %w", rs.Name, err)
		}
		parsed, err := inplace.NewTemplate(rs.Spec.Template)
		if err != nil {
			return fmt.Errorf("read template of ReplicaSet %s: %w", rs.Name, err)
		}
		// One that cannot be read stands at the beginning.
		number, _ := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
		h.Revisions = append(h.Revisions, &Revision{
			Number: number, Name: rs.Name, Created: rs.CreationTimestamp, ChangeCause: rs.Annotations[changeCauseAnnotation],
			Template: template, content: history.Content{Template: parsed.Native()},
			labels: sets.New[string](), hash: rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
		})
	}
	slices.SortStableFunc(h.Revisions, compareNumbers)
	return nil
}

// readControllerRevisions reads those of the sets and, of a Deployment, what its pods
// are updated to in place. Of those that are the template of a ReplicaSet, too, only the
// names are of use.
func (h *History) readControllerRevisions(ctx context.Context, reader client.Reader) error {
	list := &appsv1.ControllerRevisionList{}
	if err := reader.List(ctx, list, client.InNamespace(h.workload.GetNamespace()), h.selector); err != nil {
		return fmt.Errorf("list ControllerRevisions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	replicaSets := slices.Clone(h.Revisions)
	for i := range list.Items {
		object := &list.Items[i]
		if !metav1.IsControlledBy(object, h.workload) {
			continue
		}
		revision, err := newRevision(object)
		if err != nil {
			return err
		}
		if h.workload.Kind.ThroughReplicaSets {
			revision.Number, revision.content.Template = 0, revision.content.Template.Native()
		}
		if known := newestEqual(replicaSets, revision.content); known != nil {
			known.labels = known.labels.Union(revision.labels)
			continue
		}
		h.Revisions = append(h.Revisions, revision)
	}
	return nil
}

// newRevision reads a ControllerRevision.
func newRevision(object *appsv1.ControllerRevision) (*Revision, error) {
	content, err := history.Decode(object)
	if err != nil {
		return nil, err
	}
	var data struct {
		Spec struct {
			Template map[string]any `json:"template"`
			Claims   []any          `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := utiljson.Unmarshal(object.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("read ControllerRevision %s: %w", object.Name, err)
	}
	delete(data.Spec.Template, "$patch")
	return &Revision{
		Number: object.Revision, Name: object.Name, Created: object.CreationTimestamp, ChangeCause: object.Annotations[changeCauseAnnotation],
		Template: data.Spec.Template, Claims: data.Spec.Claims, content: content,
		labels: sets.New(object.Name, object.Labels[appsv1beta1.ControllerRevisionHashLabel]).Delete(""),
	}, nil
}

// mark says which revision is the present one, and which the pods come from. What a held
// Deployment is updated to gets its number when it is released: the next one.
func (h *History) mark(present history.Content, current string) {
	if update := newestEqual(h.Revisions, present); update != nil {
		update.IsUpdate = true
		if update.Number == 0 {
			update.Number = h.lastNumber() + 1
			slices.SortStableFunc(h.Revisions, compareNumbers)
		}
	}
	for _, revision := range h.Revisions {
		revision.IsCurrent = current != "" && revision.Name == current
	}
}

// Update returns the revision that is what the workload says now; nil if its controller
// has not made it yet.
func (h *History) Update() *Revision {
	for _, revision := range h.Revisions {
		if revision.IsUpdate {
			return revision
		}
	}
	return nil
}

// CountPods counts the pods of each revision.
func (h *History) CountPods(ctx context.Context, reader client.Reader) error {
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(h.workload.GetNamespace()), h.selector); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !h.owners.Has(string(owner.UID)) || pod.DeletionTimestamp != nil || inplace.HasEnded(pod) {
			continue
		}
		if revision := h.revisionOf(pod); revision != nil {
			revision.Pods++
		}
	}
	if !slices.ContainsFunc(h.Revisions, func(r *Revision) bool { return r.IsCurrent }) {
		if most := h.mostPods(); most != nil {
			most.IsCurrent = true
		} else if update := h.Update(); update != nil {
			update.IsCurrent = true
		}
	}
	return nil
}

// revisionOf returns the revision that a pod has; nil if it is not in the history.
func (h *History) revisionOf(pod *corev1.Pod) *Revision {
	name, hash := pod.Labels[appsv1beta1.ControllerRevisionHashLabel], pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	i := slices.IndexFunc(h.Revisions, func(r *Revision) bool {
		if name != "" {
			return r.labels.Has(name)
		}
		return hash != "" && r.hash == hash
	})
	if i < 0 {
		return nil
	}
	return h.Revisions[i]
}

// mostPods returns the revision, other than the present one, that most pods have; of two
// the newer one. It is nil if no pod has another one.
func (h *History) mostPods() *Revision {
	var most *Revision
	for _, revision := range h.Revisions {
		if !revision.IsUpdate && revision.Pods > 0 && (most == nil || revision.Pods >= most.Pods) {
			most = revision
		}
	}
	return most
}

func (h *History) lastNumber() int64 {
	last := int64(0)
	for _, revision := range h.Revisions {
		last = max(last, revision.Number)
	}
	return last
}

// compareNumbers puts what has no number yet last.
func compareNumbers(a, b *Revision) int {
	switch {
	case a.Number == 0 && b.Number != 0:
		return 1
	case b.Number == 0 && a.Number != 0:
		return -1
	default:
		return cmp.Compare(a.Number, b.Number)
	}
}

// newestEqual returns the newest of the revisions with that content; nil if there is none.
func newestEqual(revisions []*Revision, content history.Content) *Revision {
	for _, revision := range slices.Backward(revisions) {
		if revision.content.Equal(content) {
			return revision
		}
	}
	return nil
}
