// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/inplace"
)

const (
	// freshPull is after how long a puller that failed is made again. The kubelet tries again by
	// itself, every five minutes in the end.
	freshPull = 2 * time.Minute
	// proofAge is how long a node counts as having images. It may delete those that nothing uses.
	proofAge = 10 * time.Minute
	// slowPull is after how long a pull makes room for others: it may be one on a node that is dead.
	slowPull = 10 * time.Minute
	// reasonDeadlineExceeded is why the kubelet ends a puller that takes too long.
	reasonDeadlineExceeded = "DeadlineExceeded"
)

// pullKnowledge is what is known of one pull. What is lost with the manager is found out again.
type pullKnowledge struct {
	// node is where the images are to be.
	node string
	// since is when the first puller was to be made; zero before.
	since time.Time
	// proved: the images are on the node, and the pod may use them, as was found out at provedAt.
	// gaveUp: that is not waited for any more.
	proved, gaveUp bool
	provedAt       time.Time
	// settled: the images were not waited for any more, together with others, when a pod went out of
	// service that needs them now.
	settled bool
	// pod is one that needs the images, as the API server has it; nil if it was not read yet.
	pod *corev1.Pod
	// state is that of the last puller that said something, and words are the kubelet's or the
	// API server's. It is empty if there was none. isDenied: the server refuses such pods.
	state    inplace.PullState
	words    string
	isDenied bool
	// again is when to have another puller.
	again time.Time
}

// isDone reports whether pods are updated without waiting for the pull.
func (k *pullKnowledge) isDone() bool { return k.proved || k.gaveUp || k.settled }

// isHeard reports whether a kubelet has said how far the pull is.
func (k *pullKnowledge) isHeard() bool {
	return k.state == inplace.PullFailed || k.state == inplace.PullUnderWay
}

// begin notes when the first puller was to be made.
func (k *pullKnowledge) begin(at time.Time) {
	if k.since.IsZero() {
		k.since = at
	}
}

// prove notes that the images are there.
func (k *pullKnowledge) prove(now time.Time) {
	k.proved, k.provedAt, k.pod = true, now, nil
}

// expire forgets a proof that is old.
func (k *pullKnowledge) expire(now time.Time) {
	if k.proved && now.Sub(k.provedAt) > proofAge {
		*k = pullKnowledge{node: k.node}
	}
}

// read notes what a puller shows. What a kubelet has said of a pull counts until it says more.
func (k *pullKnowledge) read(puller *corev1.Pod, now time.Time) {
	k.begin(puller.CreationTimestamp.Time)
	state, words := inplace.PullStateOf(puller)
	switch state {
	case inplace.Pulled:
		k.prove(now)
	case inplace.PullFailed:
		k.again = puller.CreationTimestamp.Add(freshPull)
	case inplace.PullRejected:
		words, k.again = "the kubelet does not take it: "+words, now.Add(refusalPeriod)
	case inplace.PullUnderWay, inplace.PullUnanswered:
	}
	if state == inplace.PullRejected && k.state == inplace.PullUnderWay && puller.Status.Reason != reasonDeadlineExceeded {
		k.state, k.since = "", now // it was evicted, and that is what is waited for now
	}
	saysMore := state == inplace.Pulled || state == inplace.PullFailed || state == inplace.PullUnderWay && k.state != inplace.PullFailed
	if saysMore || !k.isHeard() {
		k.state, k.words = state, words
	}
}

// onPull returns what is known of a pull. Of a pod that is out of service already, some images may
// have been waited for together with others, which it has got.
func (v *verdicts) onPull(pull inplace.Pull, isOut bool) *pullKnowledge {
	key := pull.Key()
	if v.pulls[key] == nil {
		areThere := isOut && !slices.ContainsFunc(pull.Images, func(image inplace.Image) bool { return !v.pulled.Has(keyOf(pull, image)) })
		v.pulls[key] = &pullKnowledge{node: pull.Node, settled: areThere}
	}
	return v.pulls[key]
}

// giveUp notes what a pull that is given up says of others: what a quota or a policy says of one,
// it says of all, and nodes that are full are not waited for one after the other.
func (v *verdicts) giveUp(pull *pullKnowledge) {
	v.noPullers = v.noPullers || pull.isDenied
	v.noRejected = v.noRejected || pull.state == inplace.PullRejected
	if pull.state == inplace.PullUnanswered {
		v.unanswered++
	}
}

// isGivenUp reports whether a pull is not waited for, by what is known of others.
func (v *verdicts) isGivenUp(pull *pullKnowledge) bool {
	return v.noPullers || v.noRejected && pull.state == inplace.PullRejected
}

// settle notes that the images of a pull are not waited for any more.
func (v *verdicts) settle(pull inplace.Pull) {
	for _, image := range pull.Images {
		v.pulled.Insert(keyOf(pull, image))
	}
}

// keyOf is the key of a pull of one of its images alone.
func keyOf(pull inplace.Pull, image inplace.Image) string {
	pull.Images = []inplace.Image{image}
	return pull.Key()
}

// forgetPulls forgets what is known of others than those that are wanted.
func (v *verdicts) forgetPulls(wanted []*wantedPull) {
	if len(v.pulls) == len(wanted) {
		return
	}
	keys := sets.New[string]()
	for _, needed := range wanted {
		keys.Insert(needed.Key())
	}
	maps.DeleteFunc(v.pulls, func(key string, _ *pullKnowledge) bool { return !keys.Has(key) })
}
