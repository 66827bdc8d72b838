// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// left is a Deployment with three pods, the first of which went ahead to app:b when its
// hold was ended. Then the template was set back to app:a, that of the ReplicaSet.
type left struct {
	deployment *appsv1.Deployment
	replicaSet *appsv1.ReplicaSet
	revision   *appsv1.ControllerRevision
	pods       []*corev1.Pod
	// more is what else there is.
	more []client.Object
	// refusal is the answer to evictions; nil if they are accepted.
	refusal error
}

func webTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func newLeft(g Gomega) *left {
	labels := map[string]string{"app": "web", appsv1beta1.PodTemplateHashLabel: "1"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d", Generation: 3},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Template: webTemplate("app:a"), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(1))}},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3},
	}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "rs", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, Deployment.groupVersionKind())},
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](3), Template: webTemplate("app:a"), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status: appsv1.ReplicaSetStatus{Replicas: 3},
	}
	l := &left{deployment: d, replicaSet: rs, revision: revisionOf(g, d, "app:b")}
	for i := range 3 {
		l.pods = append(l.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("web-1-%d", i), UID: "pod", Labels: map[string]string{"app": "web", appsv1beta1.PodTemplateHashLabel: "1"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, replicaSetKind)},
			},
			Spec:   webTemplate("app:a").Spec,
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
	}
	l.ahead(0)
	return l
}

// revisionOf returns what an update in place of a Deployment keeps of an image.
func revisionOf(g Gomega, d *appsv1.Deployment, image string) *appsv1.ControllerRevision {
	template, err := inplace.NewTemplate(webTemplate(image))
	g.Expect(err).NotTo(HaveOccurred())
	owner := history.Owner{Object: d, Kind: Deployment.groupVersionKind()}
	c := fake.NewClientBuilder().Build()
	revision, _, err := history.NewKeeper(c).Ensure(context.Background(), owner, &history.History{}, history.Content{Template: template.Native()})
	g.Expect(err).NotTo(HaveOccurred())
	object := &appsv1.ControllerRevision{}
	g.Expect(c.Get(context.Background(), client.ObjectKey{Namespace: "shop", Name: revision.Name()}, object)).To(Succeed())
	object.ResourceVersion = ""
	return object
}

// ahead lets a pod have gone ahead.
func (l *left) ahead(i int) {
	l.pods[i].Spec.Containers[0].Image = "app:b"
	hash := l.revision.Labels[appsv1beta1.ControllerRevisionHashLabel]
	l.pods[i].Labels[appsv1beta1.ControllerRevisionHashLabel] = hash
	l.pods[i].Annotations = map[string]string{appsv1beta1.InPlaceUpdateStateKey: `{"revision":"` + hash + `"}`}
}

// single leaves one pod.
func (l *left) single() {
	l.deployment.Spec.Replicas, l.replicaSet.Spec.Replicas, l.pods = ptr.To[int32](1), ptr.To[int32](1), l.pods[:1]
}

func strategy(maxUnavailable, maxSurge string) func(*left) {
	return func(l *left) {
		l.deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.Parse(maxUnavailable)), MaxSurge: ptr.To(intstr.Parse(maxSurge)),
		}
	}
}

func (l *left) notReady(i int) { l.pods[i].Status.Conditions[0].Status = corev1.ConditionFalse }

// client returns a client of a cluster with all that; its list of evicted pods grows.
func (l *left) client(g Gomega, evicted *[]string) client.Client {
	b := fake.NewClientBuilder().WithObjects(l.more...)
	for _, object := range []client.Object{l.deployment, l.replicaSet} {
		b = b.WithObjects(object)
	}
	if l.revision != nil {
		b = b.WithObjects(l.revision)
	}
	for _, pod := range l.pods {
		b = b.WithObjects(pod)
	}
	for _, index := range podcache.Indexes() {
		b = b.WithIndex(index.Object, index.Field, index.Values)
	}
	return b.WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, c client.Client, _ string, pod, sub client.Object, _ ...client.SubResourceCreateOption) error {
			eviction, ok := sub.(*policyv1.Eviction)
			g.Expect(ok && eviction.DeleteOptions.Preconditions.UID != nil).To(BeTrue(), "invariant 5")
			if l.refusal != nil {
				return l.refusal
			}
			*evicted = append(*evicted, pod.GetName())
			return c.Delete(ctx, pod)
		},
	}).Build()
}

type leftCase struct {
	change  func(*left)
	evicted []string
	event   string
	later   time.Duration
}

var leftCases = map[string]leftCase{
	"a pod went ahead": {evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay},
	"the workload is opted in": {
		change:  func(l *left) { l.deployment.Labels = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"} },
		evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"it is held": {change: func(l *left) {
		l.deployment.Labels = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible", native.HeldLabel: native.Held}
	}},
	"it is paused":                       {change: func(l *left) { l.deployment.Spec.Paused = true }, later: leftoverPeriod},
	"it has another template":            {change: func(l *left) { l.deployment.Spec.Template = webTemplate("app:b") }, later: leftoverPeriod},
	"its controller has not seen it yet": {change: func(l *left) { l.deployment.Generation = 4 }, later: leftoverPeriod},
	"it is another of the name":          {change: func(l *left) { l.deployment.UID = "another" }},
	"its pods went ahead and its ReplicaSet followed": {change: func(l *left) {
		l.deployment.Spec.Template, l.replicaSet.Spec.Template = webTemplate("app:b"), webTemplate("app:b")
	}},
	"admission rewrites images": {change: func(l *left) {
		l.deployment.Spec.Template, l.replicaSet.Spec.Template = webTemplate("app:b"), webTemplate("app:b")
		l.pods[0].Spec.Containers[0].Image = "cache.example/app:b"
	}},
	"a user changed a pod by hand": {change: func(l *left) {
		l.pods[0].Labels, l.pods[0].Annotations = l.pods[1].Labels, nil
		l.pods[0].Spec.Containers[0].Image = "app:debug"
	}},
	"the ReplicaSet has no Deployment": {change: func(l *left) { l.replicaSet.OwnerReferences = nil }},
	"too few serve":                    {change: func(l *left) { l.notReady(1) }, event: "Warning LeftBehind pods that an update in place left behind wait to be evicted until enough others serve", later: leftoverDelay},
	"it does not serve itself": {
		change:  func(l *left) { l.notReady(0); l.notReady(1) },
		evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"two went ahead, and one does not serve": {
		change:  func(l *left) { l.ahead(1); l.notReady(1) },
		evicted: []string{"web-1-1"}, event: "Warning LeftBehind evicted pod web-1-1", later: leftoverDelay,
	},
	"maxUnavailable is 0": {
		change: strategy("0", "1"), event: noRoom, later: leftoverPeriod,
	},
	"maxUnavailable is 0, and it does not serve": {
		change:  func(l *left) { strategy("0", "1")(l); l.notReady(0) },
		evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"a quarter of three may be missing, which is none": {
		change: strategy("25%", "25%"), event: noRoom, later: leftoverPeriod,
	},
	"a quarter of three may be missing, and there is no surge": {
		change: strategy("25%", "0"), evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"its strategy is Recreate": {
		change: func(l *left) {
			l.deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		},
		evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"it is the only pod of a Deployment that says nothing of it": {
		change: func(l *left) { l.deployment.Spec.Strategy = appsv1.DeploymentStrategy{}; l.single() },
		event:  noRoom, later: leftoverPeriod,
	},
	"another ReplicaSet has pods": {
		change: func(l *left) {
			other := l.replicaSet.DeepCopy()
			other.Name, other.UID = "web-2", "rs2"
			l.more = append(l.more, other)
		},
		event: "Warning LeftBehind pods that an update in place left behind wait to be evicted until enough others serve", later: leftoverDelay,
	},
	"a budget refuses": {
		change: func(l *left) {
			l.refusal = apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		},
		event: "Warning LeftBehind pod web-1-0 was left behind by an update in place, and cannot be evicted: Cannot evict pod", later: leftoverPeriod,
	},
	"its Deployment was made again": {
		change:  func(l *left) { l.revision.OwnerReferences = nil },
		evicted: []string{"web-1-0"}, event: "Warning LeftBehind evicted pod web-1-0", later: leftoverDelay,
	},
	"its revision is gone": {
		change: func(l *left) { l.revision = nil },
		event:  "Warning LeftBehind what pods web-1-0 were updated to in place is not known",
	},
	"its revision is that of another kind of the name": {
		change: func(l *left) { l.revision.OwnerReferences[0].UID = "a StatefulSet" },
		event:  "Warning LeftBehind what pods web-1-0 were updated to in place is not known",
	},
	"another client gave a pod the label": {change: func(l *left) {
		l.pods[0].Annotations = nil
		l.pods[0].Labels[appsv1beta1.ControllerRevisionHashLabel] = "web-7d9f"
	}},
}

const noRoom = "Warning LeftBehind pods web-1-0 were left behind by an update in place, and are not evicted: " +
	"its strategy lets no pod be missing; bring all pods to the template with kubectl rollout restart"

func TestLeftovers(t *testing.T) {
	for name, tc := range leftCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLeft(g)
			if tc.change != nil {
				tc.change(l)
			}
			var evicted []string
			c, recorder := l.client(g, &evicted), events.NewFakeRecorder(10)
			controller := NewLeftovers(c, c, recorder, clocktesting.NewFakePassiveClock(time.Now()))

			result, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(l.replicaSet)})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(Equal(tc.later))
			g.Expect(evicted).To(Equal(tc.evicted))
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				told = append(told, event)
			}
			if tc.event == "" {
				g.Expect(told).To(BeEmpty())
			} else {
				g.Expect(told).To(ConsistOf(HavePrefix(tc.event)))
			}
		})
	}
}

// The cache may be late: a workload is held that is not by the cache.
func TestLeftoversOfAHoldThatTheCacheHasNotSeen(t *testing.T) {
	g := NewWithT(t)
	l := newLeft(g)
	var evicted []string
	cached := l.client(g, &evicted)
	l = newLeft(g)
	l.deployment.Labels = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible", native.HeldLabel: native.Held}
	controller := NewLeftovers(cached, l.client(g, &evicted), events.NewFakeRecorder(10), clocktesting.NewFakePassiveClock(time.Now()))

	result, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(l.replicaSet)})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(evicted).To(BeEmpty())
	g.Expect(result.RequeueAfter).To(Equal(leftoverPeriod), "no event may come of a hold that the cache does not see")
}
