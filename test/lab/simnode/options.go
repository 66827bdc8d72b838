// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
)

// Names that tests and manifests refer to.
const (
	// SimulatedKey is the key of the label and of the taint of every simulated
	// node. The value is "true", the effect NoSchedule.
	SimulatedKey = "insitu.dev/simulated"

	// NodePrefix is the start of every node's name; sim-1 is the first.
	NodePrefix = "sim-"
)

// Options says which nodes are simulated, and how. The zero value of every
// field but Nodes means its default.
type Options struct {
	// Nodes is how many nodes there are, at least 1.
	Nodes int
	// Allocatable is the capacity of each node. Default: 256 CPUs, 1Ti of
	// memory, 1000 pods.
	Allocatable corev1.ResourceList
	// PodCIDR is where pod IPs are taken from. Default: 100.64.0.0/11. Nothing
	// answers there.
	PodCIDR string
	// NodeCIDR is where the nodes' own IPs are taken from. Default:
	// 100.96.0.0/16.
	NodeCIDR string
	// Registry is the URL of the lab's image registry. If set, an image exists
	// if it is there, and has the digest that it has there. If not, every
	// image exists and its digest is computed from its name.
	Registry string
	// SameDigest maps references to the reference with which they share their
	// content, for example "nginx:stable" to "nginx:latest". It is not used
	// with Registry.
	SameDigest map[string]string
	// Timing says how long things take.
	Timing Timing
	// Clock is the time of the simulation. Default: the real time.
	Clock clock.WithTicker
	// Workers is how many pods are worked on at once. Default: 16.
	Workers int
	// KubeletVersion is what the nodes report. Default: corev1.37.0.
	KubeletVersion string
}

// Timing says how long things take on a simulated node. Zero means the default.
type Timing struct {
	// Sandbox is the time to set up the sandbox of a pod. Default: 20ms.
	Sandbox time.Duration
	// Start is the time to pull an image and start a container, or to learn
	// that the image cannot be pulled. Default: 20ms.
	Start time.Duration
	// Stop is the time a container takes to end after SIGTERM. Default: 20ms.
	Stop time.Duration
	// Ready is the time until a probe succeeds, for containers that have
	// one. The others are ready when they start. Default: 20ms.
	Ready time.Duration
	// Init is how long init containers run. Default: 20ms.
	Init time.Duration
	// Crash is how long crashing containers run. Default: 1s.
	Crash time.Duration
	// Resize is the time to apply new resources. Default: 20ms.
	Resize time.Duration
	// Resync is the time until a failure to start that is the result of one
	// sync is published by the next, and until a deferred resize is looked at
	// again. Default: 200ms.
	Resync time.Duration
	// Backoff and MaxBackoff bound the waits before crashed containers are
	// restarted and before images are pulled again. Default: 10s, doubled up
	// to 5m.
	Backoff, MaxBackoff time.Duration
	// Lease is the interval of heartbeats. Default: 10s.
	Lease time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, field := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&t.Sandbox, 20 * time.Millisecond},
		{&t.Start, 20 * time.Millisecond},
		{&t.Stop, 20 * time.Millisecond},
		{&t.Ready, 20 * time.Millisecond},
		{&t.Init, 20 * time.Millisecond},
		{&t.Crash, time.Second},
		{&t.Resize, 20 * time.Millisecond},
		{&t.Resync, 200 * time.Millisecond},
		{&t.Backoff, 10 * time.Second},
		{&t.MaxBackoff, 5 * time.Minute},
		{&t.Lease, 10 * time.Second},
	} {
		if *field.value <= 0 {
			*field.value = field.standard
		}
	}
	return t
}

func (o Options) withDefaults() Options {
	if o.Allocatable == nil {
		o.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("256"),
			corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods:   resource.MustParse("1000"),
		}
	}
	if o.PodCIDR == "" {
		o.PodCIDR = "100.64.0.0/11"
	}
	if o.NodeCIDR == "" {
		o.NodeCIDR = "100.96.0.0/16"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.KubeletVersion == "" {
		o.KubeletVersion = "v1.37.0"
	}
	o.Timing = o.Timing.withDefaults()
	return o
}

func (o Options) validate() error {
	if o.Nodes < 1 {
		return fmt.Errorf("read options: Nodes is %d, want at least 1", o.Nodes)
	}
	for name, value := range map[string]string{"PodCIDR": o.PodCIDR, "NodeCIDR": o.NodeCIDR} {
		if _, err := netip.ParsePrefix(value); err != nil {
			return fmt.Errorf("read options: %s is %q, want a range such as 100.64.0.0/11: %w", name, value, err)
		}
	}
	return nil
}
