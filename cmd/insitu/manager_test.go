// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/builders"
)

const systemNamespace = "insitu-system"

// admin is the connection of an administrator to the API server of the tests.
var admin *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config) { admin = c }))
}

// TestManager runs the manager with the permissions of config/rbac and no
// others, and looks at it from outside: as a replica beside the leader, as the
// leader, and when it is told to stop.
func TestManager(t *testing.T) {
	g := NewWithT(t)
	installRBAC(t)
	config := defaults()
	config.LeaderElection.ResourceNamespace = systemNamespace
	config.Health.BindAddress, config.Metrics.BindAddress = freeAddress(t), freeAddress(t)
	otherLeader := takeLease(t, config.LeaderElection.ResourceName)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	measured := metrics.New()
	g.Expect(measured.Register(ctrlmetrics.Registry, measuredBuild())).To(Succeed())
	manager, err := newManager(ctx, withToken(tokenOf(t, "insitu-manager")), config, measured)
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	for _, probe := range []string{"/healthz", "/readyz", "/readyz/caches"} {
		url := "http://" + config.Health.BindAddress + probe
		g.Eventually(func() (int, error) { return get(url, "") }, "1m").Should(Equal(http.StatusOK), probe)
	}
	g.Expect(manager.Elected()).NotTo(BeClosed(), "a replica is ready before it leads")
	createReader(t)
	createUnfinished(t)
	url := "https://" + config.Metrics.BindAddress + "/metrics"
	g.Expect(scrape(t, url)).To(And(ContainSubstring("insitu_build_info{"), Not(ContainSubstring("insitu_rollout_"))), "only the leader tells of workloads")

	giveUpLease(t, otherLeader)
	g.Eventually(manager.Elected(), "1m").Should(BeClosed())
	g.Eventually(func() string { return scrape(t, url) }, "1m").Should(And(
		ContainSubstring(`insitu_rollout_pods{kind="StatefulSet.apps.kruise.io",name="unfinished",namespace="default",state="Verifying"} 1`),
		ContainSubstring(`insitu_writes_total{resource="pods",result="Done",subresource="",verb="create"} 1`),
		ContainSubstring(`insitu_writes_total{resource="statefulsets.apps.kruise.io",result="Done",subresource="status",verb="patch"}`),
		ContainSubstring(`insitu_writes_total{resource="events.events.k8s.io",result="Done",subresource="",verb="create"}`),
		ContainSubstring(`insitu_writes_total{resource="leases.coordination.k8s.io",result="Done",subresource="",verb="update"}`),
		ContainSubstring(`leader_election_master_status{name="insitu-manager"} 1`),
		Not(ContainSubstring("tokenreviews")),
	))

	g.Expect(get(url, "")).To(Equal(http.StatusUnauthorized), "without a token")
	g.Expect(get(url, "x.y.z")).NotTo(Equal(http.StatusOK), "with a token that is none")
	g.Expect(get(url, tokenOf(t, "stranger"))).To(Equal(http.StatusForbidden), "with the token of another account")
	g.Expect(get(url, tokenOf(t, "reader"))).To(Equal(http.StatusOK), "with the token of a reader")

	stop()
	g.Eventually(ended, "1m").Should(Receive(Succeed()))
	g.Expect(testutil.CollectAndCount(measured.Rollouts)).To(BeZero(), "it does not lead any more")
	lease, err := leases().Get(t.Context(), config.LeaderElection.ResourceName, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lease.Spec.HolderIdentity).To(HaveValue(BeEmpty()), "the next leader need not wait")
}

func TestNewManagerWithoutAClusterSaysSo(t *testing.T) {
	g := NewWithT(t)
	config := defaults()
	config.LeaderElection.Enabled = ptr.To(false)
	config.Metrics.BindAddress, config.Health.BindAddress = configv1alpha1.BindNothing, configv1alpha1.BindNothing
	elsewhere := rest.CopyConfig(admin)
	elsewhere.Host = "https://" + freeAddress(t)

	_, err := newManager(t.Context(), elsewhere, config, metrics.New())

	g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
}

// installRBAC creates what config/rbac holds.
func installRBAC(t *testing.T) {
	t.Helper()
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"service_account", "role", "role_binding", "metrics_reader_role"} {
		for _, obj := range objectsOf(t, "../../config/rbac/"+name+".yaml") {
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", name, err))
			}
		}
	}
}

func objectsOf(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	reader, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(reader, 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// createUnfinished creates a StatefulSet whose pod no kubelet will run.
func createUnfinished(t *testing.T) {
	t.Helper()
	if err := newAdmin(t).Create(t.Context(), builders.StatefulSet("default", "unfinished", "nginx").Replicas(1).Build()); err != nil {
		t.Fatal(err)
	}
}

// scrape returns what a reader is told.
func scrape(t *testing.T, url string) string {
	t.Helper()
	response, err := fetch(url, tokenOf(t, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// createReader makes two service accounts, of which one may read metrics.
func createReader(t *testing.T) {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(admin)
	for _, name := range []string{"reader", "stranger"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := clients.CoreV1().ServiceAccounts(systemNamespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "insitu-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: systemNamespace}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func tokenOf(t *testing.T, account string) string {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(admin)
	token, err := clients.CoreV1().ServiceAccounts(systemNamespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return token.Status.Token
}

// withToken returns a connection with a token and nothing else to show.
func withToken(token string) *rest.Config {
	connection := rest.AnonymousClientConfig(admin)
	connection.BearerToken = token

	return connection
}

func leases() coordinationv1client.LeaseInterface {
	return kubernetes.NewForConfigOrDie(admin).CoordinationV1().Leases(systemNamespace)
}

// takeLease makes another manager the leader for the next five minutes.
func takeLease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	now := metav1.NowMicro()
	lease, err := leases().Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To("another manager"),
			LeaseDurationSeconds: ptr.To[int32](300),
			AcquireTime:          &now,
			RenewTime:            &now,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return lease
}

// giveUpLease ends the leadership of the other manager, as ReleaseOnCancel does.
func giveUpLease(t *testing.T, lease *coordinationv1.Lease) {
	t.Helper()
	lease.Spec.HolderIdentity = ptr.To("")
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	if _, err := leases().Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address of this host that no process listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	return listener.Addr().String()
}

// get returns the status of a GET, with a token if it is not empty.
func get(url, token string) (int, error) {
	response, err := fetch(url, token)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	return response.StatusCode, nil
}

func fetch(url, token string) (*http.Response, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is self-signed.
	httpClient := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	return httpClient.Do(request)
}
