// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the revisions of a workload as ControllerRevisions.
//
// A revision is identified by what it says, not by its name: names are made from
// a hash, but two revisions are equal when their contents are. So neither a new
// release of the operator nor one of Kubernetes makes a new revision.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/insitu-dev/insitu/inplace"
)

// Content is what a revision holds.
type Content struct {
	// Template is the pod template.
	Template *inplace.Template
	// Claims are the claim templates. They are nil where a revision does not
	// say anything about claims, as those that OpenKruise wrote.
	Claims []corev1.PersistentVolumeClaim
	// SpeaksOfClaims is true where a revision that says nothing about claims is
	// another one.
	SpeaksOfClaims bool
	// IgnoresClaims is true where a change of the claim templates alone makes no other
	// revision. They are stored nevertheless.
	IgnoresClaims bool
}

// NewContent returns the content for the templates of a workload's spec.
func NewContent(template corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) (Content, error) {
	parsed, err := inplace.NewTemplate(template)
	if err != nil {
		return Content{}, err
	}
	if claims == nil {
		claims = []corev1.PersistentVolumeClaim{}
	}
	return Content{Template: parsed, Claims: claims}, nil
}

// Equal reports whether both contents say the same. A revision that is silent
// about claims differs from no other in them.
func (c Content) Equal(other Content) bool {
	if !c.Template.Equal(other.Template) {
		return false
	}
	if c.IgnoresClaims || other.IgnoresClaims {
		return true
	}
	if c.SpeaksOfClaims && other.Claims == nil {
		return false
	}
	return c.Claims == nil || other.Claims == nil || apiequality.Semantic.DeepEqual(c.Claims, other.Claims)
}

// patchDirective makes the data of a revision a strategic merge patch that
// replaces the template, which is what tools that undo a rollout send.
const patchDirective = "$patch"

type data struct {
	Spec dataSpec `json:"spec"`
}

type dataSpec struct {
	Template map[string]any                 `json:"template"`
	Claims   []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitzero"`
}

// encode returns the data of a ControllerRevision. Equal contents give equal
// bytes.
func (c Content) encode() ([]byte, error) {
	raw, err := c.Template.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("marshal pod template: %w", err)
	}
	var d data
	if err := utiljson.Unmarshal(raw, &d.Spec.Template); err != nil {
		return nil, fmt.Errorf("read back pod template: %w", err)
	}
	d.Spec.Template[patchDirective] = "replace"
	d.Spec.Claims = c.Claims
	return json.Marshal(d)
}

// decode reads the data of a ControllerRevision.
func decode(raw []byte) (Content, error) {
	var d struct {
		Spec struct {
			Template map[string]json.RawMessage     `json:"template"`
			Claims   []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return Content{}, fmt.Errorf("parse revision: %w", err)
	}
	if len(d.Spec.Template) == 0 {
		return Content{}, errors.New("parse revision: spec.template is missing")
	}
	delete(d.Spec.Template, patchDirective)
	template, err := inplace.NewTemplate(d.Spec.Template)
	if err != nil {
		return Content{}, err
	}
	return Content{Template: template, Claims: d.Spec.Claims}, nil
}

// hash names a content. The collision count gives another name to a content
// whose name is taken.
func hash(raw []byte, collisions int32) string {
	h := fnv.New32a()
	// Writes to a hash never fail.
	_, _ = h.Write(raw)
	_, _ = h.Write([]byte(strconv.Itoa(int(collisions))))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
