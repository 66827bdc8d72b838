// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/test/builders"
)

// refusals notes what the API server refuses to a client, and passes all on.
type refusals struct {
	next http.RoundTripper

	mutex sync.Mutex
	asked int
	found []string
}

func (r *refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked++
	if err == nil && response.StatusCode == http.StatusForbidden {
		r.found = append(r.found, request.Method+" "+request.URL.Path)
	}
	return response, err
}

// all returns how much was asked, and what was refused.
func (r *refusals) all() (int, []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.asked, r.found
}

// namespacedManager runs a manager with the Roles of config/namespaced in one namespace,
// and no other rights, until the test ends.
func namespacedManager(t *testing.T, namespace string) (string, *refusals) {
	t.Helper()
	g, c := NewWithT(t), newAdmin(t)
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	g.Expect(c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: native.SwitchName}})).To(Succeed())
	for _, file := range []string{"rbac/service_account", "rbac/role", "rbac/role_binding", "namespaced/role", "namespaced/role_binding"} {
		for _, obj := range unstructuredOf(t, "../../config/"+file+".yaml", namespace) {
			if kind := obj.GetKind(); kind == "ClusterRole" || kind == "ClusterRoleBinding" {
				continue // which config/namespaced leaves out
			}
			g.Expect(c.Create(t.Context(), obj)).To(Succeed(), obj.GetKind())
		}
	}
	token, err := kubernetes.NewForConfigOrDie(admin).CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), "insitu-manager", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	connection := withToken(token.Status.Token)
	counted := &refusals{}
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	config := defaults()
	config.Scope, config.Namespaces = configv1alpha1.NamespaceScope, []string{namespace}
	config.LeaderElection.ResourceNamespace = namespace
	config.Health.BindAddress, config.Metrics.BindAddress = freeAddress(t), configv1alpha1.BindNothing
	startManager(t, connection, config)

	return "http://" + config.Health.BindAddress + "/readyz", counted
}

// startManager runs a manager until the test ends.
func startManager(t *testing.T, connection *rest.Config, config *configv1alpha1.InsituConfiguration) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	options := managerOptions(config, scheme)
	options.Metrics.BindAddress = configv1alpha1.BindNothing
	options.Controller.SkipNameValidation = ptr.To(true) // this process has had a manager before
	manager, err := newManagerWith(ctx, connection, options, config, metrics.New())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestNamespacedManager runs a manager with Roles and nothing else: it becomes ready, makes
// and updates pods, says on the switch that it is there, has claims grow without knowing
// their class, says why it recreates none, and asks for nothing that it may not do.
func TestNamespacedManager(t *testing.T) {
	g, c := NewWithT(t), newAdmin(t)
	ready, refused := namespacedManager(t, "tenant")
	g.Eventually(func() (int, error) { return get(ready, "") }, "1m").Should(Equal(http.StatusOK))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: native.SwitchName}}
	g.Eventually(func() (map[string]string, error) {
		return account.Annotations, c.Get(t.Context(), client.ObjectKeyFromObject(account), account)
	}, "10s").Should(HaveKey(native.HeartbeatAnnotation))
	g.Expect(c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "example.io/none", AllowVolumeExpansion: ptr.To(true),
	})).To(Succeed())

	set := builders.StatefulSet("tenant", "web", "nginx:1").Replicas(1).Ungated().With(func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.RecreateVolumeClaimUpdateStrategyType
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To("grows"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}).Build()
	g.Expect(c.Create(t.Context(), set)).To(Succeed())
	runPod(t, c, client.ObjectKey{Namespace: "tenant", Name: "web-0"}, "nginx:1")
	claim := bindClaim(t, c, client.ObjectKey{Namespace: "tenant", Name: "data-web-0"})

	change(t, c, set, func() {
		set.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	})
	g.Eventually(func() (string, error) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
		return claim.Spec.Resources.Requests.Storage().String(), err
	}, "1m").Should(Equal("2Gi"), "the API server knows the class")
	claim.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
	g.Expect(c.Status().Update(t.Context(), claim)).To(Succeed())
	pod := &corev1.Pod{}
	g.Eventually(func() (string, error) {
		pullImages(t, c, "tenant")
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "tenant", Name: "web-0"}, pod); err != nil {
			return "", err
		}
		return pod.Spec.Containers[0].Image, reportGate(t, c, pod)
	}, "1m").Should(Equal("nginx:2"), func() string {
		_ = c.Get(t.Context(), client.ObjectKeyFromObject(set), set)
		return fmt.Sprintf("in place; its blockers are %v, and the pod's status is %v", set.Status.Blockers, pod.Status)
	})

	change(t, c, set, func() { set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("other") })
	g.Eventually(func() ([]appsv1beta1.Blocker, error) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set)
		return set.Status.Blockers, err
	}, "1m").Should(ContainElement(And(
		HaveField("Reason", "RecreateNotPermitted"),
		HaveField("Message", ContainSubstring("this manager has rights in namespaces only (scope Namespace), and volumes belong to the cluster")),
	)))

	restored := set.DeepCopy()
	restored.ObjectMeta = metav1.ObjectMeta{Namespace: "tenant", Name: "restored"}
	restored.Spec.VolumeClaimTemplates[0].Annotations = map[string]string{appsv1beta1.RestoreFromAnnotation: "backup"}
	g.Expect(c.Create(t.Context(), restored)).To(Succeed())
	g.Eventually(func() ([]appsv1beta1.Blocker, error) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(restored), restored)
		return restored.Status.Blockers, err
	}, "1m").Should(ContainElement(And(
		HaveField("Reason", "RecreateNotPermitted"), HaveField("Message", HavePrefix("claim data-restored-0: it is not made: ")),
	)))
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "tenant", Name: "data-restored-0"}, &corev1.PersistentVolumeClaim{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "an empty volume is not what was asked for")

	asked, found := refused.all()
	g.Expect(found).To(BeEmpty(), "what it may not do it does not ask for")
	g.Expect(asked).To(BeNumerically(">", 20))
}

// change updates a workload as a user does, whatever else was written meanwhile.
func change(t *testing.T, c client.Client, set *appsv1beta1.StatefulSet, edit func()) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		edit()
		return c.Update(t.Context(), set)
	}, "1m").Should(Succeed())
}

// runPod does what a scheduler and a kubelet do for a pod that the manager makes.
func runPod(t *testing.T, c client.Client, key client.ObjectKey, image string) {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{}
	g.Eventually(func() error { return c.Get(t.Context(), key, pod) }, "1m").Should(Succeed())
	g.Expect(c.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}})).To(Succeed())
	g.Eventually(func() error {
		if err := c.Get(t.Context(), key, pod); err != nil {
			return err
		}
		now := metav1.Now()
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
		for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{builders.RunningContainer(pod.Spec.Containers[0].Name, "1", image, now.Time)}
		return c.Status().Update(t.Context(), pod)
	}, "1m").Should(Succeed())
}

// pullImages does what a kubelet does for pods that pull images.
func pullImages(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	pullers := &corev1.PodList{}
	NewWithT(t).Expect(c.List(t.Context(), pullers, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	for i := range pullers.Items {
		puller := &pullers.Items[i]
		puller.Status.Phase = corev1.PodFailed
		puller.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: puller.Spec.Containers[0].Name, Image: puller.Spec.Containers[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}},
		}}
		NewWithT(t).Expect(client.IgnoreNotFound(c.Status().Update(t.Context(), puller))).To(Or(Succeed(), Satisfy(apierrors.IsConflict)))
	}
}

// reportGate says of a pod that it is not ready, as its kubelet does, when its readiness gate
// is closed.
func reportGate(t *testing.T, c client.Client, pod *corev1.Pod) error {
	t.Helper()
	condition := func(kind corev1.PodConditionType) *corev1.PodCondition {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if i < 0 {
			return &corev1.PodCondition{}
		}

		return &pod.Status.Conditions[i]
	}
	ready := condition(corev1.PodReady)
	if condition(appsv1beta1.InPlaceUpdateReady).Status != corev1.ConditionFalse || ready.Status != corev1.ConditionTrue {
		return nil
	}
	ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.Now()

	return c.Status().Update(t.Context(), pod)
}

// bindClaim does what a driver does for a claim that the manager makes.
func bindClaim(t *testing.T, c client.Client, key client.ObjectKey) *corev1.PersistentVolumeClaim {
	t.Helper()
	g := NewWithT(t)
	claim := &corev1.PersistentVolumeClaim{}
	g.Eventually(func() error { return c.Get(t.Context(), key, claim) }, "1m").Should(Succeed())
	claim.Spec.VolumeName = "volume-" + key.Name
	g.Expect(c.Update(t.Context(), claim)).To(Succeed())
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	g.Expect(c.Status().Update(t.Context(), claim)).To(Succeed())

	return claim
}

// unstructuredOf keeps the objects of a file in a namespace.
func unstructuredOf(t *testing.T, file, namespace string) []*unstructured.Unstructured {
	t.Helper()
	objects := objectsOf(t, file)
	for _, obj := range objects {
		obj.SetNamespace(namespace)
		if subjects, found, _ := unstructured.NestedSlice(obj.Object, "subjects"); found {
			subjects[0].(map[string]any)["namespace"] = namespace
			if err := unstructured.SetNestedSlice(obj.Object, subjects, "subjects"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return objects
}

func newAdmin(t *testing.T) client.Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
