// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/observe"
)

const (
	setManifest = "config/samples/statefulset.yaml"
	setName     = "sample"
	setSelector = "app=sample"
)

// updateStatefulSet updates the image of a StatefulSet of apps.kruise.io.
func (d *demo) updateStatefulSet(ctx context.Context) error {
	if err := d.kubectl(ctx, "apply", "-f", setManifest); err != nil {
		return err
	}
	before, err := d.settledSet(ctx, oldImage)
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "patch", "statefulsets.apps.kruise.io", setName, "--type=json", "--patch",
		`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "`+newImage+`"}]`); err != nil {
		return err
	}
	after, err := d.settledSet(ctx, newImage)
	if err != nil {
		return err
	}
	return report(d.out, before, after, newImage)
}

// settledSet waits until the set runs an image everywhere, showing how it gets
// there, and returns its pods.
func (d *demo) settledSet(ctx context.Context, image string) ([]observe.Pod, error) {
	shown := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		set := &appsv1beta1.StatefulSet{}
		err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: setName}, set)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if line := progress(set); line != shown && err == nil {
			fmt.Fprintln(d.out, " ", line)
			shown = line
		}
		return err == nil && isSettled(set, image), nil
	})
	if err != nil {
		return nil, fmt.Errorf("StatefulSet %s/%s does not settle at image %s: %w (last seen: %s)", namespace, setName, image, err, shown)
	}
	return d.pods(ctx, setSelector)
}

func isSettled(set *appsv1beta1.StatefulSet, image string) bool {
	return set.Spec.Template.Spec.Containers[0].Image == image &&
		set.Status.ObservedGeneration == set.Generation &&
		set.Status.UpdatedAvailableReplicas == replicas &&
		set.Status.CurrentRevision == set.Status.UpdateRevision
}

func progress(set *appsv1beta1.StatefulSet) string {
	s := set.Status
	line := fmt.Sprintf("%d of %d pods available, %d of them at the new revision", s.AvailableReplicas, replicas, s.UpdatedAvailableReplicas)
	for _, b := range s.Blockers {
		line += fmt.Sprintf("; %s: %s", b.Pod, b.Reason)
	}
	return line
}
