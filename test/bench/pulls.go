// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// What pods are out of service for when they get an image that is not on their nodes, with a pull
// before and without one. This is measured on real nodes: the manager runs in the cluster, and the
// registry is slow.

const (
	// pullPods is how many pods each workload has, on as many nodes.
	pullPods = 2
	// pullPatience is how long one rollout may take.
	pullPatience = 5 * time.Minute
	// watchLag is how much later than the status of the workload the watch may show the pods.
	watchLag = 2 * time.Second
)

// pullPolicies are the policies, the one without a pull first.
var pullPolicies = []appsv1beta1.ImagePullPolicyType{appsv1beta1.NoImagePull, appsv1beta1.RequireImagePull}

// pullFigure is what was measured of one rollout.
type pullFigure struct {
	Kind   string                          `json:"kind"`
	Policy appsv1beta1.ImagePullPolicyType `json:"policy"`
	// OutOfService holds for how many seconds each pod was not ready, the longest last; Seconds is
	// how long the rollout took.
	OutOfService []float64 `json:"outOfService"`
	Seconds      float64   `json:"seconds"`
}

// pullReport is what bench pulls measures.
type pullReport struct {
	Machine machine      `json:"machine"`
	Figures []pullFigure `json:"figures"`
}

func runPulls(ctx context.Context, args []string) error {
	names, from, images, out := "", "", "", ""
	flags := flag.NewFlagSet("pulls", flag.ContinueOnError)
	flags.StringVar(&names, "kinds", "", "comma-separated `list` of kinds")
	flags.StringVar(&from, "from", "", "`image` that pods have before")
	flags.StringVar(&images, "images", "", "comma-separated `list` of images that no node has, one for each kind and policy")
	flags.StringVar(&out, "out", "", "`file` for the result, as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	kinds, to := strings.Split(names, ","), strings.Split(images, ",")
	if len(to) != len(kinds)*len(pullPolicies) {
		return fmt.Errorf("flag --images: found %d images, accepted are %d", len(to), len(kinds)*len(pullPolicies))
	}
	if from == "" || out == "" {
		return errors.New("found no image before, or no file for the result: accepted are --from IMAGE and --out FILE")
	}
	admin, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	p := &pulls{}
	if p.api, err = newAPI(admin); err != nil {
		return err
	}
	if p.kube, err = kubernetes.NewForConfig(admin); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	report := pullReport{Machine: thisMachine()}
	for _, name := range kinds {
		for _, policy := range pullPolicies {
			figure, err := p.measure(ctx, name, policy, from, to[len(report.Figures)])
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, policy, err)
			}
			say("%s, %s: out of service for %.1f s, the rollout took %.1f s", name, policy, figure.longest(), figure.Seconds)
			report.Figures = append(report.Figures, *figure)
		}
	}
	fmt.Println(report.table())
	return errors.Join(writeJSON(out, report), report.check())
}

// pulls measures rollouts of images that are to be pulled.
type pulls struct {
	api  client.Client
	kube kubernetes.Interface
}

// measure makes a workload, gives its pods another image one after the other, and deletes it.
func (p *pulls) measure(ctx context.Context, name string, policy appsv1beta1.ImagePullPolicyType, from, to string) (*pullFigure, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*pullPatience)
	defer cancel()
	k, err := kindNamed(name)
	if err != nil {
		return nil, err
	}
	workload := k.build(pullPods)
	parts := k.parts(workload)
	onNodesOfTheirOwn(parts.pod)
	parts.pod.Containers[0].Image, parts.pod.Containers[0].ImagePullPolicy = from, corev1.PullIfNotPresent
	*parts.maxUnavailable = new(intstr.FromInt32(1))
	if deployment, is := workload.(*appsv1.Deployment); is {
		deployment.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0)) // there is no node for a pod more
	}
	if parts.inPlace != nil {
		*parts.inPlace = &appsv1beta1.InPlaceUpdateStrategy{ImagePull: &appsv1beta1.ImagePullPolicy{Policy: policy}}
	} else {
		workload.SetAnnotations(map[string]string{
			native.ImagePullAnnotation: fmt.Sprintf(`{"policy":%q}`, policy), native.GracePeriodSecondsAnnotation: "0",
		})
	}
	if err := p.api.Create(ctx, workload); err != nil {
		return nil, fmt.Errorf("create workload: %w", err)
	}
	if err := p.settled(ctx, k, workload); err != nil {
		return nil, fmt.Errorf("wait for the first pods: %w", err)
	}
	stop, err := p.watch(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	before := workload.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
	k.parts(workload).pod.Containers[0].Image = to
	if err := p.api.Patch(ctx, workload, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("change image: %w", err)
	}
	if err := p.settled(ctx, k, workload); err != nil {
		return nil, fmt.Errorf("wait for the update: %w", err)
	}
	figure := &pullFigure{Kind: name, Policy: policy, Seconds: time.Since(began).Seconds()}
	pause(ctx, watchLag)
	figure.OutOfService, err = outOfService(stop(), to)
	return figure, errors.Join(err, p.deleteWorkload(ctx, workload))
}

// onNodesOfTheirOwn keeps pods of a workload off each other's nodes.
func onNodesOfTheirOwn(spec *corev1.PodSpec) {
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": workloadName}},
		}},
	}}
}

// settled waits until all pods of a workload are updated and available, and reads it.
func (p *pulls) settled(ctx context.Context, k kind, workload client.Object) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, pullPatience, true, func(ctx context.Context) (bool, error) {
		if err := p.api.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
			return false, err
		}
		now := k.progress(workload)
		return now.observed && now.settled && now.available == pullPods, nil
	})
}

func (p *pulls) deleteWorkload(ctx context.Context, workload client.Object) error {
	if err := p.api.Delete(ctx, workload, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return fmt.Errorf("delete workload: %w", err)
	}
	return wait.PollUntilContextTimeout(ctx, time.Second, pullPatience, true, func(ctx context.Context) (bool, error) {
		if err := p.api.Get(ctx, client.ObjectKeyFromObject(workload), workload); !apierrors.IsNotFound(err) {
			return false, err
		}
		left, err := p.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		return err == nil && len(left.Items) == 0, err
	})
}

// podSeen is a version of a pod, and when it was seen.
type podSeen struct {
	pod *corev1.Pod
	at  time.Time
}

// watch sees all versions of the pods from now on, until it is stopped.
func (p *pulls) watch(ctx context.Context) (stop func() []podSeen, err error) {
	versions, err := p.kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	all := make(chan []podSeen, 1)
	go func() {
		var seen []podSeen
		for event := range versions.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				seen = append(seen, podSeen{pod, time.Now()})
			}
		}
		all <- seen
	}()
	return func() []podSeen {
		versions.Stop()
		return <-all
	}, nil
}

// outOfService returns for how many seconds each pod was not ready, the longest last. All pods have to
// be the ones that they were, and to serve with an image in the end.
func outOfService(seen []podSeen, image string) ([]float64, error) {
	last, out := map[types.UID]podSeen{}, map[types.UID]float64{}
	for _, now := range seen {
		if before, known := last[now.pod.UID]; known && !podutils.IsPodReady(before.pod) {
			out[now.pod.UID] += now.at.Sub(before.at).Seconds()
		}
		last[now.pod.UID] = now
	}
	if len(last) != pullPods || len(out) != pullPods {
		return nil, fmt.Errorf("saw %d pods, %d of them out of service, want %d that are the same before and after", len(last), len(out), pullPods)
	}
	for _, end := range last {
		if has := end.pod.Spec.Containers[0].Image; has != image || !podutils.IsPodReady(end.pod) {
			return nil, fmt.Errorf("in the end, pod %s has image %s and is ready %t, want one that is ready with %s", end.pod.Name, has, podutils.IsPodReady(end.pod), image)
		}
	}
	return slices.Sorted(maps.Values(out)), nil
}

func (f pullFigure) longest() float64 { return f.OutOfService[len(f.OutOfService)-1] }

// table returns the figures as they are in docs/performance.md.
func (r pullReport) table() string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "\n| | Out of service, pulled by the kubelet | Pulled before | Rollout | Pulled before |\n|---|---|---|---|---|\n")
	for i := 0; i+1 < len(r.Figures); i += 2 {
		without, with := r.Figures[i], r.Figures[i+1]
		fmt.Fprintf(text, "| %s | %.1f s | %.1f s | %.1f s | %.1f s |\n", without.Kind, without.longest(), with.longest(), without.Seconds, with.Seconds)
	}
	return text.String()
}

// check asserts that a pull before is not a part of the time out of service.
func (r pullReport) check() error {
	var errs []error
	for i := 0; i+1 < len(r.Figures); i += 2 {
		if without, with := r.Figures[i], r.Figures[i+1]; with.longest() > without.longest()/2 {
			errs = append(errs, fmt.Errorf("%s: out of service for %.1f s with the images pulled before, for %.1f s without", with.Kind, with.longest(), without.longest()))
		}
	}
	return errors.Join(errs...)
}
