// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// scope is what one reconciliation knows of a held workload.
type scope struct {
	workload
	engine.Round
	object  client.Object
	kind    Kind
	spec    spec
	options options

	// template is that of the spec. ahead is true where Kubernetes has not seen it yet:
	// it is looked at before it is applied.
	template *inplace.Template
	ahead    bool
	history  *history.History
	// target is what pods become; nil while Kubernetes has made no revision for it.
	target *inplace.Revision
	// revisions are those that were asked for, by what they were asked by.
	revisions map[string]*inplace.Revision
	// pods are in the order of updates, condemned those that are to go for good.
	pods      []inplace.PodFacts
	condemned []*corev1.Pod
	// keeper is the ReplicaSet of a Deployment whose pods are updated; nil if there is
	// none, and for other kinds.
	keeper *replicaSet
	// surge is the ReplicaSet of the pod that the hold of a Deployment makes beside those of
	// the keeper; nil if there is none. others are all that have pods beside the keeper.
	surge  *replicaSet
	others []*replicaSet
	// lastNumber is the last one in the history of a Deployment. isNumberTwice: another
	// ReplicaSet has that of the keeper, which was promoted and not numbered since.
	lastNumber    int
	isNumberTwice bool

	// invalid is what is not as accepted of the options.
	invalid error
	// failure is what ended the reconciliation; conflicts are none.
	failure error
	// isConcluding: all pods are updated, and the hold is about to end.
	isConcluding bool
	// ending is why the hold ends now; nil if it goes on. kept is why it does not, although
	// Kubernetes would have to recreate pods; nil if there is no such thing.
	ending *ending
	kept   *inplace.Refusal
}

// ending is the end of a hold.
type ending struct {
	// eventType, reason and note are what is told.
	eventType, reason, note string
}

func newScope(obj client.Object, kind Kind, now time.Time) *scope {
	w := workloadOf(obj)
	return &scope{
		workload: w, object: obj, kind: kind, spec: w.spec(),
		Round:     engine.Round{Owner: workloads.Owner{Object: obj, Kind: kind.groupVersionKind()}, Now: now},
		revisions: map[string]*inplace.Revision{},
	}
}

// readOptions reads the options. While one of them is not as accepted, no pod begins
// to change; those that have begun are finished, and new ones go into service.
func (s *scope) readOptions() {
	if s.options, s.invalid = parseOptions(s.object, s.kind); s.invalid != nil {
		s.options = options{policy: s.options.policy, paused: true}
	}
	s.options.paused = s.options.paused || s.spec.isPaused
}

// mustStop reports whether a workload whose options are not as accepted stays held all the
// same: its user wants no recreation, or has asked to stop, or for images first, in whatever spelling.
func (s *scope) mustStop() bool {
	annotations := s.object.GetAnnotations()
	paused, isPaused := annotations[native.PausedAnnotation]
	partition, isParted := annotations[native.PartitionAnnotation]
	pull, isPulled := annotations[native.ImagePullAnnotation]
	return s.options.policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType || s.spec.isPaused ||
		isPaused && paused != "false" || isParted && partition != "0" || isPulled && mayRequireImages(pull)
}

// readTemplate reads the template of the spec.
func (s *scope) readTemplate() error {
	template, err := inplace.NewTemplate(s.spec.template)
	if err != nil {
		return fmt.Errorf("read template of %s: %w", s.Owner, err)
	}
	s.template = template
	if s.kind == Deployment {
		s.template = template.Native()
	}
	return nil
}

// readHistory reads the revisions of the workload.
func (s *scope) readHistory(ctx context.Context, reader client.Reader) error {
	list := &appsv1.ControllerRevisionList{}
	if err := podcache.ByOwner(ctx, reader, s.object, list); err != nil {
		return err
	}
	var err error
	s.history, err = history.Read(list.Items)
	return err
}

// setTarget says what the pods become.
func (s *scope) setTarget(name string, template *inplace.Template) {
	s.target = &inplace.Revision{Name: name, Template: template}
}

// setTargetAhead says what the pods would become by a template that Kubernetes has made
// no revision for.
func (s *scope) setTargetAhead() {
	if found := s.history.Find(s.template); found != nil {
		s.setTarget(found.Name(), found.Template.Native())
		return
	}
	s.setTarget(s.object.GetName()+"-to-come", s.template.Native())
}

// revisionByName returns a revision as what pods may have been made from; nil if it
// is not in the history. It is the same for all pods.
func (s *scope) revisionByName(name string) *inplace.Revision {
	return s.revision(name, s.history.Get(name))
}

// revisionByHash is as revisionByName, for pods that name it by its hash.
func (s *scope) revisionByHash(hash string) *inplace.Revision {
	return s.revision(hash, s.history.GetByHash(hash))
}

func (s *scope) revision(name string, found *history.Revision) *inplace.Revision {
	switch {
	case name == s.target.Name:
		return s.target
	case found == nil:
		return nil
	default:
		return s.known(name, found.Template)
	}
}

// known returns a revision of a template, which is the same for all pods.
func (s *scope) known(name string, template *inplace.Template) *inplace.Revision {
	if s.revisions[name] == nil {
		s.revisions[name] = &inplace.Revision{Name: name, Template: template.Native()}
	}
	return s.revisions[name]
}

// readPods reads the pods that an owner controls, without those that have ended:
// Kubernetes replaces them.
func (s *scope) readPods(ctx context.Context, reader client.Reader, owner client.Object) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	// Pods are only read: what is written to them is a patch made from them.
	if err := podcache.ByOwner(ctx, reader, owner, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		if pod := &list.Items[i]; !inplace.HasEnded(pod) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// addPod adds what is known of a pod.
func (s *scope) addPod(ctx context.Context, r *Reconciler, pod *corev1.Pod, from *inplace.Revision, held bool) error {
	facts := inplace.PodFacts{Pod: pod, From: from, Held: held}
	if inplace.IsMarkedNotReady(pod) {
		var err error
		if facts.Services, err = podcache.ServicesTo(ctx, r.client, pod); err != nil {
			return err
		}
	}
	s.pods = append(s.pods, facts.Read(s.Now))
	return nil
}

// isReleased reports whether no hold of ours keeps Kubernetes from acting.
func (s *scope) isReleased() bool { return s.object.GetLabels()[native.HeldLabel] == "" }

// keptByCount tells which pods the option partition keeps at what they were made from.
// One that was made from the same as the target is none of them.
func (s *scope) keptByCount(pods []*corev1.Pod, from []*inplace.Revision) []bool {
	if s.options.partition == nil {
		return make([]bool, len(pods))
	}
	turns := make([]workloads.Turn, len(pods))
	for i, pod := range pods {
		turns[i] = workloads.TurnOf(pod, s.target.Name, inplace.RevisionOf(pod), s.Now)
		if from[i] != nil && from[i].Template.Equal(s.target.Template) {
			turns[i] = workloads.Updated
		}
	}
	staying := s.spec.replicas
	if s.keeper != nil {
		staying = int(ptr.Deref(s.keeper.Spec.Replicas, 1)) // scaling gives others pods, too
	}
	kept, _ := workloads.HeldByNumber(turns, 0, staying-partitionOf(*s.options.partition, s.spec.replicas))
	return kept
}

// isBack reports whether the pods of a Deployment go back to what their ReplicaSet
// has. Kubernetes takes them for updated already: it would leave those as they are
// that have gone elsewhere.
func (s *scope) isBack() bool {
	return s.keeper != nil && s.keeper.template.Equal(s.target.Template)
}

// maxUnavailable returns how many pods may be unavailable: one at least where Kubernetes
// cannot bring the pods where they are to be, and no pod more gives room for it.
func (s *scope) maxUnavailable() int {
	budget := s.spec.maxUnavailable
	if own := s.options.maxUnavailable; own != nil {
		if scaled, err := intstr.GetScaledValueFromIntOrPercent(own, s.spec.replicas, true); err == nil { // it was parsed
			budget = max(scaled, 1)
		}
	}
	if s.isBack() && !s.hasSpare() {
		return max(budget, 1)
	}
	return budget
}

// workloadFacts returns what the planner has to know.
func (s *scope) workloadFacts() inplace.Workload {
	target := workloads.TargetOf(s.options.strategy, nil, s.spec.replicas)
	target.Revision, target.Policy, target.CannotResize = *s.target, s.options.policy, s.CannotResize
	target.MustDrain = true // Kubernetes would lose no request
	facts := inplace.Workload{
		Target:               target,
		Replicas:             s.spec.replicas,
		MaxUnavailable:       s.maxUnavailable(),
		MinReadySeconds:      s.spec.minReadySeconds,
		MaxConcurrentResizes: workloads.MaxConcurrentResizes(s.options.strategy, s.spec.replicas),
		Stopped:              s.options.paused,
		WaitsFor:             s.waitsFor(),
		Ordered:              s.spec.ordered,
		Pods:                 slices.Clone(s.pods),
		Condemned:            s.condemned,
		PullerController:     s.pullerController(),
	}
	if s.kind != Deployment {
		facts.Current = s.target // a held workload makes all pods at its newest revision
	}
	facts.Unasked, facts.OthersDelete = !s.deletesFirst() && !s.isBack(), s.kind == Deployment
	return facts
}
