// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/insitu-dev/insitu/hack/release/gotool"
	"github.com/insitu-dev/insitu/hack/release/pack"
)

// target is a program for a platform.
type target struct {
	program, system, arch string
}

// targets are what is released: the manager for the nodes of clusters, and the plugin
// for the machines of users, which .krew.yaml names as well.
var targets = []target{
	{manager, "linux", "amd64"},
	{manager, "linux", "arm64"},
	{plugin, "linux", "amd64"},
	{plugin, "linux", "arm64"},
	{plugin, "darwin", "amd64"},
	{plugin, "darwin", "arm64"},
	{plugin, "windows", "amd64"},
}

const (
	manager = "insitu"
	plugin  = "kubectl-insitu"
)

// String is such as insitu_linux_amd64, the beginning of names of files.
func (t target) String() string { return t.program + "_" + t.system + "_" + t.arch }

func (t target) platform() string { return t.system + "/" + t.arch }

// file is the name of the program on its platform.
func (t target) file() string {
	if t.system == "windows" {
		return t.program + ".exe"
	}

	return t.program
}

// binary is a program that was made.
type binary struct {
	target
	content []byte
	build   *debug.BuildInfo
}

// arguments of go build. What they leave out is what differs between machines and
// checkouts: -trimpath the folders, -buildvcs=false what git knows, which is less in a
// shallow clone. The commit goes in by -X.
func (s *source) arguments(one target, output string) []string {
	const build = "github.com/insitu-dev/insitu/cmd/build"

	return []string{
		"build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", fmt.Sprintf("-s -w -X main.version=v%s -X %s.commit=%s", s.version, build, s.commit),
		"-o", output, "./cmd/" + one.program,
	}
}

// compile makes a program. It takes minutes where no package of the platform has
// been compiled yet, so it says every 20 s how far it is.
func (s *source) compile(ctx context.Context, one target, say io.Writer) (binary, error) {
	variables, err := gotool.Environment(ctx, one.system, one.arch)
	if err != nil {
		return binary{}, err
	}
	folder, err := os.MkdirTemp("", "insitu-release-")
	if err != nil {
		return binary{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	output := filepath.Join(folder, one.file())
	command := exec.CommandContext(ctx, "go", s.arguments(one, output)...)
	command.Dir, command.Env = s.root, os.Environ()
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	lines := &progress{say: say, next: time.Now().Add(interval)}
	command.Stderr = lines
	if err := command.Run(); err != nil {
		return binary{}, fmt.Errorf("compile %s: %w: %s", one, err, lines.complaint())
	}
	content, err := os.ReadFile(output)
	if err != nil {
		return binary{}, fmt.Errorf("compile %s: %w", one, err)
	}
	build, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return binary{}, fmt.Errorf("read how %s was built: %w", one, err)
	}

	return binary{target: one, content: content, build: build}, nil
}

// machineFolders are those that nothing in a release may name.
func (s *source) machineFolders(ctx context.Context) ([]string, error) {
	output, err := s.run(ctx, "go", "env", "GOMODCACHE", "GOCACHE", "GOPATH")
	if err != nil {
		return nil, err
	}

	return append(strings.Split(strings.TrimSpace(output), "\n"), s.root, filepath.Join(os.TempDir(), "insitu-release-")), nil
}

// check makes sure that a program is for its platform and was built as it should be.
func (b binary) check(folders []string) error {
	want := map[string]string{"CGO_ENABLED": "0", "GOOS": b.system, "GOARCH": b.arch, "-trimpath": "true"}
	for _, setting := range b.build.Settings {
		if value, ok := want[setting.Key]; ok && value == setting.Value {
			delete(want, setting.Key)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%s was not built with %v", b.target, want)
	}

	return pack.EnsureNoPaths(b.String(), b.content, folders)
}

const interval = 20 * time.Second

// progress counts the lines that the compiler prints, one for each package.
type progress struct {
	say      io.Writer
	next     time.Time
	packages int
	last     bytes.Buffer
}

// Write implements io.Writer.
func (p *progress) Write(printed []byte) (int, error) {
	p.packages += bytes.Count(printed, []byte("\n"))
	p.last.Write(printed)
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(interval)
		fmt.Fprintf(p.say, "    %d packages so far\n", p.packages)
	}

	return len(printed), nil
}

// complaint returns what is no name of a package.
func (p *progress) complaint() string {
	var lines []string
	for line := range strings.Lines(p.last.String()) {
		if strings.ContainsAny(strings.TrimSpace(line), " :") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}

	return strings.Join(lines, "\n")
}
