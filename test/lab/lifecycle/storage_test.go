// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// storagePod is a pod with a claim of the same name: name, class, more of the
// claim's spec.
const storagePod = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec: {storageClassName: %[2]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}%[3]s}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: "nginx:alpine", volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
`

// JSONPaths into the status of a claim.
const (
	capacity     = ".status.capacity.storage"
	resizeStatus = ".status.allocatedResourceStatuses.storage"
	resizeError  = `.status.conditions[?(@.type=="ControllerResizeError")].message`
)

func TestStorage(t *testing.T) {
	skipIfShort(t)
	lab := newLab(t)
	lab.succeed("up")
	for name, test := range map[string]func(*storageTest){
		"a claim grows while a pod has it":             (*storageTest).growsOnline,
		"a claim grows only when no pod has it":        (*storageTest).growsOffline,
		"a claim of a fixed class does not grow":       (*storageTest).isFixed,
		"a claim that grew too far takes less":         (*storageTest).growsTooFar,
		"a growth that fails, and one that stalls":     (*storageTest).failsAndStalls,
		"a claim waits for its pod":                    (*storageTest).waits,
		"a volume is never made":                       (*storageTest).isNeverMade,
		"a claim changes its attributes":               (*storageTest).changesAttributes,
		"a snapshot is restored":                       (*storageTest).isRestored,
		"snapshots fail, or never become ready":        (*storageTest).snapshotsFail,
		"a volume is on one node, until the node dies": (*storageTest).isOnOneNode,
		"all goes on when the driver was killed":       (*storageTest).driverComesBack,
	} {
		t.Run(name, func(t *testing.T) { test(&storageTest{testLab: lab, Gomega: NewWithT(t)}) })
	}
}

// storageTest is a part of TestStorage.
type storageTest struct {
	*testLab
	Gomega
}

// start makes a pod with a claim of the same name, and waits for it.
func (s *storageTest) start(name, class, more string) {
	s.apply(fmt.Sprintf(storagePod, name, class, more))
	s.awaitPod(name)
}

func (s *storageTest) awaitPod(name string) {
	_, err := s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout="+podTimeout.String())
	s.Expect(err).NotTo(HaveOccurred(), "pod %s is not ready", name)
}

// claim returns something of a claim, by JSONPath below it.
func (s *storageTest) claim(name, path string) func() (string, error) {
	return func() (string, error) { return s.kubectl("get", "pvc", name, "-o", "jsonpath={"+path+"}") }
}

func (s *storageTest) becomes(name, path, want string) {
	s.Eventually(s.claim(name, path), podTimeout, 200*time.Millisecond).Should(Equal(want))
}

// grow asks for another size.
func (s *storageTest) grow(name, size string) (string, error) {
	return s.run("kubectl", "patch", "pvc", name, "-p", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
}

func (s *storageTest) mustGrow(name, size string) {
	output, err := s.grow(name, size)
	s.Expect(err).NotTo(HaveOccurred(), output)
}

// mebibytes is the size of the volume as the pod sees it.
func (s *storageTest) mebibytes(pod string) int {
	output, err := s.kubectl("exec", pod, "--", "busybox", "df", "-m", "/data")
	s.Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(output, "\n")
	size, err := strconv.Atoi(strings.Fields(lines[len(lines)-1])[1])
	s.Expect(err).NotTo(HaveOccurred())
	return size
}

func (s *storageTest) write(pod, text string) {
	_, err := s.kubectl("exec", pod, "--", "busybox", "sh", "-c", "echo "+text+" > /data/file")
	s.Expect(err).NotTo(HaveOccurred())
}

func (s *storageTest) expectFile(pod, text string) {
	s.Expect(s.kubectl("exec", pod, "--", "busybox", "cat", "/data/file")).To(Equal(text))
}

func (s *storageTest) growsOnline() {
	s.apply(strings.Replace(fmt.Sprintf(storagePod, "online", "default", ""), "storageClassName: default, ", "", 1))
	s.awaitPod("online")
	s.Expect(s.claim("online", ".spec.storageClassName")()).To(Equal("standard"), "the default")
	s.Expect(s.mebibytes("online")).To(BeNumerically("~", 1024, 30))
	s.write("online", "before")
	identity := func() (string, error) {
		return s.kubectl("get", "pod", "online", "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}")
	}
	before, err := identity()
	s.Expect(err).NotTo(HaveOccurred())
	s.mustGrow("online", "2Gi")
	s.becomes("online", capacity, "2Gi")
	s.Expect(s.mebibytes("online")).To(BeNumerically("~", 2048, 30))
	s.expectFile("online", "before")
	s.Expect(identity()).To(Equal(before), "it runs on")
}

func (s *storageTest) growsOffline() {
	s.start("offline", "offline", "")
	s.write("offline", "before")
	s.mustGrow("offline", "2Gi")
	s.Eventually(s.claim("offline", resizeError), podTimeout).Should(ContainSubstring("is in use on node-"))
	s.Expect(s.claim("offline", capacity)()).To(Equal("1Gi"))
	_, err := s.kubectl("delete", "pod", "offline")
	s.Expect(err).NotTo(HaveOccurred())
	s.becomes("offline", resizeStatus, "NodeResizePending")
	_, pod, _ := strings.Cut(fmt.Sprintf(storagePod, "offline", "offline", ""), "---")
	s.apply(pod)
	s.awaitPod("offline")
	s.becomes("offline", capacity, "2Gi")
	s.Expect(s.mebibytes("offline")).To(BeNumerically("~", 2048, 30))
	s.expectFile("offline", "before")
}

func (s *storageTest) isFixed() {
	s.start("fixed", "fixed", "")
	output, err := s.grow("fixed", "2Gi")
	s.Expect(err).To(HaveOccurred())
	s.Expect(output).To(ContainSubstring("the storageclass that provisions the pvc must support resize"))
}

func (s *storageTest) growsTooFar() {
	s.start("limited", "limited", "")
	s.mustGrow("limited", "4Gi")
	s.becomes("limited", resizeStatus, "ControllerResizeInfeasible")
	s.Expect(s.claim("limited", resizeError)()).To(ContainSubstring("can grow to 3221225472 bytes, not to 4294967296"))
	s.mustGrow("limited", "2Gi")
	s.becomes("limited", capacity, "2Gi")
	s.Expect(s.claim("limited", ".status.allocatedResourceStatuses")()).To(BeEmpty())
}

func (s *storageTest) failsAndStalls() {
	s.start("failing", "failing", "")
	s.start("stalled", "stalled", "")
	s.mustGrow("failing", "2Gi")
	s.mustGrow("stalled", "2Gi")
	s.Eventually(s.claim("failing", resizeError), podTimeout).Should(ContainSubstring("code = Internal"))
	s.Eventually(func() (string, error) {
		return s.kubectl("get", "events", "--field-selector", "involvedObject.name=stalled,reason=VolumeResizeFailed")
	}, podTimeout).Should(ContainSubstring("code = DeadlineExceeded"))
	for _, name := range []string{"failing", "stalled"} {
		s.Expect(s.claim(name, resizeStatus)()).To(Equal("ControllerResizeInProgress"))
		s.Expect(s.claim(name, capacity)()).To(Equal("1Gi"))
	}
}

func (s *storageTest) waits() {
	claim, pod, _ := strings.Cut(fmt.Sprintf(storagePod, "wait", "wait", ""), "---")
	s.apply(claim)
	s.Eventually(func() (string, error) {
		return s.kubectl("get", "events", "--field-selector", "involvedObject.name=wait")
	}, podTimeout).Should(ContainSubstring("WaitForFirstConsumer"))
	s.Expect(s.claim("wait", ".status.phase")()).To(Equal("Pending"))
	s.apply(pod)
	s.awaitPod("wait")
	s.Expect(s.claim("wait", ".status.phase")()).To(Equal("Bound"))
}

func (s *storageTest) isNeverMade() {
	s.apply(fmt.Sprintf(storagePod, "unmade", "unmade", ""))
	s.Eventually(func() (string, error) {
		return s.kubectl("get", "events", "--field-selector", "involvedObject.name=unmade,reason=ProvisioningFailed")
	}, podTimeout).Should(ContainSubstring("code = ResourceExhausted"))
	s.Expect(s.claim("unmade", ".status.phase")()).To(Equal("Pending"))
}

func (s *storageTest) changesAttributes() {
	const current = ".status.currentVolumeAttributesClassName"
	change := func(class string) {
		_, err := s.kubectl("patch", "pvc", "attributes", "-p", `{"spec":{"volumeAttributesClassName":"`+class+`"}}`)
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.start("attributes", "standard", ", volumeAttributesClassName: silver")
	s.becomes("attributes", current, "silver")
	change("refused")
	s.becomes("attributes", ".status.modifyVolumeStatus.status", "Infeasible")
	s.Expect(s.claim("attributes", current)()).To(Equal("silver"))
	change("gold")
	s.becomes("attributes", current, "gold")
	s.Expect(s.claim("attributes", ".status.modifyVolumeStatus")()).To(BeEmpty())
	volume, err := s.claim("attributes", ".spec.volumeName")()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.dir + "/state/storage/volumes/" + volume + "/record.json").To(BeAnExistingFile())
}

// snapshot makes a snapshot of a claim, of which it returns something.
func (s *storageTest) snapshot(name, class, claim string) func(path string) func() (string, error) {
	s.apply(fmt.Sprintf("{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: %s}, "+
		"spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}}", name, class, claim))
	return func(path string) func() (string, error) {
		return func() (string, error) { return s.kubectl("get", "volumesnapshot", name, "-o", "jsonpath={"+path+"}") }
	}
}

func (s *storageTest) isRestored() {
	s.start("original", "standard", "")
	s.write("original", "before")
	s.Eventually(s.snapshot("first", "standard", "original")(".status.readyToUse"), podTimeout).Should(Equal("true"))
	s.write("original", "after")
	s.start("restored", "noatime", ", dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: first}")
	s.expectFile("restored", "before")
	s.Expect(s.kubectl("exec", "restored", "--", "busybox", "grep", " /data ", "/proc/mounts")).To(ContainSubstring("noatime"), "of another class")
	s.start("cloned", "standard", ", dataSource: {kind: PersistentVolumeClaim, name: original}")
	s.expectFile("cloned", "after")
}

func (s *storageTest) snapshotsFail() {
	s.start("snapped", "standard", "")
	s.Eventually(s.snapshot("fails", "failing", "snapped")(".status.error.message"), podTimeout).Should(ContainSubstring("code = Internal"))
	never := s.snapshot("never", "never-ready", "snapped")
	s.Eventually(never(".status.restoreSize"), podTimeout).Should(Equal("1Gi"))
	s.Expect(never(".status.readyToUse")()).To(Equal("false"))
}

func (s *storageTest) isOnOneNode() {
	s.apply(strings.Replace(fmt.Sprintf(storagePod, "owner", "standard", ""), "  terminationGrace", "  nodeName: node-2\n  terminationGrace", 1))
	s.awaitPod("owner")
	s.write("owner", "before")
	_, pod, _ := strings.Cut(fmt.Sprintf(storagePod, "owner", "standard", ""), "---")
	pod = strings.Replace(pod, "metadata: {name: owner}\nspec:", "metadata: {name: thief}\nspec:\n  nodeName: node-1", 1)
	s.apply(pod)
	s.Eventually(func() (string, error) {
		return s.kubectl("get", "events", "--field-selector", "involvedObject.name=thief,reason=FailedMount")
	}, podTimeout).Should(ContainSubstring("is staged on node-2, and can be on one node at a time"))
	s.succeed("node", "kill", "node-2")
	s.awaitPod("thief")
	s.expectFile("thief", "before")
	s.succeed("node", "start", "node-2")
	_, err := s.kubectl("delete", "pod", "thief")
	s.Expect(err).NotTo(HaveOccurred())
	s.awaitPod("owner")
	s.expectFile("owner", "before")
}

func (s *storageTest) driverComesBack() {
	s.killProcess("lab --dir " + s.dir + " storage")
	s.killProcess("lab --dir " + s.dir + " storage --node node-1")
	s.killProcess("lab --dir " + s.dir + " storage --node node-2")
	s.Eventually(func() string { return s.succeed("status") }, podTimeout, time.Second).Should(And(
		MatchRegexp(`csi-controller +Ready +1 .*signal: killed`),
		MatchRegexp(`node-1 +csi-node +Ready +1 .*signal: killed`),
		MatchRegexp(`node-2 +csi-node +Ready +1 .*signal: killed`),
	))
	// The sidecars end when they next call, and start again.
	s.start("late", "standard", "")
	s.mustGrow("late", "2Gi")
	s.becomes("late", capacity, "2Gi")
}
