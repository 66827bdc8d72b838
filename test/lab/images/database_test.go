// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"
)

// patience is how long a server may take on a slow machine.
const patience = 3 * time.Minute

// rootfs is an image, unpacked to be run in with chroot. That it has no /proc
// and no /dev but a null is enough for a server.
type rootfs struct {
	dir    string
	config v1.Config
}

func unpackDatabase(t *testing.T, opts SetOptions, ref string) rootfs {
	t.Helper()
	requireDebian(t)
	if os.Geteuid() != 0 {
		t.Fatal("the servers are run with chroot, which needs root")
	}
	g := NewWithT(t)
	named, err := BuildExtra(t.Context(), opts, ref)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(named.Refs).To(ContainElement("library/" + ref))
	file, err := named.Image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	unpacked := rootfs{unpack(t, named.Image), file.Config}
	g.Expect(os.Chmod(unpacked.dir, 0o755)).To(Succeed())
	for _, folder := range []string{"dev", "dev/shm"} {
		g.Expect(os.MkdirAll(filepath.Join(unpacked.dir, folder), 0o755)).To(Succeed())
	}
	g.Expect(os.Chmod(filepath.Join(unpacked.dir, "dev/shm"), 0o777)).To(Succeed())
	g.Expect(syscall.Mknod(filepath.Join(unpacked.dir, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3)).To(Succeed())
	g.Expect(os.Chmod(filepath.Join(unpacked.dir, "dev/null"), 0o666)).To(Succeed())
	return unpacked
}

// volume makes a folder of the image look like a volume as the kubelet mounts
// it: new, with lost+found, and open to the group.
func (r rootfs) volume(t *testing.T, path string) {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(r.dir, path)
	g.Expect(os.Mkdir(filepath.Join(dir, "lost+found"), 0o700)).To(Succeed())
	g.Expect(os.Chown(dir, 0, databaseUser)).To(Succeed())
	g.Expect(os.Chmod(dir, 0o775|os.ModeSetgid)).To(Succeed())
}

// command is a program in the image, as its user.
func (r rootfs) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Path, cmd.Err = args[0], nil // looked for below the new root
	cmd.Dir, cmd.Env = "/", r.config.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     r.dir,
		Credential: &syscall.Credential{Uid: databaseUser, Gid: databaseUser},
	}
	return cmd
}

// run returns what a program in the image prints.
func (r rootfs) run(args ...string) (string, error) {
	output, err := r.command(args...).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// start starts the image's server, with further arguments, and returns what
// ends it with a signal and waits until it is gone.
func (r rootfs) start(t *testing.T, args ...string) func(os.Signal) error {
	t.Helper()
	g := NewWithT(t)
	server := r.command(append(r.config.Entrypoint, args...)...)
	server.SysProcAttr.Pdeathsig = syscall.SIGKILL
	var output bytes.Buffer
	server.Stdout, server.Stderr = &output, &output
	g.Expect(server.Start()).To(Succeed())
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return func(signal os.Signal) error {
		ended = true
		if err := server.Process.Signal(signal); err != nil {
			return err
		}
		return server.Wait()
	}
}

func TestRedisKeepsWhatItAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it, with the databases that are updated")
	}
	g := NewWithT(t)
	opts := SetOptions{CacheDir: t.TempDir()}
	root := unpackDatabase(t, opts, "redis:alpine")
	root.volume(t, "data")
	g.Expect(root.config.User).To(Equal(databaseOwner))
	ask := func(words ...string) func() (string, error) {
		return func() (string, error) {
			return root.run(append([]string{"/usr/bin/redis-cli", "-s", "/tmp/redis.sock"}, words...)...)
		}
	}
	// A socket instead of a port, of which this machine may have none to spare.
	socket := []string{"--port", "0", "--unixsocket", "/tmp/redis.sock"}

	end := root.start(t, socket...)
	g.Eventually(ask("ping")).WithTimeout(patience).Should(Equal("PONG"))
	g.Expect(ask("rpush", "log", "one")()).To(Equal("1"))
	g.Expect(ask("config", "get", "appendfsync")()).To(Equal("appendfsync\nalways"))
	_ = end(syscall.SIGKILL)

	end = root.start(t, socket...)
	g.Eventually(ask("ping")).WithTimeout(patience).Should(Equal("PONG"))
	g.Expect(ask("rpush", "log", "two")()).To(Equal("2"))
	g.Expect(end(syscall.SIGTERM)).To(Succeed())

	// The other image differs in nothing but its digest.
	other := unpackDatabase(t, opts, "redis:latest")
	g.Expect(other.run("/usr/bin/cat", "/etc/image")).To(Equal("redis:latest"))
	g.Expect(root.run("/usr/bin/cat", "/etc/image")).To(Equal("redis:alpine"))
	g.Expect(other.config).To(Equal(root.config))

	// The second time nothing is built.
	opts.Progress = func(message string) { t.Errorf("unexpected progress: %s", message) }
	_, err := BuildExtra(t.Context(), opts, "docker.io/library/redis")
	g.Expect(err).NotTo(HaveOccurred())
}

func TestPostgresKeepsWhatItAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it, with the databases that are updated")
	}
	g := NewWithT(t)
	root := unpackDatabase(t, SetOptions{CacheDir: t.TempDir()}, "postgres:alpine")
	root.volume(t, "var/lib/postgresql/data")
	g.Expect(root.config.User).To(Equal(databaseOwner))
	g.Expect(root.config.StopSignal).To(Equal("SIGINT"))
	// What a first start leaves that was interrupted.
	half := filepath.Join(root.dir, "var/lib/postgresql/data/pgdata.new")
	g.Expect(os.Mkdir(half, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600)).To(Succeed())
	g.Expect(os.Chown(half, databaseUser, databaseUser)).To(Succeed())
	ask := func(query string) func() (string, error) {
		return func() (string, error) { return root.run("/usr/bin/psql", "-qAtc", query) }
	}
	socket := []string{"-c", "listen_addresses="}

	end := root.start(t, socket...)
	g.Eventually(ask("create table log (n int)")).WithTimeout(patience).Should(BeEmpty())
	g.Expect(ask("insert into log values (1) returning n")()).To(Equal("1"))
	g.Expect(ask("show fsync")()).To(Equal("on"))
	g.Expect(half).NotTo(BeADirectory())
	g.Expect(end(syscall.SIGINT)).To(Succeed())

	// What a kubelet does to every file of a volume for its fsGroup.
	pgdata := filepath.Join(root.dir, "var/lib/postgresql/data/pgdata")
	g.Expect(os.Chmod(pgdata, 0o770|os.ModeSetgid)).To(Succeed())
	end = root.start(t, socket...)
	g.Eventually(ask("select count(*) from log")).WithTimeout(patience).Should(Equal("1"))
	g.Expect(end(syscall.SIGTERM)).To(Succeed())
}

func TestBuildExtraNamesWhatItKnows(t *testing.T) {
	g := NewWithT(t)
	_, err := BuildExtra(t.Context(), SetOptions{CacheDir: t.TempDir()}, "mysql:alpine")
	g.Expect(err).To(MatchError(ContainSubstring("the lab knows no such image, only library/redis:alpine")))
	_, err = BuildExtra(t.Context(), SetOptions{}, "redis:alpine")
	g.Expect(err).To(MatchError(ContainSubstring("CacheDir is empty")))
}

// What takes long is not built for every lab.
func TestBuildSetHasNoExtraImage(t *testing.T) {
	g := NewWithT(t)
	for _, recipe := range recipes("unused") {
		g.Expect(ExtraRefs()).NotTo(ContainElements(recipe.refs))
	}
}
