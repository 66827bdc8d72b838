// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/apiserver"
)

// operatorUser is the account of the manager, as the samples and config/rbac name it.
const operatorUser = "system:serviceaccount:insitu-system:insitu-manager"

// server is the API server that all tests of this package share.
var server *rest.Config

// auditLog is where the server writes what is done to pods.
var auditLog string

func TestMain(m *testing.M) {
	os.Exit(main(m))
}

func main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "insitu-audit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	auditLog = filepath.Join(dir, "audit.log")

	return apiserver.MainAudited(m, auditLog, func(config *rest.Config) { server = config })
}

// ensureNode makes the node of all pods: resizes are compared with what it has.
func ensureNode(t *testing.T) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("100")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size}}
	NewWithT(t).Expect(client.IgnoreAlreadyExists(clientOf(t, "").Create(t.Context(), node))).To(Succeed())
}

// clientOf returns a client with the account of a user; empty for an administrator.
func clientOf(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server)
	config.QPS = -1
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	c, err := client.New(config, client.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

// operator returns a client with the account of the manager, and with its rights: those of
// config/rbac, and no others.
func operator(t *testing.T) client.Client {
	t.Helper()
	g := NewWithT(t)
	role := &rbacv1.ClusterRole{}
	for _, obj := range read(t, "rbac/role.yaml") {
		if obj.GetKind() == "ClusterRole" && obj.GetName() == "insitu-manager" {
			raw, err := yaml.Marshal(obj.Object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed())
		}
	}
	g.Expect(role.Rules).NotTo(BeEmpty())
	admin := clientOf(t, "")
	g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), role))).To(Succeed())
	g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: operatorUser}},
	}))).To(Succeed())

	return clientOf(t, operatorUser, "system:serviceaccounts", "system:authenticated")
}

// read returns the objects of a file below config/.
func read(t *testing.T, file string, replace ...string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join("../../config", file))
	g.Expect(err).NotTo(HaveOccurred())
	text := strings.NewReplacer(replace...).Replace(string(content))
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// install creates the objects of a sample for the time of a test, in force in a new
// namespace of this name only, so that tests do not see each other's. change may adapt them.
func install(t *testing.T, file, namespace string, change func(*unstructured.Unstructured)) {
	t.Helper()
	g, admin := NewWithT(t), clientOf(t, "")
	ensureNode(t)
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
		"policy.example.com/images": namespace, "policy.example.com/image-changes": namespace,
	}}})).To(Succeed())
	selectors := []string{
		"policy.example.com/images: verified", "policy.example.com/images: " + namespace,
		"policy.example.com/image-changes: insitu-only", "policy.example.com/image-changes: " + namespace,
	}
	for _, obj := range read(t, "samples/admission/"+file, selectors...) {
		if change != nil {
			change(obj)
		}
		g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), obj))).To(Succeed(), obj.GetKind())
		if obj.GetKind() != "Namespace" && obj.GetKind() != "ConfigMap" {
			t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), obj) })
		}
	}
}

// await waits until a request that has to be refused is: a policy acts when the watch of
// the API server has shown it.
func await(t *testing.T, request func() error, words string) {
	t.Helper()
	NewWithT(t).Eventually(request, time.Minute, 100*time.Millisecond).Should(MatchError(ContainSubstring(words)))
}
