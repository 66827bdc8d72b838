// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// resizing: runs by chance change resources, in one of so many.
const resizing = 2

// resizes are the settings of a run in which resources change. The zero value is
// one in which there are none.
type resizes struct {
	on    bool
	class corev1.PodQOSClass
	// limited: containers of burstable pods have limits too.
	limited bool
	// whole: the pods have resources as a whole.
	whole bool
	// restarts is the resource for which the first container restarts; empty for
	// none.
	restarts corev1.ResourceName
	// cpu is what pods may have of a node, in thousandths. early: the server refuses
	// what the node can never hold; otherwise the kubelet says so.
	cpu   int64
	early bool
	// delay is how many seconds a kubelet takes at most to make what it granted.
	delay int
	// mayRepeat: a number may be written twice for one revision, see openFindings.
	mayRepeat bool
	reports   reports
	policy    appsv1beta1.ResizePolicy
}

// reports is how kubelets report the sizes of containers.
type reports int

const (
	// exact: as they are to be.
	exact reports = iota
	// rounded: as the machine has rounded them.
	rounded
	// never: as they were when the container was started.
	never
)

// nodeCPU is what pods may have of a node: enough for all, if no pods of others are there.
const nodeCPU = 24000

// chosenResizes returns settings as the choices have it.
func chosenResizes(c *Choices) resizes {
	if !c.oneIn(resizing) {
		return resizes{}
	}
	r := resizes{
		on: true, cpu: nodeCPU, early: !c.oneIn(3), whole: c.oneIn(8), limited: c.oneIn(2), delay: c.intN(8),
		class: pick(c, []corev1.PodQOSClass{corev1.PodQOSBurstable, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed, corev1.PodQOSBestEffort}),
	}
	r.restarts = pick(c, []corev1.ResourceName{"", "", "", corev1.ResourceCPU, corev1.ResourceMemory})
	r.reports = pick(c, []reports{exact, exact, rounded, never})
	r.policy = chosenResizePolicy(c)
	return r
}

func chosenResizePolicy(c *Choices) appsv1beta1.ResizePolicy {
	policy := appsv1beta1.ResizePolicy{
		OnDeferred:    pick(c, []appsv1beta1.ResizeDeferredPolicy{"", "", appsv1beta1.RecreateResizeDeferred}),
		OnInfeasible:  pick(c, []appsv1beta1.ResizeFailurePolicy{"", "", appsv1beta1.RecreateResizeFailure}),
		OnError:       pick(c, []appsv1beta1.ResizeFailurePolicy{"", "", appsv1beta1.RecreateResizeFailure}),
		Drift:         pick(c, []appsv1beta1.ResizeDriftPolicy{"", "", appsv1beta1.EnforceResizeDrift}),
		MaxConcurrent: pick(c, []*intstr.IntOrString{nil, ptr.To(intstr.FromInt(1)), ptr.To(intstr.FromInt(2)), ptr.To(intstr.FromString("100%"))}),
	}
	if c.oneIn(4) {
		policy.DeferredTimeoutSeconds = ptr.To(int32(10 + c.intN(60)))
	}
	return policy
}

func (r resizes) String() string {
	if !r.on {
		return "no resources"
	}
	return fmt.Sprintf("resources %s, limited %t, whole %t, restarts for %q, %d CPU, refused early %t, made within %ds, reported %d, onDeferred %q, onInfeasible %q, onError %q, drift %q, at a time %s, timeout %ds",
		r.class, r.limited, r.whole, r.restarts, r.cpu, r.early, r.delay, r.reports, r.policy.OnDeferred, r.policy.OnInfeasible, r.policy.OnError, r.policy.Drift,
		ptr.Deref(r.policy.MaxConcurrent, intstr.FromString("default")).StrVal, ptr.Deref(r.policy.DeferredTimeoutSeconds, 0))
}

// fill gives a template its sizes.
func (r resizes) fill(t *corev1.PodTemplateSpec) {
	if !r.on {
		return
	}
	for i := range t.Spec.Containers {
		c := &t.Spec.Containers[i]
		if i == 0 && r.restarts != "" {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: r.restarts, RestartPolicy: corev1.RestartContainer}}
		}
		r.give(c, i == 0)
	}
	for i := range t.Spec.InitContainers {
		r.give(&t.Spec.InitContainers[i], true)
	}
	if r.whole {
		t.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), // memory follows the containers
		}}
	}
}

// give gives a container its size; one that is not full has no memory.
func (r resizes) give(c *corev1.Container, full bool) {
	switch r.class {
	case corev1.PodQOSBestEffort:
		return
	case corev1.PodQOSGuaranteed:
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
	default:
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: {}}
		if full {
			c.Resources.Requests[corev1.ResourceMemory] = resource.Quantity{}
		}
		if r.limited {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: {}}
		}
	}
	setSize(c, corev1.ResourceCPU, "100m")
	setSize(c, corev1.ResourceMemory, "64Mi")
}

// setSize sets the request and the limit that a container has of a resource.
func setSize(c *corev1.Container, name corev1.ResourceName, size string) {
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		if _, has := list[name]; has {
			list[name] = resource.MustParse(size)
		}
	}
}

func sizing(name corev1.ResourceName, size string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { setSize(&t.Spec.Containers[0], name, size) }
}

// becomeAnother gives a container what makes its pod be of another class; nothing is
// removed.
func becomeAnother(r *corev1.ResourceRequirements) {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	switch {
	case r.Requests == nil: // Burstable
		r.Requests = size
	case r.Limits.Cpu().IsZero(): // Guaranteed
		r.Requests, r.Limits = size, size.DeepCopy()
	default: // Burstable
		r.Limits[corev1.ResourceCPU] = resource.MustParse("200m")
	}
}

// resizeRevisions are what the user may ask for where there are resources. Those
// at the end can never be, or never become ready.
var resizeRevisions = []revision{
	{"more cpu", sizing(corev1.ResourceCPU, "150m")},
	{"less cpu", sizing(corev1.ResourceCPU, "50m")},
	{"more memory", sizing(corev1.ResourceMemory, "96Mi")},
	{"less memory", sizing(corev1.ResourceMemory, "32Mi")},
	{"more of all", func(t *corev1.PodTemplateSpec) {
		for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
			for i := range containers {
				setSize(&containers[i], corev1.ResourceCPU, "200m")
				setSize(&containers[i], corev1.ResourceMemory, "128Mi")
			}
		}
	}},
	{"more cpu, b", func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = bImage
		setSize(&t.Spec.Containers[0], corev1.ResourceCPU, "150m")
	}},
	{"more, b, less", func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = bImage
		setSize(&t.Spec.Containers[0], corev1.ResourceCPU, "150m")
		setSize(&t.Spec.Containers[0], corev1.ResourceMemory, "48Mi")
		setSize(&t.Spec.Containers[1], corev1.ResourceCPU, "50m")
	}},
	{"less cpu, label", func(t *corev1.PodTemplateSpec) {
		t.Labels["tier"] = "web"
		setSize(&t.Spec.Containers[0], corev1.ResourceCPU, "50m")
	}},
	{"more memory, level", func(t *corev1.PodTemplateSpec) {
		t.Annotations[levelKey] = "debug"
		setSize(&t.Spec.Containers[0], corev1.ResourceMemory, "96Mi")
	}},
	{"another resource", func(t *corev1.PodTemplateSpec) {
		if t.Spec.Containers[1].Resources.Requests != nil {
			t.Spec.Containers[1].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		}
	}},
	{"more as a whole", func(t *corev1.PodTemplateSpec) {
		if t.Spec.Resources != nil {
			t.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1200m")
		}
	}},
	{"nothing", func(t *corev1.PodTemplateSpec) {
		for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
			for i := range containers {
				containers[i].Resources.Requests, containers[i].Resources.Limits = nil, nil
			}
		}
	}},
	{"no limit", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Limits = nil }},
	{"another class", func(t *corev1.PodTemplateSpec) {
		for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
			for i := range containers {
				becomeAnother(&containers[i].Resources)
			}
		}
	}},
	{"more than a node", func(t *corev1.PodTemplateSpec) {
		setSize(&t.Spec.Containers[0], corev1.ResourceCPU, "99")
		if t.Spec.Resources != nil {
			t.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
		}
	}},
	{"too little memory", sizing(corev1.ResourceMemory, "8Mi")},
}

// goodResizeRevisions is how many of them become ready.
const goodResizeRevisions = 13

// revisions are all that the user may ask for in this run, good those that become
// ready.
func (s settings) revisions() []revision {
	if !s.resizes.on {
		return revisions
	}
	return slices.Concat(revisions, s.wider.splitRevisions(), resizeRevisions)
}

func (s settings) good() []revision {
	if !s.resizes.on {
		return revisions[:goodRevisions]
	}
	return slices.Concat(revisions[:goodRevisions], s.wider.splitRevisions(), resizeRevisions[:goodResizeRevisions])
}
