// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Reasons why a pod cannot be changed to a revision in place.
const (
	// ReasonRevisionUnknown: the revision that the pod was made from is not in
	// the history, so what changed cannot be told.
	ReasonRevisionUnknown = "RevisionUnknown"
	// ReasonContainersChanged: a container or an init container was added,
	// removed or moved.
	ReasonContainersChanged = "ContainersChanged"
	// ReasonFieldImmutable: the API server does not let a field of a live pod
	// change.
	ReasonFieldImmutable = "FieldImmutable"
	// ReasonRunsOnce: the image of an init container that is no native sidecar
	// was changed. The API server accepts that, and nothing comes of it.
	ReasonRunsOnce = "RunsOnce"
	// ReasonEnvFromMetadata: an environment variable is read from a label or an
	// annotation that changes. A running container keeps the old value, and this
	// one cannot be restarted: it runs once, or its image has no other name.
	ReasonEnvFromMetadata = "EnvFromMetadata"
	// ReasonInjectionChanged: admission would put other containers into a new pod than the
	// pod has, and what was changed in the template asks for those.
	ReasonInjectionChanged = "InjectionChanged"
	// ReasonResizeUnsupported: the API server does not change the sizes of live pods.
	ReasonResizeUnsupported = "ResizeUnsupported"
	// ReasonAdmissionDenied: the API server refuses the change: a policy or a
	// webhook. Only the server can tell, see PodFacts.Refused.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonAdmissionUnknown: the API server was asked, and has not answered,
	// whether it accepts the change.
	ReasonAdmissionUnknown = "AdmissionUnknown"
)

// Refusal says why a pod cannot be changed to a revision in place.
type Refusal struct {
	// Reason is one of the Reason constants.
	Reason string
	// Field is the first field of the template that cannot change in place;
	// empty if the reason is not a field.
	Field string
	// Message says it in words.
	Message string
	// Until is when it may be otherwise without a change of the templates; zero
	// if it never is.
	Until time.Time
	// Denied is true when the API server was asked, and said so.
	Denied bool
}

// policy judges one thing about the way from one template to another. It
// returns nil if it has no objection.
type policy func(from, to *Template) *Refusal

// policies are asked in order; the first objection counts. The narrowest come
// first, so that the reason is the most telling one.
var policies = []policy{
	refuseUnknownRevision,
	refuseOtherContainers,
	refuseFixedFields,
	refuseRemovedTolerations,
	refuseFixedAnnotations,
	refuseImagesThatRunOnce,
	refuseEnvFromMetadata,
}

// refusal returns the first objection to changing a pod in place, or nil.
func refusal(from, to *Template) *Refusal {
	for _, objects := range policies {
		if r := objects(from, to); r != nil {
			return r
		}
	}
	return nil
}

func refuseUnknownRevision(from, _ *Template) *Refusal {
	if from != nil {
		return nil
	}
	return &Refusal{
		Reason:  ReasonRevisionUnknown,
		Message: "the revision that the pod was made from is not in the history",
	}
}

func refuseOtherContainers(from, to *Template) *Refusal {
	d := cmp.Or(
		namedListDifference("spec."+kindContainers, names(from.containers), names(to.containers)),
		namedListDifference("spec."+kindInitContainers, names(from.initContainers), names(to.initContainers)),
	)
	if d == nil {
		return nil
	}
	return &Refusal{Reason: ReasonContainersChanged, Field: d.path, Message: fmt.Sprintf("%s %s", d.path, d.what)}
}

func refuseFixedFields(from, to *Template) *Refusal {
	d := firstDifference(from.alignedWith(to).fixed, to.fixed)
	if d == nil {
		return nil
	}
	return &Refusal{
		Reason:  ReasonFieldImmutable,
		Field:   d.path,
		Message: fmt.Sprintf("%s %s, and the API server lets no live pod change it", d.path, d.what),
	}
}

// refuseOtherGate objects to InPlaceUpdateReady in the template of a pod that lacks it.
// Pods of our kinds that are updated in place have it in any case, so for a pod that has
// it, the template may list it or not. Pods of Kubernetes' kinds have what is listed.
func refuseOtherGate(pod *corev1.Pod, from, to *Template) *Refusal {
	mayLack := !to.gated && !to.native
	if from.gated == to.gated || mayLack || !to.native && hasGate(pod, appsv1beta1.InPlaceUpdateReady) {
		return nil
	}
	what := "was added"
	if from.gated {
		what = "was removed"
	}
	return &Refusal{
		Reason: ReasonFieldImmutable,
		Field:  "spec.readinessGates",
		Message: fmt.Sprintf("spec.readinessGates[%s] %s, and the API server lets no live pod change it",
			appsv1beta1.InPlaceUpdateReady, what),
	}
}

// refuseFixedAnnotations objects to annotations that the API server validates as fields.
func refuseFixedAnnotations(from, to *Template) *Refusal {
	for _, key := range sets.List(sets.KeySet(from.annotations).Union(sets.KeySet(to.annotations))) {
		before, existed := from.annotations[key]
		after, exists := to.annotations[key]
		isFixed := strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) || key == corev1.MirrorPodAnnotationKey
		if !isFixed || existed == exists && before == after {
			continue
		}
		what := "was changed"
		switch {
		case !existed:
			what = "was added"
		case !exists:
			what = "was removed"
		}
		field := fmt.Sprintf("metadata.annotations[%s]", key)
		return &Refusal{
			Reason:  ReasonFieldImmutable,
			Field:   field,
			Message: fmt.Sprintf("%s %s, and the API server lets no live pod change it", field, what),
		}
	}
	return nil
}

// refuseImagesThatRunOnce objects to other images of init containers that have
// ended before the containers of the pod were started.
func refuseImagesThatRunOnce(from, to *Template) *Refusal {
	for _, c := range to.initContainers {
		if c.Sidecar || c.Image == imageOf(c.Name, from.initContainers) {
			continue
		}
		field := fmt.Sprintf("spec.%s[%s].image", kindInitContainers, c.Name)
		return &Refusal{
			Reason: ReasonRunsOnce,
			Field:  field,
			Message: field + " was changed, and an init container without restartPolicy Always runs once, before the containers: " +
				"in a live pod nothing would start the new image",
		}
	}
	return nil
}

// refuseEnvFromMetadata objects if an init container has read what changes, and
// has ended. A container that runs is restarted, see containerChange.
func refuseEnvFromMetadata(from, to *Template) *Refusal {
	ref := staleEnv("", from, to)
	if ref == nil {
		return nil
	}
	return &Refusal{
		Reason:  ReasonEnvFromMetadata,
		Field:   ref.env,
		Message: fmt.Sprintf("%s reads %s, which was changed, and the init container does not run again", ref.env, ref.field),
	}
}

// staleEnv returns the first environment variable of a container that is read
// from what changes between two templates; nil if there is none. The empty name
// stands for the init containers that run once.
func staleEnv(container string, from, to *Template) *fieldRef {
	for i, ref := range to.fieldRefs {
		if ref.container == container && fieldChanges(ref.field, from, to) {
			return &to.fieldRefs[i]
		}
	}
	return nil
}

// fieldChanges reports whether a field path of the downward API names a label or
// an annotation that differs between the templates.
func fieldChanges(field string, from, to *Template) bool {
	for prefix, pair := range map[string][2]map[string]string{
		"metadata.labels['":      {from.labels, to.labels},
		"metadata.annotations['": {from.annotations, to.annotations},
	} {
		key, ok := strings.CutPrefix(field, prefix)
		if !ok {
			continue
		}
		key = strings.TrimSuffix(key, "']")
		before, existed := pair[0][key]
		after, exists := pair[1][key]
		return existed != exists || before != after
	}
	return false
}

func names(containers []Container) namedList {
	list := namedList{}
	for _, c := range containers {
		list.names = append(list.names, c.Name)
		list.items = append(list.items, nil)
	}
	return list
}
