// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package labtools does to a lab what several suites need: it runs the tools of a user
// of Kubernetes, and kills what runs on the nodes.
package labtools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// KubectlPath is the kubectl of the environment.
func KubectlPath() string { return fromEnvironment("KUBECTL", "kubectl") }

// Kubectl runs it, and returns what it printed.
func Kubectl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, KubectlPath(), args)
}

// Helm runs the Helm of the environment, and returns what it printed.
func Helm(ctx context.Context, args ...string) (string, error) {
	return run(ctx, fromEnvironment("HELM", "helm"), args)
}

func fromEnvironment(variable, otherwise string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return otherwise
}

func run(ctx context.Context, program string, args []string) (string, error) {
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(output), err
}

// KillKubelet sends SIGKILL to the kubelet of a node of a lab, which starts it again.
func KillKubelet(lab, node string) error {
	config := "--config=" + filepath.Join(lab, "state", "nodes", node, "config", "kubelet.yaml")
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return fmt.Errorf("find the kubelet of node %s: %w", node, err)
	}
	for _, path := range commands {
		content, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(content), "\x00"), config) {
			continue // it ended meanwhile, or is another program
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("kill the kubelet of node %s: %w", node, err)
		}
		return nil
	}
	return fmt.Errorf("kill the kubelet of node %s: no process has the argument %s", node, config)
}

// KillContainer sends SIGKILL to the processes of a container, which is named as in
// the status of its pod: containerd://ID. The lab's nodes are on this machine, so they
// are found by their cgroup. It returns how many there were. One that ends by itself
// meanwhile is no failure.
func KillContainer(containerID string) (int, error) {
	_, id, _ := strings.Cut(containerID, "://")
	if id == "" {
		return 0, fmt.Errorf("kill container %q: the ID has to be like containerd://ID", containerID)
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, fmt.Errorf("find processes of container %s: %w", containerID, err)
	}
	killed := 0
	for _, path := range groups {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), id) {
			continue // it ended meanwhile, or is none of ours
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return killed, fmt.Errorf("find processes of container %s: %w", containerID, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return killed, fmt.Errorf("kill process %d of container %s: %w", pid, containerID, err)
		}
		killed++
	}
	return killed, nil
}
