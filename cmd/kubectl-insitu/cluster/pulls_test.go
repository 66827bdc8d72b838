// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// pullStatus is what a kubelet says of a container that pulls.
func pullStatus(phase corev1.PodPhase, state corev1.ContainerState) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "pull-0", State: state}}}
}

func TestTriedPulls(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	started := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError"}}
	for name, test := range map[string]struct {
		listed, virtual bool
		secrets         bool
		refused         error
		status          corev1.PodStatus
		want            report.PullResult
		message         string
		makes           bool
	}{
		"that the node lists":      {listed: true, want: report.OnNode},
		"of a virtual node":        {virtual: true, secrets: true, want: report.NotTried, message: "no store of images"},
		"that the registry allows": {listed: true, secrets: true, status: pullStatus(corev1.PodFailed, started), want: report.Pulled, makes: true},
		"that are pulled":          {status: pullStatus(corev1.PodFailed, started), want: report.Pulled, makes: true},
		"that are nowhere":         {status: pullStatus(corev1.PodPending, waiting("ErrImagePull", "not found")), want: report.PullFailed, message: "ErrImagePull: not found", makes: true},
		"that take long":           {status: pullStatus(corev1.PodPending, waiting("ContainerCreating", "")), want: report.PullUnanswered, message: "the kubelet still pulls after 1s", makes: true},
		"without a kubelet":        {want: report.PullUnanswered, message: "no kubelet answered for 1s", makes: true},
		"that a quota has no room for": {
			refused: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: pods")), want: report.PullRefused, message: "exceeded quota: pods",
		},
		"that the node has no room for": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods"}, want: report.PullRefused, message: "OutOfpods", makes: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := builders.StatefulSet("shop", "web", "nginx:a").Build()
			set.UID = "web"
			set.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("StatefulSet"))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}, Spec: corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "web"}}
			if test.secrets {
				pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
			if test.listed {
				node.Status.Images = []corev1.ContainerImage{{Names: []string{"docker.io/library/nginx:b"}}}
			}
			if test.virtual {
				node.Labels = map[string]string{"type": "virtual-kubelet"}
			}
			var made []*corev1.Pod
			c := fake.NewClientBuilder().WithObjects(pod, node).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if test.refused != nil {
						return test.refused
					}
					if err := c.Create(ctx, obj, opts...); err != nil {
						return err
					}
					puller := obj.DeepCopyObject().(*corev1.Pod) //nolint:forcetypeassert // nothing else is made
					made = append(made, puller.DeepCopy())
					puller.Status = test.status
					return c.Status().Update(ctx, puller)
				},
			}).Build()
			kind, known := kinds.Of(set)
			g.Expect(known).To(BeTrue())
			needed := neededPull{inplace.Pull{Node: "node-1", Images: []inplace.Image{{Name: "nginx:b"}}}, pod, Found{Kind: kind, Object: set}}

			tried, err := needed.try(t.Context(), c, time.Second)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tried.Result).To(Equal(test.want))
			g.Expect(tried.Message).To(ContainSubstring(test.message))
			g.Expect(tried.Images).To(Equal([]string{"nginx:b"}))
			left := &corev1.PodList{}
			g.Expect(c.List(t.Context(), left)).To(Succeed())
			g.Expect(left.Items).To(HaveLen(1), "the pod of the workload")
			if !test.makes {
				g.Expect(made).To(BeEmpty())
				return
			}
			g.Expect(made).To(HaveLen(1))
			g.Expect(inplace.IsPuller(made[0])).To(BeTrue(), "no controller counts it")
			g.Expect(made[0].Labels[appsv1beta1.PullerLabel]).NotTo(BeEquivalentTo(set.UID), "else the operator deletes it")
			g.Expect(metav1.GetControllerOf(made[0])).To(BeNil(), "else the set adopts it")
			g.Expect(made[0].OwnerReferences).To(HaveLen(1), "it goes with the set")
			g.Expect(made[0].Spec.ServiceAccountName).To(Equal("web"))
		})
	}
}

// lossy is a cluster in which one pod needs a pull, and something goes wrong.
type lossy struct {
	client client.Client
	needed neededPull
	// made is how many pods that pull were made.
	made int
	// create and remove are called after a pod was made, and before one is deleted.
	create, remove func(ctx context.Context) error
}

func newLossy(objects ...client.Object) *lossy {
	l := &lossy{create: func(context.Context) error { return nil }, remove: func(ctx context.Context) error { return ctx.Err() }}
	set := builders.StatefulSet("shop", "web", "nginx:a").Build()
	set.UID = "web"
	set.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("StatefulSet"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	l.client = fake.NewClientBuilder().WithObjects(append(objects, pod)...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			l.made++
			return errors.Join(c.Create(ctx, obj, opts...), l.create(ctx))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := l.remove(ctx); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	}).Build()
	kind, _ := kinds.Of(set)
	l.needed = neededPull{inplace.Pull{Node: "node-1", Images: []inplace.Image{{Name: "nginx:b"}}}, pod, Found{Kind: kind, Object: set}}
	return l
}

// left returns the names of the pods that are there, but for that of the workload.
func (l *lossy) left(g *WithT) []string {
	list, names := &corev1.PodList{}, []string{}
	g.Expect(l.client.List(context.Background(), list)).To(Succeed())
	for _, pod := range list.Items {
		if pod.Name != "web-0" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// A pod that pulls does not outlive a command that its user ends, whenever that is.
func TestTriedPullsEndWithTheCommand(t *testing.T) {
	for name, answer := range map[string]error{"while it pulls": nil, "before the server answers": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			g, l := NewWithT(t), newLossy()
			ctx, cancel := context.WithCancel(t.Context())
			l.create = func(context.Context) error {
				cancel()
				return answer
			}
			tried, err := l.needed.try(ctx, l.client, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tried.Result).To(BeElementOf(report.PullUnanswered, report.PullRefused))
			g.Expect(l.made).To(Equal(1))
			g.Expect(l.left(g)).To(BeEmpty())
		})
	}
}

func TestPodOfAPlanThatCannotBeDeletedIsNamed(t *testing.T) {
	g, l := NewWithT(t), newLossy()
	l.remove = func(context.Context) error { return errors.New("etcd is down") }
	_, err := l.needed.try(t.Context(), l.client, time.Millisecond)
	g.Expect(err).To(MatchError(And(ContainSubstring("pod shop/web-pull-"), ContainSubstring("could not be deleted (etcd is down)"))))
}

// What a plan has left that was killed goes with the next one, what another one uses does not.
func TestPodsOfEarlierPlansAreDeleted(t *testing.T) {
	g := NewWithT(t)
	puller := func(name string, workload types.UID, age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
			Labels: map[string]string{appsv1beta1.PullerLabel: appsv1beta1.PullerOfPlan}, OwnerReferences: []metav1.OwnerReference{{UID: workload}},
		}, Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr.To[int64](180)}}
	}
	l := newLossy(puller("left", "web", time.Hour), puller("used", "web", time.Minute), puller("other", "db", time.Hour))
	g.Expect(deleteOverdue(t.Context(), l.client, l.needed.of.Object)).To(Succeed())
	g.Expect(l.left(g)).To(ConsistOf("used", "other"))
}
