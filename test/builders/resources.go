// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sized gives the container "main" a cpu request and a memory request and limit,
// which the node has made, too.
func (b *PodBuilder) Sized(cpu, memory string) *PodBuilder {
	b.pod.Spec.Containers[0].Resources = Resources(cpu, memory)
	b.pod.Status.QOSClass = corev1.PodQOSBurstable
	return b.InForce(cpu, memory)
}

// InForce says what size the node has allocated to the container "main" and made.
func (b *PodBuilder) InForce(cpu, memory string) *PodBuilder {
	sized := Resources(cpu, memory)
	status := &b.pod.Status.ContainerStatuses[0]
	status.AllocatedResources, status.Resources = sized.Requests, &sized
	return b
}

// Resources are a cpu request, and a memory request and limit.
func Resources(cpu, memory string) corev1.ResourceRequirements {
	size := resource.MustParse(memory)
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: size},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: size},
	}
}

// ResizedBy says that a manager was the last to write amounts of the container
// "main", such as "requests.cpu", through pods/resize.
func (b *PodBuilder) ResizedBy(manager string, at time.Time, amounts ...string) *PodBuilder {
	lists := map[string][]string{}
	for _, amount := range amounts {
		list, name, _ := strings.Cut(amount, ".")
		lists[list] = append(lists[list], fmt.Sprintf(`"f:%s":{}`, name))
	}
	var fields []string
	for list, names := range lists {
		fields = append(fields, fmt.Sprintf(`"f:%s":{%s}`, list, strings.Join(names, ",")))
	}
	owned := fmt.Sprintf(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{%s}}}}}`, strings.Join(fields, ","))
	when := metav1.NewTime(at)
	b.pod.ManagedFields = append(b.pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "resize", Time: &when,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(owned),
	})
	return b
}
