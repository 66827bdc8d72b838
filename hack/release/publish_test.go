// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// programs makes stand-ins of programs that scripts of these tests call. Each writes its
// arguments to a line of the file "called", separated by |, before it does what its text says.
func programs(t *testing.T, texts map[string]string) (environment []string, called func() string) {
	t.Helper()
	g, folder := NewWithT(t), t.TempDir()
	log := filepath.Join(folder, "called")
	for name, text := range texts {
		script := "#!/usr/bin/env bash\nset -euo pipefail\nprintf '%s|' " + name + " \"$@\" >>\"$CALLED\"; echo >>\"$CALLED\"\n" + text + "\n"
		g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755)).To(Succeed())
	}

	return append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "CALLED="+log), func() string {
		content, err := os.ReadFile(log)
		if !os.IsNotExist(err) {
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(os.RemoveAll(log)).To(Succeed())

		return string(content)
	}
}

// step runs a step of the workflow as GitHub does.
func step(t *testing.T, job, name string, environment ...string) (string, error) {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	g := NewWithT(t)
	g.Expect(decode("../../.github/workflows/release.yaml", &workflow)).To(Succeed())
	for _, one := range workflow.Jobs[job].Steps {
		if one.Name != name {
			continue
		}
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", one.Run)
		command.Env, command.Dir = environment, t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(command.Dir, ".out/release"), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(command.Dir, ".out/release/checksums.txt"), []byte("sums\n"), 0o644)).To(Succeed())
		output, err := command.CombinedOutput()

		return string(output), err
	}
	t.Fatalf("job %s has no step %q", job, name)

	return "", nil
}

// Git accepts all of these names for tags.
func TestReleaseWantsAVersion(t *testing.T) {
	g := NewWithT(t)
	const name = "check the name of the tag"
	for _, tag := range []string{"v1.2.3", "v0.10.0-rc.1"} {
		output, err := step(t, "make", name, append(os.Environ(), "GITHUB_REF_NAME="+tag)...)
		g.Expect(err).NotTo(HaveOccurred(), output)
	}
	for _, tag := range []string{"v1", "v1.2", "v1.2.3-", "v1.2.3'\"$(id)\"'", "v1.2.3-rc;id", "v1.2.3-$(id)", "xv1.2.3", "v1.2.3/a", ""} {
		output, err := step(t, "make", name, append(os.Environ(), "GITHUB_REF_NAME="+tag)...)
		g.Expect(err).To(HaveOccurred(), tag)
		g.Expect(output).To(Equal("want a tag such as v1.2.3 or v1.2.3-rc.1\n"))
	}
	// It comes before all else.
	var workflow struct {
		Jobs map[string]struct {
			Needs string
			Steps []struct{ Name string }
		}
	}
	g.Expect(decode("../../.github/workflows/release.yaml", &workflow)).To(Succeed())
	g.Expect(workflow.Jobs["make"].Steps[0].Name).To(Equal(name))
	g.Expect(workflow.Jobs["publish"].Needs).To(Equal("make"))
}

// What make is told comes to programs as it is: no shell reads it.
func TestMakeRunsNoVersion(t *testing.T) {
	environment, called := programs(t, map[string]string{"go": ""})
	proof := filepath.Join(t.TempDir(), "ran")
	for _, version := range []string{"1.2.3", "v1'\"$(touch " + proof + ")\"'", "';touch " + proof + ";'", "`touch " + proof + "`"} {
		for target, want := range map[string]string{
			"release": "|make|--version|" + version + "|--out|" + version + "|--allow-dirty|",
			"build":   "-X main.version=" + version + "|-o|bin/|",
		} {
			g := NewWithT(t)
			command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../..", target)
			command.Env = append(slices.Clone(environment), "VERSION="+version, "RELEASE_DIR="+version, "RELEASE_FLAGS=--allow-dirty", "MAKEFLAGS=")
			output, err := command.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(output))
			g.Expect(called()).To(ContainSubstring(want))
			g.Expect(proof).NotTo(BeAnExistingFile())
		}
	}
}

// A release wants CI and the nightly run, both on main: a run for a pull request is none.
func TestReleaseWantsEverythingToHavePassed(t *testing.T) {
	const asked = "gh|run|list|--repo|a/b|--commit|c0ffee|--branch|main|--status|success|--json|databaseId|--jq|length|--workflow|"
	for _, test := range []struct {
		ci, nightly string
		says        string
	}{
		{ci: "1", nightly: "2"},
		{ci: "0", nightly: "1", says: "CI has not passed for c0ffee on main"},
		{ci: "1", nightly: "0", says: "the workflow Nightly has not passed for c0ffee on main"},
	} {
		g := NewWithT(t)
		environment, called := programs(t, map[string]string{"gh": "case $* in *nightly*) echo " + test.nightly + ";; *) echo " + test.ci + ";; esac"})
		output, err := step(t, "make", "check that everything has passed", append(environment, "GITHUB_REPOSITORY=a/b", "GITHUB_SHA=c0ffee")...)
		g.Expect(err == nil).To(Equal(test.says == ""), output)
		g.Expect(output).To(ContainSubstring(test.says))
		want := asked + "ci.yaml|--event|push|\n"
		if test.ci != "0" {
			want += asked + "nightly.yaml|\n"
		}
		g.Expect(called()).To(Equal(want))
	}
}

// The last step can be run again, wherever it broke off, and changes no release that is out.
func TestPublishCanBeRepeated(t *testing.T) {
	const (
		create  = "gh|release|create|v1.2.3|--verify-tag|--draft|--title|Insitu 1.2.3|--notes-file|NOTES.md|"
		upload  = "gh|release|upload|v1.2.3|--clobber|./checksums.txt|"
		publish = "gh|release|edit|v1.2.3|--draft=false|"
	)
	for name, test := range map[string]struct {
		view, download string
		want           []string
		fails          bool
	}{
		"new":               {view: "exit 1", want: []string{create, upload, publish}},
		"broken off":        {view: "echo true", want: []string{upload, publish}},
		"published":         {view: "echo false", download: "echo sums"},
		"published another": {view: "echo false", download: "echo other", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			environment, called := programs(t, map[string]string{
				"gh": "case $2 in view) " + test.view + ";; download) " + test.download + ";; esac",
			})
			output, err := step(t, "publish", "publish the files", append(environment, "GITHUB_REF_NAME=v1.2.3")...)
			g.Expect(err != nil).To(Equal(test.fails), output)
			var wrote []string
			for line := range strings.Lines(called()) {
				if !strings.HasPrefix(line, "gh|release|view|") && !strings.HasPrefix(line, "gh|release|download|") {
					wrote = append(wrote, strings.TrimSpace(line))
				}
			}
			g.Expect(wrote).To(Equal(test.want))
		})
	}
}
