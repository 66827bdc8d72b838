// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// A try begins at least so long after the one before on its node: twice as long each time.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// refusalPeriod is when the API server is asked again for a pod that it refused, or for any when
	// it has refused enoughRefusals in a row. When it has taken none for refusalEnd, nodes fail for
	// which it refuses one.
	refusalPeriod  = 30 * time.Second
	refusalEnd     = 10 * time.Minute
	enoughRefusals = 3
	// Nodes of a job that is never complete pull again after roundPeriod: kubelets delete images
	// that nothing uses, and tags move. Those that have failed do so after failurePeriod.
	roundPeriod   = 24 * time.Hour
	failurePeriod = 10 * time.Minute
)

// target is a node that is to have the image.
type target struct {
	name    string
	isReady bool
	os      corev1.OSName
}

// attempt is a pod that is to be made: the try of that number on its node, which takes the place
// of the one before.
type attempt struct {
	target
	number int
	before *corev1.Pod
}

// failure is a node that cannot pull the image, and why.
type failure struct{ node, words string }

// progress is how far a job is, and what comes next.
type progress struct {
	job  *appsv1beta1.ImagePullJob
	know *memory
	now  time.Time

	desired int
	// areUnknown: the spec does not tell which nodes are meant.
	areUnknown bool
	// pulling is how many pods pull; active counts the nodes between two tries, too.
	pulling, active int
	// succeeded and failed are nodes. Of those that the status does not have, pulls are how long
	// the pods took that have pulled, and failures what the others say.
	succeeded, failed []string
	pulls             []time.Duration
	failures          []failure
	// due are the pods to make now, those of nodes that try again first. isRefused: the API server
	// has refused some.
	due       []attempt
	isRefused bool
	// isNewRound: all nodes begin to pull now.
	isNewRound bool
	// obsolete are pods that are not needed once the status is written.
	obsolete []*corev1.Pod
	// again is when to look again, if nothing is heard of the pods; zero if there is no such time.
	again time.Time
}

// isDone reports whether each node has succeeded or failed.
func (p *progress) isDone() bool {
	return !p.areUnknown && p.desired == len(p.succeeded)+len(p.failed)
}

// within notes a time at which to look again.
func (p *progress) within(at time.Time) {
	if p.again.IsZero() || at.Before(p.again) {
		p.again = at
	}
}

// observe finds out how far a job is on its nodes, whose order is that in which they begin.
func observe(job *appsv1beta1.ImagePullJob, know *memory, targets []target, pods []*corev1.Pod, now time.Time) progress {
	seen := progress{job: job, know: know, now: now, desired: len(targets)}
	know.about(pullOn(job, "").Key())
	succeeded, failed := seen.known()
	var waiting []attempt
	onNode := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		onNode[pod.Spec.NodeName] = append(onNode[pod.Spec.NodeName], pod)
	}
	for _, node := range targets {
		name := node.name
		tried, obsolete := triesOf(job, node, onNode[name])
		delete(onNode, name)
		seen.obsolete = append(seen.obsolete, obsolete...)
		isPulled := tried.before != nil && stateOf(tried.before) == inplace.Pulled
		isOver := isPulled || succeeded.Has(name) || failed.Has(name)
		if isOver && tried.before != nil {
			seen.obsolete = append(seen.obsolete, tried.before)
		}
		if isPulled && !succeeded.Has(name) {
			seen.pulls = append(seen.pulls, now.Sub(tried.before.CreationTimestamp.Time))
		}
		switch {
		case isPulled, succeeded.Has(name):
			seen.succeeded = append(seen.succeeded, name)
		case failed.Has(name):
			seen.failed = append(seen.failed, name)
		case tried.before != nil:
			seen.follow(tried)
		case know.tries[name].number > 0:
			last := know.tries[name]
			tried.number = last.number + 1
			seen.retry(tried, last.at, "its pod was deleted")
		case node.isReady || !job.Spec.CompletionPolicy.IsEndless():
			waiting = append(waiting, tried)
		}
	}
	for _, left := range onNode {
		seen.obsolete = append(seen.obsolete, left...)
	}
	know.keep(targets, succeeded)
	seen.begin(waiting)
	slices.Sort(seen.succeeded)
	slices.Sort(seen.failed)
	return seen
}

func stateOf(pod *corev1.Pod) inplace.PullState {
	state, _ := inplace.PullStateOf(pod)
	return state
}

// known returns the nodes that have succeeded and failed to do what the spec of a job says, and are
// not to do it again yet.
func (p *progress) known() (succeeded, failed sets.Set[string]) {
	status := &p.job.Status
	isEndless := p.job.Spec.CompletionPolicy.IsEndless()
	hasEnded := status.Desired == status.Succeeded+status.Failed
	if status.Image != p.job.Spec.Image || isEndless && hasEnded && p.isOver(roundOf(status), roundPeriod) {
		p.isNewRound = true
		clear(p.know.tries)
		return nil, nil
	}
	succeeded, failed = sets.New(status.SucceededNodes...), sets.New(status.FailedNodes...)
	canTryAgain := status.ObservedGeneration != p.job.Generation ||
		isEndless && failed.Len() > 0 && status.RetryTime != nil && p.isOver(status.RetryTime.Time, 0)
	if canTryAgain {
		for node := range failed {
			delete(p.know.tries, node)
		}
		failed = nil
	}
	return succeeded, failed
}

// roundOf returns when the nodes of a job began to pull, the last time that all were to; zero if
// they have not.
func roundOf(status *appsv1beta1.ImagePullJobStatus) time.Time {
	if status.RoundTime == nil {
		return time.Time{}
	}
	return status.RoundTime.Time
}

// isOver reports whether a period is over, and otherwise notes when it is.
func (p *progress) isOver(began time.Time, period time.Duration) bool {
	end := began.Add(period)
	if !p.now.Before(end) {
		return true
	}
	p.within(end)
	return false
}

// pullOn returns the pull of a job on a node.
func pullOn(job *appsv1beta1.ImagePullJob, node string) inplace.Pull {
	return inplace.Pull{Node: node, Images: []inplace.Image{{Name: job.Spec.Image, PullPolicy: job.Spec.GetImagePullPolicy()}}}
}

// triesOf returns the next try of a node, with the pod of the one before it, and the other pods.
func triesOf(job *appsv1beta1.ImagePullJob, node target, pods []*corev1.Pod) (attempt, []*corev1.Pod) {
	next := attempt{target: node, number: 1}
	if len(pods) == 0 {
		return next, nil
	}
	prefix := pullOn(job, node.name).PullerName(job) + "-"
	var obsolete []*corev1.Pod
	for _, pod := range pods {
		number, err := strconv.Atoi(strings.TrimPrefix(pod.Name, prefix))
		if err != nil || number < next.number {
			obsolete = append(obsolete, pod)
			continue
		}
		if next.before != nil {
			obsolete = append(obsolete, next.before)
		}
		next.before, next.number = pod, number+1
	}
	return next, obsolete
}

// follow notes how far a node is whose last try is a pod that has not pulled.
func (p *progress) follow(next attempt) {
	pod, timeout := next.before, p.job.Spec.GetTimeout()
	began := pod.CreationTimestamp.Time
	state, words := inplace.PullStateOf(pod)
	switch ends := began.Add(timeout); {
	case pod.DeletionTimestamp != nil:
		p.retry(next, began, "its pod was deleted")
	case state == inplace.PullFailed, state == inplace.PullRejected:
		p.retry(next, began, words)
	case p.now.Before(ends):
		p.pulling++
		p.active++
		p.within(ends)
	case state == inplace.PullUnderWay:
		p.retry(next, began, fmt.Sprintf("the kubelet still pulls after %s", timeout))
	default: // another pod would not be answered either
		p.fail(next, fmt.Sprintf("no kubelet has answered for %s", timeout))
	}
}

// retry has a node try again some time after its last try began, or lets it fail if that was the
// last one.
func (p *progress) retry(next attempt, began time.Time, words string) {
	if next.number > p.job.Spec.GetBackoffLimit() {
		p.fail(next, words)
		return
	}
	p.active++
	if p.isOver(began, min(firstPause<<min(next.number-1, 5), lastPause)) && p.mayAsk(next) {
		p.due = append(p.due, next)
	}
}

// mayAsk reports whether the API server is asked for a pod now: some time after it has refused that
// one, or several.
func (p *progress) mayAsk(next attempt) bool {
	refused := p.know.tries[next.name].refused
	p.isRefused = p.isRefused || !refused.IsZero()
	return p.isOver(refused, refusalPeriod) && p.isOver(p.know.quiet, 0)
}

func (p *progress) fail(last attempt, words string) {
	p.failed = append(p.failed, last.name)
	p.failures = append(p.failures, failure{last.name, words})
	if last.before != nil {
		p.obsolete = append(p.obsolete, last.before)
	}
}

// begin lets as many of the nodes that wait begin as may pull: those first that the API server has
// not refused, or not for the longest time.
func (p *progress) begin(waiting []attempt) {
	room := max(p.job.Spec.GetParallelism()-p.active, 0)
	slices.SortStableFunc(waiting, func(a, b attempt) int {
		return p.know.tries[a.name].refused.Compare(p.know.tries[b.name].refused)
	})
	for _, next := range waiting {
		if p.mayAsk(next) && room > 0 {
			p.due = append(p.due, next)
			room--
		}
	}
}

// failRefused lets a node fail for which no pod is accepted.
func (p *progress) failRefused(next attempt, words string) {
	if next.number > 1 {
		p.active-- // it was between two tries
	}
	p.fail(next, words)
	slices.Sort(p.failed)
}

// giveUp lets all nodes fail that have not succeeded.
func (p *progress) giveUp(targets []target, words string) {
	succeeded, failed := sets.New(p.succeeded...), sets.New(p.failed...)
	p.due, p.active = nil, 0
	for _, node := range targets {
		if !succeeded.Has(node.name) && !failed.Has(node.name) {
			p.failed = append(p.failed, node.name)
			p.failures = append(p.failures, failure{node.name, words})
		}
	}
	slices.Sort(p.failed)
}

// inWords says how far the job is, in OpenKruise's words.
func (p *progress) inWords() string {
	if p.desired == 0 {
		return "job is running, no progress"
	}
	return fmt.Sprintf("job is running, progress %.1f%%", 100*float64(len(p.succeeded)+len(p.failed))/float64(p.desired))
}

// isLate reports whether the time of a job is over that is not done, and lets the nodes fail then
// that have not succeeded.
func (p *progress) isLate(targets []target) bool {
	deadline := p.job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if deadline == nil || p.isDone() {
		return false
	}
	start := ptr.Deref(p.job.Status.StartTime, metav1.NewTime(p.now))
	if !p.isOver(start.Time, time.Duration(*deadline)*time.Second) {
		return false
	}
	p.giveUp(targets, "not done at activeDeadlineSeconds")
	return true
}

// ending returns what the status says of a job that is complete; it is empty if the job is not.
func (p *progress) ending(isLate bool) string {
	switch {
	case isLate:
		return deadlineMessage
	case p.isDone() && !p.job.Spec.CompletionPolicy.IsEndless():
		return completedMessage
	default:
		return ""
	}
}

// describe writes into a status how far a job is.
func (p *progress) describe(status *appsv1beta1.ImagePullJobStatus, end, note string) {
	now := metav1.NewTime(p.now)
	status.ObservedGeneration, status.Image = p.job.Generation, p.job.Spec.Image
	if p.areUnknown {
		status.Image = ""
	}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	if p.isNewRound && !p.areUnknown {
		status.RoundTime = &now
	}
	status.Desired, status.Active = int32(p.desired), int32(p.active)
	status.Succeeded, status.Failed = int32(len(p.succeeded)), int32(len(p.failed))
	status.SucceededNodes, status.FailedNodes = p.succeeded, p.failed
	if n := len(p.failures); n > 0 {
		status.LastFailure = executor.Shorten(p.failures[n-1].node + ": " + p.failures[n-1].words)
	}
	switch hasTime := status.RetryTime != nil && p.now.Before(status.RetryTime.Time); {
	case len(p.failed) == 0:
		status.LastFailure, status.RetryTime = "", nil
	case !p.job.Spec.CompletionPolicy.IsEndless():
		status.RetryTime = nil
	case !hasTime:
		status.RetryTime = ptr.To(metav1.NewTime(p.now.Add(failurePeriod)))
	}
	switch {
	case end != "":
		status.Message, status.CompletionTime, status.SucceededNodes = end, &now, nil
	case note != "":
		status.Message = p.inWords() + "; " + note
	default:
		status.Message = p.inWords()
	}
}
