// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/auditlog"
	"github.com/insitu-dev/insitu/test/observe"
)

// workloads are those of a file in testdata, in a namespace of their own.
type workloads struct {
	file, namespace string
}

// start makes workloads, and waits until they are ready.
func start(ctx context.Context, file, image string) workloads {
	GinkgoHelper()
	w := begin(ctx, file, image)
	w.settled(ctx)
	return w
}

// begin makes workloads, in a namespace that goes when the specs of the container have
// ended.
func begin(ctx context.Context, file, image string) workloads {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.TrimSuffix(file, ".yaml") + "-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	w := workloads{file: file, namespace: namespace.Name}
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("Namespace "+w.namespace, kubectl(ctx, "get", ours+","+builtin+","+belongs+",pods", "-n", w.namespace, "-o", "wide"))
			AddReportEntry("Events", kubectl(ctx, "get", "events", "-n", w.namespace))
		}
		Expect(client.IgnoreNotFound(api.Delete(ctx, namespace))).To(Succeed())
	})
	w.apply(ctx, image)
	return w
}

// apply applies the file with an image.
func (w workloads) apply(ctx context.Context, image string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", w.file))
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(ContainSubstring("image: IMAGE"))
	path := filepath.Join(GinkgoT().TempDir(), w.file)
	Expect(os.WriteFile(path, []byte(strings.ReplaceAll(string(content), "image: IMAGE", "image: "+image)), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-n", w.namespace, "-f", path)
}

// The kinds of workloads, and what belongs to them.
const (
	ours    = "statefulsets.apps.kruise.io,clonesets.apps.kruise.io"
	builtin = "deployments,statefulsets.apps,daemonsets.apps"
	belongs = "replicasets,controllerrevisions,persistentvolumeclaims"
)

// settled waits until every rollout has ended, as a user sees it, and nothing is held.
func (w workloads) settled(ctx context.Context) {
	GinkgoHelper()
	if names := w.names(ctx, ours); len(names) > 0 {
		kubectl(ctx, append([]string{"wait", "-n", w.namespace, "--for=condition=Ready", "--timeout", patience.String()}, names...)...)
	}
	Eventually(ctx, w.held).Should(BeEmpty())
	for _, name := range w.names(ctx, builtin) {
		kubectl(ctx, "rollout", "status", "-n", w.namespace, name, "--timeout", patience.String())
	}
	// The pod goes last that a Deployment had beside the others.
	Eventually(ctx, w.leaving).Should(BeEmpty())
}

// leaving returns the names of the pods that are being deleted.
func (w workloads) leaving(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// held returns what is held of the workloads of Kubernetes.
func (w workloads) held(ctx context.Context) []string {
	GinkgoHelper()
	return w.names(ctx, builtin, "-l", native.HeldLabel)
}

// names returns the objects of some kinds, as kubectl names them.
func (w workloads) names(ctx context.Context, kinds string, flags ...string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, append([]string{"get", kinds, "-n", w.namespace, "-o", "name"}, flags...)...))
}

// pods returns the pods, or those of one workload.
func (w workloads) pods(ctx context.Context, app ...string) []observe.Pod {
	GinkgoHelper()
	selector := ""
	if len(app) > 0 {
		selector = "app=" + app[0]
	}
	found, err := observe.Pods(ctx, kube, w.namespace, selector)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// list returns objects with a field of their metadata.
func (w workloads) list(ctx context.Context, kinds, field string) string {
	GinkgoHelper()
	return kubectl(ctx, "get", kinds, "-n", w.namespace, "--no-headers", "-o",
		"custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid,FIELD:.metadata."+field)
}

// versions returns the objects with their resource versions, which any write changes,
// and the pods with their generations.
func (w workloads) versions(ctx context.Context) string {
	GinkgoHelper()
	return w.list(ctx, ours+","+builtin+","+belongs, "resourceVersion") + w.list(ctx, "pods", "generation")
}

// generations returns the objects with their generations, which writes to their specs
// change: a kubelet may have something to report at any time, and a controller that
// counts pods writes the count down.
func (w workloads) generations(ctx context.Context) string {
	GinkgoHelper()
	return w.list(ctx, ours+","+builtin+","+belongs+",pods", "generation")
}

// calm is workloads at rest: nothing is to happen to them.
type calm struct {
	workloads
	since       time.Time
	generations string
	pods        []observe.Pod
}

// rest waits until nothing changes any more.
func (w workloads) rest(ctx context.Context) calm {
	GinkgoHelper()
	w.settled(ctx)
	// A kubelet reports again after 10 s what did not get through.
	const quiet = 12 * time.Second
	versions, since := "", time.Now()
	Eventually(ctx, func(ctx context.Context) time.Duration {
		if now := w.versions(ctx); now != versions {
			versions, since = now, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">=", quiet))
	return calm{workloads: w, since: time.Now(), generations: w.generations(ctx), pods: w.pods(ctx)}
}

// expectUntouched checks that no write to the workloads was anything but a status, and
// nothing of them was restarted.
func (c calm) expectUntouched(ctx context.Context) {
	GinkgoHelper()
	events, err := auditlog.Read(auditPath)
	Expect(err).NotTo(HaveOccurred())
	var writes []string
	for i := range events {
		event := &events[i]
		// Kubelets get new tokens for pods, and report what runs; others count that.
		isReport := strings.HasPrefix(event.User.Username, "system:node:") || strings.HasSuffix(auditlog.Resource(event), "/status")
		if auditlog.IsWrite(event) && !isReport && event.ObjectRef.Namespace == c.namespace && event.RequestReceivedTimestamp.After(c.since) {
			writes = append(writes, auditlog.Describe(event))
		}
	}
	Expect(writes).To(BeEmpty(), "writes since %s", c.since)
	Expect(observe.Differences(c.pods, c.workloads.pods(ctx), 0)).To(BeEmpty())
	Expect(strings.Split(c.workloads.generations(ctx), "\n")).To(Equal(strings.Split(c.generations, "\n")))
}
