// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants plants known bugs in the product, one at a time, and shows that
// tests find each of them: tests that find nothing prove nothing. It changes no
// file; the bugs are overlaid for the compiler.
//
// There are two families: "simulation" are bugs that the simulation finds, and "unit"
// those that the tests of the changed package find, in seconds. A name is that of a bug
// or of a family.
//
//	go run ./test/sim/mutants [-short] [-record] [NAME...]
//
// With -short, it looks for what make test finds of them, which is not all. With -record, it
// writes down which tests found them, which are tried first from then on.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	short := flag.Bool("short", false, "run no more tests than make test does")
	record := flag.Bool("record", false, "write down which tests found the bugs")
	flag.Parse()
	h, err := newHunt(*short, *record)
	if err == nil {
		err = h.run(context.Background(), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// family is a list of bugs with the tests that are to find them.
type family struct {
	name    string
	mutants []mutant
	// tests returns the arguments of "go test" for a bug.
	tests func(m mutant) []string
	// seeds are arguments of its tests that ask for more random runs than the tests have by
	// themselves.
	seeds []string
}

func families() []family {
	return []family{
		{"simulation", slices.Concat(mutants, volumeMutants, nativeMutants, daemonMutants), simulation, []string{
			"-seeds", "1000", "-wider-seeds", "200", "-volume-seeds", "300", "-recreate-seeds", "200", "-native-seeds", "100",
		}},
		{"unit", slices.Concat(unitMutants, kindMutants, pullMutants), unitTests, nil},
	}
}

// arguments returns the arguments of "go test" for a bug, or with short, of what make test
// runs of these tests.
func (f family) arguments(m mutant, short bool) []string {
	if short {
		return append([]string{"-short"}, f.tests(m)...)
	}
	return append(f.tests(m), f.seeds...)
}

// hunt is one run of the command.
type hunt struct {
	// short: no more tests are run than make test runs. records: finders are written.
	short, records bool
	finders        map[string]finder
}

func newHunt(short, records bool) (*hunt, error) {
	finders, err := readFinders()
	return &hunt{short, records, finders}, err
}

func (h *hunt) run(ctx context.Context, names []string) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var survivors []string
	var failed error
	for _, f := range families() {
		for _, m := range f.mutants {
			if len(names) > 0 && !slices.Contains(names, m.name) && !slices.Contains(names, f.name) {
				continue
			}
			began := time.Now()
			found, err := h.find(ctx, m, dir, f.arguments(m, h.short))
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("mutant %s: %w", m.name, err))
				continue
			}
			took := time.Since(began).Round(time.Second)
			if found == "" {
				survivors = append(survivors, m.name)
				found = "NOT FOUND"
			}
			fmt.Printf("%-28s %4s  %s\n", m.name, took, found)
		}
	}
	if len(survivors) > 0 {
		failed = errors.Join(failed, fmt.Errorf("the tests did not find: %s", strings.Join(survivors, ", ")))
	}
	return failed
}

// simulation returns the tests of the simulation that are to find a bug.
func simulation(m mutant) []string {
	tests := "^(TestSeeds|TestCloneSets|FuzzRun|TestCrashAtEveryWrite|TestAnyStateAnyRevision|TestWhatTheCacheDoesNotShow|TestDrainWithoutService|TestEnvironmentsThatOvertakeTheKubelet|TestCrashWhileSettingBack|TestResizeInService|TestResizedByOthersIsLeft|TestResizePolicy|TestResizeThatRestartsTakesItsTurn)$"
	if strings.HasPrefix(m.name, "ordinals-") {
		tests = "^(TestWiderSeeds|TestPartitionCountsPodsWhereOrdinalsAreReserved)$"
	}
	if strings.HasPrefix(m.name, "wider-") {
		tests = "^(TestSaysWhatIsRefused|TestOvertakenTwice|TestCrashInAWiderWorld|TestWiderSeeds)$"
	}
	if strings.HasPrefix(m.name, "hands-") || strings.HasPrefix(m.name, "again-") {
		tests = "^(TestCrashWhereHandsAre|TestNamesThePodInTheWay|TestTakesOverNoOtherOfTheName|TestHasARevisionOfItsOwn|TestStartsOnNoClaimThatGoes|TestTakenOverBeforeItsRevision|TestCrashWhereTheSetIsMadeAgain|TestMadeAgainInAnySecond|TestWiderSeeds)$"
	}
	if strings.HasPrefix(m.name, "claims-") {
		tests = "^(TestVolumes|TestVolumeSeeds|TestAnyClaimAnyRevision)$"
	}
	if strings.HasPrefix(m.name, "recreate-") {
		tests = "^(TestRecreation|TestRecreateSeeds|TestAnyRecreationOvertaken)$"
	}
	if strings.HasPrefix(m.name, "native-") {
		tests = "^(TestNativeRolloutsSeenLate|TestNativeUpdatesThatGoBackUnseen|TestNativeTemplatesOfWhichPodsAreMissing|TestNativeCrashAtEveryWrite|TestNativeSeeds)$"
	}
	if strings.HasPrefix(m.name, "daemons-") {
		tests = "^(TestDaemonSets|TestDaemonSeeds|TestCrashAtEveryWrite|TestAnyStateAnyRevision)$"
	}
	if strings.HasPrefix(m.name, "volumes-") {
		tests = "^(TestRecreationOfVolumesInOtherHands|TestVolumesDeletedWhileTheirClaimIsMissing|TestRecreateSeeds)$"
	}
	return []string{
		"-timeout", "20m", "./test/sim", "-run", tests,
		"-args", "-stop-after", "1", "-keep=false",
	}
}

// unitTests returns the tests of the package that a bug is in.
func unitTests(m mutant) []string {
	return []string{"-timeout", "5m", "./" + filepath.Dir(m.file)}
}

// What a failed run says, what tells most first.
var violations = []*regexp.Regexp{
	regexp.MustCompile(`(?m)VIOLATED: (.*)$`),
	regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: (seed-\d+: .*)$`),
	failedTest,
}

// find looks for a bug with tests, and returns what they found; empty for nothing. The test that
// found it last is tried first.
func (h *hunt) find(ctx context.Context, m mutant, dir string, tests []string) (string, error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	// With -short, a random run of the finder's seed may be none of those that make test runs.
	if last, is := h.finders[m.name]; is && (!h.short || last.Seed == nil) {
		if found, _, err := try(ctx, overlay, last.arguments(tests)); found != "" && err == nil {
			return found, nil
		}
	}
	found, by, err := try(ctx, overlay, tests)
	if by != nil && err == nil && h.records {
		h.finders[m.name] = *by
		err = writeFinders(h.finders)
	}
	return found, err
}

// try runs tests with an overlay, and returns what they found, empty for nothing, and which of
// them did.
func try(ctx context.Context, overlay string, tests []string) (string, *finder, error) {
	// make lint vets the packages, and linking without debug information takes half the time.
	// #nosec G204 -- the arguments are the program's own
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-overlay", overlay, "-failfast", "-vet=off", "-ldflags=-s -w"}, tests)...)
	out, err := cmd.CombinedOutput()
	exit := &exec.ExitError{}
	switch {
	case err == nil:
		return "", nil, nil
	case !errors.As(err, &exit):
		return "", nil, err
	}
	found := ""
	for _, violation := range violations {
		if match := violation.FindStringSubmatch(string(out)); match != nil && found == "" {
			found = match[1]
		}
	}
	if found == "" {
		return "", nil, fmt.Errorf("the tests failed for another reason:\n%s", out)
	}
	const shown = 150
	if len(found) > shown {
		found = found[:shown] + "..."
	}
	return found, finderIn(string(out)), nil
}

// overlay writes the changed file, and the list that lets the compiler take it
// for the original.
func (m mutant) overlay(dir string) (string, error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original) //nolint:gosec // a file of this repository
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.right); n != 1 {
		return "", fmt.Errorf("%s has %d places that read\n%s\nit must be one: adapt the mutant %s in test/sim/mutants", m.file, n, m.right, m.name)
	}
	changed := filepath.Join(dir, m.name+".go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.right, m.wrong, 1)), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.name+".json")
	return path, os.WriteFile(path, list, 0o600)
}
