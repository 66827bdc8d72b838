// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// oneVolume is an API server with one volume.
type oneVolume struct {
	client.Reader // nil: any other method panics

	pv corev1.PersistentVolume
}

func (r *oneVolume) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.pv.DeepCopyInto(object.(*corev1.PersistentVolume)) //nolint:forcetypeassert // nothing else is read
	return nil
}

// What is read of a volume is believed for some time, and no longer once it was read again.
func TestRecentVolumes(t *testing.T) {
	g, ctx, now := NewWithT(t), t.Context(), time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)
	live := &oneVolume{pv: corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}}
	r := New(nil, live, nil)
	isDeleted := func(at time.Time, read func(*Session) func(context.Context, string) (bool, error)) bool {
		deleted, err := read(r.Open(workload.Owner{}, appsv1beta1.VolumeClaimUpdateStrategy{}, at))(ctx, "pv")
		g.Expect(err).NotTo(HaveOccurred())
		return deleted
	}
	recent := func(s *Session) func(context.Context, string) (bool, error) {
		return func(ctx context.Context, name string) (bool, error) {
			v, err := s.recentVolume(ctx, name)
			return v.DeletionTimestamp != nil, err
		}
	}
	current := func(s *Session) func(context.Context, string) (bool, error) {
		return func(ctx context.Context, name string) (bool, error) {
			v, err := s.volume(ctx, name)
			return v.DeletionTimestamp != nil, err
		}
	}
	g.Expect(isDeleted(now, recent)).To(BeFalse())
	live.pv.DeletionTimestamp = &metav1.Time{Time: now}
	g.Expect(isDeleted(now.Add(recentPeriod-time.Second), recent)).To(BeFalse(), "it is believed")
	g.Expect(isDeleted(now.Add(recentPeriod), recent)).To(BeTrue(), "it is too long ago")

	live.pv.DeletionTimestamp = nil
	g.Expect(isDeleted(now.Add(2*recentPeriod), recent)).To(BeFalse())
	live.pv.DeletionTimestamp = &metav1.Time{Time: now}
	g.Expect(isDeleted(now.Add(2*recentPeriod+time.Second), current)).To(BeTrue())
	g.Expect(isDeleted(now.Add(2*recentPeriod+time.Second), recent)).To(BeTrue(), "it was read since")
}
