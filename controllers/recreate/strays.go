// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// This file is about snapshots that nothing needs: a manager was killed when it had asked for
// one, the recreation was given up by the next manager, and the request came after that.

// dropStray deletes a snapshot that nothing needs, after it has read the claim from the API
// server.
func (s *Session) dropStray(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: snapshot.Namespace, Name: *snapshot.Spec.Source.PersistentVolumeClaimName}
	if exists, err := s.get(ctx, key, claim); err != nil || !exists || !recreate.IsStray(snapshot, claim) {
		return err
	}
	s.recent.Delete(keptKey{s.owner.GetUID()}) // what was listed is over
	if err := s.deleteSnapshot(ctx, snapshot); err != nil {
		return fmt.Errorf("delete snapshot %s/%s, which nothing needs: %w", snapshot.Namespace, snapshot.Name, err)
	}
	s.recorder.Eventf(s.owner.Object, claim, corev1.EventTypeNormal, appsv1beta1.ReasonDeletingSnapshot, workload.ActionUpdate,
		"claim %s: snapshot %s is deleted: the recreation that it was taken for has ended", claim.Name, snapshot.Name)
	return nil
}

// requestsPeriod is for how long a request of a manager that was killed may still arrive.
// API servers give up a request after 60 seconds by default.
const requestsPeriod = 2 * time.Minute

type looksKey struct{ owner types.UID }

// LooksAgain reports whether what is kept has to be read once more in a KeptPeriod, although
// nothing is: this manager has written something for the workload a moment ago, perhaps to
// give up what the manager before it had begun.
func (s *Session) LooksAgain() bool {
	at, _ := s.recent.Get(looksKey{s.owner.GetUID()})
	written, known := at.(time.Time)
	return known && s.now.Before(written.Add(requestsPeriod))
}
