// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Sizes. Those of labels are set by Kubernetes, the others by us, far above
// what any user sets: the API server computes the cost of a rule from the
// largest input that the schema accepts, and refuses a definition whose rules
// could cost too much.
const (
	labelKeyLength   = 317 // a domain of 253, a slash, a name of 63
	labelValueLength = 63
	dnsLabelLength   = 63
	objectNameLength = 253

	maxLabels            = 100
	maxRequirements      = 32
	maxRequirementValues = 64
	maxContainers        = 100
	maxAccessModes       = 4
)

const (
	template = "spec.template"
	claim    = "spec.volumeClaimTemplates.[]"
)

// special is what only one kind has.
type special struct {
	// priorityStrategies are the fields that order pods by their labels.
	priorityStrategies []string
	// hasNoClaims: its pods have none of their own. keepsClaims: they are not recreated.
	hasNoClaims, keepsClaims bool
}

var specials = map[string]special{
	"CloneSet": {
		priorityStrategies: []string{
			"spec.updateStrategy.priorityStrategy",
			"spec.updateStrategy.rollingUpdate.priorityStrategy",
		},
		keepsClaims: true,
	},
	"DaemonSet": {hasNoClaims: true},
	"StatefulSet": {
		priorityStrategies: []string{
			"spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy",
		},
	},
}

// refine adds to the embedded types, which carry no markers of ours, what a
// native workload checks when its template is written.
func refine(root *schemaProps, kind string) error {
	switch kind {
	case "ContainerRecreateRequest":
		return nil
	case "ImagePullJob":
		return errors.Join(refineImage(root, "spec.image"), refinePullJob(root))
	case "ImageListPullJob":
		return errors.Join(refineImage(root, "spec.images.[]"), refinePullJob(root))
	}

	return errors.Join(
		edit(root, template, embed),
		edit(root, template+".metadata", acceptCreationTimestamp),
		refineContainers(root),
		refineClaims(root, kind),
		refineClaimStrategy(root, kind),
		refineLabels(root, template+".metadata.labels"),
		refineSelector(root, "spec.selector"),
		refinePriorities(root, kind),
		refineHooks(root),
	)
}

// refinePriorities checks the selectors of pods that are updated first.
func refinePriorities(root *schemaProps, kind string) error {
	var errs []error

	for _, path := range specials[kind].priorityStrategies {
		errs = append(errs, refineSelector(root, path+".weightPriority.[].matchSelector"))
	}

	return errors.Join(errs...)
}

func refineContainers(root *schemaProps) error {
	containers := template + ".spec.containers"

	return errors.Join(
		edit(root, template, require("spec")),
		edit(root, containers, minItems(1), maxItems(maxContainers)),
		edit(root, containers+".[]", require("image")),
		edit(root, containers+".[].image", minLength(1)),
		edit(root, containers+".[].name", maxLength(dnsLabelLength), rule(
			"!format.dns1123Label().validate(self).hasValue()",
			`'the name of a container must be a DNS label (lower case letters, digits and -); found "' + self + '"'`)),
		edit(root, template+".spec.ephemeralContainers", acceptNoItems),
	)
}

func refineClaims(root *schemaProps, kind string) error {
	if specials[kind].hasNoClaims {
		return nil
	}

	return errors.Join(
		edit(root, claim, embed, require("metadata", "spec")),
		edit(root, claim+".metadata", acceptCreationTimestamp, require("name")),
		edit(root, claim+".metadata.name", maxLength(dnsLabelLength), rule(
			"!format.dns1123Label().validate(self).hasValue()",
			`'the name of a claim template must be a DNS label (lower case letters, digits and -); found "' + self + '"'`)),
		edit(root, claim+".spec", require("accessModes", "resources")),
		edit(root, claim+".spec.accessModes", minItems(1), maxItems(maxAccessModes)),
		edit(root, claim+".spec.accessModes.[]", enum(
			"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")),
		edit(root, claim+".spec.storageClassName", maxLength(objectNameLength)),
		edit(root, claim+".spec.volumeMode", maxLength(dnsLabelLength), enum("Filesystem", "Block")),
		edit(root, claim+".spec.accessModes.[]", maxLength(dnsLabelLength)),
		edit(root, claim+".spec.resources", require("requests")),
		edit(root, claim+".spec.resources.requests", require("storage")),
	)
}

// refineClaimStrategy takes away what a kind does not do.
func refineClaimStrategy(root *schemaProps, kind string) error {
	if !specials[kind].keepsClaims {
		return nil
	}

	return edit(root, "spec.volumeClaimUpdateStrategy", func(s *schemaProps) {
		delete(s.Properties, "recreate")
		s.XValidations = slices.DeleteFunc(s.XValidations, func(r apiextensionsv1.ValidationRule) bool {
			return r.FieldPath == ".recreate"
		})
	})
}

// refineLabels checks the values of labels. Their keys are checked when the
// pod is created: a rule over the keys of a map costs more than a definition
// may, because nothing can bound their length.
func refineLabels(root *schemaProps, path string) error {
	return errors.Join(
		edit(root, path, maxProperties(maxLabels)),
		edit(root, path+".{}", labelValue()...),
	)
}

func labelValue() []change {
	return []change{maxLength(labelValueLength), rule(
		"!format.labelValue().validate(self).hasValue()",
		`'a label value must begin and end with a letter or digit, with -, _ and . between; found "' + self + '"'`)}
}

// refineHooks checks the values of the labels that a lifecycle hook sets.
func refineHooks(root *schemaProps) error {
	var errs []error

	for _, hook := range []string{"preDelete", "inPlaceUpdate", "preNormal"} {
		errs = append(errs, edit(root, "spec.lifecycle."+hook+".labelsHandler.{}", labelValue()...))
	}

	return errors.Join(errs...)
}

func refineSelector(root *schemaProps, path string) error {
	requirement := path + ".matchExpressions.[]"

	return errors.Join(
		refineLabels(root, path+".matchLabels"),
		edit(root, path+".matchExpressions", maxItems(maxRequirements)),
		edit(root, requirement, rule(
			"self.operator in ['In', 'NotIn'] == (has(self.values) && self.values.size() > 0)",
			"'the operators In and NotIn need values, Exists and DoesNotExist accept none; found ' + self.operator")),
		edit(root, requirement+".key", maxLength(labelKeyLength)),
		edit(root, requirement+".operator", maxLength(dnsLabelLength), enum("In", "NotIn", "Exists", "DoesNotExist")),
		edit(root, requirement+".values", maxItems(maxRequirementValues)),
		edit(root, requirement+".values.[]", maxLength(labelValueLength)),
	)
}

type change = func(*schemaProps)

func require(names ...string) change {
	return func(s *schemaProps) { s.Required = append(s.Required, names...) }
}

// acceptNoItems is for a list that a template cannot have. What its items would
// look like need not be said.
func acceptNoItems(s *schemaProps) {
	item := &schemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: item}
	s.XListType, s.XListMapKeys = nil, nil
	s.MaxItems = ptr.To[int64](0)
}

func minItems(n int64) change      { return func(s *schemaProps) { s.MinItems = ptr.To(n) } }
func maxItems(n int64) change      { return func(s *schemaProps) { s.MaxItems = ptr.To(n) } }
func minLength(n int64) change     { return func(s *schemaProps) { s.MinLength = ptr.To(n) } }
func maxLength(n int64) change     { return func(s *schemaProps) { s.MaxLength = ptr.To(n) } }
func maxProperties(n int64) change { return func(s *schemaProps) { s.MaxProperties = ptr.To(n) } }

func enum(values ...string) change {
	return func(s *schemaProps) {
		for _, value := range values {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)})
		}
	}
}

// rule adds a rule with a message, both CEL.
func rule(expression, message string) change {
	return func(s *schemaProps) {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{
			Rule: expression, MessageExpression: message,
		})
	}
}
