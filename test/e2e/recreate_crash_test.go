// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// recreateEnd is what the recreation of all claims of a set leaves behind, without
// what differs from run to run.
type recreateEnd struct {
	Data       map[string]string // by pod
	Claims     map[string]string // what each is like
	Volumes    map[string]int    // how many there are that are alike
	Snapshots  map[string]int    // by claim
	OnDriver   [2]int            // volumes and snapshots
	Recreated  int32
	Replicas   [3]int32 // all, ready and updated ones
	Compatible int32
}

// crashRun is the recreation of the claims of a set by a manager that may die.
type crashRun struct {
	*managerProcess

	set *appsv1beta1.StatefulSet
	// data and volumes are what the pods had in the beginning, and where.
	data, volumes map[string]string
	changed       int // the writes before the change
	rows          []crashRow
}

// crashRow is a row of the table: a write, and what was there when the manager had
// died of it.
type crashRow struct {
	number      int
	step, found string
}

// newCrashRun makes a set of three pods, with data, whose claims are about to be
// recreated.
func newCrashRun(ctx context.Context, program string) *crashRun {
	GinkgoHelper()
	r := &crashRun{}
	namespace := newRecreateNamespace(ctx)
	r.managerProcess = newManagerProcess(program, namespace)
	r.start()
	r.set = create(ctx, nginxWithVolume(namespace, classStandard).With(recreating(keepingNothing(1))))
	fillVolumes(ctx, r.set)
	r.data, r.volumes = contents(ctx, r.set), boundTo(ctx, namespace)
	Expect(r.volumes).To(HaveLen(3))
	return r
}

// run recreates the claims with a manager that dies of some writes, each with a
// number from 1. If others are waited for, it is started again only when they have
// done what they do.
func (r *crashRun) run(ctx context.Context, waitForOthers bool, isFatal func(number int) bool) recreateEnd {
	GinkgoHelper()
	r.changed = len(r.written())
	r.isFatal = func(number int, _ write) bool { return isFatal(number - r.changed) }
	change(ctx, r.set, toClass(classNoatime))
	r.outlive(ctx, r.isDone, func(ctx context.Context, w write) {
		if waitForOthers && !strings.HasPrefix(w.resource, "statefulsets") {
			r.waitQuiet(ctx)
		}
		r.rows = append(r.rows, crashRow{number: len(r.written()) - r.changed, step: r.describe(w), found: r.examine(ctx)})
	})
	end := r.outcome(ctx)
	r.end()
	return end
}

// isDone reports whether nothing is left to be done.
func (r *crashRun) isDone(ctx context.Context) bool {
	ok := true
	g := NewGomega(func(string, ...int) { ok = false })
	g.Expect(api.Get(ctx, client.ObjectKeyFromObject(r.set), r.set)).To(Succeed())
	isSettled(g, r.set)
	g.Expect(r.set.Status.ReadyReplicas).To(BeEquivalentTo(3))
	for _, claims := range r.set.Status.VolumeClaims {
		g.Expect(claims.CompatibleReadyReplicas).To(BeEquivalentTo(3))
	}
	g.Expect(classes(ctx, r.namespace)).To(Equal(of(3, classNoatime)))
	g.Expect(volumesOf(ctx, r.namespace)).To(HaveLen(3))
	g.Expect(snapshots(ctx, r.namespace)).To(BeEmpty())
	for _, claim := range claimList(ctx, r.namespace) {
		for _, volume := range r.volumes {
			g.Expect(fmt.Sprint(claim.Annotations)).NotTo(ContainSubstring(volume))
		}
	}
	return ok
}

// outcome reads what is there at the end.
func (r *crashRun) outcome(ctx context.Context) recreateEnd {
	GinkgoHelper()
	end := recreateEnd{
		Data: contents(ctx, r.set), Claims: map[string]string{}, Volumes: map[string]int{}, Snapshots: map[string]int{},
		OnDriver:  [2]int{len(labVolumes(r.namespace)), labSnapshots(append(labVolumes(r.namespace), slices.Collect(maps.Values(r.volumes))...))},
		Recreated: r.set.Status.Recreated,
		Replicas:  [3]int32{r.set.Status.Replicas, r.set.Status.ReadyReplicas, r.set.Status.UpdatedReplicas},
	}
	for _, claims := range r.set.Status.VolumeClaims {
		end.Compatible += claims.CompatibleReadyReplicas
	}
	for _, claim := range claimList(ctx, r.namespace) {
		source := ""
		if claim.Spec.DataSource != nil {
			source = claim.Spec.DataSource.Kind
		}
		end.Claims[claim.Name] = fmt.Sprintf("%s %s %s %s from %s, labels %v, annotations %v, deleted %t", claim.Status.Phase,
			ptr.Deref(claim.Spec.StorageClassName, ""), claim.Status.Capacity.Storage(), claim.Spec.AccessModes, source,
			claim.Labels, slices.Sorted(maps.Keys(claim.Annotations)), claim.DeletionTimestamp != nil)
	}
	for _, volume := range volumesOf(ctx, r.namespace) {
		end.Volumes[fmt.Sprintf("%s %s %s %s, labels %v, annotations %v", volume.Spec.ClaimRef.Name, volume.Status.Phase, volume.Spec.StorageClassName,
			volume.Spec.PersistentVolumeReclaimPolicy, volume.Labels, slices.Sorted(maps.Keys(volume.Annotations)))]++
	}
	for _, snapshot := range snapshots(ctx, r.namespace) {
		end.Snapshots[snapshot.GetLabels()[claimLabel]]++
	}
	return end
}

// waitQuiet waits until what others do has come to rest.
func (r *crashRun) waitQuiet(ctx context.Context) {
	GinkgoHelper()
	const quiet, most = 1500 * time.Millisecond, 20 * time.Second
	began, since, last := time.Now(), time.Now(), ""
	for time.Since(began) < most && time.Since(since) < quiet {
		if now := r.versions(ctx); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// versions is different after each change of what a recreation changes.
func (r *crashRun) versions(ctx context.Context) string {
	GinkgoHelper()
	var all []string
	note := func(object client.Object) { all = append(all, object.GetName()+" "+object.GetResourceVersion()) }
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(r.namespace))).To(Succeed())
	for i := range list.Items {
		note(&list.Items[i])
	}
	for _, claim := range claimList(ctx, r.namespace) {
		note(&claim)
	}
	for _, volume := range volumesOf(ctx, r.namespace) {
		note(&volume)
	}
	for _, snapshot := range snapshots(ctx, r.namespace) {
		note(&snapshot)
	}
	return strings.Join(append(all, labVolumes(r.namespace)...), "\n")
}

// describe is a write in words, with nothing that differs from run to run.
func (r *crashRun) describe(w write) string {
	for claim, volume := range r.volumes {
		if w.resource == "persistentvolumes" && w.name == volume {
			return claim + ": " + describeVolume(w)
		}
		if w.resource == "volumesnapshots" && strings.HasPrefix(w.name, claim) {
			if strings.HasSuffix(w.name, "-trial") {
				return claim + ": " + w.verb + " first snapshot"
			}
			return claim + ": " + w.verb + " snapshot"
		}
		if w.resource == "persistentvolumeclaims" && strings.HasPrefix(w.name, claim) && strings.HasSuffix(w.name, "-trial") {
			return claim + ": " + w.verb + " claim of the trial"
		}
		if w.resource == "persistentvolumeclaims" && w.name == claim {
			return claim + ": " + describeClaim(w)
		}
	}
	return w.String()
}

// describeVolume is a write to a volume that is replaced.
func describeVolume(w write) string {
	switch {
	case !bytes.Contains(w.body, []byte("insitu.dev/held-volume")):
		return "release the old volume"
	case bytes.Contains(w.body, []byte(`"insitu.dev/held-volume":null`)):
		return "hold the old volume no more"
	case bytes.Contains(w.body, []byte("provedTimestamp")):
		return "note that the new volume is proved"
	default:
		return "hold the old volume"
	}
}

// describeClaim is a write to a claim that is recreated.
func describeClaim(w write) string {
	switch {
	case w.verb != "patch":
		return w.verb + " claim"
	case bytes.Contains(w.body, []byte("stoppedTimestamp")):
		return "note that nothing uses the volume"
	case bytes.Contains(w.body, []byte(`\"pod\"`)):
		return "note that its pod is stopped"
	case bytes.Contains(w.body, []byte("triedTimestamp")):
		return "note that the first snapshot was ready"
	case bytes.Contains(w.body, []byte(`\"recreate\"`)):
		return "note that it is to be recreated"
	case bytes.Contains(w.body, []byte("sinceTimestamp")):
		return "note since when the old volume is held"
	default:
		return "note that nothing is held any more"
	}
}

// examine looks for what must never be, and says what there is. For every pod
// there must be a volume with its data: one that its claim has, or one that is
// kept. No claim may have an empty one.
func (r *crashRun) examine(ctx context.Context) string {
	GinkgoHelper()
	claims := map[string]corev1.PersistentVolumeClaim{}
	for _, claim := range claimList(ctx, r.namespace) {
		claims[claim.Name] = claim
	}
	volumes := map[string]corev1.PersistentVolume{}
	for _, volume := range volumesOf(ctx, r.namespace) {
		volumes[volume.Name] = volume
	}
	records := labRecords("volumes") // after what it is compared with
	away, states := 0, []string{}
	for i := range 3 {
		pod, name := fmt.Sprintf("sample-%d", i), fmt.Sprintf("data-sample-%d", i)
		var state string
		old, isThere := volumes[r.volumes[name]]
		claim, exists := claims[name]
		bound := claim.Spec.VolumeName != ""
		isNew := bound && claim.Spec.VolumeName != r.volumes[name]
		switch {
		case !exists:
			state = "no claim"
		case !bound:
			state = "new claim, no volume yet"
		case isNew:
			state = "new claim, bound"
			Expect(records).To(HaveKey(claim.Spec.VolumeName))
			Expect(records[claim.Spec.VolumeName].Source).NotTo(BeNil(), "claim %s has an empty volume", name)
		case claim.DeletionTimestamp != nil:
			state = "old claim, which goes"
		default:
			state = "old claim"
		}
		if !isNew {
			Expect(isThere).To(BeTrue(), "%s: the volume with the data is gone, %s", name, state)
			Expect(records).To(HaveKey(r.volumes[name]))
		}
		if !bound || claim.DeletionTimestamp != nil {
			Expect(old.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain), "%s: %s", name, state)
		}
		if isThere && old.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			state += ", old volume held"
		}
		state += strings.Repeat(", snapshot", len(snapshotsOf(ctx, r.namespace, name)))
		found := &corev1.Pod{}
		err := api.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: pod}, found)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		switch {
		case err != nil:
			away++
			state += ", no pod"
		case found.DeletionTimestamp != nil:
			away++
			state += ", pod stops"
		case !isReady(found):
			away++
			state += ", pod not ready"
		}
		states = append(states, fmt.Sprintf("%d: %s", i, state))
	}
	Expect(away).To(BeNumerically("<=", 1), "%v", states)
	return strings.Join(states, "; ")
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// steps returns what was written, but for the status of the set, which is written
// whenever the manager looks at the set.
func (r *crashRun) steps() []string {
	var steps []string
	for _, w := range r.written()[r.changed:] {
		if w.resource != "statefulsets/status" {
			steps = append(steps, r.describe(w))
		}
	}
	return steps
}

// table says of every step at which the manager died what there was then, and
// whether all ended as it did for a manager that lived.
func (r *crashRun) table(end, undisturbed recreateEnd) string {
	outcome := "as without a crash"
	if !reflect.DeepEqual(end, expecting(undisturbed, r)) {
		outcome = "OTHERWISE"
	}
	var b strings.Builder
	for _, row := range r.rows {
		fmt.Fprintf(&b, "%3d | %s | %s | %s\n", row.number, row.step, row.found, outcome)
	}
	return b.String()
}

var _ = Describe("The manager, killed with SIGKILL while it recreates claims", Serial, func() {
	It("after any write, and after all that others do then, ends the same", func(ctx context.Context) {
		program := buildManager(ctx)
		stopOperator(ctx)
		never := func(int) bool { return false }
		always := func(number int) bool { return number > 0 }

		runs := []*crashRun{newCrashRun(ctx, program), newCrashRun(ctx, program), newCrashRun(ctx, program)}
		ends := make([]recreateEnd, len(runs))
		var all sync.WaitGroup
		for i, how := range []struct {
			waitForOthers bool
			isFatal       func(int) bool
		}{{false, never}, {false, always}, {true, always}} {
			all.Go(func() {
				defer GinkgoRecover()
				ends[i] = runs[i].run(ctx, how.waitForOthers, how.isFatal)
			})
		}
		all.Wait()
		AddReportEntry("Killed after each write", runs[1].table(ends[1], ends[0]))
		AddReportEntry("Killed after each write, and started again when all was quiet", runs[2].table(ends[2], ends[0]))
		for i, end := range ends {
			Expect(end.Data).To(Equal(runs[i].data))
			Expect(end).To(Equal(expecting(ends[0], runs[i])))
		}
		Expect(runs[1].steps()).To(ConsistOf(runs[0].steps()))
		Expect(runs[2].steps()).To(ConsistOf(runs[0].steps()))
	})
})

// expecting is an end with the data that another run had in the beginning.
func expecting(end recreateEnd, run *crashRun) recreateEnd {
	end.Data = run.data
	return end
}
