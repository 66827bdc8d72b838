// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/sets"
)

// removeTimeout is how long control groups may take to become empty. Processes that were
// killed take their time on a loaded machine.
const removeTimeout = 2 * time.Minute

// Cgroups are the control group hierarchies of a machine: one on a machine
// with cgroup v2, one per set of controllers with v1, and both kinds where v2
// is mounted beside v1.
type Cgroups struct {
	hierarchies []hierarchy
}

type hierarchy struct {
	mount string // where it is mounted
	v2    bool
	// whole says that this hierarchy holds the controllers, so they must be
	// handed down from group to group. It is false for v2 mounted beside v1.
	whole bool
}

// cgroupRoot is where the hierarchies are mounted by convention; container
// runtimes look nowhere else.
const cgroupRoot = "/sys/fs/cgroup"

// DetectCgroups finds the hierarchies in the mounts of this process.
func DetectCgroups() (*Cgroups, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("detect control groups: %w", err)
	}
	defer mounts.Close()
	return detectCgroups(mounts, cgroupRoot)
}

// detectCgroups reads the format of /proc/self/mountinfo, see proc(5).
func detectCgroups(mounts io.Reader, root string) (*Cgroups, error) {
	found := &Cgroups{}
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		// 36 35 98:0 /root /mount options [optional ...] - type source options
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 {
			continue
		}
		mount, kind := left[4], right[0]
		if mount != root && filepath.Dir(mount) != root {
			continue
		}
		switch kind {
		case "cgroup":
			found.hierarchies = append(found.hierarchies, hierarchy{mount: mount})
		case "cgroup2":
			found.hierarchies = append(found.hierarchies, hierarchy{mount: mount, v2: true, whole: mount == root})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	if len(found.hierarchies) == 0 {
		return nil, fmt.Errorf("no control groups are mounted at %s: mount cgroup v1 controllers or cgroup v2 there", root)
	}
	return found, nil
}

// Create makes the group, such as "/insitu-lab-0/node-1", and its parents in
// every hierarchy, with every controller usable in it and below it.
func (c *Cgroups) Create(group string) error {
	for _, h := range c.hierarchies {
		folder := h.mount
		for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
			parent := folder
			folder = filepath.Join(folder, name)
			if err := h.create(parent, folder); err != nil {
				return fmt.Errorf("create control group %s in %s: %w", group, h.mount, err)
			}
		}
	}
	return nil
}

func (h hierarchy) create(parent, folder string) error {
	if h.whole {
		if err := handDownControllers(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.v2 {
		return nil
	}
	// A new v1 cpuset is empty, and no process can be put into it.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if err := inherit(parent, folder, file); err != nil {
			return err
		}
	}
	return nil
}

// handDownControllers makes every controller that the group has available to
// its children.
func handDownControllers(group string) error {
	available, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	control := filepath.Join(group, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	missing := sets.New(strings.Fields(string(available))...).Difference(sets.New(strings.Fields(string(enabled))...))
	for _, controller := range sets.List(missing) {
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("hand down controller %s: %w", controller, err)
		}
	}
	return nil
}

func inherit(parent, folder, file string) error {
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Not the hierarchy of the cpuset controller.
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, file), value, 0o644)
}

// Join moves a process, 0 for the calling one, into the group.
func (c *Cgroups) Join(group string, pid int) error {
	for _, h := range c.hierarchies {
		file := filepath.Join(h.mount, group, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("join control group %s: %w", group, err)
		}
	}
	return nil
}

// Processes returns the processes in the group and all groups below it.
func (c *Cgroups) Processes(group string) ([]int, error) {
	found := sets.New[int]()
	for _, h := range c.hierarchies {
		err := h.walk(group, func(folder string) error {
			pids, err := readPIDs(filepath.Join(folder, "cgroup.procs"))
			found.Insert(pids...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of control group %s: %w", group, err)
		}
	}
	return sets.List(found), nil
}

// Kill kills every process in the group and below it and returns when none is
// left. It is no error if the group is not there.
func (c *Cgroups) Kill(group string) error {
	deadline := time.Now().Add(removeTimeout)
	for {
		pids, err := c.Processes(group)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of control group %s do not die", pids, group)
		}
		for _, pid := range pids {
			// A pid of 0 is a process outside of our PID namespace.
			if pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL) // An error means gone, and is seen in the next round.
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Remove removes the group and all groups below it, once they are empty of
// processes. It is no error if the group is not there.
func (c *Cgroups) Remove(group string) error {
	deadline := time.Now().Add(removeTimeout)
	for _, h := range c.hierarchies {
		for {
			err := h.remove(group)
			if err == nil {
				break
			}
			// A group stays busy for a moment after its last process died.
			if time.Now().After(deadline) {
				return fmt.Errorf("remove control group %s: %w", group, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

func (h hierarchy) remove(group string) error {
	var folders []string
	err := h.walk(group, func(folder string) error {
		folders = append(folders, folder)
		return nil
	})
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
			return &os.PathError{Op: "rmdir", Path: folder, Err: err}
		}
	}
	return nil
}

// walk calls visit for the group and all groups below it, parents first.
// Groups that vanish meanwhile are left out.
func (h hierarchy) walk(group string, visit func(folder string) error) error {
	return filepath.WalkDir(filepath.Join(h.mount, group), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = visit(path)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		return err
	})
}

func readPIDs(file string) ([]int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
