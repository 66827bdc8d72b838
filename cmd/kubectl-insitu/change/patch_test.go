// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestDifference(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                     {`{"a":{"b":[1,{"c":null}]}}`, `{"a":{"b":[1,{"c":null}]}}`, nil},
		"added":                       {`{"a":{}}`, `{"a":{"b":false}}`, []string{`add /a/b false`}},
		"added with its parents":      {`{}`, `{"a":{"b":0}}`, []string{`add /a {"b":0}`}},
		"taken away":                  {`{"a":{"b":1,"c":2}}`, `{"a":{"c":2}}`, []string{`remove /a/b`}},
		"replaced by what is empty":   {`{"a":"b"}`, `{"a":""}`, []string{`replace /a ""`}},
		"replaced by another type":    {`{"a":"1"}`, `{"a":{"b":1}}`, []string{`replace /a {"b":1}`}},
		"in an item":                  {`{"a":[{"b":1,"x":9},{"b":2,"x":9}]}`, `{"a":[{"b":1,"x":9},{"b":3,"x":9}]}`, []string{`replace /a/1/b 3`}},
		"another number of items":     {`{"a":[1,2]}`, `{"a":[1]}`, []string{`replace /a [1]`}},
		"keys with slashes and tilde": {`{"a":{}}`, `{"a":{"x.dev/y~z":"1"}}`, []string{`add /a/x.dev~1y~0z "1"`}},
		"several, sorted":             {`{"b":1,"c":2}`, `{"a":0,"b":2}`, []string{`add /a 0`, `replace /b 2`, `remove /c`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var before, after map[string]any
			g.Expect(utiljson.Unmarshal([]byte(test.before), &before)).To(Succeed())
			g.Expect(utiljson.Unmarshal([]byte(test.after), &after)).To(Succeed())

			operations := difference("", before, after)

			g.Expect(linesOf(t, operations)).To(Equal(test.want))
			body, err := json.Marshal(operations)
			g.Expect(err).NotTo(HaveOccurred())
			patch, err := jsonpatch.DecodePatch(body)
			g.Expect(err).NotTo(HaveOccurred())
			patched, err := patch.Apply([]byte(test.before))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(patched).To(MatchJSON(test.after))
		})
	}
}
