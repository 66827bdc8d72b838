// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	g := NewWithT(t)
	source, err := os.ReadFile(filepath.Join("testdata", "page.md"))
	g.Expect(err).NotTo(HaveOccurred())
	page, err := Parse(source)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(page.Executed()).To(BeTrue())
	g.Expect(page.Anchors).To(Equal(map[string]bool{
		"a-page": true, "kubectl-and---watch": true, "again": true, "again-1": true, "flux-argo-cd": true,
	}))
	g.Expect(page.Links).To(Equal([]Link{
		{Line: 3, Target: "other.md"}, {Line: 4, Target: "#again"}, {Line: 60, Target: "https://example.org/"}, {Line: 60, Target: "picture.png"},
	}))
	g.Expect(page.Blocks).To(Equal([]Block{
		{Line: 8, Language: "yaml", Text: "kind: Pod\n", File: "pod.yaml"},
		{Line: 12, Language: "sh", Text: sh, Steps: []Step{
			{Line: 12, Command: "kubectl apply -f pod.yaml # now"},
			{Line: 13, Command: "kubectl patch pod a \\\n  -p '{\n}'"},
			{Line: 16, Command: "cat <<END >file\n$ text\nEND"},
			{Line: 19, Command: "if true; then\n  echo yes\nfi", Expected: &Expected{Line: 25, Text: "yes\n"}},
		}},
		{Line: 25, Language: "text", Text: "yes\n"},
		{Line: 31, Language: "console", Text: "$ kubectl get \\\n>   pods\nNAME\n> a\n$ true\n", Steps: []Step{
			{Line: 31, Command: "kubectl get \\\n  pods", Expected: &Expected{Line: 33, Text: "NAME\n> a\n"}},
			{Line: 35, Command: "true", Expected: &Expected{Line: 36}},
		}},
		{Line: 41, Language: "console", Text: "kubectl get pods --watch\n", NotExecuted: "it never ends"},
		{Line: 45, Language: "text", Text: "not compared\n"},
		{Line: 52, Language: "console", Text: "echo in a list\n", Steps: []Step{{Line: 52, Command: "echo in a list"}}},
		{Line: 57, Language: "text", Text: "a picture\n"},
	}))
}

const sh = `kubectl apply -f pod.yaml # now
kubectl patch pod a \
  -p '{
}'
cat <<END >file
$ text
END
if true; then
  echo yes
fi
`

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"an unfinished quote": {
			"# A\n\n```sh\necho 'a\n```\n", "block of line 4: parse commands: 1:6: reached EOF without closing quote `'`"},
		"output before its command": {
			"```console\nNAME\n$ true\n```\n", "line 2: output before the first command of the block"},
		"two outputs": {
			"```console\n$ echo yes\nyes\n```\n\n```text\nyes\n```\n", "line 2: the block has output after its prompts and a text block after it: keep one of them"},
		"a mark without a reason": {
			"a\n\n<!-- not executed: -->\n```sh\ntrue\n```\n", `line 3: the mark "not executed:" has no value`},
		"a mark of a paragraph": {
			"<!-- file: a.yaml -->\n\ntext\n", `line 1: no block follows the mark "file:"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.source))
			NewWithT(t).Expect(err).To(MatchError(test.want))
		})
	}
}
