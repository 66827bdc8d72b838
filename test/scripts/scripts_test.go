// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// source runs a script that sources one of hack, and returns what it prints, but for the
// progress of a build. The script's first argument is a folder with a Go module of one program, "hello".
func source(t *testing.T, file, script, program string) (string, string, error) {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module example.com/hello\n\ngo 1.26\n"), 0o644)).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(folder, "words"), 0o755)).To(Succeed())
	// The name of the folder makes it a package that was never compiled before.
	words := "package words\n\nconst Hello = \"" + folder + "\"\n"
	g.Expect(os.WriteFile(filepath.Join(folder, "words", "words.go"), []byte(words), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o644)).To(Succeed())
	path, err := filepath.Abs("../../hack/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\nsource '"+path+"'\n"+script, "script", folder)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+t.TempDir())
	output, err := command.CombinedOutput()

	return progress.ReplaceAllString(string(output), ""), folder, err
}

// progress is what a build says every 20 seconds: on a loaded machine, any of them may.
var progress = regexp.MustCompile(`(?m)^ {2}\d+ of \d+ packages after \d+ s\n`)

const hello = "package main\n\nimport \"example.com/hello/words\"\n\nfunc main() { println(words.Hello) }\n"

func TestCompileTellsAndBuilds(t *testing.T) {
	g := NewWithT(t)
	output, folder, err := source(t, "compile.sh", `compile "the greeting" "$1" "$1/greeting" . -ldflags "-s -w"; ls "$TMPDIR"`, hello)

	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(MatchRegexp(`^Building the greeting: 2 packages to compile\nBuilt the greeting in \d+ s\n$`), "and nothing is left in TMPDIR")
	said, err := exec.CommandContext(t.Context(), filepath.Join(folder, "greeting")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(Equal(folder + "\n"))
}

// TestCompileThatDownloads: what go downloads is counted, in one line; an error is told without it.
func TestCompileThatDownloads(t *testing.T) {
	g := NewWithT(t)
	const fake = `go() {
		for m in 1 2 3; do echo "go: downloading example.com/m$m v1.0.0" >&2; done
		case $1 in list) [[ $* != *-deps* ]] || echo fmt ;; build) echo fmt >&2; touch "$1/greeting" 2>/dev/null || true ;; esac
		[[ -z ${broken:-} ]] || { echo "go: example.com/m4: no such module" >&2; return 1; }
	}; `
	output, _, err := source(t, "compile.sh", fake+`compile "the greeting" "$1" "$1/greeting" .; ls "$TMPDIR"`, hello)
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(MatchRegexp(`^Downloaded 3 modules for the greeting in \d+ s\nBuilding the greeting: 1 package to compile\nBuilt the greeting in \d+ s\n$`))

	const tools = `printf 'tool (\n\texample.com/cmd/greet/v4\n\texample.com/greet-too\n)\n' >"$1/go.tools.mod"; cd "$1"; `
	output, _, err = source(t, "compile.sh", fake+tools+`compile_tool greet`, hello)
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(MatchRegexp(`^(Downloaded 3 modules for greet in \d+ s\n)+Building greet: 1 package to compile\nBuilt greet in \d+ s\n$`), "also of a tool")
	output, _, err = source(t, "compile.sh", fake+`broken=1; compile "the greeting" "$1" "$1/greeting" .`, hello)
	g.Expect(err).To(HaveOccurred())
	g.Expect(output).To(Equal("go: example.com/m4: no such module\nthe greeting cannot be built.\n"))
}

func TestBar(t *testing.T) {
	g := NewWithT(t)
	output, _, err := source(t, "compile.sh", `for i in 0 5 10 11; do bar $i 10; echo; done; bar 0 0`, hello)
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(Equal("[..............................] \n[###############...............] \n" +
		"[##############################] \n[##############################] \n[##############################] "))
}

// TestCompileWithoutTarget: the packages that a program imports are compiled, the program
// is not; the second time there is nothing to say.
func TestCompileWithoutTarget(t *testing.T) {
	g := NewWithT(t)
	output, folder, err := source(t, "compile.sh", `compile "the greeting" "$1" "" .; echo again; compile "the greeting" "$1" "" .`, hello)

	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(MatchRegexp(`^Building the greeting: 1 package to compile\nBuilt the greeting in \d+ s\nagain\n$`))
	g.Expect(filepath.Glob(filepath.Join(folder, "*"))).To(HaveLen(3), "no program beside go.mod, main.go and words")
}

func TestCompileFails(t *testing.T) {
	for name, test := range map[string]struct{ program, says string }{
		"an error of the compiler": {program: "package main\n\nfunc main() { undefined() }\n", says: "undefined: undefined"},
		"a missing package":        {program: "package main\n\nimport _ \"example.com/hello/nothing\"\n\nfunc main() {}\n", says: "example.com/hello/nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output, folder, err := source(t, "compile.sh", `trap 'ls "$TMPDIR"' EXIT; compile "the greeting" "$1" "$1/greeting" .; echo goes on`, test.program)

			g.Expect(err).To(HaveOccurred())
			g.Expect(output).To(ContainSubstring(test.says))
			g.Expect(output).To(HaveSuffix("the greeting cannot be built.\n"), "and the script ends, with nothing left in TMPDIR")
			g.Expect(filepath.Join(folder, "greeting")).NotTo(BeAnExistingFile())
		})
	}
}

// TestDuration: the time by cores is told where a build takes a minute or more.
func TestDuration(t *testing.T) {
	g := NewWithT(t)
	output, _, err := source(t, "compile.sh", `nproc() { echo 4; }; for packages in 1 600 3000; do echo "$packages$(duration "$packages")"; done`, hello)

	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(output).To(Equal("1\n600\n3000, which takes about 5 minutes on 4 cores, once\n"))
}

func TestRoom(t *testing.T) {
	const folders = `"$1/a" 1000000000 "$1/b/c" 1000000000`
	for name, test := range map[string]struct{ script, says string }{
		"enough":          {script: `ensure_room "The cake" 1 "$1/not/there" 1 "$1" 0; echo enough`, says: `^enough\n$`},
		"too little disk": {script: `ensure_room "The cake" 1 ` + folders + ` || echo lacking`, says: `^The cake needs\n  2000000000 MB of free disk for \S+/a and \S+/b/c: there are \d+ MB\nlacking\n$`},
		"too little memory": {
			script: `ensure_room "The cake" 1000000000 "$1" 1 || echo lacking`,
			says:   `^The cake needs\n  1000000000 MB of free memory: there are \d+ MB, with swap\nlacking\n$`,
		},
		"nothing known of memory": {script: `awk() { return 2; }; lacking_memory 1000; echo enough`, says: `^enough\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output, _, err := source(t, "room.sh", test.script, hello)

			g.Expect(err).NotTo(HaveOccurred(), output)
			g.Expect(output).To(MatchRegexp(test.says))
		})
	}
}

// Something that is installed half way must not keep apt-get from installing.
func TestInstallPackage(t *testing.T) {
	const say = `apt-get() { echo "apt-get $*"; }; dpkg() { echo "dpkg $*"; }; `
	const configure, install = "dpkg .*--configure --pending\n", "apt-get .* install --yes --no-install-recommends cake\n"
	for name, test := range map[string]struct{ script, says string }{
		"at once": {script: say, says: "^Installing cake\n" + configure + install + "$"},
		"with old lists": {
			script: say + `apt-get() { echo "apt-get $*"; [[ $* == *update* ]] && touch "$TMPDIR/new"; [[ -e $TMPDIR/new ]]; }; `,
			says:   "^Installing cake\n" + configure + install + "Updating .*\napt-get .* update\n" + install + "$",
		},
		"with a package that lacks what it needs": {
			script: say + `dpkg() { echo "dpkg $*"; return 1; }; apt-get() { echo "apt-get $*"; [[ $* == *fix* ]] && touch "$TMPDIR/new"; [[ -e $TMPDIR/new || $* == *update* ]]; }; `,
			says:   "(?s)" + configure + ".*--fix-broken\n" + install + "$",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output, _, err := source(t, "apt.sh", test.script+"install_package cake", hello)

			g.Expect(err).NotTo(HaveOccurred(), output)
			g.Expect(output).To(MatchRegexp(test.says))
		})
	}
}

// A lab is held as long as the script runs, and by nothing that it started.
func TestHoldLab(t *testing.T) {
	const locked = `locked() { flock --nonblock "$1/lab/runner.lock" true && echo free || echo locked; }; `
	for name, test := range map[string]struct{ script, says string }{
		"while it runs":     {script: `hold_lab "$1/lab"; locked "$1"`, says: "locked"},
		"when it is killed": {script: `(hold_lab "$1/lab"; kill -KILL "$BASHPID") || locked "$1"`, says: ".* Killed .*\nfree"},
		"after the release": {script: `hold_lab "$1/lab"; release_lab "$1/lab"; ls "$1/lab"; echo empty`, says: "empty"},
		"while another run has it": {
			script: `mkdir "$1/lab"; exec 7>"$1/lab/runner.lock"; flock 7; flock() { command flock --nonblock 8; }; hold_lab "$1/lab" || echo refused`,
			says:   "Waiting for another run that has its lab in .*/lab, or for a sweep of it\nAnother run has its lab in .*/lab\nrefused",
		},
		"after a sweep removed the folder": {
			script: `folder=$1; flock() { unset -f flock; rm -r "$folder/lab"; flock "$@"; }; hold_lab "$1/lab"; locked "$1"`,
			says:   "locked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output, _, err := source(t, "runner.sh", locked+test.script, hello)

			g.Expect(err).NotTo(HaveOccurred(), output)
			g.Expect(output).To(MatchRegexp("^" + test.says + "\n$"))
		})
	}
}
