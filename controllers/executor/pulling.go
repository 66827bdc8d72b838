// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// pullPause is when a pull is tried again that is too much for the manager now.
	pullPause = 5 * time.Second
	// jobPatience is for how long a job that has not got all its pods has a share of them, if it does
	// not ask again.
	jobPatience = 30 * time.Second
)

// Pulling is how images are pulled for all workloads of a manager: its controllers share it.
type Pulling struct {
	// Policy is that of workloads that do not say theirs; empty is Require.
	Policy appsv1beta1.ImagePullPolicyType
	// MaxConcurrent is how many pods pull at a time; 0 for any number. Those whose pulls fail, or
	// take long, do not count.
	MaxConcurrent int

	// mu guards what follows: how many pods are being made, and when the jobs that have not got all
	// their pods asked for them last.
	mu       sync.Mutex
	reserved int
	waiting  map[types.UID]time.Time
}

// PullAs says how images are pulled before pods are taken out of service for them; with nil none are.
func (e *Executor) PullAs(pulling *Pulling) {
	if pulling == nil {
		e.Puller = nil
		return
	}
	e.Puller.Pulling = pulling
}

// PullPolicyOf returns the policy of a workload, which may have said none.
func (e *Executor) PullPolicyOf(said inplace.PullPolicy) inplace.PullPolicy {
	fallback := appsv1beta1.NoImagePull
	if e.Puller != nil {
		fallback = cmp.Or(e.Puller.Pulling.Policy, appsv1beta1.RequireImagePull)
	}
	said.Policy = cmp.Or(said.Policy, fallback)
	return said
}

// PullRequest asks for pods that pull.
type PullRequest struct {
	// Reader is of a cache that shows the manager's own writes.
	Reader client.Reader
	Now    time.Time
	// Number is how many pods there are to be.
	Number int
	// Job is the one that they are for; empty for an update. Nothing waits for jobs: together they
	// leave half of the manager's pods to updates, and share the others.
	Job types.UID
	// OfJob is how many pods of the job pull already.
	OfJob int
}

// Begin makes the first of a number of pods, as many as may pull now, one after the other, and returns
// how many those are.
func (p *Pulling) Begin(ctx context.Context, request PullRequest, makePod func(i int)) (int, error) {
	number, err := p.reserve(ctx, request)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reserved -= number
	}()
	for i := range number {
		makePod(i)
	}
	return number, err
}

// reserve returns how many of a number of pods may begin to pull. They count as if they did, until
// their creation is over, when the reader shows them.
func (p *Pulling) reserve(ctx context.Context, request PullRequest) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := request.Number
	if p.MaxConcurrent > 0 {
		pulling, err := countPulling(ctx, request.Reader, request.Now)
		if err != nil {
			return 0, err
		}
		most, own := p.MaxConcurrent, p.MaxConcurrent
		if request.Job != "" {
			most = max(most/2, 1)
			own = p.shareOf(request, most) - request.OfJob
		}
		number = min(number, max(min(most-pulling-p.reserved, own), 0))
		if number < request.Number {
			p.noteWaiting(request)
		}
	}
	p.reserved += number
	return number, nil
}

// shareOf returns how many of a number of pods a job may have: as many as each other one that waits.
func (p *Pulling) shareOf(request PullRequest, most int) int {
	maps.DeleteFunc(p.waiting, func(job types.UID, at time.Time) bool { return job == request.Job || request.Now.Sub(at) > jobPatience })
	return max(most/(1+len(p.waiting)), 1)
}

// noteWaiting notes that a job has not got all its pods.
func (p *Pulling) noteWaiting(request PullRequest) {
	if request.Job == "" {
		return
	}
	if p.waiting == nil {
		p.waiting = map[types.UID]time.Time{}
	}
	p.waiting[request.Job] = request.Now
}

// countPulling returns how many pods pull now, for all workloads of the manager.
func countPulling(ctx context.Context, reader client.Reader, now time.Time) (int, error) {
	list := &corev1.PodList{}
	if err := podcache.AllPullers(ctx, reader, list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, err
	}
	pulling := 0
	for i := range list.Items {
		state, _ := inplace.PullStateOf(&list.Items[i])
		if (state == inplace.PullUnderWay || state == inplace.PullUnanswered) && !isSlow(&list.Items[i], now) {
			pulling++
		}
	}
	return pulling, nil
}
