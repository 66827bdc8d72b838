// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/sim/pool"
)

// setName is the name of the set.
const setName = "sample"

// scheme knows every kind that there is.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(appsv1beta1.AddToScheme(s))
	utilruntime.Must(snapshotv1.AddToScheme(s))
	pool.AddToScheme(s)
	return s
}()

// start is when every run begins.
var start = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// World is one run: a set, and all that happens to it.
type World struct {
	settings settings
	choices  *Choices
	clock    *clocktesting.FakePassiveClock
	server   *server
	nodes    []*kubelet
	slices   *endpoints
	hook     *hookController
	storage  *storage // nil: claims have their volumes at once
	manager  *manager
	law      *law
	// rules are what is asserted: the law, or that of native workloads.
	rules rules
	// native is a workload of Kubernetes itself; nil if the set is one of ours.
	native   *nativeWorkload
	story    *story
	coverage *Coverage

	// calm: only the operator, the kubelets and the controllers of Kubernetes do
	// anything, and nothing fails.
	calm bool
	// wish is the revision that the user asked for last, previous the one before.
	wish, previous revision
	// nextWishes are what the user is about to ask for.
	nextWishes []nextWish
	// claims is what the user wants claims to be, claimsBefore what was before that.
	claims, claimsBefore claimWish
	// hands is what people did to single objects by hand, plans what is about to happen.
	hands hands
	// unlabeled is when people took the label of drained pods off.
	unlabeled map[types.UID]time.Time
	plans     []plan
	// containers counts the containers that were started.
	containers int
	// ids counts the instance IDs that were given; lastID is the last one.
	ids    int
	lastID string
	// returns are the writes of dead managers that are still on their way.
	returns []stray
	// lateArrival: one of them arrived, or the creation of a pod was not answered.
	lateArrival bool
	// unasked are the claims of trials that such a write made.
	unasked []string
	// fate, if set, decides what becomes of writes, instead of the choices.
	fate func(write) fate
	// withheld is a kind of which caches get no news.
	withheld string
	// log holds the writes that were carried out, in words.
	log []string
	// failure is the first thing that went wrong.
	failure error
}

// plan is what happens at a time.
type plan struct {
	at time.Time
	do func(*World)
}

// in lets something happen some seconds later.
func (w *World) in(seconds int, do func(*World)) {
	w.plans = append(w.plans, plan{w.clock.Now().Add(time.Duration(seconds) * time.Second), do})
}

// doPlanned does what is due.
func (w *World) doPlanned() {
	due := slices.DeleteFunc(slices.Clone(w.plans), func(p plan) bool { return w.clock.Now().Before(p.at) })
	w.plans = slices.DeleteFunc(w.plans, func(p plan) bool { return !w.clock.Now().Before(p.at) })
	for _, p := range due {
		p.do(w)
	}
}

type stray struct {
	at    time.Time
	write write
	// set is what its sender was shown.
	set *appsv1beta1.StatefulSet
}

// newWorld returns a world with a set whose pods are still to be made.
func newWorld(choices *Choices, s settings) (*World, error) {
	w := &World{
		settings: s, choices: choices, clock: clocktesting.NewFakePassiveClock(start),
		story: newStory(), coverage: NewCoverage(), wish: s.firstRevision(), previous: revisions[1],
		claims: s.volumes.wish, claimsBefore: s.volumes.wish, hands: newHands(), unlabeled: map[types.UID]time.Time{},
	}
	w.server = newServer(w.clock)
	w.slices, w.law, w.hook, w.server.budget = newEndpoints(w), newLaw(w), newHookController(w), newBudget(w)
	w.rules = w.law
	if err := w.startNodes(); err != nil {
		return nil, err
	}
	w.server.drains.gone = s.undrained
	w.server.admission.rewrites, w.server.admission.ungates = s.wider.rewrites, !s.gated
	w.server.admission.forbidsFirst = s.wider.first == firstForbidden
	w.say("%s", s)
	if err := errors.Join(w.slices.create(), w.addStorage(), w.server.create(s.kind().object(s, w.wish))); err != nil {
		return nil, err
	}
	return w, w.startManager(context.Background())
}

// startNodes starts the nodes: those of the settings or, for a DaemonSet, one for each pod that there is to be.
func (w *World) startNodes() error {
	defer w.boundNodes()
	if w.settings.daemons.on {
		for range w.settings.replicas {
			if err := w.addNode(); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range cmp.Or(w.settings.nodes, 2) {
		w.nodes = append(w.nodes, newKubelet(w, fmt.Sprintf("node-%d", i), w.settings.oldKubelets))
	}
	return nil
}

// say adds a line to the story.
func (w *World) say(format string, args ...any) {
	w.story.add(w.clock.Now().Sub(start), format, args...)
}

// violate notes that something went wrong, unless something did before.
func (w *World) violate(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.say("VIOLATED: %v", w.failure)
	}
}

// step lets one second pass.
func (w *World) step() {
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	actors := []func(){w.stepKubernetes, w.manager.deliver, w.manager.step}
	for i := range actors {
		// Any order may be: a manager may act before the news of this second.
		j := i + w.choices.intN(len(actors)-i)
		actors[i], actors[j] = actors[j], actors[i]
		actors[i]()
	}
	w.arrive()
	w.askNext()
	w.answer()
	w.doPlanned()
	switch {
	case w.calm || !w.choices.oneIn(w.settings.changes):
	case w.native != nil:
		w.native.disturb()
	default:
		w.disturb()
	}
	w.rules.look()
}

// stepKubernetes is a second of all that is not under test.
func (w *World) stepKubernetes() {
	if w.settings.daemons.on {
		w.bindDaemons()
	} else {
		w.bind()
	}
	for _, node := range w.nodes {
		node.step()
	}
	if w.settings.daemons.on {
		w.controlNodeObjects()
	} else {
		w.controlNodes()
	}
	w.slices.step()
	if w.native != nil {
		w.native.step()
	}
	w.hook.step()
	if w.storage != nil {
		w.storage.step()
	}
	w.server.budget.step()
	w.stepEnding()
	w.server.collectGarbage(w.law.data.collected)
}

// bind puts pods on nodes that are there.
func (w *World) bind() {
	pods := all[*corev1.Pod](w.server)
	for i, name := range slices.Sorted(maps.Keys(pods)) {
		if pods[name].Spec.NodeName != "" || pods[name].DeletionTimestamp != nil {
			continue
		}
		for j := range w.nodes {
			if node := w.nodes[(i+j)%len(w.nodes)]; !node.isDead() && node.hasRoom(pods[name]) && w.storage.schedules(pods[name], node.node) {
				w.server.bind(pods[name], node.node)
				break
			}
		}
		w.tellUnschedulable(name)
	}
}

// Times after which the node controller acts on a node that does not answer.
const (
	unreadyAfter = 40 * time.Second
	evictAfter   = 90 * time.Second
)

// controlNodes does what becomes of the pods of dead nodes.
func (w *World) controlNodes() {
	for _, node := range w.nodes {
		if !node.isDead() {
			continue
		}
		away := w.clock.Now().Sub(node.deadSince)
		pods := all[*corev1.Pod](w.server)
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			if pods[name].Spec.NodeName != node.node || pods[name].DeletionTimestamp != nil {
				continue
			}
			if away >= unreadyAfter {
				mutate(w.server, name, func(pod *corev1.Pod) { setPodCondition(pod, corev1.PodReady, false, w.clock.Now()) })
			}
			if away >= evictAfter && (w.native == nil || w.native.kind != nativecontroller.DaemonSet) {
				_ = w.server.delete(objectKey{"Pod", name}, nil) // it is there: it was just seen
			}
		}
	}
}

// stopTime returns how long the containers of a pod take to stop this time.
func (w *World) stopTime() time.Duration {
	least := w.settings.minStopTime
	return time.Duration(least)*time.Second + w.choices.seconds(w.settings.maxStopTime-least)
}

// arrive lets the writes of dead managers arrive that are due.
func (w *World) arrive() {
	w.returns = slices.DeleteFunc(w.returns, func(s stray) bool {
		if w.clock.Now().Before(s.at) {
			return false
		}
		s.write.before = w.server.objects[objectKey{kindOf(s.write.obj), s.write.obj.GetName()}]
		err := s.write.do()
		w.lateArrival = true
		w.say("a write of a dead manager arrives: %s: %v", s.write.words, err)
		if err == nil && w.native == nil {
			w.law.judgeStray(s.write, s.set)
		}
		if claim, is := s.write.obj.(*corev1.PersistentVolumeClaim); is && isOnTrial(claim) {
			w.unasked = append(w.unasked, claim.Name) // it goes with its pod
		}
		return true
	})
}

// set returns the set as the server holds it, in the shape of a StatefulSet; nil
// if there is none.
func (w *World) set() *appsv1beta1.StatefulSet {
	set, _ := w.server.objects[w.setKey()]
	return shown(set)
}

// worker returns what its kubelet knows of a pod; nil if it knows nothing.
func (w *World) worker(pod *corev1.Pod) *worker {
	for _, node := range w.nodes {
		if node.node == pod.Spec.NodeName {
			return node.workers[pod.UID]
		}
	}
	return nil
}

// Limits of a run that is to come to rest.
const (
	// quietFor is longer than anything takes of which nothing can be seen.
	quietFor = 30 * time.Second
	restless = 3 * time.Hour
	// hopelessFor is longer than the operator waits before it tries anything again.
	hopelessFor = 12 * time.Minute
)

// settle runs until nothing has been written for a while and no program waits for a
// time to come.
func (w *World) settle() {
	if !w.settleOr(restless) {
		w.violate("liveness: not at rest after %s: %s", restless, w.rules.whatIsMissing())
	}
}

// settleOr runs until all is quiet, or for a time; it reports whether it is.
func (w *World) settleOr(limit time.Duration) bool {
	deadline := w.clock.Now().Add(limit)
	version, since := w.version(), w.clock.Now()
	for w.failure == nil {
		w.step()
		now := w.clock.Now()
		if w.version() != version || len(w.returns)+len(w.plans) > 0 || w.isEnding() || w.storage.isBusy() {
			version, since = w.version(), now
		}
		quiet := now.Sub(since)
		if quiet > quietFor && !w.manager.isWaiting() || quiet > hopelessFor && w.storage != nil {
			return true
		}
		if now.After(deadline) {
			return false
		}
	}
	return true
}

// version tells one state from another, but for what a storage writes: it tries for
// ever what cannot be.
func (w *World) version() int64 {
	return w.server.version - w.storage.tries()
}
