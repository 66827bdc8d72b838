// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// leftLab is a lab without a slot that was ready once. It has data and a folder of
// sockets, but no process.
type leftLab struct {
	*Lab
	t *testing.T
	g Gomega
}

func newLeftLab(t *testing.T) *leftLab {
	t.Helper()
	g := NewWithT(t)
	lab := &leftLab{Lab: &Lab{Spec: Spec{SimulatedNodes: 1}, Dir: t.TempDir(), Ports: &Ports{}, Complete: true}, t: t, g: g}
	g.Expect(lab.save()).To(Succeed())
	g.Expect(writeFile(lab.state("data"), nil, 0o644)).To(Succeed())
	g.Expect(writeFile(lab.Log("etcd"), nil, 0o644)).To(Succeed())
	inherit, err := lab.confinement().prepare()
	g.Expect(err).NotTo(HaveOccurred())
	closeAll(inherit)
	t.Cleanup(func() { _ = os.RemoveAll(lab.run()) })
	return lab
}

// runs gives the lab a process.
func (l *leftLab) runs() *leftLab {
	inherit, err := l.confinement().prepare()
	l.g.Expect(err).NotTo(HaveOccurred())
	defer closeAll(inherit)
	command := exec.CommandContext(l.t.Context(), "sleep", "60")
	command.ExtraFiles = inherit
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l.g.Expect(command.Start()).To(Succeed())
	l.g.Expect(l.confinement().receive(command.Process.Pid)).To(Succeed())
	go func() { _ = command.Wait() }()
	return l
}

// hasRunner makes the lab one of a runner that lives until end is called.
func (l *leftLab) hasRunner() (end func()) {
	path := filepath.Join(l.Dir, runnerLock)
	l.g.Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
	unlock, err := host.Lock(path)
	l.g.Expect(err).NotTo(HaveOccurred())
	l.t.Cleanup(unlock)
	return unlock
}

// remove removes a file or folder of the lab.
func (l *leftLab) remove(name string) {
	l.g.Expect(os.RemoveAll(filepath.Join(l.Dir, name))).To(Succeed())
}

// isWorkedOn makes an "up" or "down" work on the lab.
func (l *leftLab) isWorkedOn() {
	unlock, err := host.Lock(l.Dir)
	l.g.Expect(err).NotTo(HaveOccurred())
	l.t.Cleanup(unlock)
}

func (l *leftLab) change(change func(*Lab)) {
	change(l.Lab)
	l.g.Expect(l.save()).To(Succeed())
}

// expectUntouched fails unless the lab is as it was.
func (l *leftLab) expectUntouched(said string) {
	l.t.Helper()
	l.g.Expect(said).To(BeEmpty())
	l.g.Expect(l.run()).To(BeADirectory())
	l.g.Expect(l.state("data")).To(BeAnExistingFile())
}

// expectOffTheMachine fails unless the lab has nothing left outside of its folder.
func (l *leftLab) expectOffTheMachine() {
	l.t.Helper()
	l.g.Expect(l.run()).NotTo(BeADirectory())
	l.g.Expect(l.confinement().alive()).To(BeFalse())
}

func (l *leftLab) sweep() (said string) {
	l.t.Helper()
	l.g.Expect(plainOwners(plainRunPrefix())).To(ContainElement(l.Dir))
	l.g.Expect(sweep(l.Dir, func(line string) { said += line + "\n" })).To(Succeed())
	return said
}

// While a sweep takes down a lab whose folder is gone, no "up" can begin there. The sweep
// removes the folders that it made for that, but not what another program put there.
func TestSweepKeepsUpAwayWhereTheFolderIsGone(t *testing.T) {
	g := NewWithT(t)
	parent := filepath.Join(t.TempDir(), "checkout")
	dir := filepath.Join(parent, "lab")

	unlock, gone, err := lockToSweep(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gone).To(BeTrue())
	_, err = host.TryLock(dir)
	g.Expect(err).To(MatchError(host.ErrLocked))
	unlock()
	g.Expect(parent).NotTo(BeADirectory())

	unlock, _, err = lockToSweep(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(parent, "other"), nil, 0o600)).To(Succeed())
	unlock()
	g.Expect(filepath.Join(parent, "other")).To(BeAnExistingFile())
	g.Expect(dir).NotTo(BeADirectory())
}

func TestSweepTakesDownWhatHasNoUse(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(*leftLab)
		want  string
	}{
		"its runner was killed":               {func(l *leftLab) { l.runs().hasRunner()() }, "the runner that it was for has ended"},
		"its runner and all of it was killed": {func(l *leftLab) { l.hasRunner()() }, "the runner that it was for has ended"},
		"up was killed":                       {func(l *leftLab) { l.runs().change(func(lab *Lab) { lab.Complete = false }) }, "it never was ready"},
		"the record was removed":              {func(l *leftLab) { l.runs().remove(recordFile) }, "its record is gone"},
		"the folder was removed":              {func(l *leftLab) { l.runs().remove("") }, "its folder is gone"},
		"all was removed and killed":          {func(l *leftLab) { l.remove("") }, "its folder is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			lab := newLeftLab(t)
			test.leave(lab)

			said := lab.sweep()

			lab.g.Expect(said).To(Equal("The lab in " + lab.Dir + " is down: " + test.want + "\n"))
			lab.expectOffTheMachine()
			lab.g.Expect(filepath.Glob(lab.Dir + "/*")).To(Or(BeEmpty(), ConsistOf(lab.Logs())))
		})
	}
}

func TestSweepLeavesAlone(t *testing.T) {
	for name, leave := range map[string]func(*leftLab){
		"a user's lab":                     func(l *leftLab) { l.runs() },
		"a runner's lab":                   func(l *leftLab) { l.runs().hasRunner() },
		"a runner's lab that was killed":   func(l *leftLab) { l.hasRunner() },
		"a lab that another takes down":    func(l *leftLab) { l.runs().hasRunner()(); l.isWorkedOn() },
		"a user's lab that is starting up": func(l *leftLab) { l.change(func(lab *Lab) { lab.Complete = false }); l.isWorkedOn() },
	} {
		t.Run(name, func(t *testing.T) {
			lab := newLeftLab(t)
			leave(lab)
			lab.expectUntouched(lab.sweep())
		})
	}
}

// A user goes on with such a lab by "up".
func TestSweepKeepsTheDataOfAUsersLab(t *testing.T) {
	lab := newLeftLab(t)
	lab.g.Expect(lab.sweep()).To(ContainSubstring("its data stays"))
	lab.expectOffTheMachine()
	lab.g.Expect(lab.state("data")).To(BeAnExistingFile())
	lab.g.Expect(Load(lab.Dir)).To(Equal(lab.Lab))
}

func TestSweepSaysWhatItCannotRead(t *testing.T) {
	lab := newLeftLab(t)
	lab.change(func(lab *Lab) { lab.SimulatedNodes = -1 })
	said := lab.sweep()
	lab.g.Expect(said).To(And(ContainSubstring("is left alone"), ContainSubstring("simulated nodes: -1")))
	lab.expectUntouched("")
}

// Any user can make a folder in /tmp. What it says is not believed.
func TestFoldersOfSocketsOfOthersAreNotRead(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(writeFile(filepath.Join(folder, "real", ownerFile), []byte("/a/lab\n"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("real", filepath.Join(folder, "link"))).To(Succeed())
	g.Expect(os.Mkdir(filepath.Join(folder, "unfinished"), 0o700)).To(Succeed())
	if os.Getuid() == 0 {
		g.Expect(writeFile(filepath.Join(folder, "foreign", ownerFile), []byte("/etc\n"), 0o600)).To(Succeed())
		g.Expect(os.Chown(filepath.Join(folder, "foreign"), 1234, 1234)).To(Succeed())
	}
	g.Expect(plainOwners(folder + "/")).To(Equal([]string{"/a/lab"}))
}

func TestWhatUpGoesOnWith(t *testing.T) {
	for name, test := range map[string]struct {
		leave     func(*leftLab)
		fresh     bool
		gone      bool
		hasRunner bool
	}{
		"a user's lab":                       {leave: func(*leftLab) {}},
		"a user's lab, but for --fresh":      {leave: func(*leftLab) {}, fresh: true, gone: true},
		"a runner's lab":                     {leave: func(l *leftLab) { l.hasRunner() }, hasRunner: true},
		"an earlier runner's, with --fresh":  {leave: func(l *leftLab) { l.runs().hasRunner() }, fresh: true, gone: true, hasRunner: true},
		"not the lab of a runner that ended": {leave: func(l *leftLab) { l.runs().hasRunner()() }, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			lab := newLeftLab(t)
			test.leave(lab)
			said := ""

			lab.g.Expect(clearFolder(UpOptions{Dir: lab.Dir, Fresh: test.fresh, Say: func(line string) { said = line }})).To(Succeed())

			if test.gone {
				lab.g.Expect(said).To(ContainSubstring("an earlier run left in " + lab.Dir))
				lab.expectOffTheMachine()
				lab.g.Expect(checkUnused(lab.Dir)).To(Succeed())
			} else {
				lab.expectUntouched(said)
			}
			_, err := takeOver(lab.Dir)
			lab.g.Expect(err).To(MatchError(map[bool]error{true: host.ErrLocked, false: errNoRunner}[test.hasRunner]))
		})
	}
}

// The folder is not held by its name alone: a lab that goes down meanwhile takes it along.
func TestLockOfALabsFolderMakesIt(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "lab")
	unlock, err := lockFolder(dir)
	g.Expect(err).NotTo(HaveOccurred())
	second := make(chan error)
	go func() {
		_, err := lockFolder(dir)
		second <- err
	}()
	g.Consistently(second, 100*time.Millisecond).ShouldNot(Receive())
	g.Expect(removeFolder(dir)).To(Succeed())
	unlock()
	g.Eventually(second).Should(Receive(BeNil()))
	g.Expect(dir).To(BeADirectory())
}

// A "down" that waits for a "sweep" has nothing to do in the end.
func TestDownOfALabThatIsSweptMeanwhile(t *testing.T) {
	lab := newLeftLab(t)
	lab.remove("logs")
	unlock, err := host.Lock(lab.Dir)
	lab.g.Expect(err).NotTo(HaveOccurred())
	found, done := make(chan bool, 1), make(chan error)
	go func() {
		there, err := Down(lab.Dir)
		found <- there
		done <- err
	}()
	lab.g.Consistently(done, 100*time.Millisecond).ShouldNot(Receive())
	lab.g.Expect(sweepAway(lab.Dir, "", func(string) {})).To(Succeed())
	unlock()
	lab.g.Eventually(done).Should(Receive(BeNil()))
	lab.g.Expect(<-found).To(BeFalse())
}
