// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// crashTable is the generated table of what becomes of a recreation in which the
// manager is killed.
const crashTable = "testdata/recreate-crashes.md"

// recreation is a change of claims that is told in words, and runs undisturbed to its
// end.
type recreation struct {
	name     string
	settings func(*settings)
	changes  []func(*World)
	// table: what it does is written down.
	table bool
}

var recreations = []recreation{
	{name: "another class", settings: recreatingFew(2, nil), changes: []func(*World){claimsOfClass("fast")}, table: true},
	{name: "where volumes wait for pods, nothing tells of attachments, and all is kept", settings: recreatingFew(1, func(s *settings) {
		s.volumes.attaches = false
		keeping(s.volumes.strategy.Recreate)
	}), changes: []func(*World){claimsOfClass("fast-wait")}},
	{name: "two claims", settings: recreatingFew(1, func(s *settings) { s.volumes.wish.second = "standard" }), changes: []func(*World){
		claimsWith(func(w *claimWish) { w.class, w.second = "fast", "fast-wait" }),
	}},
	{name: "and back, of volumes that others hold", settings: recreatingFew(1, nil), changes: []func(*World){claimsOfClass("fast"), func(w *World) {
		keepAllVolumes(w)
		claimsOfClass("standard")(w)
	}}},
	{name: "undone", settings: recreatingFew(1, func(s *settings) { keeping(s.volumes.strategy.Recreate) }), changes: []func(*World){claimsOfClass("fast"), undoAll}},
	{name: "snapshots that are never ready", settings: recreatingFew(1, func(s *settings) {
		s.volumes.strategy.Recreate.VolumeSnapshotClassName = "never-ready"
		s.volumes.strategy.Recreate.TimeoutSeconds = ptr.To[int32](30)
	}), changes: []func(*World){claimsOfClass("fast")}},
	{name: "nothing can be restored", settings: recreatingFew(1, func(s *settings) {
		s.volumes.strategy.Recreate.TimeoutSeconds = ptr.To[int32](30)
		trying("Snapshot")(s.volumes.strategy.Recreate)
	}), changes: []func(*World){claimsOfClass("no-restore")}},
	{name: "nothing can be restored on trial", settings: recreatingFew(1, func(s *settings) {
		s.volumes.strategy.Recreate.TimeoutSeconds = ptr.To[int32](30)
	}), changes: []func(*World){claimsOfClass("no-restore")}},
	{name: "another driver, empty", settings: recreatingFew(1, func(s *settings) { startingEmpty(s.volumes.strategy.Recreate) }), changes: []func(*World){
		emptied(claimsOfClass("foreign")),
	}},
	{name: "back in the middle", settings: recreatingFew(1, nil), changes: []func(*World){func(w *World) {
		claimsOfClass("fast")(w)
		after(11, claimsOfClass("standard"))(w)
	}}},
}

// recreatingFew is withRecreation for fewer pods.
func recreatingFew(replicas int, change func(*settings)) func(*settings) {
	return withRecreation(func(s *settings) {
		s.replicas = replicas
		s.volumes.strategy.Recreate.TimeoutSeconds = nil
		s.volumes.strategy.Recreate.HoldSeconds = ptr.To[int32](20)
		if change != nil {
			change(s)
		}
	})
}

// begin brings the recreation to its last change, with a clean log.
func (r recreation) begin(g Gomega) (*World, map[string]types.UID) {
	s := reference()
	r.settings(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	for range 20 {
		w.step()
	}
	before := w.uids()
	for i, change := range r.changes {
		if i > 0 {
			w.settle()
			before = w.uids()
		}
		w.log = nil
		change(w)
	}
	return w, before
}

// claimsOutcome tells what there is of claims, volumes and snapshots, without what
// differs from run to run.
func (w *World) claimsOutcome() string {
	var lines []string
	claims := all[*corev1.PersistentVolumeClaim](w.server)
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		claim, record := claims[name], recordOf(claims[name])
		line := fmt.Sprintf("claim %s of class %s, %s, being recreated %t", name, *claim.Spec.StorageClassName, describeClaim(claim), record.Recreate != nil)
		if v := w.storage.volumes[claim.UID]; v != nil {
			pv := w.storage.volumeNamed(v.name)
			line += fmt.Sprintf(", volume %s %s, held %t, complete %t", pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy, heldState(w, v.name) != nil, len(w.law.data.missing(name, v.written)) == 0)
		}
		if record.RecreateFailure != nil {
			line += ", failed: " + record.RecreateFailure.Reason
		}
		for _, entry := range record.HeldVolumes {
			pv := w.storage.volumeNamed(entry.Name)
			line += fmt.Sprintf(", had volume %d, proved %t", entry.Number, entry.SinceTimestamp != nil)
			if pv != nil {
				line += fmt.Sprintf(", %s %s", pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy)
			}
			line += fmt.Sprintf(", snapshot %t", isUsable(w.storage.snapshotNamed(entry.Snapshot)))
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, fmt.Sprintf("%d volumes, %d snapshots, %d contents", len(all[*corev1.PersistentVolume](w.server)),
		len(all[*snapshotv1.VolumeSnapshot](w.server)), len(all[*snapshotv1.VolumeSnapshotContent](w.server)))), "\n")
}

func (w *World) wholeOutcome(before map[string]types.UID) string {
	return hashes.ReplaceAllString(w.outcome(before), "-HASH") + "\n" + w.claimsOutcome()
}

// hashes are what names of snapshots and volumes end in, where a status tells of them.
var hashes = regexp.MustCompile(`-([0-9a-f]{10}|uid-\d+)\b`)

// reaches reports whether a run comes to an outcome, and stays there.
func (w *World) reaches(before map[string]types.UID, outcome string) string {
	deadline := w.clock.Now().Add(30 * time.Minute)
	for w.failure == nil && w.clock.Now().Before(deadline) {
		if len(w.returns) == 0 && w.wholeOutcome(before) == outcome {
			for range 30 {
				w.step()
			}
			if w.failure == nil && w.wholeOutcome(before) == outcome {
				w.replaceManager()
				break
			}
		}
		for range 5 {
			w.step()
		}
	}
	switch {
	case w.failure != nil:
		return w.failure.Error()
	case w.wholeOutcome(before) != outcome:
		return "another end:\n" + w.wholeOutcome(before) + "\ninstead of:\n" + outcome
	default:
		return ""
	}
}

// crashFates are the ways in which a write can end that is the last of its manager, or
// not heard of.
var crashFates = []fate{killedBefore, killedAfter, strays, unanswered, failed, conflicts}

// isTried reports whether a write is to end in some way: of most recreations, only the
// ways are tried that tell most.
func (r recreation) isTried(words string, special fate) bool {
	isStatus := strings.Contains(words, "/status")
	return r.table && !isStatus || !isStatus && (special == strays || special == unanswered) || r.table && special == killedBefore
}

// The manager dies before and after every single write of a recreation, its last write
// arrives late, it loses the answer, or the server refuses it: what there is in the end
// is the same, and every byte is there.
func TestRecreationCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, r := range recreations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			w, before := r.begin(g)
			w.settle()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			undisturbed, writes := w.wholeOutcome(before), w.log
			table := newCrashes("write", "killed before", "killed after", "killed, arrives late", "answer lost", "fails", "conflicts")
			for k := 1; k <= len(writes); k++ {
				if !r.table && isLeftOut(k, 4) {
					continue
				}
				for i, special := range crashFates {
					if special != killedAfter && !r.isTried(writes[k-1], special) {
						continue
					}
					w, before := r.begin(g)
					w.fate = disturbing(k, special)
					what := w.reaches(before, undisturbed)
					table.add(writeInWords(writes[:k]), i, what)
					if what != "" {
						t.Errorf("%s: write %d of %d, %s: %s\n%s", special, k, len(writes), writes[k-1], what, w.story)
						return
					}
				}
			}
			if r.table {
				table.check(t, "writes")
			}
		})
	}
}

// The manager dies whenever something else has happened, and comes back at once, some
// seconds later, or when everything that can happen without it has.
func TestRecreationCrashAfterEveryExternalStep(t *testing.T) {
	t.Parallel()
	for _, r := range recreations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			w, before := r.begin(g)
			seconds := w.externalSteps()
			w.settle()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			undisturbed := w.wholeOutcome(before)
			table := newCrashes("step", "back at once", "back after 7s", "back after 3m")
			for second, steps := range seconds {
				if len(steps) == 0 || !r.table && isLeftOut(second, 4) {
					continue
				}
				for i, away := range []time.Duration{0, 7 * time.Second, 3 * time.Minute} {
					if w.claimStrategy().Recreate.TimeoutSeconds != nil && away > time.Minute {
						continue // it is too late then
					}
					w, before := r.begin(g)
					for range second + 1 {
						w.step()
					}
					w.say("the manager is killed for %s: %v", away, steps)
					w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(away)
					what := w.reaches(before, undisturbed)
					for _, step := range steps {
						table.add(step, i, what)
					}
					if what != "" {
						t.Errorf("killed for %s after second %d, %v: %s\n%s", away, second, steps, what, w.story)
						return
					}
				}
			}
			if r.table {
				table.check(t, "steps")
			}
		})
	}
}

// externalSteps runs on, and returns what happens in each second that is not the
// operator's doing.
func (w *World) externalSteps() [][]string {
	var found [][]string
	before := w.externals()
	for range 400 {
		w.step()
		now, steps := w.externals(), []string(nil)
		for key := range now.Union(before) {
			what, _, _ := strings.Cut(key, " of ")
			switch {
			case now[key] == before[key]:
			case now[key] && slices.Contains([]string{"the pod is there", "the claim is there", "the snapshot is there"}, what):
			case now[key] && what == "the old volume is there":
				steps = append(steps, "the new volume is made")
			case now[key]:
				steps = append(steps, what)
			case strings.HasSuffix(what, " is there"), what == "the volume is attached":
				steps = append(steps, strings.Replace(strings.Replace(what, "is there", "is gone", 1), "is attached", "is detached", 1))
			}
		}
		slices.Sort(steps)
		found, before = append(found, slices.Compact(steps)), now
	}
	return found
}

type present map[string]bool

// Union returns what is in one of two.
func (p present) Union(other present) present {
	both := maps.Clone(p)
	maps.Copy(both, other)
	return both
}

// externals tells what is there.
func (w *World) externals() present {
	there := present{}
	for name, pod := range all[*corev1.Pod](w.server) {
		there["the pod is there of "+name+string(pod.UID)] = true
		if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
			there["the pod is ready of "+name+string(pod.UID)] = true
		}
		if pod.Spec.NodeName != "" {
			there["the pod is scheduled of "+name+string(pod.UID)] = true
		}
	}
	for name, claim := range all[*corev1.PersistentVolumeClaim](w.server) {
		there["the claim is there of "+name+string(claim.UID)] = true
		if claim.Status.Phase == corev1.ClaimBound {
			there["the claim is bound of "+name+string(claim.UID)] = true
		}
	}
	for name, pv := range all[*corev1.PersistentVolume](w.server) {
		there["the old volume is there of "+name] = true
		if pv.Status.Phase == corev1.VolumeReleased {
			there["the old volume is released of "+name] = true
		}
	}
	for name, snapshot := range all[*snapshotv1.VolumeSnapshot](w.server) {
		there["the snapshot is there of "+name] = true
		if isUsable(snapshot) {
			there["the snapshot is ready of "+name] = true
		}
	}
	for name := range all[*storagev1.VolumeAttachment](w.server) {
		there["the volume is attached of "+name] = true
	}
	return there
}

// A manager that never survives a write gets there as well.
func TestRecreationCrashAfterEveryWriteInARow(t *testing.T) {
	t.Parallel()
	for _, r := range recreations {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			w, before := r.begin(g)
			w.settle()
			undisturbed := w.wholeOutcome(before)
			w, before = r.begin(g)
			lives := 200
			w.fate = func(write) fate {
				lives--
				if lives > 0 {
					return killedAfter
				}
				return succeeds
			}
			g.Expect(w.reaches(before, undisturbed)).To(BeEmpty(), w.story.String())
		})
	}
}

// crashes is a table of steps and what became of a crash there.
type crashes struct {
	head  []string
	rows  []string
	cells map[string][]int
}

func newCrashes(head ...string) *crashes { return &crashes{head: head, cells: map[string][]int{}} }

func (c *crashes) add(row string, column int, what string) {
	if c.cells[row] == nil {
		c.cells[row] = make([]int, len(c.head)-1)
		c.rows = append(c.rows, row)
	}
	if what == "" {
		c.cells[row][column]++
	}
}

func (c *crashes) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s |\n|%s\n", strings.Join(c.head, " | "), strings.Repeat("---|", len(c.head)))
	for _, row := range c.rows {
		fmt.Fprintf(&text, "| %s |", row)
		for _, n := range c.cells[row] {
			cell := ""
			if n > 0 {
				cell = fmt.Sprintf("the same (%d)", n)
			}
			fmt.Fprintf(&text, " %s |", cell)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// check compares the table with what is written down.
func (c *crashes) check(t *testing.T, name string) {
	t.Helper()
	t.Logf("\n%s", c)
	path := strings.Replace(crashTable, ".md", "-"+name+".md", 1)
	if *update {
		if err := os.WriteFile(path, []byte(c.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(written)).To(Equal(c.String()), "run the test with -update, and read the difference")
}

// writeMeanings tell what the n-th write of a kind for a claim is for.
var writeMeanings = map[string][]string{
	"patch PersistentVolumeClaim": {
		"the attempt is noted on the claim", "it is noted that the trial is over", "it is noted that the pod is stopped",
		"it is noted that nothing uses the volume", "it is noted since when the old volume is held", "the old volume is forgotten",
	},
	"delete Pod":                   {"the pod is deleted"},
	"create VolumeSnapshot":        {"a snapshot is created"},
	"patch PersistentVolume":       {"the old volume is held", "the old volume is noted as replaced", "the old volume is given up"},
	"delete PersistentVolumeClaim": {"the claim is deleted"},
	"create PersistentVolumeClaim": {"the new claim is created"},
	"create Pod":                   {"the new pod is created"},
	"delete VolumeSnapshot":        {"a snapshot is deleted"},
	"create ControllerRevision":    {"the revision is created"},
}

// writeInWords tells what the last of the writes is for.
func writeInWords(writes []string) string {
	last := writes[len(writes)-1]
	words := strings.Fields(last)
	kind, name := words[0]+" "+words[1], words[2]
	switch kind {
	case "patch Pod/status":
		return "the new pod is marked as in service"
	case "patch StatefulSet/status":
		return "the status is written"
	}
	if strings.HasSuffix(name, "-trial") && words[1] == "PersistentVolumeClaim" {
		return "the claim of the trial is " + words[0] + "d"
	}
	n := -1
	for _, write := range writes {
		if write == last || kind == "patch PersistentVolume" && write == kind+" "+name {
			n++
		}
	}
	if meanings := writeMeanings[kind]; n < len(meanings) {
		return meanings[n]
	}
	return kind
}

// A request that fails says nothing of a claim: its pod waits for the claim as before, also
// where it would be updated in service, in the very same reconciliation.
func TestAClaimWhoseRequestFailsHoldsItsPod(t *testing.T) {
	t.Parallel()
	r := recreation{
		settings: recreatingFew(1, func(s *settings) { s.sidecar, s.keepReady = true, true }),
		changes:  []func(*World){func(w *World) { to("proxy")(w); claimsOfClass("fast")(w) }},
	}
	g := NewWithT(t)
	w, before := r.begin(g)
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	undisturbed, writes, tried := w.wholeOutcome(before), w.log, 0
	for i, words := range writes {
		if !strings.Contains(words, "PersistentVolumeClaim") {
			continue
		}
		for _, special := range []fate{unanswered, failed} {
			w, before := r.begin(g)
			w.fate = disturbing(i+1, special)
			g.Expect(w.reaches(before, undisturbed)).To(BeEmpty(), "%s: %s\n%s", special, words, w.story)
			g.Expect(w.story.String()).NotTo(ContainSubstring("sample-0 stops [proxy]"), "%s: %s", special, words)
			tried++
		}
	}
	g.Expect(tried).To(BeNumerically(">", 4), "%v", writes)
}
