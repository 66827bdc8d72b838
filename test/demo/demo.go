// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/observe"
)

const (
	namespace = "default"
	replicas  = 3
	oldImage  = "nginx:alpine"
	newImage  = "nginx:latest"
	patience  = 5 * time.Minute
)

// demo is what all acts use: the cluster, and where to tell what happens.
type demo struct {
	client     client.Client
	kubernetes kubernetes.Interface
	out        io.Writer
	// answered and failed are what became of the requests of all updates.
	answered, failed int
}

func newDemo(config *rest.Config, out io.Writer) (*demo, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &demo{client: c, kubernetes: clientset, out: out}, nil
}

// run shows one act after the other.
func (d *demo) run(ctx context.Context) error {
	acts := []struct {
		title, lookAt string
		play          func(*demo, context.Context) error
	}{
		{
			"Act one: a StatefulSet of apps.kruise.io gets another image",
			"each pod keeps its UID, its IP and its node; RESTARTS becomes 1", (*demo).updateStatefulSet,
		},
		{
			"Act two: a Deployment of Kubernetes gets another image, and goes back",
			"it takes a label, and nothing else; kubectl works as ever; no pod is recreated, and no request fails", (*demo).updateDeployment,
		},
	}
	for _, act := range acts {
		fmt.Fprintf(d.out, "\n=== %s\n    Look at this: %s.\n", act.title, act.lookAt)
		if err := act.play(d, ctx); err != nil {
			return fmt.Errorf("%s: %w", act.title, err)
		}
	}
	fmt.Fprintf(d.out, "\n=== Three updates of %d pods: none was recreated. %d of %d requests failed.\n", 2*replicas, d.failed, d.answered+d.failed)
	return nil
}

// kubectlInTurn runs kubectl several times. Each line is a command without quotes.
func (d *demo) kubectlInTurn(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if err := d.kubectl(ctx, strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl as a user would, and shows the command.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = arg
		if strings.ContainsAny(arg, " {}[]\"") {
			shown[i] = "'" + arg + "'"
		}
	}
	fmt.Fprintf(d.out, "\n$ kubectl %s\n", strings.Join(shown, " "))
	command := exec.CommandContext(ctx, kubectlPath(), args...)
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	command.Stderr = d.out
	if err := command.Start(); err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	told := sets.New[string]() // kubectl rollout status says the same again and again
	for lines := bufio.NewScanner(output); lines.Scan(); told.Insert(lines.Text()) {
		if line := lines.Text(); line == "" || !told.Has(line) {
			fmt.Fprintln(d.out, line)
		}
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

// kubectlPath is where kubectl is: in the environment, or on the PATH.
func kubectlPath() string {
	if path := os.Getenv("KUBECTL"); path != "" {
		return path
	}
	return "kubectl"
}

// pods returns the pods that a label selector selects, with the pages they serve.
func (d *demo) pods(ctx context.Context, selector string) ([]observe.Pod, error) {
	pods, err := observe.Pods(ctx, d.kubernetes, namespace, selector)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(pod observe.Pod) bool { return pod.Terminating })
	return pods, d.pages(ctx, pods)
}

// pages asks for the pages, again if a server is not up to it yet.
func (d *demo) pages(ctx context.Context, pods []observe.Pod) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		last = observe.Pages(ctx, d.kubernetes, namespace, pods)
		return last == nil, nil
	})
	if last != nil && !apierrors.IsNotFound(last) {
		return errors.Join(err, last)
	}
	return err
}
