// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/monitoring"
)

// huge is a size that no node has.
var huge = size{cpu: "500", memory: "96Mi"}

// tokenOfReader returns the token of a service account that may read the metrics.
func tokenOfReader(ctx context.Context, namespace string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}
	Expect(api.Create(ctx, account)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "insitu-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	Expect(api.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, binding)).To(Succeed()) })
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// managerAddresses returns where the replicas of the operator serve metrics.
func managerAddresses(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
	var addresses []string
	for i := range list.Items {
		addresses = append(addresses, net.JoinHostPort(list.Items[i].Status.PodIP, "8443"))
	}
	Expect(addresses).NotTo(BeEmpty())
	return addresses
}

// impatient returns rules that wait for two seconds where they would wait for minutes.
func impatient(rules []byte) []byte {
	return regexp.MustCompile(`(?m)^( +for: ).*$`).ReplaceAll(rules, []byte("${1}2s"))
}

// startPrometheus starts a Prometheus that scrapes the operator and evaluates its
// alerts. It is gone with the spec, and so is what it wrote.
func startPrometheus(ctx context.Context, namespace string) *monitoring.Prometheus {
	GinkgoHelper()
	rules, err := os.ReadFile(filepath.Join("..", "..", "config", "prometheus", "rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	options := monitoring.Options{
		Folder: GinkgoT().TempDir(), Targets: managerAddresses(ctx), Token: tokenOfReader(ctx, namespace),
		Rules: impatient(rules), Lookback: time.Hour,
	}
	DeferCleanup(func() {
		if log, err := os.ReadFile(options.LogFile()); err == nil && CurrentSpecReport().Failed() {
			AddReportEntry("Prometheus", string(log))
		}
	})
	prometheus, err := monitoring.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(prometheus.Stop)
	return prometheus
}

// vectorOf returns what a query of one moment has as its answer.
func vectorOf(ctx context.Context, prometheus prometheusv1.API, query string, at time.Time) model.Vector {
	GinkgoHelper()
	answer, _, err := prometheus.Query(ctx, query, at)
	Expect(err).NotTo(HaveOccurred(), query)
	vector, ok := answer.(model.Vector)
	Expect(ok).To(BeTrue(), query)
	return vector
}

// firing returns the alerts that fire for workloads of a namespace, each with its
// workload's name.
func firing(ctx context.Context, prometheus prometheusv1.API, namespace string) []string {
	GinkgoHelper()
	var found []string
	for _, series := range vectorOf(ctx, prometheus, `ALERTS{alertstate="firing",namespace="`+namespace+`"}`, time.Now()) {
		found = append(found, string(series.Metric["alertname"]+" "+series.Metric["kind"]+"/"+series.Metric["name"]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isShown reports whether Grafana would show something for a query since a moment.
func isShown(ctx context.Context, g Gomega, prometheus prometheusv1.API, query monitoring.Query, since time.Time) bool {
	if query.Instant {
		answer, _, err := prometheus.Query(ctx, query.Expr, time.Now())
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", query.Panel, query.Expr)
		vector, _ := answer.(model.Vector)
		return slices.ContainsFunc(vector, func(sample *model.Sample) bool { return !math.IsNaN(float64(sample.Value)) })
	}
	answer, _, err := prometheus.QueryRange(ctx, query.Expr, prometheusv1.Range{Start: since, End: time.Now(), Step: time.Second})
	g.Expect(err).NotTo(HaveOccurred(), "%s: %s", query.Panel, query.Expr)
	matrix, _ := answer.(model.Matrix)
	return slices.ContainsFunc(matrix, func(series *model.SampleStream) bool {
		return slices.ContainsFunc(series.Values, func(pair model.SamplePair) bool { return !math.IsNaN(float64(pair.Value)) })
	})
}

// expectBoard checks that every query of the Grafana board is answered, and that
// there is something to show for each.
func expectBoard(ctx context.Context, prometheus prometheusv1.API, since time.Time) {
	GinkgoHelper()
	board, err := monitoring.ReadBoard(filepath.Join("..", "..", "config", "grafana", "insitu.json"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		var empty []string
		for _, query := range board.Queries("1m") {
			if !isShown(ctx, g, prometheus, query, since) {
				empty = append(empty, query.Panel+": "+query.Expr)
			}
		}
		g.Expect(empty).To(BeEmpty())
	}).WithPolling(2 * time.Second).Should(Succeed())
}

var _ = Describe("Prometheus, with the alerts and the Grafana board", func() {
	It("names what is stuck, until it is freed, and fills the board", func(ctx context.Context) {
		namespace := newRecreateNamespace(ctx)
		began := time.Now()
		prometheus := startPrometheus(ctx, namespace)
		bad, slow := builders.StatefulSet(namespace, "bad", nginxAlpine).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{DeadlineSeconds: ptr.To[int32](5)}
		}).Build(), builders.StatefulSet(namespace, "slow", nginxAlpine).Replicas(1).Build()
		resized := builders.StatefulSet(namespace, "resized", sleeperV1).Replicas(2).With(to(small)).Build()
		limited := withVolume(builders.StatefulSet(namespace, "limited", nginxAlpine), classLimited, "/data").Replicas(1).Build()
		recreated := withVolume(builders.StatefulSet(namespace, "recreated", nginxAlpine), classStandard, "/data").Replicas(1).With(recreating(nil)).Build()
		all := []*appsv1beta1.StatefulSet{bad, slow, resized, limited, recreated}
		for _, set := range all {
			Expect(api.Create(ctx, set)).To(Succeed())
		}
		web := builtin{kind: "Deployment", namespace: namespace}
		web.start(ctx, web.manifest(nginxAlpine))
		for _, set := range all {
			waitSettled(ctx, set)
		}
		// On a busy machine, the first start may have taken longer than the deadline.
		Eventually(ctx, firing).WithArguments(prometheus, namespace).Should(BeEmpty())

		By("updating what goes well, and what does not")
		setImage(ctx, bad, nginxMissing)
		setImage(ctx, slow, sleeperCrash)
		change(ctx, limited, toSize("4Gi"))
		change(ctx, recreated, toClass(classNoatime))
		change(ctx, resized, to(large))
		web.setImage(ctx, nginxLatest)
		waitSettled(ctx, resized)
		change(ctx, resized, to(huge))
		web.updated(ctx)
		waitVolumes(ctx, recreated)

		By("waiting for the alerts")
		stuck := []string{
			"InsituClaimBlocked StatefulSet.apps.kruise.io/limited",
			"InsituResizeInfeasible StatefulSet.apps.kruise.io/resized",
			"InsituRolloutStuck StatefulSet.apps.kruise.io/bad",
		}
		Eventually(ctx, firing).WithArguments(prometheus, namespace).Should(Equal(stuck))
		expectStuckLater(ctx, prometheus, slow)
		expectBoard(ctx, prometheus, began)
		Expect(firing(ctx, prometheus, namespace)).To(Equal(stuck))
		Expect(vectorOf(ctx, prometheus, `insitu_resizes_total{kind="StatefulSet.apps.kruise.io",outcome="Done"} > 0`, time.Now())).NotTo(BeEmpty())

		By("going back")
		setImage(ctx, bad, nginxAlpine)
		setImage(ctx, slow, nginxAlpine)
		change(ctx, limited, toSize("1Gi"))
		change(ctx, resized, to(large))
		for _, set := range all {
			waitSettled(ctx, set)
		}
		Eventually(ctx, firing).WithArguments(prometheus, namespace).Should(BeEmpty())
		Eventually(ctx, func(ctx context.Context) model.Vector {
			return vectorOf(ctx, prometheus, `insitu_rollout_pods{namespace="`+namespace+`"}`, time.Now())
		}).Should(BeEmpty(), "series of workloads that are at rest")
		// Here the alert waits for two seconds: a manager may be late to answer for as long.
		Eventually(ctx, func(ctx context.Context) model.Vector {
			return vectorOf(ctx, prometheus, `ALERTS{alertname="InsituManagerDown",alertstate="firing"}`, time.Now())
		}).Should(BeEmpty())
	})
})

// expectStuckLater checks that a rollout that is not stalled is not taken for stuck
// now, and would be in a quarter of an hour, if nothing moved until then.
func expectStuckLater(ctx context.Context, prometheus prometheusv1.API, set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	groups, err := prometheus.Rules(ctx, nil)
	Expect(err).NotTo(HaveOccurred())
	query := ""
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if alert, ok := rule.(prometheusv1.AlertingRule); ok && alert.Name == "InsituRolloutStuck" {
				query = alert.Query
			}
		}
	}
	Expect(query).NotTo(BeEmpty())
	names := func(at time.Time) []string {
		var found []string
		for _, series := range vectorOf(ctx, prometheus, query, at) {
			if string(series.Metric["namespace"]) == set.Namespace {
				found = append(found, string(series.Metric["name"]))
			}
		}
		return found
	}
	Eventually(ctx, func(ctx context.Context) string {
		return strings.Join(names(time.Now().Add(15*time.Minute)), " ")
	}).Should(ContainSubstring(set.Name))
	Expect(names(time.Now())).NotTo(ContainElement(set.Name))
}
