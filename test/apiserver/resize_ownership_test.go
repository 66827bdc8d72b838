// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/resize"
)

// TestTheServerSaysWhoResized checks what ownership of resources is told by: the
// API server notes what we set in an entry of its own, and takes a value out of it
// that another client changes.
func TestTheServerSaysWhoResized(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(server, client.Options{})
	must(t, err)

	pod := podToResize(t, c, "default")
	g.Expect(ownedBy(pod, resize.FieldManager)).To(BeEmpty())

	resizePod(t, c, pod, resize.FieldManager, `{"cpu": "150m", "memory": "96Mi"}`)
	g.Expect(ownedBy(pod, resize.FieldManager)).To(And(ContainSubstring("f:cpu"), ContainSubstring("f:memory")))

	resizePod(t, c, pod, "vpa-updater", `{"cpu": "200m"}`)
	g.Expect(ownedBy(pod, resize.FieldManager)).To(And(Not(ContainSubstring("f:cpu")), ContainSubstring("f:memory")))
	g.Expect(ownedBy(pod, "vpa-updater")).To(ContainSubstring("f:cpu"))

	resizePod(t, c, pod, resize.FieldManager, `{"cpu": "100m"}`)
	g.Expect(ownedBy(pod, resize.FieldManager)).To(And(ContainSubstring("f:cpu"), ContainSubstring("f:memory")))
	g.Expect(ownedBy(pod, "vpa-updater")).NotTo(ContainSubstring("f:cpu"))
}

// TestTheServerRefusesAResizeBeyondAQuota checks the words by which the executor knows that a
// quota has no room.
func TestTheServerRefusesAResizeBeyondAQuota(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(server, client.Options{})
	must(t, err)
	namespace := &corev1.Namespace{}
	namespace.Name = "resized-within-a-quota"
	created(t, c, namespace)
	hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("200m")}
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	quota.Namespace, quota.Name = namespace.Name, "few"
	created(t, c, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("0")}}
	must(t, c.Status().Update(t.Context(), quota)) // as the quota controller does

	pod := podToResize(t, c, namespace.Name)
	resizePod(t, c, pod, resize.FieldManager, `{"cpu": "200m"}`)
	err = tryResize(t, c, pod, resize.FieldManager, `{"cpu": "201m"}`)
	g.Expect(err).To(MatchError(ContainSubstring("exceeded quota: few, requested: requests.cpu=1m, used: requests.cpu=200m, limited: requests.cpu=200m")))
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
}

// podToResize creates a pod that requests 100m of CPU and 64Mi of memory.
func podToResize(t *testing.T, c client.Client, namespace string) *corev1.Pod {
	t.Helper()

	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = namespace, "resized"
	created(t, c, account)

	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, "resized"
	pod.Spec.ServiceAccountName = account.Name
	pod.Spec.AutomountServiceAccountToken = ptr.To(false)
	pod.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "nginx:alpine",
		Resources: corev1.ResourceRequirements{Requests: quantities("100m", "64Mi")},
	}}
	created(t, c, pod)

	return pod
}

// resizePod sets requests of the container, in the name of a manager.
func resizePod(t *testing.T, c client.Client, pod *corev1.Pod, manager, requests string) {
	t.Helper()
	must(t, tryResize(t, c, pod, manager, requests))
}

func tryResize(t *testing.T, c client.Client, pod *corev1.Pod, manager, requests string) error {
	t.Helper()

	patch := `{"spec": {"containers": [{"name": "main", "resources": {"requests": ` + requests + `}}]}}`
	return c.SubResource(resize.Subresource).Patch(t.Context(), pod,
		client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner(manager))
}

// ownedBy returns the fields that a manager has set by resizing the pod, as JSON.
func ownedBy(pod *corev1.Pod, manager string) string {
	for _, entry := range pod.ManagedFields {
		if entry.Manager == manager && entry.Subresource == resize.Subresource {
			return entry.FieldsV1.GetRawString()
		}
	}

	return ""
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
