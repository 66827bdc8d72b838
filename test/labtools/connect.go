// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package labtools

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Connect returns clients of the lab that KUBECONFIG names, without a limit of requests: one
// that knows the kinds of Insitu, too, and one that reads logs.
func Connect() (client.WithWatch, kubernetes.Interface, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("find the lab: %w", err)
	}
	config.QPS, config.Burst = -1, -1
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, appsv1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register API types: %w", err)
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	return api, kube, nil
}
