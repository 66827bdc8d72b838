// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestSuccessor(t *testing.T) {
	g := NewWithT(t)
	claim := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}}}
	token := corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}
	pod := builders.Pod("web-0", "a", alpineImage).With(func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.Volumes = "node-1", []corev1.Volume{claim, token}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", BlockOwnerDeletion: new(true)}}
		p.Finalizers = []string{drainFinalizer}
	}).Build()
	pod.Labels["statefulset.kubernetes.io/pod-name"] = "web-0"
	pod.Labels[appsv1beta1.SpecifiedDeleteKey], pod.Labels["removed"] = "true", "from the template"
	template := parse(t, `{"metadata":{"labels":{"app":"web"},"annotations":{"note":"new"}},"spec":{"containers":[{"name":"main","image":"nginx:latest",
		"resources":{"requests":{"cpu":"200m"}},"volumeMounts":[{"name":"data","mountPath":"/data"}]}]}}`)

	successor, err := Successor(pod, Revision{Template: template})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(successor.Name + " " + successor.GenerateName + " " + successor.Namespace).To(Equal(" web-0- " + pod.Namespace))
	g.Expect(successor.UID).To(BeEmpty())
	g.Expect(successor.Labels).To(And(HaveKeyWithValue("app", "web"), HaveKeyWithValue("statefulset.kubernetes.io/pod-name", "web-0")))
	g.Expect(successor.Labels).NotTo(Or(HaveKey(appsv1beta1.SpecifiedDeleteKey), HaveKey("removed")), "they are of this pod alone")
	g.Expect(successor.Annotations).To(Equal(map[string]string{"note": "new"}))
	g.Expect(successor.OwnerReferences).To(Equal([]metav1.OwnerReference{{Kind: "StatefulSet", Name: "web"}}), "to block takes rights on the owner")
	g.Expect(pod.OwnerReferences[0].BlockOwnerDeletion).NotTo(BeNil(), "the pod stays as it is")
	g.Expect(successor.Finalizers).To(BeEmpty())
	g.Expect(successor.Spec.NodeName).To(BeEmpty())
	g.Expect(successor.Spec.Containers[0].Image).To(Equal("nginx:latest"))
	g.Expect(successor.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("200m"))
	g.Expect(successor.Spec.Volumes).To(Equal([]corev1.Volume{claim}), "what admission has added, it would add again")
}

// A new pod has the claims of its own revision, not those of the pod before.
func TestSuccessorHasTheClaimsOfItsRevision(t *testing.T) {
	g := NewWithT(t)
	claim := func(name, of string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: of}}}
	}
	pod := builders.Pod("web-0", "a", alpineImage).With(func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{claim("data", "data-web-0"), claim("scratch", "scratch-web-0")}
	}).Build()
	template := parse(t, `{"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"own","emptyDir":{}}],"containers":[{"name":"main","image":"nginx:latest"}]}}`)

	successor, err := Successor(pod, Revision{Name: "b", Template: template, ClaimTemplates: []string{"data", "logs"}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(successor.Spec.Volumes).To(ConsistOf(
		corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		claim("data", "data-web-0"), claim("logs", "logs-web-0")))
	g.Expect(successor.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, "b"))
}

func TestComesBackAt(t *testing.T) {
	g := NewWithT(t)
	w := Workload{Target: Target{Revision: Revision{Name: "b"}}}
	g.Expect(w.ComesBackAt(PodFacts{From: &Revision{Name: "a"}}).Name).To(Equal("b"))
	g.Expect(w.ComesBackAt(PodFacts{From: &Revision{Name: "a"}, Held: true}).Name).To(Equal("a"))
	g.Expect(w.ComesBackAt(PodFacts{Held: true}).Name).To(Equal("b"), "nothing else is known")
	w.Current = &Revision{Name: "c"}
	g.Expect(w.ComesBackAt(PodFacts{From: &Revision{Name: "a"}, Held: true}).Name).To(Equal("c"))
	g.Expect(w.ComesBackAt(PodFacts{MakesRoomAtCurrent: true}).Name).To(Equal("c"))
	g.Expect(w.ComesBackAt(PodFacts{MakesRoomAtCurrent: true, MakesNoRoom: true})).To(BeNil())
}
