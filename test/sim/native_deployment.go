// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations of the controller of Deployments.
const (
	rsRevision = "deployment.kubernetes.io/revision"
	rsHistory  = "deployment.kubernetes.io/revision-history"
	rsDesired  = "deployment.kubernetes.io/desired-replicas"
	rsMax      = "deployment.kubernetes.io/max-replicas"
)

// stepDeployment is one sync of the controller of Deployments.
func (n *nativeWorkload) stepDeployment() {
	d, ok := get[*appsv1.Deployment](n.shown(), setName)
	if !ok || d.DeletionTimestamp != nil {
		return
	}
	s := &deploymentSync{n: n, d: d}
	isScaling := slices.ContainsFunc(replicaSetsIn(n.shown(), d), func(rs *appsv1.ReplicaSet) bool {
		desired, ok := rs.Annotations[rsDesired]
		return ok && *rs.Spec.Replicas > 0 && desired != strconv.Itoa(int(*d.Spec.Replicas))
	})
	switch {
	case d.Spec.Paused, isScaling:
		s.find(false)
		s.scale()
		if d.Spec.Paused {
			s.cleanUp()
		}
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		s.recreate()
	default:
		s.roll()
	}
	s.report()
}

// replicaSets returns those of the Deployment, the oldest first.
func (n *nativeWorkload) replicaSets() []*appsv1.ReplicaSet {
	owner := n.object()
	if owner == nil {
		return nil
	}
	return replicaSetsIn(n.world.server, owner)
}

func replicaSetsIn(s *server, owner client.Object) []*appsv1.ReplicaSet {
	found := slices.DeleteFunc(slices.Collect(maps.Values(all[*appsv1.ReplicaSet](s))), func(rs *appsv1.ReplicaSet) bool {
		return !metav1.IsControlledBy(rs, owner) || rs.DeletionTimestamp != nil
	})
	slices.SortFunc(found, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// deploymentSync is what one sync has found: the ReplicaSet of the template, nil if
// there is none, and the others.
type deploymentSync struct {
	n     *nativeWorkload
	d     *appsv1.Deployment
	newRS *appsv1.ReplicaSet
	old   []*appsv1.ReplicaSet
	// failed: a write was refused, since what it was made from is not what there is. The
	// sync ends.
	failed bool
}

// find finds the ReplicaSets, numbers the new one, and creates it if it may.
func (s *deploymentSync) find(create bool) {
	found := replicaSetsIn(s.n.shown(), s.d)
	for i := range found {
		found[i] = found[i].DeepCopy() // it is written to
	}
	i := slices.IndexFunc(found, func(rs *appsv1.ReplicaSet) bool { return equalButHash(&rs.Spec.Template, &s.d.Spec.Template) })
	s.newRS, s.old = nil, found
	if i >= 0 {
		s.newRS, s.old = found[i], slices.Delete(slices.Clone(found), i, i+1)
	}
	latest := 0
	for _, rs := range s.old {
		latest = max(latest, revisionNumber(rs))
	}
	switch {
	case s.newRS != nil:
		s.write(s.newRS, func(rs *appsv1.ReplicaSet) {
			s.annotate(rs, latest+1)
			rs.Spec.MinReadySeconds = s.d.Spec.MinReadySeconds
		})
	case create:
		s.create(latest + 1)
	default:
		return
	}
	if s.newRS == nil || s.failed {
		return
	}
	revision := s.newRS.Annotations[rsRevision]
	s.writeStatus(func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, rsRevision, revision) })
}

// equalButHash compares templates without the label that ReplicaSets add.
func equalButHash(a, b *corev1.PodTemplateSpec) bool {
	without := func(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
		t = t.DeepCopy()
		delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		return t
	}
	return apiequality.Semantic.DeepEqual(without(a), without(b))
}

func revisionNumber(rs *appsv1.ReplicaSet) int {
	revision, _ := strconv.Atoi(rs.Annotations[rsRevision])
	return revision
}

// annotate copies the annotations of the Deployment, and gives a new number to a
// ReplicaSet that has an older one.
func (s *deploymentSync) annotate(rs *appsv1.ReplicaSet, revision int) {
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	for key, value := range s.d.Annotations {
		if !strings.HasPrefix(key, "deployment.kubernetes.io/") && key != corev1.LastAppliedConfigAnnotation {
			rs.Annotations[key] = value
		}
	}
	before := revisionNumber(rs)
	if before >= revision {
		return
	}
	rs.Annotations[rsRevision] = strconv.Itoa(revision)
	if before > 0 {
		rs.Annotations[rsHistory] = strings.TrimPrefix(rs.Annotations[rsHistory]+","+strconv.Itoa(before), ",")
	}
}

func (s *deploymentSync) create(revision int) {
	template := s.d.Spec.Template.DeepCopy()
	hash := hashOf(template, s.n.collisions)
	name := setName + "-" + hash
	if other, ok := get[*appsv1.ReplicaSet](s.n.world.server, name); ok {
		if _, isSeen := get[*appsv1.ReplicaSet](s.n.shown(), name); isSeen && !equalButHash(&other.Spec.Template, template) {
			s.n.collisions++
		}
		s.failed = true
		return
	}
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := s.d.Spec.Selector.DeepCopy()
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), MinReadySeconds: s.d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
	*rs.Spec.Replicas = s.wanted(rs)
	s.annotate(rs, revision)
	s.number(rs)
	s.n.say("creates ReplicaSet %s at revision %d", name, revision)
	if *rs.Spec.Replicas > 0 {
		s.n.law.rolls("it creates ReplicaSet "+name, append(s.all(), rs))
	}
	_ = s.n.world.server.create(rs) // no other has the name
	s.newRS = rs
}

// hashOf names a template.
func hashOf(template *corev1.PodTemplateSpec, collisions int) string {
	raw, _ := utiljson.Marshal(template) // a template can be marshaled
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d", raw, collisions)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

func (s *deploymentSync) surge() int32 {
	if s.d.Spec.Strategy.RollingUpdate == nil {
		return 0
	}
	surge, _ := intstr.GetScaledValueFromIntOrPercent(s.d.Spec.Strategy.RollingUpdate.MaxSurge, int(*s.d.Spec.Replicas), true) // it is valid
	return int32(surge)                                                                                                        //nolint:gosec // small
}

func (s *deploymentSync) maxUnavailable() int32 {
	n, _ := intstr.GetScaledValueFromIntOrPercent(s.d.Spec.Strategy.RollingUpdate.MaxUnavailable, int(*s.d.Spec.Replicas), false) // it is valid
	if n == 0 && s.surge() == 0 {
		n = 1
	}
	return int32(n) //nolint:gosec // small
}

// number writes how many pods the Deployment is to have.
func (s *deploymentSync) number(rs *appsv1.ReplicaSet) {
	rs.Annotations[rsDesired] = strconv.Itoa(int(*s.d.Spec.Replicas))
	rs.Annotations[rsMax] = strconv.Itoa(int(*s.d.Spec.Replicas + s.surge()))
}

// all returns the ReplicaSets that there are.
func (s *deploymentSync) all() []*appsv1.ReplicaSet {
	found := slices.Clone(s.old)
	if s.newRS != nil {
		found = append(found, s.newRS)
	}
	return found
}

func sum(of []*appsv1.ReplicaSet, count func(*appsv1.ReplicaSet) int32) int32 {
	total := int32(0)
	for _, rs := range of {
		total += count(rs)
	}
	return total
}

func specReplicas(rs *appsv1.ReplicaSet) int32      { return *rs.Spec.Replicas }
func availableReplicas(rs *appsv1.ReplicaSet) int32 { return rs.Status.AvailableReplicas }

// wanted returns how many pods the new ReplicaSet is to have now.
func (s *deploymentSync) wanted(rs *appsv1.ReplicaSet) int32 {
	if s.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return *s.d.Spec.Replicas
	}
	room := *s.d.Spec.Replicas + s.surge() - sum(s.all(), specReplicas)
	if room <= 0 {
		return *rs.Spec.Replicas
	}
	return *rs.Spec.Replicas + min(room, *s.d.Spec.Replicas-*rs.Spec.Replicas)
}

// write changes a ReplicaSet, if it still is as it was seen, and what was seen with it.
func (s *deploymentSync) write(rs *appsv1.ReplicaSet, change func(*appsv1.ReplicaSet)) {
	wanted := rs.DeepCopy()
	change(wanted)
	if s.failed || apiequality.Semantic.DeepEqual(rs, wanted) {
		return
	}
	if s.failed = s.n.late.isStale(rs); s.failed {
		return
	}
	mutate(s.n.world.server, rs.Name, change)
	if now, there := get[*appsv1.ReplicaSet](s.n.world.server, rs.Name); there {
		*rs = *now.DeepCopy()
	}
}

// writeStatus changes the status of the Deployment, if that still is as it was seen.
func (s *deploymentSync) writeStatus(change func(*appsv1.Deployment)) {
	wanted := s.d.DeepCopy()
	change(wanted)
	if s.failed || apiequality.Semantic.DeepEqual(s.d, wanted) {
		return
	}
	if s.failed = s.n.late.isStale(s.d); s.failed {
		return
	}
	mutateStatus(s.n.world.server, setName, change)
	s.d, _ = get[*appsv1.Deployment](s.n.world.server, setName)
}

// resize makes a ReplicaSet have so many pods. It reports whether it had others.
func (s *deploymentSync) resize(rs *appsv1.ReplicaSet, replicas int32, why string) bool {
	before := *rs.Spec.Replicas
	s.write(rs, func(rs *appsv1.ReplicaSet) {
		*rs.Spec.Replicas = replicas
		if rs.Annotations == nil {
			rs.Annotations = map[string]string{}
		}
		s.number(rs)
	})
	if before != replicas && !s.failed {
		s.n.say("scales ReplicaSet %s from %d to %d: %s", rs.Name, before, replicas, why)
		if replicas == 0 {
			s.n.law.lost(rs)
		}
	}
	return before != replicas && !s.failed
}

// scale follows the number of replicas, and no template.
func (s *deploymentSync) scale() {
	active := slices.DeleteFunc(s.all(), func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas == 0 })
	replicas := *s.d.Spec.Replicas
	if len(active) <= 1 {
		one := s.newRS
		if len(active) == 1 {
			one = active[0]
		} else if one == nil && len(s.old) > 0 {
			one = s.old[len(s.old)-1]
		}
		if one != nil {
			s.resize(one, replicas, "the number of replicas")
		}
		return
	}
	if s.newRS != nil && *s.newRS.Spec.Replicas == replicas && s.newRS.Annotations[rsDesired] == strconv.Itoa(int(replicas)) && s.newRS.Status.AvailableReplicas == replicas {
		for _, rs := range s.old {
			if *rs.Spec.Replicas > 0 {
				s.resize(rs, 0, "the new one has all pods")
			}
		}
		return
	}
	s.scaleProportionally(active)
}

// scaleProportionally shares a change of the number among those that have pods.
func (s *deploymentSync) scaleProportionally(active []*appsv1.ReplicaSet) {
	if s.d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return
	}
	allowed := int32(0)
	if *s.d.Spec.Replicas > 0 {
		allowed = *s.d.Spec.Replicas + s.surge()
	}
	toAdd := allowed - sum(active, specReplicas)
	slices.SortStableFunc(active, func(a, b *appsv1.ReplicaSet) int {
		byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		if toAdd > 0 {
			byAge = -byAge
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), byAge)
	})
	added, sizes := int32(0), map[string]int32{}
	for _, rs := range active {
		before := float64(allowed)
		if most, err := strconv.Atoi(rs.Annotations[rsMax]); err == nil && most > 0 {
			before = float64(most)
		}
		share := int32(math.Round(float64(*rs.Spec.Replicas)*float64(allowed)/before)) - *rs.Spec.Replicas
		if toAdd > 0 {
			share = min(share, toAdd-added)
		} else {
			share = max(share, toAdd-added)
		}
		if toAdd == 0 {
			share = 0
		}
		sizes[rs.Name], added = *rs.Spec.Replicas+share, added+share
	}
	for i, rs := range active {
		if i == 0 {
			sizes[rs.Name] = max(sizes[rs.Name]+toAdd-added, 0)
		}
		s.resize(rs, sizes[rs.Name], "its share")
	}
}

// roll goes on with a rolling update.
func (s *deploymentSync) roll() {
	s.find(true)
	if s.newRS == nil || s.failed {
		return
	}
	wanted := s.wanted(s.newRS)
	if *s.newRS.Spec.Replicas > *s.d.Spec.Replicas {
		wanted = *s.d.Spec.Replicas
	}
	before := *s.newRS.Spec.Replicas
	if s.resize(s.newRS, wanted, "the new one grows") {
		s.n.law.rolls(fmt.Sprintf("ReplicaSet %s had %d pods", s.newRS.Name, before), s.all())
		return
	}
	if s.scaleOldDown() {
		return
	}
	if s.isComplete() && !s.failed {
		s.cleanUp()
	}
}

// scaleOldDown takes pods from the others, those that do not serve first.
func (s *deploymentSync) scaleOldDown() bool {
	old := sum(s.old, specReplicas)
	if old == 0 {
		return false
	}
	least := *s.d.Spec.Replicas - s.maxUnavailable()
	budget := old + *s.newRS.Spec.Replicas - least - (*s.newRS.Spec.Replicas - s.newRS.Status.AvailableReplicas)
	if budget <= 0 {
		return false
	}
	changed := false
	for _, rs := range s.old {
		if broken := min(budget, *rs.Spec.Replicas-rs.Status.AvailableReplicas); broken > 0 {
			s.n.law.shrinks(rs, "its pods do not serve")
			changed = s.resize(rs, *rs.Spec.Replicas-broken, "its pods do not serve") || changed
			budget -= broken
		}
	}
	spare := sum(s.all(), availableReplicas) - least
	for _, rs := range s.old {
		if down := min(spare, *rs.Spec.Replicas); down > 0 {
			s.n.law.shrinks(rs, "enough others serve")
			changed = s.resize(rs, *rs.Spec.Replicas-down, "enough others serve") || changed
			spare -= down
		}
	}
	return changed
}

// recreate replaces all pods at a time.
func (s *deploymentSync) recreate() {
	s.find(false)
	for _, rs := range s.old {
		if *rs.Spec.Replicas > 0 {
			s.resize(rs, 0, "all go first")
		}
	}
	for _, pod := range podsIn(s.n.shown()) {
		if s.newRS == nil || !metav1.IsControlledBy(pod, s.newRS) {
			return
		}
	}
	s.find(true)
	if s.newRS != nil {
		s.resize(s.newRS, *s.d.Spec.Replicas, "all go first")
		s.cleanUp()
	}
}

// report writes the status.
func (s *deploymentSync) report() {
	if s.failed {
		return
	}
	status := appsv1.DeploymentStatus{ObservedGeneration: s.d.Generation}
	for _, rs := range s.all() {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		if s.newRS != nil && rs.UID == s.newRS.UID {
			status.UpdatedReplicas = rs.Status.Replicas
		}
	}
	s.writeStatus(func(d *appsv1.Deployment) { d.Status = status })
}
