// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// walk is a life to which anything happens at any moment.
type walk struct {
	*life
	r *rand.Rand
	// happened says what did.
	happened []string
	// forgets: it was asked for a volume that has not all that was written, or for an
	// empty one.
	forgets bool
}

func (w *walk) one(of ...string) string { return of[w.r.IntN(len(of))] }

// flip changes a switch, more often back than on.
func (w *walk) flip(which *bool) string {
	*which = w.r.IntN(3) == 0
	return fmt.Sprint(*which)
}

// events are what may happen, by name.
func (w *walk) events() map[string]func() string {
	events := map[string]func() string{
		"template": func() string {
			class := w.one("slow", "fast", "third", "missing")
			w.wants(class)
			return class
		},
		"size": func() string {
			size := w.one("1Gi", "2Gi")
			w.template.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
			return size
		},
		"strategy": func() string {
			w.strategy.Type = appsv1beta1.VolumeClaimUpdateStrategyType(w.one("Recreate", "Recreate", "OnDelete", "OnPodRollingUpdate"))
			return string(w.strategy.Type)
		},
		"timeout": func() string {
			w.strategy.Recreate.TimeoutSeconds = ptr.To(int32(50 + w.r.IntN(20)))
			return ""
		},
		"paused":   func() string { return w.flip(&w.paused) },
		"stalled":  func() string { return w.flip(&w.stalled) },
		"failing":  func() string { return w.flip(&w.failing) },
		"stuck":    func() string { return w.flip(&w.stuck) },
		"on trial": func() string { return w.flip(&w.stuckOnTrial) },
		"retained": func() string { return w.flip(&w.retains) },
		"trial": func() string {
			w.strategy.Recreate.Trial = appsv1beta1.RecreateTrialType(w.one("", "Restore", "Snapshot", "None"))
			return string(w.strategy.Recreate.Trial)
		},
		"trial claim": func() string {
			if w.trial == nil {
				return "is not there"
			}
			delete(w.stored, w.trial.Spec.VolumeName) // whoever deletes the claim deletes a volume that stays
			w.deleteTrialClaim()
			return "deleted"
		},
		"lazy":     func() string { return w.flip(&w.lazy) },
		"sick":     func() string { return w.flip(&w.sick) },
		"attached": w.attach, "others": w.share, "undo": w.ask, "kill": w.kill, "stray": w.arrive, "lose": w.lose,
		"later": func() string {
			w.now = w.now.Add(time.Duration(w.r.IntN(110)) * time.Second)
			return ""
		},
		"pod": func() string {
			if w.pod != nil {
				w.pod.leaving = true
			}
			return ""
		},
		"admission": func() string {
			w.admission = [...]func(*corev1.PersistentVolumeClaim){
				nil, nil, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To("odd") },
				func(claim *corev1.PersistentVolumeClaim) { claim.Spec.DataSource = nil },
				func(claim *corev1.PersistentVolumeClaim) {
					delete(claim.Annotations, appsv1beta1.VolumeClaimUpdateStateKey)
				},
			}[w.r.IntN(5)]
			return fmt.Sprint(w.admission != nil)
		},
		"refused": func() string {
			if w.refuses = nil; w.r.IntN(3) == 0 {
				w.refuses = func(*corev1.PersistentVolumeClaim) string { return "it is forbidden" }
			}
			return fmt.Sprint(w.refuses != nil)
		},
		"claim by hand": func() string {
			if w.claim != nil || InFlight(w.heldFor()) == nil {
				return "nothing"
			}
			w.createClaim(w.template)
			if w.r.IntN(2) == 0 {
				w.turn()
			}
			return "of class " + *w.template.Spec.StorageClassName
		},
		"claim": func() string {
			if w.claim == nil || w.claim.DeletionTimestamp != nil {
				return "is gone"
			}
			if v := w.volume(w.claim.Spec.VolumeName); v != nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
				return "stays" // it is not the operator that would lose it
			}
			w.claim.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
			w.touch()
			return "deleted"
		},
	}
	return events
}

func (w *walk) attach() string {
	if w.attaches, w.nodes = true, nil; w.r.IntN(2) == 0 && w.pod != nil && w.pod.scheduled {
		w.nodes = []string{"node-1"}
	}
	return fmt.Sprint(w.nodes)
}

// share lets another pod use a claim, which is never that of a volume that is left: the
// scheduler waits for what is being deleted.
func (w *walk) share() string {
	if w.others = nil; w.r.IntN(3) == 0 && w.claim != nil && w.claim.DeletionTimestamp == nil {
		w.others = []string{"copy"}
	}
	return fmt.Sprint(w.others)
}

// ask asks for an earlier volume, or no more.
func (w *walk) ask() string {
	if w.claim == nil {
		return ""
	}
	wanted := w.one(append([]string{"", "previous", "junk"}, slices.Sorted(maps.Keys(w.stored))...)...)
	w.undo(wanted)
	if wanted == "" {
		delete(w.claim.Annotations, appsv1beta1.UndoRecreateAnnotation)
	}
	w.forgets = w.forgets || wanted != ""
	return wanted
}

func (w *walk) kill() string {
	w.lives = w.r.IntN(4)
	w.reconcile()
	w.lives = -1
	return ""
}

// arrive lets the last write of a dead operator arrive after all. Not so a snapshot, of
// which nothing but its name tells whether it comes too late.
func (w *walk) arrive() string {
	step := w.stray
	if w.stray = nil; step == nil || step.Action == CreateSnapshot || !w.applies(*step) {
		return "nothing"
	}
	w.apply(*step)
	return short(*step)
}

// lose has a user delete a snapshot.
func (w *walk) lose() string {
	for _, name := range slices.Sorted(maps.Keys(w.snapshots)) {
		if w.r.IntN(2) == 0 {
			w.snapshots[name].DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
			return name
		}
	}
	return ""
}

// heal takes back all that keeps a claim from what its template says.
func (w *walk) heal() {
	w.stalled, w.failing, w.stuck, w.stuckOnTrial, w.sick, w.paused, w.others, w.nodes = false, false, false, false, false, false, nil, nil
	w.admission, w.refuses = nil, nil
	w.strategy.Type = appsv1beta1.RecreateVolumeClaimUpdateStrategyType
	w.strategy.Recreate.TimeoutSeconds = ptr.To[int32](200)
	w.now = w.now.Add(unfitPeriod)
	w.settle()
	if w.pod == nil && (w.step.Reason == ReasonVolumeNotRestored || w.step.Reason == ReasonUndoRefused) {
		w.happened = append(w.happened, "the user has the volume back")
		w.undo("previous")
		w.settle()
	}
	w.wants(w.one("slow", "fast"))
	w.settle()
	delete(w.claim.Annotations, appsv1beta1.UndoRecreateAnnotation)
	w.strategy.Recreate.TimeoutSeconds = ptr.To[int32](300)
	w.settle()
}

// seeds is how many lives are lived.
const seeds = 300

// TestAnyLife states what holds for any claim, whatever happens to it: see
// storage.forbids for what never costs data.
func TestAnyLife(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walk{r: rand.New(rand.NewPCG(seed, 8))}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("what happened:\n%s", strings.Join(w.happened, "\n"))
				}
			})
			removes := w.r.IntN(2) == 0
			w.life = newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
				if removes {
					r.OldVolume, r.Snapshot = appsv1beta1.DeleteRecreateRetention, appsv1beta1.DeleteRecreateRetention
				}
			})
			w.live(60)
			w.heal()
			w.expectClean()
			g := NewWithT(t)
			g.Expect(w.claim.Spec.StorageClassName).To(Equal(w.template.Spec.StorageClassName))
			if !w.forgets || !removes {
				g.Expect(w.lost()).To(BeEmpty())
			}
			if !w.forgets {
				g.Expect(w.missing()).To(BeEmpty())
			}
			for _, what := range w.happened {
				if name, wrote := strings.CutPrefix(what, "  "); wrote {
					seen[strings.TrimRight(name, "0123456789")]++
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	for _, write := range []string{
		"CreateClaim from snapshot", "CreateClaim on pv-", "DeleteClaim", "DeleteSnapshot", "DiscardVolume pv-", "FreeVolume pv-", "HoldVolume pv-",
		"Note RecreateTimedOut", "ReleaseVolume pv-",
	} {
		if seen[write] == 0 {
			t.Errorf("%s was not seen in %v: the lives are not random enough", write, seen)
		}
	}
}

// live lets a number of things happen, with some rounds between them.
func (w *walk) live(n int) {
	events := w.events()
	names := slices.Sorted(maps.Keys(events))
	for range n {
		name := w.one(names...)
		w.happened = append(w.happened, fmt.Sprintf("%s %s %s", w.now.Format(time.TimeOnly), name, events[name]()))
		for range w.r.IntN(6) {
			before := len(w.log)
			w.round()
			for _, write := range w.log[before:] {
				w.happened = append(w.happened, "  "+write)
			}
		}
	}
}
