// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listOnNodes returns the pods of a namespace that have a node, read page by page from the
// API server.
func listOnNodes(ctx context.Context, live client.Reader, namespace string) ([]corev1.Pod, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.PodList{}
		err := live.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: options.Limit, Continue: options.Continue, Raw: &options})
		return list, err
	})
	var pods []corev1.Pod
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="}, func(object runtime.Object) error {
		pod, isPod := object.(*corev1.Pod)
		if !isPod {
			return fmt.Errorf("list pods of namespace %s: found %T: accepted is a Pod", namespace, object)
		}
		pods = append(pods, *pod)
		return nil
	})
	return pods, err
}
