// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/observe"
)

const (
	manifest  = "config/samples/statefulset.yaml"
	namespace = "default"
	name      = "sample"
	selector  = "app=sample"
	replicas  = 3
	oldImage  = "nginx:alpine"
	newImage  = "nginx:latest"
	patience  = 5 * time.Minute
)

type demo struct {
	client     client.Client
	kubernetes kubernetes.Interface
	out        io.Writer
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

// run is the demo. It starts from the old image, also when it ran before.
func (d *demo) run(ctx context.Context) error {
	if err := d.kubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}
	before, err := d.settled(ctx, oldImage)
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "patch", "statefulsets.apps.kruise.io", name, "--type=json", "--patch",
		`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "`+newImage+`"}]`); err != nil {
		return err
	}
	after, err := d.settled(ctx, newImage)
	if err != nil {
		return err
	}
	printTable(d.out, before, after)
	if err := d.kubectl(ctx, "get", "statefulsets.apps.kruise.io,pods"); err != nil {
		return err
	}
	return judge(d.out, before, after)
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
	command.Stdout, command.Stderr = d.out, d.out
	if err := command.Run(); err != nil {
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

// settled waits until the set runs an image everywhere, showing how it gets
// there, and returns its pods with the pages that they serve.
func (d *demo) settled(ctx context.Context, image string) ([]observe.Pod, error) {
	shown := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		set := &appsv1beta1.StatefulSet{}
		err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if line := progress(set); line != shown && err == nil {
			fmt.Fprintln(d.out, " ", line)
			shown = line
		}
		return err == nil && isSettled(set, image), nil
	})
	if err != nil {
		return nil, fmt.Errorf("StatefulSet %s/%s does not settle at image %s: %w (last seen: %s)", namespace, name, image, err, shown)
	}
	pods, err := observe.Pods(ctx, d.kubernetes, namespace, selector)
	if err != nil {
		return nil, err
	}
	return pods, d.pages(ctx, pods)
}

// pages asks for the pages, again if a server is not up to it yet.
func (d *demo) pages(ctx context.Context, pods []observe.Pod) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = observe.Pages(ctx, d.kubernetes, namespace, pods)
		return last == nil, nil
	})
	if last != nil && !apierrors.IsNotFound(last) {
		return errors.Join(err, last)
	}
	return err
}

func isSettled(set *appsv1beta1.StatefulSet, image string) bool {
	return set.Spec.Template.Spec.Containers[0].Image == image &&
		set.Status.ObservedGeneration == set.Generation &&
		set.Status.UpdatedAvailableReplicas == replicas &&
		set.Status.CurrentRevision == set.Status.UpdateRevision
}

func progress(set *appsv1beta1.StatefulSet) string {
	s := set.Status
	line := fmt.Sprintf("%d of %d pods available, %d of them at the new revision", s.AvailableReplicas, replicas, s.UpdatedAvailableReplicas)
	for _, b := range s.Blockers {
		line += fmt.Sprintf("; %s: %s", b.Pod, b.Reason)
	}
	return line
}
