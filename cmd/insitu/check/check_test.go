// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"io/fs"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/config/crd"
	"github.com/insitu-dev/insitu/config/policies"
	"github.com/insitu-dev/insitu/config/rbac"
	"github.com/insitu-dev/insitu/test/apiserver"
)

// admin is the connection of an administrator to the API server of the tests.
var admin *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config) { admin = c }))
}

// checked is a namespace with a user who has the rights of a manager, and whose Lease
// another client may renew.
type checked struct {
	t          *testing.T
	client     client.Client
	namespace  string
	connection *rest.Config
	config     *configv1alpha1.InsituConfiguration
}

// newChecked makes a namespace and grants a user in it the rules of a manager, but for
// some verb.
func newChecked(t *testing.T, namespace string, without ...string) *checked {
	t.Helper()
	c := &checked{t: t, client: newAdmin(t), namespace: namespace, connection: rest.CopyConfig(admin), config: defaults()}
	c.connection.QPS = -1 // the server limits, as it does for insitu --check without settings
	c.connection.Impersonate = rest.ImpersonationConfig{UserName: namespace, Groups: []string{"system:authenticated"}}
	c.config.LeaderElection.ResourceNamespace = namespace
	c.config.Namespaces = []string{namespace} // others have workloads of other tests
	// Short, for what is waited for here does not come.
	c.config.LeaderElection.LeaseDuration.Duration = time.Second
	c.config.LeaderElection.RetryPeriod.Duration = 200 * time.Millisecond

	rules, err := rbac.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules.Workloads {
		if resources := rules.Workloads[i].Resources; len(without) == 1 && strings.Join(resources, ",") == without[0] {
			rules.Workloads[i].Verbs = []string{"get"}
		}
	}
	meta := metav1.ObjectMeta{Name: namespace}
	own := metav1.ObjectMeta{Name: namespace, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: namespace}}
	c.create(
		&corev1.Namespace{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules.Workloads},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace}},
		&rbacv1.Role{ObjectMeta: own, Rules: rules.Own},
		&rbacv1.RoleBinding{ObjectMeta: own, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: namespace}},
	)
	return c
}

// newScheme returns the types of the manager, and what the tests look at beside them.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, appsv1beta1.AddToScheme, apiextensionsv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newAdmin(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(admin, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func defaults() *configv1alpha1.InsituConfiguration {
	config := &configv1alpha1.InsituConfiguration{}
	configv1alpha1.SetDefaults(config)
	return config
}

func (c *checked) create(objects ...client.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

// lead makes a Lease that its holder renews until the test ends, if renews is true.
func (c *checked) lead(holder string, renews bool) {
	c.t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.config.LeaderElection.ResourceName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NowMicro())},
	}
	c.create(lease)
	if !renews {
		return
	}
	c.config.LeaderElection.LeaseDuration.Duration = time.Minute // a renewal comes, however late it is seen
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ticker := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case now := <-ticker.C:
				lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
				_ = c.client.Update(ctx, lease) // the next one may succeed
			}
		}
	}()
	c.t.Cleanup(func() { stop(); <-ended })
}

// run returns what a check says, line by line, and its error.
func (c *checked) run() ([]string, error) {
	c.t.Helper()
	var out bytes.Buffer
	err := Run(c.t.Context(), c.connection, newScheme(c.t), c.config, &out)

	return strings.Split(strings.TrimSpace(out.String()), "\n"), err
}

func TestCheckOfWhatIsWell(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-well")
	c.lead("manager-1", true)

	lines, err := c.run()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(HaveEach(HavePrefix("ok    ")))
	g.Expect(lines).To(ContainElements(
		"ok    clonesets.apps.kruise.io: served as apps.kruise.io/v1beta1",
		"ok    containerrecreaterequests.apps.kruise.io: served as apps.kruise.io/v1beta1",
		"ok    daemonsets.apps.kruise.io: served as apps.kruise.io/v1beta1",
		"ok    imagelistpulljobs.apps.kruise.io: served as apps.kruise.io/v1beta1",
		"ok    imagepulljobs.apps.kruise.io: served as apps.kruise.io/v1beta1",
		"ok    statefulsets.apps.kruise.io: served as apps.kruise.io/v1beta1",
		MatchRegexp(`^ok    rights in namespace check-well: all [0-9]{2,3} that the manager needs$`),
		MatchRegexp(`^ok    rights in namespace check-well: all 5 that the manager needs$`),
		"ok    leader: manager-1 renews Lease check-well/insitu-manager",
	))
}

func TestCheckNamesAMissingRight(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-rights", "pods/resize,pods/status")
	c.lead("manager-1", true)
	c.config.Namespaces = nil

	lines, err := c.run()

	g.Expect(err).To(HaveOccurred())
	g.Expect(lines).To(ContainElement(MatchRegexp(
		`^FAIL  rights in all namespaces: 2 of \d+ are missing, to patch pods/resize, patch pods/status: grant it the ClusterRole of the chart \(rbac.create=true\) or of config/rbac$`)))
}

func TestCheckNamesTheNamespaceOfAMissingRight(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-namespaces")
	c.lead("manager-1", true)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "check-elsewhere"}})
	c.connection.Impersonate.UserName = "tenant"
	rules, err := rbac.Load()
	g.Expect(err).NotTo(HaveOccurred())
	own := metav1.ObjectMeta{Name: "tenant", Namespace: c.namespace}
	c.create(
		&rbacv1.Role{ObjectMeta: own, Rules: append(rbac.Namespaced(rules.Workloads), rules.Own...)},
		&rbacv1.RoleBinding{
			ObjectMeta: own, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"}},
		},
	)
	c.config.Scope = configv1alpha1.NamespaceScope
	lines, err := c.run()
	g.Expect(err).NotTo(HaveOccurred(), strings.Join(lines, "\n"))

	c.config.Namespaces = []string{c.namespace, "check-elsewhere"}
	lines, err = c.run()

	g.Expect(err).To(HaveOccurred())
	g.Expect(lines).To(ContainElements(
		HavePrefix("ok    rights in namespace check-namespaces: all "),
		And(HavePrefix("FAIL  rights in namespace check-elsewhere: "), ContainSubstring("create pods"), HaveSuffix("or of config/namespaced in that namespace")),
	))
}

func TestCheckLooksForALeader(t *testing.T) {
	const look = "see what its pods do, kubectl -n NAMESPACE get pods, and what they say, kubectl -n NAMESPACE logs"
	for name, test := range map[string]struct {
		lead func(*checked)
		want string
	}{
		"never": {lead: func(*checked) {}, want: "FAIL  leader: there is no Lease NAMESPACE/insitu-manager, so no manager has ever led: " + look},
		"given-up": {
			lead: func(c *checked) { c.lead("", false) },
			want: "FAIL  leader: no manager holds Lease NAMESPACE/insitu-manager: " + look,
		},
		"stale": {
			lead: func(c *checked) { c.lead("manager-1", false) },
			want: "FAIL  leader: Lease NAMESPACE/insitu-manager is held by manager-1, who last renewed it at ",
		},
		"off": {
			lead: func(c *checked) { c.config.LeaderElection.Enabled = ptr.To(false) },
			want: "ok    leader: leader election is off, and was not looked at",
		},
		"nowhere": {
			lead: func(c *checked) { c.config.LeaderElection.ResourceNamespace = "" },
			want: "FAIL  leader: outside a cluster, the namespace of its Lease is not known: set leaderElection.resourceNamespace in the configuration",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newChecked(t, "check-leader-"+name)
			test.lead(c)

			lines, err := c.run()

			want := strings.ReplaceAll(test.want, "NAMESPACE", c.namespace)
			g.Expect(lines).To(ContainElement(HavePrefix(want)))
			g.Expect(err != nil).To(Equal(strings.HasPrefix(want, "FAIL")))
		})
	}
}

// TestCheckTriesTheLeaseAgain: what an API server says for a moment is not what is amiss.
func TestCheckTriesTheLeaseAgain(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-lease-again")
	c.lead("manager-1", true)
	broken := c.breakLeases(http.StatusInternalServerError, 3)

	lines, err := c.run()

	g.Expect(err).NotTo(HaveOccurred(), strings.Join(lines, "\n"))
	g.Expect(lines).To(ContainElement("ok    leader: manager-1 renews Lease check-lease-again/insitu-manager"))
	g.Expect(broken.Load()).To(BeNumerically(">", 3))
}

// TestCheckCannotReadTheLease: what to do depends on why.
func TestCheckCannotReadTheLease(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		advice string
		asked  gomegatypes.GomegaMatcher
	}{
		"forbidden": {status: http.StatusForbidden, advice: "grant the account the Role insitu-manager of the chart", asked: BeEquivalentTo(1)},
		"broken":    {status: http.StatusInternalServerError, advice: "see whether the API server is well, and try again", asked: BeNumerically(">", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newChecked(t, "check-lease-"+name)
			c.lead("manager-1", false)
			broken := c.breakLeases(test.status, math.MaxInt32)

			lines, err := c.run()

			g.Expect(err).To(HaveOccurred())
			g.Expect(lines).To(ContainElement(And(
				HavePrefix("FAIL  leader: Lease "+c.namespace+"/insitu-manager cannot be read: "), HaveSuffix(": "+test.advice))))
			g.Expect(broken.Load()).To(test.asked)
		})
	}
}

// breakLeases has the first reads of Leases answered with a status, and returns how many
// there were, with those that were passed on.
func (c *checked) breakLeases(status int, times int32) *atomic.Int32 {
	asked := &atomic.Int32{}
	c.connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if !strings.Contains(request.URL.Path, "/leases/") || asked.Add(1) > times {
				return next.RoundTrip(request)
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
		})
	})
	return asked
}

// roundTrip is a function that answers requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestCheckEndsBeforeItsPod: the pod of the chart is ended by its deadline, and then says
// nothing.
func TestCheckEndsBeforeItsPod(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../charts/insitu/templates/tests/check.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`activeDeadlineSeconds: (\d+)`).FindSubmatch(text)
	g.Expect(found).To(HaveLen(2))
	seconds, err := strconv.Atoi(string(found[1]))
	g.Expect(err).NotTo(HaveOccurred())
	election := defaults().LeaderElection

	g.Expect(takeoverPeriod(election)).To(Equal(32*time.Second), "twice 15s, and 2s")
	election.LeaseDuration.Duration = time.Hour
	// A minute for the image and the other checks.
	g.Expect(takeoverPeriod(election) + time.Minute).To(BeNumerically("<=", time.Duration(seconds)*time.Second))
}

func TestCheckMissesADefinition(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-definitions")
	c.lead("manager-1", true)
	const name = "clonesets.apps.kruise.io"
	g.Expect(c.client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	t.Cleanup(func() { c.restore(name) })

	g.Eventually(func() error { _, err := c.run(); return err }, "1m").Should(MatchError(ContainSubstring("1 of ")))
	lines, _ := c.run()

	g.Expect(lines).To(ContainElements(
		"FAIL  clonesets.apps.kruise.io: not served as apps.kruise.io/v1beta1: install or upgrade the CustomResourceDefinitions, "+
			"helm upgrade with crds.install=true or kubectl apply --server-side -k config/crd",
		HavePrefix("ok    daemonsets.apps.kruise.io"),
		HavePrefix("ok    statefulsets.apps.kruise.io"),
	))
}

// restore installs a definition again, for the tests that follow.
func (c *checked) restore(name string) {
	ctx, g := context.WithoutCancel(c.t.Context()), NewWithT(c.t)
	text, err := crd.Manifests.ReadFile("apps.kruise.io_clonesets.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(text, definition)).To(Succeed())
	g.Eventually(func() error { return c.client.Create(ctx, definition.DeepCopy()) }, "1m").Should(Succeed(), name)
	served := &checker{}
	served.discovery, err = discovery.NewDiscoveryClientForConfig(admin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (bool, error) { return served.serves(ctx, "apps.kruise.io/v1beta1", "clonesets") }, "1m").Should(BeTrue())
}

// TestCheckTriesTheHold: with the policies, a change of an opted-in workload would be held,
// and nothing is written. Older servers have no such policies, and the check says so.
func TestCheckTriesTheHold(t *testing.T) {
	g := NewWithT(t)
	c := newChecked(t, "check-hold")
	c.lead("manager-1", true)
	lines, err := c.run()
	g.Expect(err).NotTo(HaveOccurred())
	served := &checker{}
	served.discovery, err = discovery.NewDiscoveryClientForConfig(admin)
	g.Expect(err).NotTo(HaveOccurred())
	hasPolicies, err := served.serves(t.Context(), policyVersion, "mutatingadmissionpolicies")
	g.Expect(err).NotTo(HaveOccurred())
	if !hasPolicies {
		g.Expect(lines).To(ContainElement(HavePrefix("ok    hold policies: this API server has none (Kubernetes 1.36 and newer have)")))
		return
	}
	g.Expect(lines).To(ContainElement("ok    hold policies: no Deployment, StatefulSet, DaemonSet is opted in and could be held, so none was tried"))

	web := optedInDeployment(c.namespace)
	c.create(web)
	lines, err = c.run()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(ContainElement(
		"ok    hold policies: no Deployment, StatefulSet, DaemonSet is opted in and could be held, so none was tried"), "no workload without pods is held")

	web.Status.Replicas = 1
	g.Expect(c.client.Status().Update(t.Context(), web)).To(Succeed())
	lines, err = c.run()
	g.Expect(err).To(HaveOccurred())
	g.Expect(lines).To(ContainElements(
		"FAIL  hold policies: a change of Deployment check-hold/web would not be held (dry run): Kubernetes would recreate its pods: "+
			"have the policies installed for namespace check-hold (holdPolicies of the chart), or take label insitu.dev/update-policy off",
		"ok    hold policies: no StatefulSet, DaemonSet is opted in and could be held, so none was tried",
	))

	c.installPolicies()
	g.Eventually(func() error { lines, err = c.run(); return err }, "1m").Should(Succeed())
	g.Expect(lines).To(ContainElement("ok    hold policies: a change of Deployment check-hold/web would be held (dry run)"))
	after := &appsv1.Deployment{}
	g.Expect(c.client.Get(t.Context(), client.ObjectKeyFromObject(web), after)).To(Succeed())
	g.Expect(after.ResourceVersion).To(Equal(web.ResourceVersion), "nothing is written")

	held := optedInDeployment(c.namespace)
	held.Name, held.Labels[native.HeldLabel], held.Spec.Paused = "held", native.Held, true
	c.create(held)
	g.Eventually(func() []string { lines, err = c.run(); return lines }, "1m").Should(ContainElement(
		"ok    hold policies: the hold of Deployment check-hold/held would end when that is asked for (dry run)"))
	g.Expect(c.client.Get(t.Context(), client.ObjectKeyFromObject(held), after)).To(Succeed())
	g.Expect(after.ResourceVersion).To(Equal(held.ResourceVersion), "nothing is written")

	release := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "insitu-release-deployments"}}
	g.Expect(c.client.Delete(t.Context(), release)).To(Succeed())
	g.Eventually(func() []string { lines, err = c.run(); return lines }, "1m").Should(ContainElement(
		HavePrefix("FAIL  hold policies: the hold of Deployment check-hold/held would not end when that is asked for (dry run)")))
	g.Expect(err).To(HaveOccurred())

	// An administrator leaves out one of two more namespaces.
	for _, namespace := range []string{"check-hold-more", "check-hold-not"} {
		other := optedInDeployment(namespace)
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, other)
		other.Status.Replicas = 1
		g.Expect(c.client.Status().Update(t.Context(), other)).To(Succeed())
		c.config.Namespaces = append(c.config.Namespaces, namespace)
	}
	leaveOut := `{"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["check-hold-not"]}]}}}}`
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "insitu-hold-deployments"}}
	g.Expect(c.client.Patch(t.Context(), binding, client.RawPatch(types.MergePatchType, []byte(leaveOut)))).To(Succeed())
	g.Eventually(func() []string { lines, err = c.run(); return lines }, "1m").Should(ContainElements(
		HavePrefix("FAIL  hold policies: a change of Deployment check-hold-not/web would not be held (dry run)"),
		"ok    hold policies: a change of Deployment check-hold/web would be held (dry run), and so would one in each other namespace (1)",
	))
	g.Expect(err).To(HaveOccurred())
}

func optedInDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
			},
		},
	}
}

// installPolicies installs the hold policies until the test ends.
func (c *checked) installPolicies() {
	c.t.Helper()
	files, err := fs.Glob(policies.Manifests, "*.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	const namespace = "insitu-system" // which the bindings name
	c.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: native.SwitchName}},
	)
	for _, file := range files {
		manifest, err := policies.Manifests.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(manifest), "\n---\n") {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), obj); err != nil {
				c.t.Fatal(err)
			}
			c.create(obj)
			c.t.Cleanup(func() {
				_ = c.client.Delete(context.WithoutCancel(c.t.Context()), obj) // the server ends with the tests
			})
		}
	}
}

// TestRulesAreOfTheScopeThatTheyAreTakenFor asks a real API server which resources belong to
// a namespace.
func TestRulesAreOfTheScopeThatTheyAreTakenFor(t *testing.T) {
	g := NewWithT(t)
	rules, err := rbac.Load()
	g.Expect(err).NotTo(HaveOccurred())
	served, err := discovery.NewDiscoveryClientForConfig(admin)
	g.Expect(err).NotTo(HaveOccurred())
	_, lists, err := served.ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())
	isNamespaced := map[string]bool{}
	for _, list := range lists {
		group := strings.TrimSuffix(list.GroupVersion[:strings.LastIndex(list.GroupVersion, "/")+1], "/")
		for _, resource := range list.APIResources {
			isNamespaced[group+"/"+resource.Name] = resource.Namespaced
		}
	}
	known := 0
	for _, attributes := range attributesOf(rules.Workloads, "any") {
		scope, isServed := isNamespaced[attributes.Group+"/"+attributes.Resource]
		if !isServed || attributes.Resource == "csistoragecapacities" { // of another project; listed in all namespaces
			continue
		}
		known++
		want := everywhere
		if scope {
			want = "any"
		}
		g.Expect(attributes.Namespace).To(Equal(want), attributes.Resource)
	}
	g.Expect(known).To(BeNumerically(">", 50))
}
