// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// String returns how the workload is spelled on a command line, where it must not be
// taken for another one: statefulset.apps.kruise.io/db.
func (r Ref) String() string {
	kind := strings.ToLower(r.Kind)
	if gv, err := schema.ParseGroupVersion(r.APIVersion); err == nil && gv.Group != "" {
		kind += "." + gv.Group
	}
	return kind + "/" + r.Name
}

// replaceWord replaces a word in a text, and not a part of another one.
func replaceWord(text, word, by string) string {
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).ReplaceAllLiteralString(text, by)
}
