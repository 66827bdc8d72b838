// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// An image is pulled onto the node of a pod, before the pod is taken out of service for it, by
// another pod on that node: a puller. It has the images, and a command that none of them has, so
// that the kubelet pulls them and starts nothing. It has the account, the pull secrets and the
// tolerations of the pod, so that what it may pull, the pod may. A pod that is deleted for another
// image waits as well: its puller has the account and the pull secrets of the new pod.

// PullPolicy says whether images are pulled before pods are taken out of service for them.
type PullPolicy struct {
	// Policy is as in the API; empty is what the manager has for workloads that do not say it.
	Policy appsv1beta1.ImagePullPolicyType
	// Timeout is how long no answer is waited for; with Prefer also an answer. RefusedTimeout is
	// how long, where no pod that pulls is accepted, and where several other nodes have not answered.
	Timeout, RefusedTimeout time.Duration
	// Parallelism is on how many nodes images are pulled at a time; 0 is twice as many as pods
	// may be unavailable.
	Parallelism int
	// MinUpdatedReady is how many pods are updated and ready before images are pulled for others
	// than the next ones.
	MinUpdatedReady int
}

// IsOn reports whether images are pulled before.
func (p PullPolicy) IsOn() bool {
	return p.Policy == appsv1beta1.RequireImagePull || p.Policy == appsv1beta1.PreferImagePull
}

// Image is one that a pod needs on its node.
type Image struct {
	Name string
	// PullPolicy is that of the container.
	PullPolicy corev1.PullPolicy
}

// imagesFor returns what a change of a pod needs on its node: images of containers that are
// restarted as they are, are there.
func imagesFor(pod *corev1.Pod, change Change) []Image {
	var all []Image
	for _, c := range change.all() {
		if !c.Restart {
			all = append(all, Image{Name: c.To, PullPolicy: pullPolicyOf(c.Container, pod)})
		}
	}
	return sortedImages(all)
}

func pullPolicyOf(container string, pod *corev1.Pod) corev1.PullPolicy {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == container {
				return containers[i].ImagePullPolicy
			}
		}
	}
	return ""
}

// Pull is what is to be on a node before pods there are taken out of service.
type Pull struct {
	Node   string
	Images []Image
	// As is what they are pulled with; nil for what the pod has that needs them. OtherAccount is
	// true where that is something else than what the pods there have.
	As           *PullAccount
	OtherAccount bool
}

// PullsImages reports whether a change gives containers other images.
func (c Change) PullsImages() bool {
	return slices.ContainsFunc(c.all(), func(image ImageChange) bool { return !image.Restart })
}

// PullFor returns what a pod needs on its node before it takes its next step. One that is broken
// needs nothing: it does not serve, and will not by itself.
func PullFor(pod PodState) Pull {
	if IsBroken(pod.Pod) {
		return Pull{}
	}
	return PullOf(pod.Pod, pod.Step)
}

// PullOf returns what a pod needs on its node for a step, broken or not; where the step deletes it,
// what a new pod in its place needs.
func PullOf(pod *corev1.Pod, step Step) Pull {
	switch {
	case pod.Spec.NodeName == "":
		return Pull{}
	case len(step.SuccessorPull.Images) > 0:
		return step.SuccessorPull
	case step.LeadsToPatch:
		return Pull{Node: pod.Spec.NodeName, Images: imagesFor(pod, step.Change)}
	default:
		return Pull{}
	}
}

// sortedImages returns images in an order, each once.
func sortedImages(images []Image) []Image {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.PullPolicy, b.PullPolicy))
	})
	return slices.Compact(images)
}

// Runs reports whether the containers of a pod run from the images of the target revision.
func (s PodState) Runs() bool {
	return s.Updated && (s.Ready || condition(s.Pod, corev1.ContainersReady).Status == corev1.ConditionTrue)
}

// Key names the pull among those of a workload.
func (p Pull) Key() string {
	b := &strings.Builder{}
	b.WriteString(p.Node)
	for _, image := range p.Images {
		fmt.Fprintf(b, " %s/%s", image.PullPolicy, image.Name)
	}
	if p.OtherAccount {
		fmt.Fprintf(b, " as %s %v", p.As.ServiceAccountName, p.As.ImagePullSecrets)
	}
	return b.String()
}

// ImagesInWords names the images.
func (p Pull) ImagesInWords() string {
	names := make([]string, 0, len(p.Images))
	for _, image := range p.Images {
		names = append(names, image.Name)
	}
	return strings.Join(names, ", ")
}

// IsVirtual reports whether a node has no store of images for other pods than those that run there.
func IsVirtual(node *corev1.Node) bool {
	return node.Labels["type"] == "virtual-kubelet" || node.Labels["eks.amazonaws.com/compute-type"] == "fargate"
}

// IsOn reports whether a node says that it has the images, and a pod, which was read whole, may use
// them: of one with pull secrets, or another account, the kubelet may ask the registry (KEP-2535).
// A node names the images that it has by several names each, and at most 50.
func (p Pull) IsOn(node *corev1.Node, pod *corev1.Pod) bool {
	return len(pod.Spec.ImagePullSecrets) == 0 && !p.OtherAccount && !slices.ContainsFunc(p.Images, func(image Image) bool {
		name := nameOnNode(image.Name)
		return image.PullPolicy == corev1.PullAlways || !slices.ContainsFunc(node.Status.Images, func(known corev1.ContainerImage) bool {
			return slices.Contains(known.Names, name)
		})
	})
}

// nameOnNode returns the name by which the status of a node lists an image: whole, and with the
// digest only where it has one.
func nameOnNode(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	if digested, ok := named.(reference.Digested); ok {
		return named.Name() + "@" + digested.Digest().String()
	}
	return reference.TagNameOnly(named).String()
}

const (
	// pullerLife is after how long the kubelet ends a puller that has been left.
	pullerLife = time.Hour
	// pullCommand is what no image has.
	pullCommand = "/insitu.dev/pull"
	// pullerUser is who a puller would run as, if its pod does not say it, and its group.
	pullerUser = 65534
)

// IsPuller reports whether a pod is a puller.
func IsPuller(pod *corev1.Pod) bool {
	_, is := pod.Labels[appsv1beta1.PullerLabel]
	return is
}

// PullerName returns the name of the puller of a workload.
func (p Pull) PullerName(owner metav1.Object) string {
	const longest = 40
	hash := sha256.Sum256([]byte(string(owner.GetUID()) + " " + p.Key()))
	name := owner.GetName()
	return strings.TrimRight(name[:min(len(name), longest)], "-.") + "-pull-" + hex.EncodeToString(hash[:])[:10]
}

// Puller returns a pod that pulls the images as a live pod, which was read whole, would, or as a new
// one in its place.
func (p Pull) Puller(owner metav1.Object, controller metav1.OwnerReference, pod *corev1.Pod) *corev1.Pod {
	puller := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: p.PullerName(owner), OwnerReferences: []metav1.OwnerReference{controller},
			// No injector puts its own containers beside, and no autoscaler keeps the node for it.
			Labels:      map[string]string{appsv1beta1.PullerLabel: string(owner.GetUID()), "sidecar.istio.io/inject": "false"},
			Annotations: map[string]string{"linkerd.io/inject": "disabled", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
		},
		Spec: corev1.PodSpec{
			NodeName:                      p.Node,
			ServiceAccountName:            pod.Spec.ServiceAccountName,
			ImagePullSecrets:              pod.Spec.ImagePullSecrets,
			Tolerations:                   pod.Spec.Tolerations,
			RuntimeClassName:              pod.Spec.RuntimeClassName,
			HostNetwork:                   pod.Spec.HostNetwork, // it may be what gives others their network
			OS:                            pod.Spec.OS,
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			ActiveDeadlineSeconds:         ptr.To(int64(pullerLife.Seconds())),
		},
	}
	if p.As != nil {
		puller.Spec.ServiceAccountName, puller.Spec.ImagePullSecrets = p.As.ServiceAccountName, p.As.ImagePullSecrets
	}
	for i, image := range p.Images {
		puller.Spec.Containers = append(puller.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("pull-%d", i), Image: image.Name, ImagePullPolicy: image.PullPolicy, Command: []string{pullCommand},
			Resources: pullerResources(),
		})
	}
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		puller.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}
		return puller
	}
	puller.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: userOf(pod), RunAsGroup: ptr.To[int64](pullerUser),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	for i := range puller.Spec.Containers {
		puller.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return puller
}

// userOf returns whom a pod names as its user, where that is not root: a cluster may accept some
// only, such as those of the namespace under a SecurityContextConstraint of OpenShift.
func userOf(pod *corev1.Pod) *int64 {
	if named := pod.Spec.SecurityContext; named != nil && ptr.Deref(named.RunAsUser, 0) > 0 {
		return named.RunAsUser
	}
	for i := range pod.Spec.Containers {
		if named := pod.Spec.Containers[i].SecurityContext; named != nil && ptr.Deref(named.RunAsUser, 0) > 0 {
			return named.RunAsUser
		}
	}
	return ptr.To[int64](pullerUser)
}

// pullerResources are those of each container of a puller: a quota may ask for some.
func pullerResources() corev1.ResourceRequirements {
	tiny := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")}
	return corev1.ResourceRequirements{Requests: tiny, Limits: tiny}
}

// PullState is how far a puller has come.
type PullState string

// The states of a puller.
const (
	// PullUnanswered: no kubelet has reported on the puller, or it has no sandbox for it.
	PullUnanswered PullState = "Unanswered"
	// PullUnderWay: the kubelet is pulling.
	PullUnderWay PullState = "UnderWay"
	// Pulled: the images are on the node, and the pod may use them.
	Pulled PullState = "Pulled"
	// PullFailed: the kubelet cannot pull an image, and tries again.
	PullFailed PullState = "Failed"
	// PullRejected: the kubelet did not take the puller, which is over.
	PullRejected PullState = "Rejected"
)

// PullStateOf returns how far a puller has come, and what the kubelet says of that.
func PullStateOf(puller *corev1.Pod) (PullState, string) {
	statuses := puller.Status.ContainerStatuses
	pulled := 0
	for i := range statuses {
		switch waiting := statuses[i].State.Waiting; {
		case LacksImage(statuses[i]):
			return PullFailed, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		case isPulled(&statuses[i]):
			pulled++
		}
	}
	switch {
	case len(statuses) > 0 && pulled == len(puller.Spec.Containers):
		return Pulled, ""
	case puller.Status.Phase == corev1.PodFailed, puller.Status.Phase == corev1.PodSucceeded:
		return PullRejected, strings.TrimSuffix(puller.Status.Reason+": "+puller.Status.Message, ": ")
	case slices.ContainsFunc(statuses, isAboutToPull) && condition(puller, corev1.PodReadyToStartContainers).Status != corev1.ConditionFalse:
		return PullUnderWay, ""
	default:
		return PullUnanswered, ""
	}
}

// isAboutToPull reports whether the kubelet pulls the image of a container, or comes to that next. It
// does not while init containers run that admission has put in.
func isAboutToPull(status corev1.ContainerStatus) bool {
	return status.State.Waiting != nil && status.State.Waiting.Reason == "ContainerCreating"
}

// followsPull are the kubelet's reasons of a container that waits for what comes after its image.
var followsPull = sets.New("CreateContainerConfigError", "PreCreateHookError", "CreateContainerError", "PreStartHookError",
	"RunContainerError", "PostStartHookError", crashLoopBackOff)

// isPulled reports whether the kubelet has come to what follows the pull of an image.
func isPulled(status *corev1.ContainerStatus) bool {
	waiting := status.State.Waiting
	return status.State.Running != nil || status.State.Terminated != nil && status.State.Terminated.Reason != "ContainerStatusUnknown" ||
		waiting != nil && followsPull.Has(waiting.Reason)
}
