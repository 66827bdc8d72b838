// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Template is a pod template as the user wrote it, without the defaults that
// the API server fills in when a pod is made from it. Two templates are equal
// when they say the same: null and [] say what an absent field says, so does {} where it
// means nothing (see meaninglessWhenEmpty), and so does a default that is written out.
//
// It keeps fields that this release does not know, so a template written by a
// newer release compares correctly.
type Template struct {
	fields map[string]any
	// meaning are the fields without those that have their defaults; fixed are those of
	// them that no live pod can change.
	meaning, fixed map[string]any
	// gated is true when InPlaceUpdateReady is among the readiness gates. It is not in
	// fixed: see refuseOtherGate.
	gated bool
	// tolerations are not in fixed, either: a live pod can get more.
	tolerations []corev1.Toleration
	// native is true for a template of a workload of Kubernetes itself.
	native      bool
	labels      map[string]string
	annotations map[string]string
	// containers and initContainers are the two lists of the spec; live holds
	// the containers and, after them, the sidecars.
	containers, initContainers, live []Container
	// account is what a kubelet pulls the images with, and placement is what chooses nodes.
	account   PullAccount
	placement map[string]any
	fieldRefs []fieldRef
	// amounts are the sizes that a live pod can change.
	amounts resize.Amounts
	// derived are the fields of amounts that follow the containers of a live pod.
	derived sets.Set[resize.Field]
}

// The lists of a pod's spec that hold containers.
const (
	kindInitContainers = "initContainers"
	kindContainers     = "containers"
)

var containerKinds = []string{kindInitContainers, kindContainers}

// fieldRef is an environment variable that is read from a field of the pod when
// its container starts.
type fieldRef struct {
	// env names the variable: spec.containers[main].env[LEVEL]. It is empty where the
	// container reads nothing, and is restarted when the field changes.
	env string
	// field is the field of the pod: metadata.annotations['level'].
	field string
	// container is the name of the container; empty for an init container that
	// is no sidecar.
	container string
}

// Container is what a Template says of one container.
type Container struct {
	Name  string
	Image string
	// Sidecar is true for a native sidecar: an init container with restartPolicy
	// Always.
	Sidecar bool
	// pullPolicy is empty where the template says none.
	pullPolicy corev1.PullPolicy
}

// ParseTemplate reads the JSON of a PodTemplateSpec.
func ParseTemplate(raw []byte) (*Template, error) {
	fields := map[string]any{}
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("parse pod template: %w", err)
	}
	return newTemplate(fields), nil
}

// NewTemplate reads a template from any value that marshals to the JSON of a
// PodTemplateSpec.
func NewTemplate(spec any) (*Template, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("marshal pod template: %w", err)
	}
	return ParseTemplate(raw)
}

func newTemplate(fields map[string]any) *Template {
	fields, _ = normalise(fields).(map[string]any)
	meaning := withoutDefaults(fields)
	t := &Template{
		fields:         fields,
		meaning:        meaning,
		fixed:          fixedFields(meaning),
		labels:         stringMap(fields, "metadata", "labels"),
		annotations:    stringMap(fields, "metadata", "annotations"),
		containers:     containers(fields, kindContainers),
		initContainers: containers(fields, kindInitContainers),
		account:        pullAccountOf(fields),
		placement:      placementOf(fields),
		fieldRefs:      fieldRefs(fields),
	}
	t.gated = removeGate(t.fixed)
	t.tolerations = takeTolerations(t.fixed)
	t.amounts, t.derived = amounts(fields)
	if t.amounts != nil {
		t.fixed = withoutAmounts(t.fixed)
	}
	t.live = slices.Clone(t.containers)
	for _, c := range t.initContainers {
		if c.Sidecar {
			t.live = append(t.live, c)
		}
	}
	t.fieldRefs = append(t.fieldRefs, askedRestarts(t.annotations, t.live)...)
	return t
}

// Equal reports whether both templates say the same.
func (t *Template) Equal(other *Template) bool {
	return firstDifference(t.alignedWith(other).meaning, other.meaning) == nil
}

// MarshalJSON returns the template as JSON, normalised: equal templates give
// equal bytes.
func (t *Template) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.fields)
}

// Labels returns the labels of the template. The caller does not change them.
func (t *Template) Labels() map[string]string {
	return t.labels
}

// Annotations returns the annotations of the template. The caller does not
// change them.
func (t *Template) Annotations() map[string]string {
	return t.annotations
}

// Containers returns the containers in the order of the template and, after
// them, the native sidecars in theirs. The caller does not change them.
func (t *Template) Containers() []Container {
	return t.live
}

// allContainers returns the containers of both lists.
func (t *Template) allContainers() []Container { return slices.Concat(t.initContainers, t.containers) }

// claimVolumes returns the names of the volumes of the template that are claims.
func (t *Template) claimVolumes() []string {
	field, _, _ := unstructured.NestedFieldNoCopy(t.fields, "spec", "volumes")
	volumes, _ := field.([]any)
	var names []string
	for _, volume := range volumes {
		fields, _ := volume.(map[string]any)
		if _, isClaim := fields["persistentVolumeClaim"]; isClaim {
			name, _ := fields["name"].(string)
			names = append(names, name)
		}
	}
	return names
}

// image returns the image of the named container or sidecar; empty if there is
// none.
func (t *Template) image(name string) string {
	return imageOf(name, t.live)
}

func imageOf(name string, containers []Container) string {
	for _, c := range containers {
		if c.Name == name {
			return c.Image
		}
	}
	return ""
}

func stringMap(fields map[string]any, path ...string) map[string]string {
	// What is not a map of strings is refused by the schema of the API and by
	// the API server when a pod is made; here it reads as nothing.
	found, _, _ := unstructured.NestedStringMap(fields, path...)
	return found
}

func containers(fields map[string]any, kind string) []Container {
	list, _, _ := unstructured.NestedSlice(fields, "spec", kind)
	found := make([]Container, 0, len(list))
	for _, item := range list {
		container, _ := item.(map[string]any)
		name, _ := container["name"].(string)
		image, _ := container["image"].(string)
		policy, _ := container["imagePullPolicy"].(string)
		found = append(found, Container{Name: name, Image: image, Sidecar: isSidecar(kind, container), pullPolicy: corev1.PullPolicy(policy)})
	}
	return found
}

func isSidecar(kind string, container map[string]any) bool {
	return kind == kindInitContainers && container["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways)
}

func fieldRefs(fields map[string]any) []fieldRef {
	var found []fieldRef
	for _, kind := range containerKinds {
		list, _, _ := unstructured.NestedSlice(fields, "spec", kind)
		for _, item := range list {
			container, _ := item.(map[string]any)
			for _, ref := range containerFieldRefs(kind, container) {
				if kind == kindContainers || isSidecar(kind, container) {
					ref.container, _ = container["name"].(string)
				}
				found = append(found, ref)
			}
		}
	}
	return found
}

func containerFieldRefs(kind string, container map[string]any) []fieldRef {
	var found []fieldRef
	variables, _, _ := unstructured.NestedSlice(container, "env")
	for _, variable := range variables {
		env, _ := variable.(map[string]any)
		if field, _, _ := unstructured.NestedString(env, "valueFrom", "fieldRef", "fieldPath"); field != "" {
			found = append(found, fieldRef{env: fmt.Sprintf("spec.%s[%v].env[%v]", kind, container["name"], env["name"]), field: field})
		}
	}
	return found
}

// fixedFields returns a copy of a template's fields without what can change in
// place, and without what has a policy of its own: labels, annotations and the
// images of containers and init containers.
func fixedFields(fields map[string]any) map[string]any {
	fixed := runtime.DeepCopyJSON(fields)
	unstructured.RemoveNestedField(fixed, "metadata", "labels")
	unstructured.RemoveNestedField(fixed, "metadata", "annotations")
	spec, _ := fixed["spec"].(map[string]any)
	for _, kind := range containerKinds {
		list, _ := spec[kind].([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok {
				delete(container, "image")
			}
		}
	}
	fixed, _ = normalise(fixed).(map[string]any)
	return fixed
}

// removeGate takes InPlaceUpdateReady out of the readiness gates of a template, and
// reports whether it was there.
func removeGate(fields map[string]any) bool {
	gates, _, _ := unstructured.NestedSlice(fields, "spec", "readinessGates")
	others := slices.DeleteFunc(slices.Clone(gates), func(gate any) bool {
		named, _ := gate.(map[string]any)
		return named["conditionType"] == string(appsv1beta1.InPlaceUpdateReady)
	})
	switch {
	case len(others) == len(gates):
		return false
	case len(others) == 0:
		unstructured.RemoveNestedField(fields, "spec", "readinessGates")
	default:
		_ = unstructured.SetNestedSlice(fields, others, "spec", "readinessGates") // it was a list before
	}
	return true
}

// amounts returns the sizes in a template that a live pod can change, and which of
// them are derived; nil if they cannot be read. The schema of the API refuses such
// ones.
func amounts(fields map[string]any) (resize.Amounts, sets.Set[resize.Field]) {
	spec := corev1.PodSpec{}
	sized := map[string]any{}
	all, _ := fields["spec"].(map[string]any)
	for _, key := range []string{"resources", kindInitContainers, kindContainers} {
		if value, ok := all[key]; ok {
			sized[key] = sizesIn(value)
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sized, &spec); err != nil {
		return nil, nil
	}
	return resize.InTemplate(&spec), resize.Derived(&spec)
}

// sizesIn returns of a list of containers what sizes are read from. Other values
// are returned as they are.
func sizesIn(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	sized := make([]any, 0, len(list))
	for _, item := range list {
		container, _ := item.(map[string]any)
		kept := map[string]any{}
		for _, key := range []string{"name", "resources", "restartPolicy"} {
			if field, ok := container[key]; ok {
				kept[key] = field
			}
		}
		sized = append(sized, kept)
	}
	return sized
}

// withoutAmounts returns fields without what resize.Amounts hold. It takes them out
// of the fields that it is given.
func withoutAmounts(fields map[string]any) map[string]any {
	spec, _ := fields["spec"].(map[string]any)
	remove := func(sized map[string]any) {
		for _, list := range []string{"requests", "limits"} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				unstructured.RemoveNestedField(sized, "resources", list, string(name))
			}
		}
	}
	if spec != nil {
		remove(spec)
	}
	for _, kind := range containerKinds {
		list, _ := spec[kind].([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok && (kind == kindContainers || isSidecar(kind, container)) {
				remove(container)
			}
		}
	}
	fields, _ = normalise(fields).(map[string]any)
	return fields
}

// meaninglessWhenEmpty lists the fields whose {} says what an absent field says.
// Elsewhere {} has a meaning of its own: an empty labelSelector selects every
// pod, an absent one selects none.
var meaninglessWhenEmpty = sets.New("metadata", "labels", "annotations", "resources", "limits", "requests",
	"securityContext", "nodeSelector", "affinity", "matchLabels", "spec", "template")

// normalise returns value without the fields that say nothing. Items of lists
// are kept, so that indexes stay what they were.
func normalise(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(typed))
		for key, field := range typed {
			if field = normalise(field); !saysNothing(key, field) {
				kept[key] = field
			}
		}
		return kept
	case []any:
		kept := make([]any, len(typed))
		for i := range typed {
			kept[i] = normalise(typed[i])
		}
		return kept
	default:
		return value
	}
}

func saysNothing(key string, value any) bool {
	switch typed := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(typed) == 0 && meaninglessWhenEmpty.Has(key)
	case []any:
		return len(typed) == 0
	default:
		return false
	}
}
