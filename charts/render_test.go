// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// update writes the golden files instead of comparing with them:
// go test ./charts -update
var update = flag.Bool("update", false, "write the golden files")

// The values of the goldens. What namespaced and cluster-parts install together is what
// the default installs, for the managers of tenants.
const (
	rich         = "--values=charts/testdata/rich.values.yaml"
	namespaced   = "--values=charts/testdata/namespaced.values.yaml"
	clusterParts = "--values=charts/testdata/cluster-parts.values.yaml"
)

// modes are the flags of all goldens.
var modes = map[string][]string{
	"default":       {withoutCRDs},
	"rich":          {rich},
	"namespaced":    {namespaced, withPolicies},
	"cluster-parts": {clusterParts, withPolicies},
}

func TestLint(t *testing.T) {
	g := NewWithT(t)

	for _, flags := range [][]string{nil, {rich}, {namespaced}, {clusterParts}} {
		output, err := runTool(t, helm, append([]string{"lint", "charts/insitu", "--strict"}, flags...)...)
		g.Expect(err).NotTo(HaveOccurred(), output)
	}
}

func TestGolden(t *testing.T) {
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			golden := "testdata/" + name + ".golden.yaml"

			output, err := template(t, flags...)
			g.Expect(err).NotTo(HaveOccurred(), output)

			if *update {
				g.Expect(os.WriteFile(golden, []byte(output), 0o644)).To(Succeed())
			}
			g.Expect(output).To(Equal(readFile(t, golden)), "run go test ./charts -update, and look at the difference")
		})
	}
}

// TestDefinitions compares the definitions that the chart installs with those of
// config/crd.
func TestDefinitions(t *testing.T) {
	g := NewWithT(t)
	got := render(t).ofKind("CustomResourceDefinition")

	g.Expect(got).To(HaveLen(len(definitions(t))))
	for i, want := range definitions(t) {
		g.Expect(got[i].GetName()).To(Equal(want.GetName()))
		// Not compared by gomega: it would print both, a megabyte.
		g.Expect(equality.Semantic.DeepEqual(got[i].Object["spec"], want.Object["spec"])).To(BeTrue(), "run make generate")
		g.Expect(got[i].GetAnnotations()).To(HaveKeyWithValue("helm.sh/resource-policy", "keep"), "or an uninstall deletes every workload")
	}
	g.Expect(render(t, withoutCRDs).ofKind("CustomResourceDefinition")).To(BeEmpty())
	g.Expect(render(t, namespaced).ofKind("CustomResourceDefinition")).To(BeEmpty(), "they belong to the cluster")
}

// definitions returns the definitions of config/crd in the order of their names.
func definitions(t *testing.T) objects {
	t.Helper()
	files, err := filepath.Glob("../config/crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all objects
	for _, file := range files {
		all = append(all, decode(t, readFile(t, file))...)
	}

	return all
}

// TestConfiguration reads the configuration files that the chart writes as the
// manager does.
func TestConfiguration(t *testing.T) {
	g := NewWithT(t)
	defaults := &configv1alpha1.InsituConfiguration{}
	configv1alpha1.SetDefaults(defaults)

	config := configurationOf(t, render(t, withoutCRDs), "insitu-manager")
	config.TypeMeta = metav1.TypeMeta{}
	config.Namespaces = nil
	g.Expect(config).To(Equal(defaults), "the chart has the defaults of the manager")

	config = configurationOf(t, render(t, rich), "changer-manager")
	g.Expect(config.Namespaces).To(Equal([]string{"shop"}))
	g.Expect(*config.Controllers.CloneSet.MaxConcurrentReconciles).To(BeEquivalentTo(2))
	g.Expect(*config.Controllers.StatefulSet.MaxConcurrentReconciles).To(BeEquivalentTo(4))
	g.Expect(*config.Controllers.DaemonSet.MaxConcurrentReconciles).To(BeEquivalentTo(3))
	g.Expect(config.ImagePull.Policy).To(Equal(configv1alpha1.PreferImagePull))
	g.Expect(*config.ImagePull.MaxConcurrent).To(BeEquivalentTo(20))
	g.Expect(config.Metrics.BindAddress).To(Equal(":9443"))
	g.Expect(config.Metrics.CertDir).To(Equal("/etc/insitu-metrics-certificate"))
	g.Expect(config.Health.BindAddress).To(Equal(":9081"))
	g.Expect(*config.ClientConnection.QPS).To(BeEquivalentTo(50))

	config = configurationOf(t, render(t, withoutCRDs, "--set=metrics.enabled=false"), "insitu-manager")
	g.Expect(config.Metrics.BindAddress).To(Equal(configv1alpha1.BindNothing))
}

func TestChangedConfigurationIsANewRollout(t *testing.T) {
	g := NewWithT(t)
	checksum := func(flags ...string) string {
		var deployment appsv1.Deployment
		render(t, append(flags, withoutCRDs)...).find(t, "Deployment", "insitu-manager", &deployment)

		return deployment.Spec.Template.Annotations["insitu.dev/config-checksum"]
	}

	first := checksum()
	g.Expect(first).NotTo(BeEmpty())
	g.Expect(checksum("--set=podLabels.team=shop")).To(Equal(first))
	g.Expect(checksum("--set=config.logging.verbosity=2")).NotTo(Equal(first))
}

func configurationOf(t *testing.T, all objects, name string) *configv1alpha1.InsituConfiguration {
	t.Helper()
	var file corev1.ConfigMap
	all.find(t, "ConfigMap", name, &file)
	config, err := configv1alpha1.Decode([]byte(file.Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}

	return config
}
