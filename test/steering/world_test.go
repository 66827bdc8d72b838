// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/build"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
)

// world is a namespace, and a user who runs the plugin there.
type world struct {
	*WithT
	t          *testing.T
	c          client.Client
	namespace  string
	kubeconfig string
	// as is whom the user impersonates; empty for an administrator.
	as string
	// transcript is what was run, and what came of it.
	transcript strings.Builder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t}
	var err error
	w.c, err = administrator()
	w.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "steering-"}}
	w.Expect(w.c.Create(t.Context(), namespace)).To(Succeed())
	w.namespace = namespace.Name
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.CertData, ClientKeyData: server.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user", Namespace: w.namespace}
	config.CurrentContext = "test"
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	w.Expect(clientcmd.WriteToFile(*config, w.kubeconfig)).To(Succeed())
	return w
}

// run runs a command of the plugin, and returns what it prints and its exit code.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errOut bytes.Buffer
	all := append([]string{"--kubeconfig", w.kubeconfig}, args...)
	if w.as != "" {
		all = append(all, "--as", w.as)
	}
	code = commands.Run(w.t.Context(), all, genericiooptions.IOStreams{In: os.Stdin, Out: &out, ErrOut: &errOut}, build.Build{})
	return out.String(), errOut.String(), code
}

// insitu runs a command, and notes in the transcript what it prints and what becomes of
// the workload.
func (w *world) insitu(of client.Object, line string) {
	w.t.Helper()
	before := w.read(of)
	stdout, stderr, code := w.run(strings.Fields(line)...)
	after := w.read(of)
	fmt.Fprintf(&w.transcript, "$ kubectl insitu %s\n%s", line, stdout)
	for text := range strings.Lines(stderr) {
		w.transcript.WriteString("! " + text)
	}
	if code != 0 {
		fmt.Fprintf(&w.transcript, "exit code %d\n", code)
	}
	if before.GetResourceVersion() == after.GetResourceVersion() {
		w.transcript.WriteString("\n")
		return
	}
	raw, err := yaml.Marshal(told(after))
	w.Expect(err).NotTo(HaveOccurred())
	fmt.Fprintf(&w.transcript, "%s\n", indent(string(raw)))
}

func indent(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString("    " + line)
	}
	return lines.String()
}

// told returns what a transcript tells of a workload.
func told(obj *unstructured.Unstructured) map[string]any {
	said := map[string]any{}
	for key, path := range map[string][]string{
		"strategy": {"spec", "updateStrategy"}, "paused": {"spec", "paused"}, "template annotations": {"spec", "template", "metadata", "annotations"},
	} {
		if value, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); ok {
			said[key] = value
		}
	}
	for key, values := range map[string]map[string]string{"labels": obj.GetLabels(), "annotations": obj.GetAnnotations()} {
		if len(values) > 0 {
			said[key] = values
		}
	}
	var containers []string
	for _, list := range []string{"containers", "initContainers"} {
		items, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", list)
		for _, item := range items {
			c := item.(map[string]any)
			line := fmt.Sprintf("%v=%v", c["name"], c["image"])
			if resources, _ := c["resources"].(map[string]any); len(resources) > 0 {
				line += fmt.Sprintf(" %v", resources)
			}
			containers = append(containers, line)
		}
	}
	said["containers"] = strings.Join(containers, ", ")
	return said
}

// variable is what differs from run to run.
var variable = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`(?m)^(\d+|-)( +)\d+s `), "$1${2}AGE"},
	{regexp.MustCompile(`steering-[a-z0-9]{5}`), "NAMESPACE"},
}

// matches compares the transcript to a file of testdata.
func (w *world) matches(name string) {
	w.t.Helper()
	text := w.transcript.String()
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.word)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		w.Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
	}
	golden, err := os.ReadFile(file)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(text).To(Equal(string(golden)), "run the tests with -update, and look at the difference")
}

// read returns an object as the server has it.
func (w *world) read(of client.Object) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	gvk, err := w.c.GroupVersionKindFor(of)
	w.Expect(err).NotTo(HaveOccurred())
	obj.SetGroupVersionKind(gvk)
	w.Expect(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(of), obj)).To(Succeed())
	return obj
}

// pod makes a pod of a workload, with labels beside those of the selector.
func (w *world) pod(name string, owner client.Object, labels map[string]string) {
	w.t.Helper()
	gvk, err := w.c.GroupVersionKindFor(owner)
	w.Expect(err).NotTo(HaveOccurred())
	all := map[string]string{"app": "web"}
	maps.Copy(all, labels)
	w.Expect(w.c.Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Labels: all, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}, AutomountServiceAccountToken: ptr.To(false)},
	})).To(Succeed())
}

// record makes a ControllerRevision of the present template, as its controller does.
func (w *world) record(of client.Object, hash string, number int64, cause string) {
	w.t.Helper()
	obj := w.read(of)
	template, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	w.Expect(err).NotTo(HaveOccurred())
	template["$patch"] = "replace"
	spec := map[string]any{"template": template}
	if claims, ok, _ := unstructured.NestedSlice(obj.Object, "spec", "volumeClaimTemplates"); ok && obj.GetAPIVersion() != "apps/v1" {
		spec["volumeClaimTemplates"] = claims
	}
	raw, err := (&unstructured.Unstructured{Object: map[string]any{"spec": spec, "kind": "x"}}).MarshalJSON()
	w.Expect(err).NotTo(HaveOccurred())
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: of.GetName() + "-" + hash, Labels: map[string]string{"app": "web", "controller-revision-hash": hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, obj.GroupVersionKind())},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
	if cause != "" {
		revision.Annotations = map[string]string{"kubernetes.io/change-cause": cause}
	}
	w.Expect(w.c.Create(w.t.Context(), revision)).To(Succeed())
}

// replicaSet makes a ReplicaSet of the present template of a Deployment.
func (w *world) replicaSet(of *appsv1.Deployment, hash, number string) *appsv1.ReplicaSet {
	w.t.Helper()
	deployment := &appsv1.Deployment{}
	w.Expect(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(of), deployment)).To(Succeed())
	template := deployment.Spec.Template
	template.Labels = map[string]string{"app": "web", "pod-template-hash": hash}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: of.Name + "-" + hash, Labels: template.Labels,
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": number},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
	w.Expect(w.c.Create(w.t.Context(), rs)).To(Succeed())
	return rs
}
