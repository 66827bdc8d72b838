// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package simnode simulates Kubernetes nodes: it registers them, and acts as
// the kubelet of every pod bound to them, without running anything. One process
// holds thousands of pods.
//
//	err := simnode.Run(ctx, restConfig, simnode.Options{Nodes: 10})
//
// registers sim-1 to sim-10 and returns when ctx is done. The nodes carry the
// label and the taint insitu.dev/simulated=true (NoSchedule), so that only pods
// that tolerate it come here. The nodes stay registered; a later Run takes them
// and their pods over as a restarted kubelet does.
//
// # What is like a real kubelet
//
// An operator that watches pods sees what the kubelet of Kubernetes 1.37 with
// containerd shows:
//
//   - One sync of a pod works on one version of its spec to the end: it
//     publishes status.observedGeneration together with the statuses from before,
//     kills what has changed, one container after the other, and starts again.
//     What is written meanwhile is seen by the next sync only. So a container
//     whose image goes from v1 to v2 and back while the kubelet is busy with
//     another container is never restarted.
//   - A change of image, and nothing else, restarts a container. It gets a new
//     containerID, restartCount grows by one, and its end is in lastState.
//   - imageID is by digest; status.image is the name that the runtime prefers for
//     that digest, not the reference in the spec.
//   - Backoff of crashing containers (forgotten when the image changes) and of
//     images that cannot be pulled.
//   - Init containers and sidecars in order, readiness gates, graceful deletion,
//     finalizers, in-place resize with resize policies.
//
// # How to make pods misbehave
//
// By the tag of an image: "missing..." cannot be pulled, "crash..." exits with 1
// after Timing.Crash, "unready..." never becomes ready. By annotations of the
// pod, see StopSecondsAnnotation, CrashAnnotation, UnreadyAnnotation and
// ResizeAnnotation.
//
// # What is different
//
// No events are written, no ephemeral containers run, exec hooks take no time
// unless StopSecondsAnnotation says so, liveness probes never fail, main
// containers never end with 0 by themselves, and volumes are mounted at once.
package simnode
