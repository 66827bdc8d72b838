// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// widerRollouts are the reference rollouts in a wider world.
var widerRollouts = []rollout{
	{"pods refused for a while", 9, func(*settings) {}, whileRefused("Pod", 0, to("env"))},
	{"pods refused for a while by an injector that is down", 9, byRecreation, whileRefused("Pod", 3, to("b"))},
	{"pods of clones refused for a while", 9, asClones(func(*settings) {}), whileRefused("Pod", 2, to("env"))},
	{"claims refused for a while", 6, func(s *settings) { s.claims = true }, whileRefused("PersistentVolumeClaim", 0, scaleTo(5))},
	{"claims of clones refused for a while", 6, asClones(func(s *settings) { s.claims, s.clones.reuse = true, true }), whileRefused("PersistentVolumeClaim", 1, scaleTo(5))},
	{"revisions refused for a while", 9, func(*settings) {}, whileRefused("ControllerRevision", 0, to("b"))},
	{"revisions of clones refused for a while", 9, asClones(func(*settings) {}), whileRefused("ControllerRevision", 1, to("b"))},
	{"after a first template whose image is missing", 9, firstIs(firstMissing), to("b")},
	{"after a first template that is forbidden", 6, firstIs(firstForbidden), to("b")},
	{"after a first template of clones that is forbidden", 6, asClones(firstIs(firstForbidden)), to("b")},
	{"overtaken twice while it drains", 7, inGrace, overtakenAt(inplace.Draining, "both", "b")},
	{"overtaken twice, there and back", 9, inGrace, overtakenAt(inplace.Grace, "a", "b")},
	{"images moved to a mirror", 9, rewriting(rewrites{registry: mirror}), to("b")},
	{"images that were moved to a mirror", 9, rewriting(rewrites{registry: mirror}), then(withoutRewrites, to("both"))},
	{"with an injected container", 9, rewriting(rewrites{injects: true, inFront: true}), to("b")},
	{"injected containers that are injected no more", 9, asClones(rewriting(rewrites{injects: true})), then(withoutRewrites, to("env"))},
	{"a restart after what is injected was upgraded", 9, rewriting(rewrites{injects: true}), then(upgradeInjected, to("restart"))},
	{"a restart of clones after what is injected was upgraded", 9, asClones(rewriting(rewrites{injects: true})), then(upgradeInjected, to("restart b"))},
	{"resize of what a LimitRange has filled in", 4, sizedBy(rewriting(rewrites{defaults: true, injects: true})), to("more cpu")},
	{"requests moved alone, followed by a revision", 4, sizedBy(nil), then(moved("requests", corev1.ResourceMemory, "24Mi"), to("less cpu"))},
	{"requests moved alone, followed by a revision of both", 4, sizedBy(nil), then(moved("requests", corev1.ResourceMemory, "24Mi"), to("more memory"))},
	{"requests raised above a limit that is lowered then", 4, sizedBy(nil), then(to("more limit"), moved("requests", corev1.ResourceMemory, "90Mi"), to("a"))},
	{"limits lowered below a request that is raised then", 4, sizedBy(nil), then(to("more limit"), moved("limits", corev1.ResourceMemory, "80Mi"), to("more limit, request"))},
	{"overtaken twice of clones, there and back", 9, asClones(inGrace), overtakenAt(inplace.Grace, "a", "b")},
}

func rewriting(r rewrites) func(*settings) {
	return func(s *settings) { s.wider.rewrites = r }
}

func upgradeInjected(w *World) {
	w.server.admission.upgraded = true
	w.rewrite(w.settings.wider.rewrites)
	w.server.admission.rewrittenSince = time.Time{} // long ago
}

func withoutRewrites(w *World) { w.rewrite(rewrites{}) }

// moved lets an autoscaler set one number of a pod.
func moved(list string, name corev1.ResourceName, size string) func(*World) {
	return func(w *World) {
		pod, _ := get[*corev1.Pod](w.server, setName+"-1")
		w.setAs("autoscaler", pod, sizeKey{"app", list, name}, size)
	}
}

// The manager dies around every write of the rollouts in a wider world, too.
func TestCrashInAWiderWorld(t *testing.T) {
	t.Parallel()
	for _, r := range widerRollouts {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.crashEverywhere(NewWithT(t), only(killedAfter, unanswered))
		})
	}
}

func byRecreation(s *settings) {
	s.policy, s.claims = appsv1beta1.RecreatePodUpdateStrategyType, true
}

func firstIs(first firstTemplate) func(*settings) {
	return func(s *settings) { s.wider.first = first }
}

// inGrace gives drains and grace periods the time to be overtaken.
func inGrace(s *settings) {
	s.gracePeriod, s.endpointDelay, s.minEndpointDelay = 5*time.Second, 2, 2
}

// whileRefused changes something while the server refuses to create a kind.
func whileRefused(kind string, by int, change func(*World)) func(*World) {
	return func(w *World) {
		w.refuse(kind, refusers[kind][by], 40*time.Second)
		change(w)
	}
}

// overtakenAt asks for revision b, and for others one after the other, each when a pod is
// in a state.
func overtakenAt(state inplace.State, names ...string) func(*World) {
	return func(w *World) {
		to("b")(w)
		for _, name := range names {
			for range 60 {
				w.step()
				if w.isAnyIn(state) {
					break
				}
			}
			to(name)(w)
		}
	}
}

// A pod is refused for good: the set says so, and does no harm. When it is allowed, all
// comes to what was asked for.
func TestSaysWhatIsRefused(t *testing.T) {
	for kind, by := range refusers {
		for _, r := range by {
			for _, shape := range []func(*settings){func(*settings) {}, asClones(func(s *settings) { s.clones.reuse = true })} {
				t.Run(kind+"/"+r.name, func(t *testing.T) {
					g := NewWithT(t)
					w, err := claimingScenario(shape)
					g.Expect(err).NotTo(HaveOccurred())
					w.refuse(kind, r, 5*time.Minute)
					to("env")(w)
					scaleTo(5)(w)
					w.settleOr(4 * time.Minute)
					g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
					w.rest()
					g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
				})
			}
		}
	}
}

func claimingScenario(shape func(*settings)) (*World, error) {
	s := reference()
	s.claims = true
	shape(&s)
	return newScenario(s)
}

// The claims of a CloneSet that does not reuse them are made once, and not at each try to
// create their pods.
func TestClaimsWhilePodsAreRefused(t *testing.T) {
	g := NewWithT(t)
	w, err := claimingScenario(asClones(func(*settings) {}))
	g.Expect(err).NotTo(HaveOccurred())
	w.refuse("Pod", refusers["Pod"][0], 5*time.Minute)
	scaleTo(5)(w)
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// A container is restarted for its environment, or on request, where admission puts a
// registry before its image.
func TestRestartsWhereImagesAreRewritten(t *testing.T) {
	for _, registry := range []string{mirror, dockerHub} {
		for _, name := range []string{"level", "level b", "restart", "restart b"} {
			t.Run(registry+name, func(t *testing.T) { restartWhereImagesAreRewritten(t, registry, name, false) })
		}
	}
}

// The same where only the registry can be spelled otherwise, since images are pulled at
// every start.
func TestRestartsOfPulledImagesThatAreRewritten(t *testing.T) {
	restartWhereImagesAreRewritten(t, dockerHub, "level", true)
}

func restartWhereImagesAreRewritten(t *testing.T, registry, name string, pulls bool) {
	t.Helper()
	g := NewWithT(t)
	s := reference()
	s.reads, s.pulls, s.wider.rewrites.registry = true, pulls, registry
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	to(name)(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// The label of a pod changes, and admission that is new puts a registry before its images
// on that occasion: their containers restart.
func TestLabelsWhereAdmissionRewritesImages(t *testing.T) {
	t.Skip("finding: a change of labels that admission makes a restart")
	g := NewWithT(t)
	w, err := newScenario(reference())
	g.Expect(err).NotTo(HaveOccurred())
	w.server.admission.rewrites = rewrites{registry: mirror, all: true}
	to("label")(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// A set is made again, and the cache shows that its pods have no owner any more, but not
// yet that of its revisions.
func TestTakenOverBeforeItsRevision(t *testing.T) {
	for _, shape := range []func(*settings){func(*settings) {}, asClones(func(*settings) {})} {
		g := NewWithT(t)
		s := reference()
		shape(&s)
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		before := w.uids()
		w.withheld = "ControllerRevision"
		w.orphan()
		w.settleOr(10 * time.Second)
		w.withheld = ""
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		g.Expect(w.uids()).To(Equal(before), w.story.String())
	}
}

// An injector puts its container before those that have a launch priority.
func TestInjectedBeforeLaunchPriorities(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	s.batches, s.slow, s.wider.rewrites = 3, "app", rewrites{injects: true, inFront: true}
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	to("both")(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// A LimitRange gives an injected container limits. Those of the pod as a whole, which its
// template leaves to the server, follow it, also when an autoscaler has changed another one.
func TestWholeFollowsAnInjectedContainer(t *testing.T) {
	for _, change := range []func(*World){
		to("more cpu"), then(moved("limits", corev1.ResourceCPU, "300m"), to("label")), then(to("more of all"), moved("limits", corev1.ResourceCPU, "300m")),
	} {
		g := NewWithT(t)
		s := reference()
		sizedBy(rewriting(rewrites{injects: true, defaults: true}))(&s)
		s.resizes.class, s.resizes.whole = corev1.PodQOSGuaranteed, true
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		then(to("nothing"), withoutRewrites, to("another resource"), change)(w)
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
}

// The status says that the revision of a new template is refused.
func TestSaysThatARevisionIsRefused(t *testing.T) {
	for _, shape := range []func(*settings){func(*settings) {}, asClones(func(*settings) {})} {
		g := NewWithT(t)
		w, err := claimingScenario(shape)
		g.Expect(err).NotTo(HaveOccurred())
		w.refuse("ControllerRevision", refusers["ControllerRevision"][0], 5*time.Minute)
		to("b")(w)
		w.settle()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
}
