// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// api is an API server that answers with a status, as a client sees it whose writes
// are counted.
type api struct {
	*WithT
	kubernetes.Interface
	metrics *Metrics
	server  *httptest.Server
	status  int
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{WithT: NewWithT(t), metrics: NewMetrics(), status: http.StatusOK}
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(a.server.Close)
	config := &rest.Config{Host: a.server.URL, QPS: -1}
	config.Wrap(a.metrics.Wrap)
	a.Interface = kubernetes.NewForConfigOrDie(config)
	return a
}

// counted returns what was counted of a collector: "patch pods/status Done".
func (a *api) counted(collector prometheus.Collector) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	a.Expect(registry.Register(collector)).To(Succeed())
	families, err := registry.Gather()
	a.Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := map[string]string{}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			resource := strings.TrimSuffix(labels["resource"]+"/"+labels["subresource"], "/")
			counts[labels["verb"]+" "+resource+" "+labels["result"]] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

func (a *api) patchPod(subresources ...string) {
	_, _ = a.CoreV1().Pods("shop").Patch(context.Background(), "web-0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, subresources...)
}

func TestWritesAreCountedByWhatTheyWrite(t *testing.T) {
	a, ctx := newAPI(t), t.Context()
	a.patchPod()
	a.patchPod()
	a.patchPod("status")
	a.patchPod("resize")
	_ = a.CoreV1().Pods("shop").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}})
	_ = a.CoreV1().Pods("shop").Delete(ctx, "web-0", metav1.DeleteOptions{})
	_, _ = a.CoreV1().PersistentVolumes().Patch(ctx, "pv", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	_, _ = a.AppsV1().Deployments("shop").Patch(ctx, "web", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	_, _ = a.CoordinationV1().Leases("ops").Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "insitu"}}, metav1.UpdateOptions{})
	_ = a.CoreV1().Pods("shop").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	a.Expect(a.counted(a.metrics.writes)).To(Equal(map[string]float64{
		"patch pods Done": 2, "patch pods/status Done": 1, "patch pods/resize Done": 1, "create pods/eviction Done": 1, "delete pods Done": 1,
		"patch persistentvolumes Done": 1, "patch deployments.apps Done": 1, "update leases.coordination.k8s.io Done": 1, "deletecollection pods Done": 1,
	}))
	a.Expect(a.counted(a.metrics.dryRuns)).To(BeEmpty())
}

func TestWhatWritesNothingIsNoWrite(t *testing.T) {
	a, ctx := newAPI(t), t.Context()
	_, _ = a.CoreV1().Pods("shop").Get(ctx, "web-0", metav1.GetOptions{})
	_, _ = a.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
	_, _ = a.Discovery().ServerVersion()
	tokens := a.AuthenticationV1().RESTClient().Post().Resource("tokenreviews").Body([]byte(`{}`)).Do(ctx)
	a.Expect(tokens.Error()).NotTo(HaveOccurred())
	reviews := a.AuthorizationV1().RESTClient().Post().Resource("subjectaccessreviews").Body([]byte(`{}`)).Do(ctx)
	a.Expect(reviews.Error()).NotTo(HaveOccurred())
	a.Expect(a.counted(a.metrics.writes)).To(BeEmpty())

	_, _ = a.CoreV1().Pods("shop").Patch(ctx, "web-0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "resize")
	a.status = http.StatusForbidden
	_, _ = a.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	a.Expect(a.counted(a.metrics.writes)).To(BeEmpty())
	a.Expect(a.counted(a.metrics.dryRuns)).To(Equal(map[string]float64{"patch pods/resize Done": 1, "create pods Refused": 1}))
}

func TestResults(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK: "Done", http.StatusCreated: "Done", http.StatusConflict: "Conflict", http.StatusNotFound: "NotFound",
		http.StatusTooManyRequests: "TooManyRequests", http.StatusForbidden: "Refused", http.StatusUnprocessableEntity: "Refused",
		http.StatusBadRequest: "Refused", http.StatusInternalServerError: "Error", http.StatusGatewayTimeout: "Error",
	} {
		a := newAPI(t)
		a.status = status
		a.patchPod()
		a.Expect(a.counted(a.metrics.writes)).To(Equal(map[string]float64{"patch pods " + want: 1}), "%d", status)
	}
	a := newAPI(t)
	a.server.Close()
	_ = a.CoreV1().Pods("shop").Delete(t.Context(), "web-0", metav1.DeleteOptions{})
	a.Expect(a.counted(a.metrics.writes)).To(Equal(map[string]float64{"delete pods Error": 1}), "no answer")
}
