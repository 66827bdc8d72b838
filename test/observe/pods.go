// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe looks at pods from outside, as a user does with kubectl, so
// that what they were before and after an update can be compared.
package observe

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
)

// Pod is what a user sees of a pod.
type Pod struct {
	Name     string
	UID      types.UID
	IP       string
	Node     string
	Created  metav1.Time
	Restarts int32
	// Image is the image of the first container by the spec.
	Image string
	// Page is the heading of the page that the pod serves on port 80; empty if
	// it was not asked for.
	Page  string
	Ready bool
	// Terminating: the pod is about to go.
	Terminating bool
}

// Pods returns the pods that a label selector selects, sorted by name.
func Pods(ctx context.Context, c kubernetes.Interface, namespace, selector string) ([]Pod, error) {
	list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list pods %s in namespace %s: %w", selector, namespace, err)
	}
	pods := make([]Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, view(&list.Items[i]))
	}
	slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

func view(pod *corev1.Pod) Pod {
	p := Pod{
		Name: pod.Name, UID: pod.UID, IP: pod.Status.PodIP, Node: pod.Spec.NodeName, Created: pod.CreationTimestamp,
		Image: pod.Spec.Containers[0].Image, Ready: podutils.IsPodReady(pod), Terminating: pod.DeletionTimestamp != nil,
	}
	for _, status := range pod.Status.ContainerStatuses {
		p.Restarts += status.RestartCount
	}
	return p
}

// heading finds the heading of an HTML page.
var heading = regexp.MustCompile(`(?s)<h1>(.*?)</h1>`)

// Pages asks every pod for the page that it serves on port 80, through the API
// server, and fills in its heading.
func Pages(ctx context.Context, c kubernetes.Interface, namespace string, pods []Pod) error {
	for i := range pods {
		body, err := c.CoreV1().Pods(namespace).ProxyGet("http", pods[i].Name, "80", "/", nil).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("get the page of pod %s/%s: %w", namespace, pods[i].Name, err)
		}
		pods[i].Page = strings.TrimSpace(string(body))
		if found := heading.FindSubmatch(body); found != nil {
			pods[i].Page = strings.TrimSpace(string(found[1]))
		}
	}
	return nil
}

// Differences tells in words how pods are not what they should be after an
// update in place: the same pods, each restarted the given number of times. It
// is empty if they are.
func Differences(before, after []Pod, restarts int32) []string {
	var found []string
	if len(before) != len(after) {
		return []string{fmt.Sprintf("there were %d pods, now there are %d", len(before), len(after))}
	}
	for i := range before {
		b, a := before[i], after[i]
		say := func(what string, was, is any) {
			if was != is {
				found = append(found, fmt.Sprintf("pod %s: %s was %v and is %v", b.Name, what, was, is))
			}
		}
		say("name", b.Name, a.Name)
		say("UID", b.UID, a.UID)
		say("IP", b.IP, a.IP)
		say("node", b.Node, a.Node)
		say("creation", b.Created.String(), a.Created.String())
		if a.Restarts != b.Restarts+restarts {
			found = append(found, fmt.Sprintf("pod %s: restarted %d times instead of %d", b.Name, a.Restarts-b.Restarts, restarts))
		}
	}
	return found
}
