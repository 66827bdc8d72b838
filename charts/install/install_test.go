// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package install_test installs the chart with the pinned Helm into a real API
// server.
package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/insitu-dev/insitu/apis/apps/v1alpha1"
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/apiserver"
)

const namespace = "insitu-system"

// definitions are the names of the definitions that the chart installs.
var definitions = []string{
	"clonesets.apps.kruise.io", "containerrecreaterequests.apps.kruise.io", "daemonsets.apps.kruise.io",
	"imagelistpulljobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "statefulsets.apps.kruise.io",
}

// admin is the connection of an administrator to the API server of the tests.
var admin *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config) { admin = c }))
}

// TestUninstallKeepsWorkloads is the life of a release: what it installs is
// gone after the uninstall, but for the definitions and the workloads.
func TestUninstallKeepsWorkloads(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	helm := newHelm(t)
	// The server comes with the definitions; here the chart brings them.
	for _, name := range definitions {
		g.Expect(c.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		g.Eventually(func() bool { return apierrors.IsNotFound(getDefinition(t, c, name)) }, "1m").Should(BeTrue())
	}

	// Other tests have left behind what releases workloads.
	helm("install", "insitu", "charts/insitu", "--create-namespace", "--take-ownership")
	g.Eventually(func() error { return c.Create(t.Context(), workload()) }, "1m").Should(Succeed())
	helm("upgrade", "insitu", "charts/insitu", "--set=replicas=1")
	helm("uninstall", "insitu", "--no-hooks") // there is no node to run them

	for _, name := range definitions {
		g.Expect(getDefinition(t, c, name)).To(Succeed())
	}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(workload()), &appsv1beta1.StatefulSet{})).To(Succeed())
	account := client.ObjectKey{Namespace: namespace, Name: "insitu-manager"}
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), account, &corev1.ServiceAccount{}))).To(BeTrue(), "the uninstall did uninstall")

	helm("install", "insitu", "charts/insitu")
	g.Expect(c.Get(t.Context(), account, &corev1.ServiceAccount{})).To(Succeed(), "what was kept is no obstacle")
}

// TestSecondInstallation is refused: it would hold, too, and release what the first one
// holds.
func TestSecondInstallation(t *testing.T) {
	g := NewWithT(t)
	helm := newHelm(t)
	const first = "second-installation"
	helm("install", first, "charts/insitu", "--create-namespace", "--set=crds.install=false", "--take-ownership")
	defer helm("uninstall", first, "--no-hooks")

	output, err := newHelmThatMayFail(t)("install", "other", "charts/insitu", "--set=crds.install=false,rbac.create=false", "--set=fullnameOverride=other")

	g.Expect(err).To(HaveOccurred())
	g.Expect(output).To(ContainSubstring(`key "meta.helm.sh/release-name" must equal "other": current value is "` + first + `"`))
}

func workload() *appsv1beta1.StatefulSet {
	labels := map[string]string{"app": "web"}

	return &appsv1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web"},
		Spec: appsv1beta1.StatefulSetSpec{
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			ServiceName: "web",
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
			},
		},
	}
}

func getDefinition(t *testing.T, c client.Client, name string) error {
	t.Helper()

	return c.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, appsv1beta1.AddToScheme, appsv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// newHelm returns a function that runs the pinned Helm against the API server, and returns
// what it printed.
func newHelm(t *testing.T) func(args ...string) string {
	t.Helper()
	run := newHelmThatMayFail(t)

	return func(args ...string) string {
		t.Helper()
		output, err := run(args...)
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, output)
		}

		return output
	}
}

func newHelmThatMayFail(t *testing.T) func(args ...string) (string, error) {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../go.tools.mod", "-n", "helm").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	kubeconfig := writeKubeconfig(t, folder)

	return func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), append(args, "--namespace="+namespace)...)
		command.Dir = "../.."
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder)
		output, err := command.CombinedOutput()

		return string(output), err
	}
}

func writeKubeconfig(t *testing.T, folder string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "admin"}
	config.CurrentContext = "test"
	path := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}

	return path
}
