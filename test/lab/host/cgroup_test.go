// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// fakeRoot makes files below a new folder and returns it.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
	}
	return root
}

func read(g Gomega, path string) string {
	data, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// detect finds hierarchies in mounts written with ROOT for the root.
func detect(g Gomega, root, mounts string) *Cgroups {
	found, err := detectCgroups(strings.NewReader(strings.ReplaceAll(mounts, "ROOT", root)), root)
	g.Expect(err).NotTo(HaveOccurred())
	return found
}

const (
	mountsV1 = "20 1 0:1 / ROOT rw - tmpfs tmpfs rw\n" +
		"21 20 0:2 / ROOT/memory rw shared:5 - cgroup cgroup rw,memory\n" +
		"22 20 0:3 / ROOT/cpuset rw - cgroup cgroup rw,cpuset\n"
	mountsHybrid = mountsV1 + "23 20 0:4 / ROOT/unified rw - cgroup2 cgroup2 rw\n"
	mountsV2     = "20 1 0:1 / ROOT rw,nosuid - cgroup2 cgroup2 rw\n" +
		"30 1 0:9 / /elsewhere rw - cgroup2 cgroup2 rw\n"
)

func TestDetectCgroups(t *testing.T) {
	for name, c := range map[string]struct {
		mounts string
		want   []hierarchy
	}{
		"v1":        {mountsV1, []hierarchy{{mount: "/fake/memory"}, {mount: "/fake/cpuset"}}},
		"v2":        {mountsV2, []hierarchy{{mount: "/fake", v2: true, whole: true}}},
		"v2 beside": {mountsHybrid, []hierarchy{{mount: "/fake/memory"}, {mount: "/fake/cpuset"}, {mount: "/fake/unified", v2: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(detect(g, "/fake", c.mounts).hierarchies).To(Equal(c.want))
		})
	}
}

func TestDetectCgroupsNeedsOne(t *testing.T) {
	_, err := detectCgroups(strings.NewReader("20 1 0:1 / /fake rw - tmpfs tmpfs rw\n"), "/fake")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no control groups are mounted at /fake")))
}

func TestCreateInV1FillsCpusets(t *testing.T) {
	g := NewWithT(t)
	root := fakeRoot(t, map[string]string{
		"memory/cgroup.procs": "",
		"cpuset/cpuset.cpus":  "0-1\n",
		"cpuset/cpuset.mems":  "0\n",
	})
	g.Expect(detect(g, root, mountsV1).Create("/lab/node-1")).To(Succeed())
	g.Expect(filepath.Join(root, "memory/lab/node-1")).To(BeADirectory())
	g.Expect(filepath.Join(root, "memory/lab/cpuset.cpus")).NotTo(BeAnExistingFile())
	g.Expect(read(g, filepath.Join(root, "cpuset/lab/cpuset.cpus"))).To(Equal("0-1\n"))
	g.Expect(read(g, filepath.Join(root, "cpuset/lab/node-1/cpuset.mems"))).To(Equal("0\n"))
}

func TestCreateInV2HandsDownWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	root := fakeRoot(t, map[string]string{
		"cgroup.controllers":         "cpu memory pids\n",
		"cgroup.subtree_control":     "cpu pids\n",
		"lab/cgroup.controllers":     "memory\n",
		"lab/cgroup.subtree_control": "",
	})
	g.Expect(detect(g, root, mountsV2).Create("/lab/node-1")).To(Succeed())
	// A real file adds what is written to it; here the last write is seen.
	g.Expect(read(g, filepath.Join(root, "cgroup.subtree_control"))).To(Equal("+memory"))
	g.Expect(read(g, filepath.Join(root, "lab/cgroup.subtree_control"))).To(Equal("+memory"))
	g.Expect(filepath.Join(root, "lab/node-1")).To(BeADirectory())
}

func TestJoinAndProcesses(t *testing.T) {
	g := NewWithT(t)
	root := fakeRoot(t, map[string]string{
		"memory/lab/cgroup.procs":          "",
		"memory/lab/node-1/cgroup.procs":   "7\n9\n",
		"cpuset/lab/cgroup.procs":          "",
		"cpuset/lab/node-1/cgroup.procs":   "9\n11\n",
		"cpuset/other/node-1/cgroup.procs": "99\n",
	})
	cgroups := detect(g, root, mountsV1)
	g.Expect(cgroups.Join("/lab", 5)).To(Succeed())
	g.Expect(read(g, filepath.Join(root, "cpuset/lab/cgroup.procs"))).To(Equal("5"))
	g.Expect(cgroups.Processes("/lab")).To(Equal([]int{5, 7, 9, 11}))
	g.Expect(cgroups.Processes("/missing")).To(BeEmpty())
}

func TestRemoveTakesWholeTrees(t *testing.T) {
	g := NewWithT(t)
	root := fakeRoot(t, map[string]string{"cpuset/cpuset.cpus": "0", "memory/x": ""})
	for _, group := range []string{"memory/lab/a/b", "memory/lab/c", "cpuset/lab/a", "cpuset/other"} {
		g.Expect(os.MkdirAll(filepath.Join(root, group), 0o755)).To(Succeed())
	}
	cgroups := detect(g, root, mountsV1)
	g.Expect(cgroups.Remove("/lab")).To(Succeed())
	g.Expect(filepath.Join(root, "memory/lab")).NotTo(BeADirectory())
	g.Expect(filepath.Join(root, "cpuset/lab")).NotTo(BeADirectory())
	g.Expect(filepath.Join(root, "cpuset/other")).To(BeADirectory())
	g.Expect(cgroups.Remove("/lab")).To(Succeed(), "a second time")
}
