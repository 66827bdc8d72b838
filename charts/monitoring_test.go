// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// withMonitoring renders all that is off by default.
var withMonitoring = []string{
	withoutCRDs, "--set=metrics.serviceMonitor.enabled=true",
	"--set=metrics.prometheusRule.enabled=true", "--set=metrics.dashboard.enabled=true",
}

// serviceMonitor is the part of a ServiceMonitor that the chart writes.
type serviceMonitor struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []endpoint           `json:"endpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port              string           `json:"port"`
	HonorLabels       bool             `json:"honorLabels"`
	Interval          string           `json:"interval"`
	ScrapeTimeout     string           `json:"scrapeTimeout"`
	Scheme            string           `json:"scheme"`
	BearerTokenFile   string           `json:"bearerTokenFile"`
	Authorization     map[string]any   `json:"authorization"`
	TLSConfig         map[string]any   `json:"tlsConfig"`
	Relabelings       []map[string]any `json:"relabelings"`
	MetricRelabelings []map[string]any `json:"metricRelabelings"`
}

// prometheusRule is a PrometheusRule.
type prometheusRule struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []ruleGroup `json:"groups"`
	} `json:"spec"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func TestMonitoringIsOffByDefault(t *testing.T) {
	g := NewWithT(t)
	all := render(t, withoutCRDs)

	g.Expect(all.ofKind("ServiceMonitor", "PrometheusRule")).To(BeEmpty())
	g.Expect(all.ofKind("ConfigMap")).To(HaveLen(1), "the configuration")
}

func TestServiceMonitor(t *testing.T) {
	g := NewWithT(t)
	all := render(t, withMonitoring...)
	var monitor serviceMonitor
	all.find(t, "ServiceMonitor", "insitu-manager", &monitor)

	g.Expect(monitor.Spec.Endpoints).To(ConsistOf(endpoint{
		Port: "metrics", HonorLabels: true, Scheme: "https",
		BearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
		TLSConfig:       map[string]any{"insecureSkipVerify": true},
	}))
	expectToSelectMetrics(t, monitor, all)

	output, err := runTool(t, kustomize, "build", "config/prometheus")
	g.Expect(err).NotTo(HaveOccurred(), output)
	var kustomized serviceMonitor
	decode(t, output).find(t, "ServiceMonitor", "insitu-manager", &kustomized)
	g.Expect(kustomized.Spec.Endpoints).To(Equal(monitor.Spec.Endpoints))
	output, err = runTool(t, kustomize, "build", "config/default")
	g.Expect(err).NotTo(HaveOccurred(), output)
	expectToSelectMetrics(t, kustomized, decode(t, output))
}

// expectToSelectMetrics looks whether a ServiceMonitor finds the Service of the metrics
// and no other, and its port.
func expectToSelectMetrics(t *testing.T, monitor serviceMonitor, all objects) {
	t.Helper()
	g := NewWithT(t)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range all.ofKind("Service") {
		var service corev1.Service
		all.find(t, "Service", obj.GetName(), &service)
		g.Expect(selector.Matches(labels.Set(service.Labels))).To(Equal(strings.HasSuffix(service.Name, "-metrics")), service.Name)
		g.Expect(service.Namespace).To(Equal(monitor.Namespace))
		g.Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", monitor.Spec.Endpoints[0].Port)))
	}
}

func TestServiceMonitorAsWanted(t *testing.T) {
	tests := map[string]struct {
		set  string
		want endpoint
	}{
		"without TLS": {
			set:  "metrics.secure=false",
			want: endpoint{},
		},
		"with a certificate": {
			set: "metrics.certSecret=tls",
			want: endpoint{
				Scheme: "https", BearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
				TLSConfig: map[string]any{
					"ca":         map[string]any{"secret": map[string]any{"name": "tls", "key": "ca.crt"}},
					"serverName": "insitu-manager-metrics.insitu-system.svc",
				},
			},
		},
		"with a token and a certificate from elsewhere": {
			set: "metrics.serviceMonitor.authorization.credentials.name=token," +
				"metrics.serviceMonitor.authorization.credentials.key=token,metrics.serviceMonitor.tlsConfig.serverName=insitu",
			want: endpoint{
				Scheme:        "https",
				Authorization: map[string]any{"credentials": map[string]any{"name": "token", "key": "token"}},
				TLSConfig:     map[string]any{"serverName": "insitu"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var monitor serviceMonitor
			render(t, append(withMonitoring, "--set="+test.set)...).find(t, "ServiceMonitor", "insitu-manager", &monitor)

			test.want.Port, test.want.HonorLabels = "metrics", true
			g.Expect(monitor.Spec.Endpoints).To(ConsistOf(test.want))
		})
	}
}

// TestAlerts compares the alerts that the chart and kustomize install with their source.
func TestAlerts(t *testing.T) {
	g := NewWithT(t)
	var want struct {
		Groups []ruleGroup `json:"groups"`
	}
	decodeStrictly(t, readFile(t, "../config/prometheus/rules.yaml"), &want)
	var helmed, kustomized prometheusRule
	render(t, withMonitoring...).find(t, "PrometheusRule", "insitu-manager", &helmed)
	output, err := runTool(t, kustomize, "build", "config/prometheus")
	g.Expect(err).NotTo(HaveOccurred(), output)
	decode(t, output).find(t, "PrometheusRule", "insitu-manager", &kustomized)

	g.Expect(helmed.Spec.Groups).To(Equal(want.Groups))
	g.Expect(kustomized.Spec.Groups).To(Equal(want.Groups))
	g.Expect(helmed.Namespace).To(Equal("insitu-system"))
	g.Expect(kustomized.Namespace).To(Equal("insitu-system"))
}

func TestAlertsAsWanted(t *testing.T) {
	g := NewWithT(t)
	var object prometheusRule
	render(t, append(withMonitoring, "--set=fullnameOverride=changer", "--namespace=changing",
		"--set=metrics.prometheusRule.ruleLabels.severity=page", "--set=metrics.prometheusRule.ruleLabels.team=shop",
		"--set=metrics.prometheusRule.disabled={InsituManagerBehind,InsituWritesFailing}",
	)...).find(t, "PrometheusRule", "changer-manager", &object)

	alerts := map[string]rule{}
	for _, group := range object.Spec.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" {
				g.Expect(r.Labels).To(BeEmpty(), "of what is recorded for the alerts")
				continue
			}
			alerts[r.Alert] = r
			g.Expect(r.Labels).To(Equal(map[string]string{"severity": "page", "team": "shop"}), r.Alert)
		}
	}
	g.Expect(alerts).To(HaveKey("InsituRolloutStuck"))
	g.Expect(alerts).NotTo(Or(HaveKey("InsituManagerBehind"), HaveKey("InsituWritesFailing")))
	g.Expect(alerts["InsituManagerDown"].Annotations["description"]).To(And(
		ContainSubstring("kubectl -n changing get pods,leases"), ContainSubstring("kubectl -n changing logs deployment/changer-manager")))
}

// TestSchemaKnowsTheAlerts compares the names that can be left out with those there are.
func TestSchemaKnowsTheAlerts(t *testing.T) {
	g := NewWithT(t)
	var source struct {
		Groups []ruleGroup `json:"groups"`
	}
	decodeStrictly(t, readFile(t, "../config/prometheus/rules.yaml"), &source)
	var names []string
	for _, group := range source.Groups {
		for _, r := range group.Rules {
			if r.Alert != "" {
				names = append(names, r.Alert)
			}
		}
	}
	known := schema(t).Properties["metrics"].Properties["prometheusRule"].Properties["disabled"].Items.Enum
	g.Expect(known).To(ConsistOf(names))
}

// TestBoard compares the board in the ConfigMaps with its source.
func TestBoard(t *testing.T) {
	g := NewWithT(t)
	board := readFile(t, "../config/grafana/insitu.json")
	output, err := runTool(t, kustomize, "build", "config/grafana")
	g.Expect(err).NotTo(HaveOccurred(), output)

	for name, all := range map[string]objects{"helm": render(t, withMonitoring...), "kustomize": decode(t, output)} {
		var file corev1.ConfigMap
		all.find(t, "ConfigMap", "insitu-dashboard", &file)
		// Not compared by gomega: it would print both.
		if strings.TrimSpace(file.Data["insitu.json"]) != strings.TrimSpace(board) {
			t.Errorf("the board of %s is out of date: run make generate", name)
		}
		g.Expect(file.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
		g.Expect(file.Namespace).To(Equal("insitu-system"))
	}
}

func TestBoardForAnotherSidecar(t *testing.T) {
	g := NewWithT(t)
	var file corev1.ConfigMap
	render(t, append(withMonitoring, "--set=metrics.dashboard.labels.grafana_dashboard=null",
		"--set-string=metrics.dashboard.labels.board=yes", "--set=metrics.dashboard.annotations.grafana_folder=Kubernetes",
	)...).find(t, "ConfigMap", "insitu-dashboard", &file)

	g.Expect(file.Labels).To(And(HaveKeyWithValue("board", "yes"), Not(HaveKey("grafana_dashboard"))))
	g.Expect(file.Annotations).To(Equal(map[string]string{"grafana_folder": "Kubernetes"}))
}
