// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// TestPredecessors looks at which pods new ones wait for, to take over their claims.
func TestPredecessors(t *testing.T) {
	now := builders.Start.Add(time.Minute)
	leaving := func(name string, since time.Time) *corev1.Pod {
		return builders.Pod(name, "1", "nginx:alpine").With(func(pod *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{Time: since}
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
			}}}
		}).Build()
	}
	for name, change := range map[string]struct {
		of   func(*scope)
		want []string
	}{
		"all that are being deleted": {func(*scope) {}, []string{"sample-00001", "sample-00002"}},
		"nothing is missing":         {func(s *scope) { s.scaled.atUpdate = 0 }, nil},
		"claims go with their pods":  {func(s *scope) { s.set.Spec.ScaleStrategy.EnablePVCReuse = new(bool) }, nil},
		"there are no claims": {func(s *scope) {
			s.leaving[0].Spec.Volumes = nil
		}, []string{"sample-00002"}},
		"the next pods have no claims": {func(s *scope) { s.set.Spec.VolumeClaimTemplates = nil }, nil},
		"kept pods have claims, whose template was removed": {func(s *scope) {
			s.set.Spec.VolumeClaimTemplates = nil
			s.Revisions.Current = &history.Revision{Content: history.Content{Claims: []corev1.PersistentVolumeClaim{{}}}}
		}, []string{"sample-00001", "sample-00002"}},
		"kept pods may have claims, of which their revision does not speak": {func(s *scope) {
			s.set.Spec.VolumeClaimTemplates = nil
			s.Revisions.Current = &history.Revision{}
		}, []string{"sample-00001", "sample-00002"}},
		"one is lost": {
			func(s *scope) { s.leaving[0].DeletionTimestamp.Time = now.Add(-time.Hour) }, []string{"sample-00002"},
		},
		"one went for its volumes": {
			func(s *scope) { s.awaited = sets.New("00001") }, []string{"sample-00002"},
		},
		"the spec names one to be deleted": {
			func(s *scope) { s.set.Spec.ScaleStrategy.PodsToDelete = []string{"sample-00002"} }, []string{"sample-00001"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := builders.CloneSet("default", "sample", "nginx:alpine").Build()
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
			s := newScope(set, now)
			s.scaled.atUpdate = 2
			s.Revisions.Update = &history.Revision{Content: history.Content{Claims: []corev1.PersistentVolumeClaim{}}}
			s.Revisions.Current = s.Revisions.Update
			s.leaving = []*corev1.Pod{leaving("sample-00001", now), leaving("sample-00002", now)}
			change.of(s)

			var names []string
			for _, blocker := range s.successorsWait() {
				g.Expect(blocker.Reason).To(Equal(inplace.ReasonTerminating))
				g.Expect(blocker.Message).To(HaveSuffix("the next pod takes over its claims"))
				names = append(names, blocker.Pod.Name)
			}
			g.Expect(names).To(Equal(change.want))
		})
	}
}
