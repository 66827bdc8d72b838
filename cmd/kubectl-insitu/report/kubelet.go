// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// Reason is a reason that is explained.
type Reason struct {
	Reason, Meaning, Advice string
}

// Advice for reasons of kubelets.
const (
	fixImage  = "Correct the image, or go back: `kubectl insitu set image KIND/NAME CONTAINER=IMAGE`; `kubectl insitu undo KIND/NAME`"
	fixSpec   = "Correct the template, or go back: `kubectl describe pod POD`; `kubectl insitu undo KIND/NAME`"
	readLogs  = "Read why it ended, and give it a revision that runs, or go back: `kubectl logs POD --all-containers --previous`; `kubectl insitu undo KIND/NAME`"
	readEvent = "See the events of the pod: `kubectl describe pod POD`"
)

// kubeletReasons are those that Kubernetes gives for containers and pods that do not
// run, in the order in which a pod may meet them.
var kubeletReasons = []Reason{
	{"SchedulingGated", "a scheduling gate keeps the pod from getting a node", "Have the owner of the gate take it off: `kubectl get pod POD -o yaml`"},
	{"Unschedulable", "no node has room for the pod, or suits it", "Make room, add a node, or ask for less: `kubectl describe pod POD`"},
	{"PodInitializing", "init containers run first", "Nothing, if they end; else see their logs: `kubectl logs POD --all-containers`"},
	{"ContainerCreating", "volumes and network are being made ready, or the image is being pulled", "Nothing, for some minutes; if it stays, see what the pod says: `kubectl describe pod POD`"},
	{"ErrImagePull", "the image could not be pulled", fixImage},
	{"ImagePullBackOff", "the image could not be pulled, the kubelet waits before it tries again", fixImage},
	{"ErrImageNeverPull", "the image is not on the node, and imagePullPolicy Never keeps it from being pulled", fixImage},
	{"InvalidImageName", "the image is none that can be read", fixImage},
	{"ImageInspectError", "the image on the node cannot be looked at", "Look at the container runtime of the node; remove the image there to have it pulled again"},
	{"RegistryUnavailable", "the registry does not answer", "Nothing, if the registry answers again; else correct the image, or go back: `kubectl insitu undo KIND/NAME`"},
	{"SignatureValidationFailed", "the signature of the image is not accepted by the node", fixImage},
	{"CreateContainerConfigError", "the container needs what is not there, such as a ConfigMap or a Secret", "Create what the message names, correct the template, or go back: `kubectl insitu undo KIND/NAME`"},
	{"CreateContainerError", "the container runtime cannot make the container", fixSpec},
	{"PreCreateHookError", "the kubelet could not prepare the container", readEvent},
	{"PreStartHookError", "the kubelet could not prepare the start of the container", readEvent},
	{"PostStartHookError", "the postStart hook of the container failed", fixSpec},
	{"RunContainerError", "the container runtime cannot start the container", fixSpec},
	{"StartError", "the container runtime could not start the container: its command may not exist", fixSpec},
	{"ContainerCannotRun", "the container runtime could not start the container", fixSpec},
	{"CrashLoopBackOff", "the container ends again and again, the kubelet waits before it starts it again", readLogs},
	{"OOMKilled", "the container used more memory than its limit", "Give it more memory, in place: `kubectl insitu set resources KIND/NAME --containers=CONTAINER --limits=memory=SIZE`"},
	{"Error", "the container ended with an exit code other than 0", readLogs},
	{"Completed", "the container ended with exit code 0", "Nothing, if it is started again; else see why it ends: `kubectl logs POD --all-containers --previous`"},
	{"ContainerStatusUnknown", "the kubelet has lost the container", "Nothing, if the node is back; else delete the pod: `kubectl delete pod POD`"},
	{"DeadlineExceeded", "the pod ran longer than its activeDeadlineSeconds", "Take activeDeadlineSeconds out of the template: `kubectl edit KIND/NAME`"},
	{"Evicted", "the node was short of memory, disk or processes", "Nothing: the pod is replaced; ask for as much as it uses, so that it is not evicted again"},
	{"RolloutFailed", "Kubernetes says that the rollout of the workload has failed", "Fix what the message says, or go back: `kubectl insitu undo KIND/NAME`"},
	{"NodeLost", "the node of the pod does not answer", "Repair the node, or delete it when it is gone for good: `kubectl get pod POD -o wide`"},
}

// KubeletReasons returns the reasons of Kubernetes that Advice knows, in the order in
// which a pod may meet them.
func KubeletReasons() []Reason {
	return slices.Clone(kubeletReasons)
}
