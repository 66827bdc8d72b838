// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
	. "github.com/onsi/gomega"
)

// The tests run this binary as the program itself, as suites run their commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "own" {
		main()
	}
	os.Exit(m.Run())
}

// inCheckout makes a folder in which the suites do what a script says, which finds its
// suite in $1.
func inCheckout(t *testing.T, script string) {
	t.Helper()
	t.Chdir(t.TempDir())
	NewWithT(t).Expect(os.Mkdir("hack", 0o755)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile("hack/suite", []byte("#!/bin/bash\n"+script), 0o755)).To(Succeed())
}

const onePassed = `echo '<testsuites><testsuite><testcase name="TestA" time="2.5"></testcase></testsuite></testsuites>' >.out/$1.xml`

func TestEverySuiteIsRunAndCounted(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 = prepare ] || `+onePassed)

	status, err := runSuites(t.Context(), []string{"unit", "e2e", "release"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(BeZero())
	last, err := readLastRun()
	g.Expect(err).NotTo(HaveOccurred())
	ran := map[string]int{}
	for _, r := range last.Results {
		ran[r.Suite] = r.Tests
	}
	g.Expect(ran).To(Equal(map[string]int{"prepare": 0, "unit": 1, "e2e": 1, "release": 1}))
}

// Suites of two lanes run at the same time: each waits for the other.
func TestLanesRunSideBySide(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `
case $1 in
  unit) touch unit; until [ -e e2e ]; do sleep 0.05; done ;;
  e2e) touch e2e; until [ -e unit ]; do sleep 0.05; done ;;
esac`)

	status, err := runSuites(t.Context(), []string{"unit", "e2e"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(BeZero())
}

// Two labs are more than two cores can do, and the lab's own tests look for what a lab
// leaves behind.
func TestNoTwoLabsAreUp(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `
[ $1 != prepare ] || exit 0
mkdir running || exit 1
sleep 0.2
rmdir running`)

	status, err := runSuites(t.Context(), []string{"e2e", "install", "docs", "lab"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(BeZero())
}

func TestAFailureDoesNotStopTheOthers(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 != unit ] || exit 7; touch ran-$1`)

	status, err := runSuites(t.Context(), []string{"unit", "release"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(1))
	g.Expect("ran-release").To(BeAnExistingFile())
}

// A failed test fails the run, also when the command of its suite reports success.
func TestAReportedFailureFailsTheRun(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 = prepare ] || echo '<testsuites><testsuite><testcase name="TestA"><failure/></testcase></testsuite></testsuites>' >.out/$1.xml`)

	status, err := runSuites(t.Context(), []string{"unit"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(1))
}

// A spec that passes at the second attempt is named, and fails the run where more than a
// share of them needed one.
func TestSecondAttempts(t *testing.T) {
	for limit, want := range map[string]int{"100%": 0, "50%": 0, "49%": 1} {
		t.Run(limit, func(t *testing.T) {
			g := NewWithT(t)
			inCheckout(t, `[ $1 = prepare ] || echo '[{"SpecReports": [
{"LeafNodeType": "BeforeSuite", "State": "passed"},
{"ContainerHierarchyTexts": ["A rollout"], "LeafNodeType": "It", "LeafNodeText": "stops", "State": "passed", "NumAttempts": 1},
{"ContainerHierarchyTexts": ["A rollout"], "LeafNodeType": "It", "LeafNodeText": "goes on", "State": "passed", "NumAttempts": 2},
{"LeafNodeType": "It", "LeafNodeText": "is left out", "State": "skipped"}]}]' >.out/$1.json`)
			given, rest, err := cutOptions([]string{"--second-attempts=" + limit, "e2e"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rest).To(Equal([]string{"e2e"}))

			status, err := runSuites(t.Context(), rest, given)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(want))
			last, err := readLastRun()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(last.Results[1].attempts).To(Equal(attempts{Specs: 2, Second: []string{"A rollout goes on"}}))
		})
	}
}

func TestSharesThatAreNone(t *testing.T) {
	for _, text := range []string{"1", "%", "101%", "-1%"} {
		_, _, err := cutOptions([]string{"--second-attempts=" + text})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("a percentage is 0% to 100%")), text)
	}
}

// Who sees no more than the end of a log learns from it what failed, and why.
func TestFailuresAreSaidLast(t *testing.T) {
	g := NewWithT(t)
	var report reporters.JUnitTestSuites
	g.Expect(xml.Unmarshal([]byte(`<testsuites><testsuite>
<testcase classname="rollout" name="TestPlan/late"><failure message="Failed">=== RUN   TestPlan/late
I1123 a line of a log
    plan_test.go:10: one
        two

        three
        four
        five
        six
        seven
        eight
    --- FAIL: TestPlan/late (0.00s)
</failure></testcase>
<testcase classname="rollout" name="TestGood"></testcase>
<testcase classname="End to end" name="[It] keeps the pod"><failure message="Timed out after 60s.">all that it printed</failure></testcase>
<testcase classname="End to end" name="[It] ends"><error message="interrupted"></error></testcase>
</testsuite></testsuites>`), &report)).To(Succeed())
	var b strings.Builder

	printFailures(&b, failuresIn("unit", report))

	g.Expect(b.String()).To(Equal(`
FAILED unit: rollout: TestPlan/late
        plan_test.go:10: one
            two
            three
            four
    ... 1 more ...
            six
            seven
            eight
        --- FAIL: TestPlan/late (0.00s)

FAILED unit: End to end: [It] keeps the pod
    Timed out after 60s.

FAILED unit: End to end: [It] ends
    interrupted
`))
}

// An old report says nothing of this run.
func TestASuiteThatMakesNoReportHasNone(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 = prepare ]`)
	g.Expect(os.MkdirAll(out, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(reportOf("unit"), []byte("<testsuites><testsuite><testcase/></testsuite></testsuites>"), 0o600)).To(Succeed())

	_, err := runSuites(t.Context(), []string{"unit"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	last, err := readLastRun()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(total(last.Results).Tests).To(BeZero())
}

func TestNoSuchSuite(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, ``)

	status, err := runSuites(t.Context(), []string{"unit", "units"}, options{limit: 100})

	g.Expect(status).To(Equal(2))
	g.Expect(err).To(MatchError(ContainSubstring(`no suite "units"; suites: e2e`)))
}

// Ctrl-C reaches what a suite started, and is over when that has cleaned up.
func TestInterrupted(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `
[ $1 != prepare ] || exit 0
trap 'sleep 0.3; touch cleaned-$1; exit 130' INT
touch started-$1
while :; do sleep 0.05; done`)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		for {
			if started, _ := filepath.Glob("started-*"); len(started) == 2 {
				interrupt()

				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()

	status, err := runSuites(ctx, []string{"unit", "release", "e2e"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(interrupted))
	g.Expect("cleaned-unit").To(BeAnExistingFile())
	g.Expect("cleaned-e2e").To(BeAnExistingFile())
	g.Expect("started-release").NotTo(BeAnExistingFile(), "the next suite of the lane")
}

// A process that outlives its suite, and its parent, is a failure, and ends.
func TestWhatIsLeftBehind(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	command := exec.CommandContext(t.Context(), os.Args[0], "own", "usage.json", "200ms",
		"bash", "-c", "(setsid sleep 3600 & echo $! >pid; until [ \"$(cat /proc/$!/comm)\" = sleep ]; do sleep 0.01; done) >/dev/null 2>&1")

	g.Expect(statusOf(command.Run())).To(Equal(1))

	var used usage
	raw, err := os.ReadFile("usage.json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(raw, &used)).To(Succeed())
	g.Expect(used.Left).To(Equal([]string{"sleep 3600"}))
	pid, err := os.ReadFile("pid")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join("/proc", strings.TrimSpace(string(pid)))).NotTo(BeADirectory())
}

// The CPU time of a process whose parent has ended counts, too.
func TestTimeOfOrphansCounts(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 = prepare ] || { (setsid bash -c 'for ((i = 0; i < 100000; i++)); do :; done' &) >/dev/null 2>&1; }`)

	_, err := runSuites(t.Context(), []string{"unit"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	last, err := readLastRun()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(last.Results[1].Left).To(BeEmpty())
	g.Expect(last.Results[1].CPU).To(BeNumerically(">", last.Results[0].CPU))
}

// When the first process of a PID namespace ends, its descendants are killed, and the
// kernel forgets what they took.
func TestTimeOfAPIDNamespaceCounts(t *testing.T) {
	g := NewWithT(t)
	// The busy one says when it has done enough; then there is time to look at it.
	inCheckout(t, `[ $1 = prepare ] || unshare $([ $(id -u) = 0 ] || echo --map-root-user) --pid --fork --mount-proc bash -c '
(for ((i = 0; i < 1000000; i++)); do :; done; touch done; sleep 60) &
until [ -e done ]; do sleep 0.1; done; sleep 10'`)

	_, err := runSuites(t.Context(), []string{"unit"}, options{limit: 100})

	g.Expect(err).NotTo(HaveOccurred())
	last, err := readLastRun()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(last.Results[1].Status).To(BeZero())
	g.Expect(last.Results[1].CPU).To(BeNumerically(">", 200*time.Millisecond), "it counts to 1,000,000")
}

func TestLinesNameTheirSuite(t *testing.T) {
	g := NewWithT(t)
	var b strings.Builder
	lines := &prefixed{to: &b, mu: &(&runner{}).mu, prefix: "unit | "}

	for _, text := range []string{"one\ntw", "o\n\nthr", "ee"} {
		_, err := lines.Write([]byte(text))
		g.Expect(err).NotTo(HaveOccurred())
	}
	lines.flush()

	g.Expect(b.String()).To(Equal("unit | one\nunit | two\nunit | \nunit | three\n"))
}

// A reader of a long run sees how far it is, and what has failed as soon as it has.
func TestProgress(t *testing.T) {
	g := NewWithT(t)
	p := &progress{began: time.Now().Add(-3 * time.Minute)}
	p.start("prepare").end()
	e2e, unit := p.start("e2e"), p.start("unit")
	var b strings.Builder
	lines := &prefixed{to: &b, mu: &(&runner{}).mu, prefix: "e2e | ", see: e2e.see}
	_, err := lines.Write([]byte("Will run 2 of 16 specs\nWill run 50 of 244 specs\n• [5.8 seconds]\n" +
		"↺ [FLAKEY TEST - TOOK 2 ATTEMPTS TO PASS] [9 seconds]\nA rollout [It] goes on\n• [FAILED] [0.3 seconds]\nA rollout [It] stops\nok  \n"))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(b.String()).To(HaveSuffix("e2e | A rollout [It] stops\ne2e | ok  \nSECOND ATTEMPT e2e: A rollout [It] goes on\nFAILED e2e: A rollout [It] stops\n"))
	g.Expect(unit.see("ok  \tgithub.com/insitu-dev/insitu/inplace\t0.1s")).To(BeEmpty())
	g.Expect(unit.see("FAIL\tgithub.com/insitu-dev/insitu/resize\t0.1s")).To(Equal("FAILED unit: github.com/insitu-dev/insitu/resize\t0.1s"))
	g.Expect(unit.see("FAIL")).To(BeEmpty())
	g.Expect(p.String()).To(Equal("3 min: e2e 3 of 52 specs (1 FAILED), unit 2 packages (1 FAILED); ended: prepare"))
}

func TestForecast(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	t.Setenv("LEVEL", "short")
	g.Expect(forecast([]string{"unit"})).To(BeEmpty(), "without the page")
	last := lastRun{Results: []result{{Suite: "unit", usage: usage{CPU: 10 * time.Minute}}, {Suite: "e2e", usage: usage{CPU: 20 * time.Minute}}, {Suite: "lab", usage: usage{CPU: time.Hour}}}}
	g.Expect(os.WriteFile("CONTRIBUTING.md", []byte(tableOf(last)), 0o600)).To(Succeed())

	g.Expect(forecast([]string{"unit", "e2e", "new"})).To(ContainSubstring("take about 30 minutes of CPU"))
	t.Setenv("LEVEL", "all")
	g.Expect(forecast([]string{"unit", "e2e"})).To(BeEmpty())
}

func TestTimesOfTheLastRun(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `[ $1 = prepare ] || `+onePassed)
	_, err := runSuites(t.Context(), []string{"unit"}, options{limit: 100})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile("page.md", []byte("Before\n<!-- Generated by make test-times. Do not edit. -->\n<!-- End of what is generated. -->\nAfter\n"), 0o600)).To(Succeed())
	var b strings.Builder

	g.Expect(writeTimes(&b, "page.md")).To(Succeed())

	g.Expect(b.String()).To(ContainSubstring("The 1 slowest tests:\n    2.5 s  unit       TestA\n"))
	page, err := os.ReadFile("page.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(MatchRegexp(`(?s)^Before\n.*\| Suite \| Wall \| CPU \| Tests \|.*\| unit \| \d+ s \| \d+ s \| 1 \|.*After\n$`))
}

// Temporary files of a run that was killed go with the next run, those of others stay.
func TestTemporaryFilesOfARunThatWasKilled(t *testing.T) {
	g := NewWithT(t)
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	t.Setenv("GOTMPDIR", "")
	owners := filepath.Join(t.TempDir(), "owner")
	killed, withLab, foreign := filepath.Join(parent, "insitu.1"), filepath.Join(parent, "insitu.2"), filepath.Join(parent, "insitu.3")
	for _, folder := range []string{killed, withLab, foreign} {
		g.Expect(os.MkdirAll(filepath.Join(folder, "go-build1"), 0o755)).To(Succeed())
	}
	for _, folder := range []string{killed, withLab} {
		g.Expect(os.WriteFile(filepath.Join(folder, temporaryMark), nil, 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile(owners, []byte(withLab+"/lab\n"), 0o600)).To(Succeed())
	remove, err := ownTemporary()
	g.Expect(err).NotTo(HaveOccurred())
	own := os.TempDir()
	g.Expect(own).To(HavePrefix(parent + "/insitu."))

	for _, folder := range []string{killed, withLab} {
		g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, temporaryMark), nil, 0o600)).To(Succeed())
	}
	removeOldTemporary(parent, owners)

	g.Expect(filepath.Glob(parent + "/*")).To(ConsistOf(own, withLab, foreign))
	remove()
	g.Expect(own).NotTo(BeADirectory())
	g.Expect(withLab).To(BeADirectory())
}

// What is mounted stays as it is.
func TestMountsOfARunThatWasKilled(t *testing.T) {
	if os.Getuid() != 0 {
		return // Such a run could not mount either.
	}
	g := NewWithT(t)
	parent, kept := t.TempDir(), t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(kept, "file"), nil, 0o600)).To(Succeed())
	folder := filepath.Join(parent, "insitu.1")
	g.Expect(os.Mkdir(folder, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, temporaryMark), nil, 0o600)).To(Succeed())
	for _, name := range []string{"a", "b"} {
		target := filepath.Join(folder, name)
		g.Expect(os.MkdirAll(target, 0o755)).To(Succeed())
		g.Expect(exec.CommandContext(t.Context(), "mount", "--bind", kept, target).Run()).To(Succeed())
		t.Cleanup(func() { _ = exec.Command("umount", target).Run() })
	}

	removeOldTemporary(parent)

	g.Expect(folder).NotTo(BeADirectory())
	g.Expect(filepath.Join(kept, "file")).To(BeAnExistingFile())
}

// A suite makes its temporary files where they are removed.
func TestTemporaryFilesOfSuites(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `mktemp >>made`)
	t.Setenv("TMPDIR", t.TempDir())
	parent := os.TempDir()

	status, err := run([]string{"run", "unit"})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(BeZero())
	made, err := os.ReadFile("made")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(made)).To(MatchRegexp(`^(` + parent + `/insitu\.\d+/tmp\..*\n){2}$`))
	g.Expect(filepath.Glob(parent + "/*")).To(BeEmpty())
}

// A run that goes on does not run again what has passed, as long as no file has changed.
func TestARunGoesOn(t *testing.T) {
	g := NewWithT(t)
	inCheckout(t, `
echo ran >>ran-$1
case $1 in
  prepare) exit 0 ;;
  unit) [ -e .out/fixed ] || exit 1 ;;
esac
`+onePassed)
	commit := func() {
		for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "a"}} {
			_, err := git(args...)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	times := func(suite string) int {
		text, err := os.ReadFile("ran-" + suite)
		g.Expect(err).NotTo(HaveOccurred())
		return strings.Count(string(text), "ran")
	}
	goOn := func() (int, error) {
		return runSuites(t.Context(), []string{"unit", "release"}, options{limit: 100, resume: true})
	}
	_, err := git("init", "-q")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(".gitignore", []byte(".out\nran-*\n"), 0o600)).To(Succeed())
	commit()

	g.Expect(goOn()).To(Equal(1), "unit fails")
	g.Expect(os.WriteFile(".out/fixed", nil, 0o600)).To(Succeed())
	g.Expect(goOn()).To(BeZero())
	g.Expect([]int{times("unit"), times("release"), times("prepare")}).To(Equal([]int{2, 1, 2}))
	last, err := readLastRun()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(total(last.Results).Tests).To(Equal(2), "what has passed before counts")

	g.Expect(os.WriteFile("file", nil, 0o600)).To(Succeed())
	_, err = goOn()
	g.Expect(err).To(MatchError(ContainSubstring("file")), "it is not committed")
	commit()
	g.Expect(goOn()).To(BeZero())
	g.Expect([]int{times("unit"), times("release")}).To(Equal([]int{3, 2}), "another commit")
}
