// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of claims.

// claimTemplates returns the templates of claims as they were shown, by name.
func (l *law) claimTemplates() map[string]*corev1.PersistentVolumeClaim {
	return byName(l.seenSet.Spec.VolumeClaimTemplates)
}

func byName(templates []corev1.PersistentVolumeClaim) map[string]*corev1.PersistentVolumeClaim {
	found := map[string]*corev1.PersistentVolumeClaim{}
	for i := range templates {
		found[templates[i].Name] = &templates[i]
	}
	return found
}

// splitClaim returns the template and the pod of a claim by its name.
func splitClaim(claim string) (template, pod string) {
	template, pod, _ = strings.Cut(claim, "-")
	return template, pod
}

// attributesOf returns the class of attributes that a claim is to have.
func attributesOf(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

// checkClaimChange asserts what a change of a claim's spec could break.
func (l *law) checkClaimChange(w write) {
	before, was := w.before.(*corev1.PersistentVolumeClaim)
	after, is := get[*corev1.PersistentVolumeClaim](l.world.server, w.obj.GetName())
	if !was || !is || l.seenSet == nil || l.world.storage == nil || apiequality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return
	}
	name, pod := splitClaim(after.Name)
	template := l.claimTemplates()[name]
	if template == nil || before.DeletionTimestamp != nil {
		l.world.violate("%s, which no template asks for", w.words)
		return
	}
	delete(l.refusedSizes, after.UID)
	l.checkSize(w, before, after, template)
	if attributes := attributesOf(after); attributes != attributesOf(before) && attributes != attributesOf(template) {
		l.world.violate("%s gives it class %q, the template says %q", w.words, attributes, attributesOf(template))
	}
	l.checkMayChangeClaims(w, pod)
	l.checkConcurrentClaims(w, pod)
}

// checkSize asserts that a request follows the template, and never falls to what the
// volume has, or below.
func (l *law) checkSize(w write, before, after, template *corev1.PersistentVolumeClaim) {
	size, old, capacity := requestOf(after), requestOf(before), capacityOf(before)
	wanted := requestOf(template)
	if compare(size, old) == 0 {
		return
	}
	if compare(size, wanted) != 0 {
		l.world.violate("%s makes its request %s, the template says %s", w.words, size.String(), wanted.String())
	}
	if compare(size, old) < 0 && compare(size, capacity) <= 0 {
		l.world.violate("%s lowers its request to %s, the volume has %s", w.words, size.String(), capacity.String())
	}
	shown := l.seenClaims[after.Name]
	if has := capacity; shown != nil && shown.UID == before.UID {
		has = capacityOf(shown)
		if compare(has, wanted) >= 0 {
			l.world.violate("%s changes its request, though the volume has %s of %s", w.words, has.String(), wanted.String())
		}
	}
}

// checkMayChangeClaims asserts that the claims of a pod may be changed now.
func (l *law) checkMayChangeClaims(w write, pod string) {
	set := l.seenSet
	if strategy := l.claimStrategy(); !followsTemplates(strategy) {
		l.world.violate("%s under strategy %q", w.words, strategy.Type)
	}
	if rests(set) {
		l.world.violate("%s while nothing is to be updated", w.words)
	}
	switch {
	case l.seenClones != nil, l.world.settings.unordered:
	case !slices.Contains(l.world.names(set), pod):
		l.world.violate("%s of a pod that is not wanted", w.words)
	case l.isHeld(pod, set):
		l.world.violate("invariant 2: %s of a pod that the partition keeps", w.words)
	}
}

// claimStrategy returns the strategy of claims as it was shown.
func (l *law) claimStrategy() appsv1beta1.VolumeClaimUpdateStrategy {
	return l.seenSet.Spec.VolumeClaimUpdateStrategy
}

// recordOf returns what the operator noted on a claim.
func recordOf(claim *corev1.PersistentVolumeClaim) appsv1beta1.VolumeClaimUpdateState {
	record := appsv1beta1.VolumeClaimUpdateState{}
	_ = json.Unmarshal([]byte(claim.Annotations[appsv1beta1.VolumeClaimUpdateStateKey]), &record) // none is an empty one
	return record
}

// askedAt returns when the operator asked for what a claim is to be; zero if it did
// not.
func askedAt(claim, template *corev1.PersistentVolumeClaim) time.Time {
	record, asked := recordOf(claim), time.Time{}
	if record.Size != nil && compare(*record.Size, requestOf(claim)) == 0 && compare(capacityOf(claim), requestOf(template)) < 0 {
		asked = record.SizeTimestamp.Time
	}
	if attributes := attributesOf(template); attributes != "" && record.AttributesClass == attributes && record.AttributesClassTimestamp.After(asked) &&
		ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") != attributes {
		asked = record.AttributesClassTimestamp.Time
	}
	return asked
}

// Times after which a claim that shows nothing counts as blocked, and after which
// a node that was to grow a volume needs another start of its pod.
const (
	overdueAfter = 10 * time.Minute
	remountAfter = 3 * time.Minute
)

// isDone reports whether a claim is as its template says, as far as it can be.
func isDone(claim, template *corev1.PersistentVolumeClaim) bool {
	attributes := attributesOf(template)
	return compare(capacityOf(claim), requestOf(template)) >= 0 &&
		(attributes == "" || ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") == attributes && attributesOf(claim) == attributes)
}

// errorOf returns what a claim shows of an error; empty for none.
func errorOf(claim *corev1.PersistentVolumeClaim) string {
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError, corev1.PersistentVolumeClaimVolumeModifyVolumeError,
	} {
		if c := claimCondition(claim, kind); c != nil {
			return string(kind) + " " + c.Message
		}
	}
	if status := claim.Status.ModifyVolumeStatus; status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumePending {
		return "no such class of attributes"
	}
	return ""
}

// failsToGrow reports whether a claim shows an error of its growth. That of the controller
// lingers when it has succeeded after all, and the node is to go on.
func failsToGrow(claim *corev1.PersistentVolumeClaim) bool {
	return claimCondition(claim, corev1.PersistentVolumeClaimControllerResizeError) != nil && !isForNode(claim) ||
		claimCondition(claim, corev1.PersistentVolumeClaimNodeResizeError) != nil
}

// checkConcurrentClaims asserts that no more pods have claims that change by our act
// than maxConcurrent. What is not shown does not count, nor what shows an error, nor the
// pods that are sent away, nor broken pods, which do not wait.
func (l *law) checkConcurrentClaims(w write, pod string) {
	if l.isShownStuck(pod) || l.isShownUnderWay(pod) {
		return
	}
	shown, there := l.seenClaims["data-"+pod]
	if l.isAway(pod) || there && recordOf(shown).DetachTimestamp != nil {
		return // how many may be away is said by maxUnavailable
	}
	pods := map[string]bool{pod: true}
	for _, name := range slices.Sorted(maps.Keys(l.seenClaims)) {
		shown := l.seenClaims[name]
		truth, there := get[*corev1.PersistentVolumeClaim](l.world.server, name)
		template, of := splitClaim(name)
		if !there || truth.UID != shown.UID || l.isShownStuck(of) || !l.isMember(of) && (!l.isAway(of) || recordOf(shown).DetachTimestamp == nil) || l.seenClones == nil && l.isHeld(of, l.seenSet) {
			continue
		}
		if t := l.claimTemplates()[template]; t != nil && l.isUnderWay(shown, t) && l.isUnderWay(truth, t) {
			pods[of] = true
		}
	}
	if limit := atATime(l.claimStrategy().MaxConcurrent, replicasOf(l.seenSet)); len(pods) > limit {
		l.world.violate("%s: the claims of %v are changing, maxConcurrent is %d", w.words, slices.Sorted(maps.Keys(pods)), limit)
	}
}

// isShownUnderWay reports whether a pod was shown with claims that change, whatever errors
// of before they show. What is changed besides makes it no pod more, though another one was
// begun while its growth had failed, and though its template asks for less by now.
func (l *law) isShownUnderWay(pod string) bool {
	for name, template := range l.claimTemplates() {
		shown := l.seenClaims[name+"-"+pod]
		if shown == nil {
			continue
		}
		record := recordOf(shown)
		grows := record.Size != nil && compare(*record.Size, requestOf(shown)) == 0 && compare(capacityOf(shown), requestOf(shown)) < 0
		isRecent := l.world.clock.Now().Before(record.SizeTimestamp.Add(overdueAfter))
		if l.isUnderWay(shown, template) || grows && isRecent && !failsToGrow(shown) {
			return true
		}
	}
	return false
}

// isShownStuck reports whether a pod shows a container that cannot be started.
func (l *law) isShownStuck(pod string) bool {
	shown := l.seen[pod]
	return shown != nil && (shown.Status.Phase == corev1.PodFailed || slices.ContainsFunc(slices.Concat(shown.Status.InitContainerStatuses, shown.Status.ContainerStatuses), isStuck))
}

// isAway reports whether a wanted pod is not there, or on its way out.
func (l *law) isAway(pod string) bool {
	shown := l.seen[pod]
	return slices.Contains(l.world.names(l.seenSet), pod) && (shown == nil || shown.DeletionTimestamp != nil)
}

// isKeptAway reports whether the pod of a claim is away for it, so that pods are
// missing.
func (l *law) isKeptAway(set *appsv1beta1.StatefulSet) bool {
	ready := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady)
	return l.world.storage != nil && ready != nil && ready.Reason == appsv1beta1.ReasonScaling
}

// isMember reports whether a pod counts as one of the set, as it was shown.
func (l *law) isMember(pod string) bool {
	shown := l.seen[pod]
	if l.seenClones != nil {
		shown = l.members()[pod]
	}
	return shown != nil && shown.Status.Phase != corev1.PodFailed && (l.seenClones != nil || slices.Contains(l.world.names(l.seenSet), pod))
}

// isUnderWay reports whether a claim changes as the operator asked, and nothing is
// wrong with that.
func (l *law) isUnderWay(claim, template *corev1.PersistentVolumeClaim) bool {
	asked := askedAt(claim, template)
	if _, pod := splitClaim(claim.Name); l.needsDetach(claim, template) && !l.isAway(pod) {
		return false // it waits for its pod to be sent away
	}
	return !asked.IsZero() && l.world.clock.Now().Before(asked.Add(overdueAfter)) && claim.DeletionTimestamp == nil && errorOf(claim) == "" &&
		compare(requestOf(claim), requestOf(template)) == 0 && !isDone(claim, template)
}

// checkClaimsFirst asserts that a pod is given another revision when its claims are
// done, or cannot be.
func (l *law) checkClaimsFirst(w write) {
	before, after, ok := l.podsOf(w)
	if !ok || l.world.storage == nil || l.seenSet == nil || revisionOf(before) == revisionOf(after) || !isUpdate(before, after) || l.isBroken(before) {
		return
	}
	if strategy := l.claimStrategy(); !followsTemplates(strategy) {
		return
	}
	for name, template := range l.claimTemplates() {
		claim := l.seenClaims[name+"-"+after.Name]
		if claim == nil || !slices.Contains(claimsOf(after), claim.Name) || isDone(claim, template) || !l.isWaitedFor(claim, template) {
			continue
		}
		// What keeps the claim from its template may have been found a moment ago.
		if live, there := get[*corev1.PersistentVolumeClaim](l.world.server, claim.Name); there && l.whyNot(claim, template) == "" && l.whyNot(live, template) == "" {
			l.world.violate("%s changes the pod, and claim %s is not done: %s", w.words, claim.Name, describeClaim(claim))
		}
	}
}

// isWaitedFor reports whether a pod waits for the growth of a claim. Another client asked
// for one beyond the template; one that was refused when this reconciliation began is tried
// beside the update of the pod.
func (l *law) isWaitedFor(claim, template *corev1.PersistentVolumeClaim) bool {
	size := requestOf(template)
	return compare(requestOf(claim), size) <= 0 && l.refusedBefore[claim.UID] != size.String()
}

// noteRefusedSize notes that the server refuses what a claim is to be.
func (l *law) noteRefusedSize(w write, err error) {
	claim, is := get[*corev1.PersistentVolumeClaim](l.world.server, w.obj.GetName())
	if !is || l.seenSet == nil || !w.isAbout("patch PersistentVolumeClaim") || !apierrors.IsForbidden(err) {
		return
	}
	name, _ := splitClaim(claim.Name)
	if template := l.claimTemplates()[name]; template != nil {
		size := requestOf(template)
		l.refusedSizes[claim.UID] = size.String()
	}
}

// isSizeRefused reports whether the server refuses all growth, or has refused to this
// manager the size that a claim is to have.
func (l *law) isSizeRefused(claim, template *corev1.PersistentVolumeClaim) bool {
	size := requestOf(template)
	return l.world.storage.refuse != nil || l.refusedSizes[claim.UID] == size.String()
}

// isBroken reports whether a pod does not serve as it is: it waits for nothing.
func (l *law) isBroken(pod *corev1.Pod) bool {
	return !l.looksAvailable(l.seen[pod.Name], l.seenSet) || !l.world.isAvailable(pod)
}

// whyNot says why a claim is not as its template says, and does not have to be
// waited for; empty if it has to be.
func (l *law) whyNot(claim, template *corev1.PersistentVolumeClaim) string {
	class, exists := get[*storagev1.StorageClass](l.world.server, ptr.Deref(claim.Spec.StorageClassName, ""))
	grows := compare(requestOf(claim), requestOf(template)) < 0
	asked := askedAt(claim, template)
	switch {
	case claim.DeletionTimestamp != nil, claim.Status.Phase != corev1.ClaimBound:
		return "it has no volume"
	case claim.Annotations[appsv1beta1.UndoRecreateAnnotation] != "" && l.world.refusesUndo(claim):
		return "it cannot have that volume back"
	case differs(claim, template):
		return l.whyNotRecreated(claim, template)
	case grows && (!exists || !ptr.Deref(class.AllowVolumeExpansion, false)):
		return "its class allows no expansion"
	case grows && l.isSizeRefused(claim, template):
		return "the server refuses it"
	case errorOf(claim) != "":
		return errorOf(claim)
	case attributesOf(template) != "" && attributesOf(template) != attributesOf(claim) && l.world.server.objects[objectKey{"VolumeAttributesClass", attributesOf(template)}] == nil:
		return "there is no such class of attributes"
	case l.needsDetach(claim, template) && l.keepsPods():
		return "its pod is not to be recreated"
	case !asked.IsZero() && !l.world.clock.Now().Before(asked.Add(overdueAfter)):
		return "it takes too long"
	default:
		return ""
	}
}

// keepsPods reports whether no pod is recreated for the sake of a claim.
func (l *law) keepsPods() bool {
	rolling := l.seenSet.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && rolling.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType || l.world.settings.clones.is() && !l.world.settings.clones.reuse
}

// checkKeptWithClaims asserts that no pod is recreated for claims that can change
// with the pod in service.
func (l *law) checkKeptWithClaims(w write) {
	pod, ok := w.before.(*corev1.Pod)
	if !ok || l.world.storage == nil || l.seenSet == nil || l.isOnItsWay(pod) || l.isBroken(pod) || l.hasLostRevision(pod) || !slices.Contains(l.world.names(l.seenSet), pod.Name) {
		return
	}
	own, target := l.templateOf(revisionOf(pod)), l.seenSet.Spec.Template
	if own == nil || !apiequality.Semantic.DeepEqual(own.Spec, target.Spec) || !maps.Equal(own.Labels, target.Labels) || !maps.Equal(own.Annotations, target.Annotations) {
		return
	}
	var wanted []string
	for name := range l.claimTemplates() {
		wanted = append(wanted, name+"-"+pod.Name)
	}
	slices.Sort(wanted)
	if has := claimsOf(pod); !slices.Equal(slices.Sorted(slices.Values(has)), wanted) {
		return // templates were added or removed
	}
	for name, template := range l.claimTemplates() {
		if claim := l.seenClaims[name+"-"+pod.Name]; claim != nil && (l.needsDetach(claim, template) || l.mayStopFor(claim, template)) {
			return
		}
	}
	l.world.violate("%s for claims that change in service", w.words)
}

// isOnItsWay reports whether a pod goes for another reason than its update.
func (l *law) isOnItsWay(pod *corev1.Pod) bool {
	_, asked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	return asked || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || l.seenClones != nil && (l.isAsked(pod) || len(l.members()) > promiseOf(l.seenClones).replicas)
}

// needsDetach reports whether a volume that is to grow does so only when no pod has
// it, or when a pod mounts it.
func (l *law) needsDetach(claim, template *corev1.PersistentVolumeClaim) bool {
	if compare(capacityOf(claim), requestOf(template)) >= 0 {
		return false
	}
	d, pending := l.world.storage.driverOf(claim), claimCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending)
	return d.offline || d.remount ||
		isForNode(claim) && pending != nil && l.world.clock.Now().Sub(pending.LastTransitionTime.Time) >= remountAfter
}

// reportedAtMost is how many blockers a status has room for, as its schema says. Those
// of two claims of six pods do not all fit.
const reportedAtMost = 10

// whatClaimsLack says what is not so at rest about claims: each is as its template
// says, or cannot be, and then the status names it. It returns the pods with claims
// that cannot be.
func (l *law) whatClaimsLack(set *appsv1beta1.StatefulSet) (missing, blocked []string) {
	w := l.world
	if strategy := w.claimStrategy(); w.storage == nil || !followsTemplates(strategy) {
		return l.whatIsLeftOver(set), nil
	}
	missing = l.whatIsLeftOver(set)
	for _, pod := range w.names(set) {
		for _, template := range w.settings.volumes.templates(w.claims) {
			claim, ok := get[*corev1.PersistentVolumeClaim](w.server, template.Name+"-"+pod)
			switch {
			case !ok:
				missing = append(missing, fmt.Sprintf("%s has no claim %s", pod, template.Name))
			case claim.DeletionTimestamp != nil: // a pod has it, and a user wants it to go
			case isDone(claim, &template) && !differs(claim, &template) && claim.Annotations[appsv1beta1.UndoRecreateAnnotation] == "":
			case !w.isHopeless(claim, &template):
				missing = append(missing, fmt.Sprintf("claim %s is not done: %s", claim.Name, describeClaim(claim)))
			default:
				if !slices.Contains(blocked, pod) {
					blocked = append(blocked, pod)
				}
				isTold := slices.ContainsFunc(set.Status.Blockers, func(b appsv1beta1.Blocker) bool { return b.Pod == pod && strings.Contains(b.Message, claim.Name) })
				if !isTold && len(set.Status.Blockers) < reportedAtMost {
					missing = append(missing, fmt.Sprintf("nothing tells why claim %s is not done: %s", claim.Name, describeClaim(claim)))
				}
			}
		}
	}
	for _, b := range set.Status.Blockers {
		if !slices.Contains(blocked, b.Pod) {
			missing = append(missing, fmt.Sprintf("%s does not wait for anything: %+v", b.Pod, b))
		}
	}
	return missing, blocked
}

// isAskedByOthers reports whether another client has asked for more than the template.
func isAskedByOthers(claim, template *corev1.PersistentVolumeClaim) bool {
	size := recordOf(claim).Size
	return compare(requestOf(claim), requestOf(template)) > 0 && (size == nil || compare(*size, requestOf(claim)) != 0)
}

// isHopeless reports whether a claim cannot become what its template says.
func (w *World) isHopeless(claim, template *corev1.PersistentVolumeClaim) bool { //nolint:gocyclo // a list of reasons, one line each
	d := w.storage.driverOf(claim)
	class, _ := get[*storagev1.StorageClass](w.server, ptr.Deref(claim.Spec.StorageClassName, ""))
	wanted, attributes := requestOf(template), attributesOf(template)
	grows := compare(capacityOf(claim), wanted) < 0
	changes := attributes != "" && ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") != attributes
	away := w.settings.clones.is() && !w.settings.clones.reuse
	switch {
	case w.hands.made[claim.UID] == controlled:
		return true // a user made it for another controller
	case claim.Annotations[appsv1beta1.UndoRecreateAnnotation] != "":
		return w.refusesUndo(claim)
	case differs(claim, template):
		return w.claimStrategy().Type != appsv1beta1.RecreateVolumeClaimUpdateStrategyType || w.refusesRecreation(claim, template) != "" || w.hasFailed(template)
	case grows && compare(requestOf(claim), wanted) < 0 && (class == nil || !ptr.Deref(class.AllowVolumeExpansion, false) || w.storage.refuse != nil):
		return true
	case grows && (d.code != "" && d.failures == forever || (d.offline || d.remount) && away):
		return true
	case grows && (d.offline || d.remount) && recordOf(claim).DetachTimestamp != nil:
		return true // its pod was sent away once, and something came between
	case grows && (d.offline || d.remount) && isAskedByOthers(claim, template):
		return true // docs/volumes.md: no pod is deleted for what another client asked for
	case grows && compare(requestOf(claim), wanted) == 0 && w.storage.volumes[claim.UID].isTrapped(claim):
		return true
	case grows && d.limit != "" && compare(wanted, resource.MustParse(d.limit)) > 0:
		return true
	case changes && (w.server.objects[objectKey{"VolumeAttributesClass", attributes}] == nil || attributeClasses[attributes].failures == forever):
		return true
	default:
		return false
	}
}
