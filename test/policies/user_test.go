// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
)

// user is a person who writes a workload with the usual tools.
type user struct {
	t          *testing.T
	c          client.Client
	kubeconfig string
}

func newUser(t *testing.T) *user {
	t.Helper()
	c := newClient(t)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.CertData, ClientKeyData: server.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user", Namespace: metav1.NamespaceDefault}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))

	return &user{t: t, c: c, kubeconfig: path}
}

// kubectl runs kubectl with a manifest on its input.
func (u *user) kubectl(manifest *unstructured.Unstructured, args ...string) {
	u.t.Helper()
	command := exec.CommandContext(u.t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig)
	if manifest != nil {
		data, err := manifest.MarshalJSON()
		must(u.t, err)
		command.Stdin = strings.NewReader(string(data))
	}
	if output, err := command.CombinedOutput(); err != nil {
		u.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// The ways to write a manifest again and again.
func (u *user) applyClientSide(manifest *unstructured.Unstructured) {
	u.t.Helper()
	u.kubectl(manifest, "apply", "--filename=-")
}

// applyServerSide fails on a conflict: it forces nothing.
func (u *user) applyServerSide(manifest *unstructured.Unstructured) {
	u.t.Helper()
	must(u.t, u.c.Apply(u.t.Context(), client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), client.FieldOwner("user")))
}

// replace creates the object, or writes it in full.
func (u *user) replace(manifest *unstructured.Unstructured) {
	u.t.Helper()
	obj := manifest.DeepCopy()
	err := u.c.Update(u.t.Context(), obj, client.FieldOwner("user"))
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = u.c.Create(u.t.Context(), manifest.DeepCopy(), client.FieldOwner("user"))
	}
	must(u.t, err)
}

// patch writes a merge patch as some manager of fields.
func (u *user) patch(workload *unstructured.Unstructured, manager, patch string) {
	u.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(patch))
	must(u.t, err)
	must(u.t, u.c.Patch(u.t.Context(), workload.DeepCopy(), client.RawPatch("application/merge-patch+json", data), client.FieldOwner(manager)))
}

// get reads a workload.
func (u *user) get(workload *unstructured.Unstructured) *unstructured.Unstructured {
	u.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(workload.GroupVersionKind())
	must(u.t, u.c.Get(u.t.Context(), client.ObjectKeyFromObject(workload), obj))

	return obj
}

func (u *user) expectHeld(workload *unstructured.Unstructured, when string) {
	u.t.Helper()
	g := NewWithT(u.t)
	obj := u.get(workload)
	g.Expect(obj.GetLabels()).To(HaveKeyWithValue("insitu.dev/held", "true"), when)
	spec := obj.Object["spec"].(map[string]any)
	if obj.GetKind() == "Deployment" {
		surge, _, err := unstructured.NestedFieldNoCopy(spec, "strategy", "rollingUpdate", "maxSurge")
		must(u.t, err)
		if surge == int64(0) {
			g.Expect(spec).To(HaveKeyWithValue("paused", true), when)
		} else {
			g.Expect(spec).To(HaveKeyWithValue("minReadySeconds", int64(native.HeldMinReadySeconds)), when)
		}
		return
	}
	g.Expect(spec).To(HaveKeyWithValue("updateStrategy", map[string]any{"type": "OnDelete"}), when)
}
