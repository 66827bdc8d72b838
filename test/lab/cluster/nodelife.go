// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// KillNode ends a node as a power cut would: containerd, kubelet and pods die
// at once, and what they had mounted and in /run is gone. What they wrote to
// disk stays. It returns when all of it is over.
func (l *Lab) KillNode(ctx context.Context, name string) error {
	if _, err := l.Node(name); err != nil {
		return err
	}
	return supervise.Client{Socket: l.ControlSocket()}.Stop(ctx, name)
}

// StartNode brings back a node that was killed, and returns when its kubelet
// has reported that it is ready.
func (l *Lab) StartNode(ctx context.Context, name string, say func(string)) error {
	if _, err := l.Node(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// Times in a node's status are whole seconds.
	began := time.Now().Truncate(time.Second)
	if err := (supervise.Client{Socket: l.ControlSocket()}).Start(ctx, name); err != nil {
		return err
	}
	config, err := l.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return await(ctx, say, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("find node: %w", err)
		}
		_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
		if !takesPods(node) || ready.LastHeartbeatTime.Time.Before(began) {
			return fmt.Errorf("node %s is not ready, see %s", name, l.Log(name+"-kubelet"))
		}
		return nil
	})
}
