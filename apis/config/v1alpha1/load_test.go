// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

const header = "apiVersion: config.insitu.dev/v1alpha1\nkind: InsituConfiguration\n"

func TestDecodeSetsDefaults(t *testing.T) {
	g := NewWithT(t)

	c, err := configv1alpha1.Decode([]byte(header))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Namespaces).To(BeEmpty())
	g.Expect(*c.Controllers.CloneSet.MaxConcurrentReconciles).To(BeEquivalentTo(10))
	g.Expect(*c.Controllers.StatefulSet.MaxConcurrentReconciles).To(BeEquivalentTo(10))
	g.Expect(c.ImagePull.Policy).To(Equal(configv1alpha1.RequireImagePull))
	g.Expect(*c.ImagePull.MaxConcurrent).To(BeEquivalentTo(100))
	g.Expect(*c.LeaderElection.Enabled).To(BeTrue())
	g.Expect(c.LeaderElection.LeaseDuration.Duration).To(Equal(15 * time.Second))
	g.Expect(c.LeaderElection.RenewDeadline.Duration).To(Equal(10 * time.Second))
	g.Expect(c.LeaderElection.RetryPeriod.Duration).To(Equal(2 * time.Second))
	g.Expect(c.LeaderElection.ResourceName).To(Equal("insitu-manager"))
	g.Expect(c.LeaderElection.ResourceNamespace).To(BeEmpty())
	g.Expect(*c.ClientConnection.QPS).To(BeEquivalentTo(-1))
	g.Expect(*c.ClientConnection.Burst).To(BeEquivalentTo(-1))
	g.Expect(c.Metrics.BindAddress).To(Equal(":8443"))
	g.Expect(*c.Metrics.Secure).To(BeTrue())
	g.Expect(c.Health.BindAddress).To(Equal(":8081"))
	g.Expect(c.Logging.Format).To(Equal(configv1alpha1.LogFormatJSON))
	g.Expect(*c.Logging.Verbosity).To(BeZero())
	g.Expect(c.GracefulShutdownTimeout.Duration).To(Equal(30 * time.Second))
}

func TestDecodeKeepsWhatIsSet(t *testing.T) {
	g := NewWithT(t)

	c, err := configv1alpha1.Decode([]byte(header + `
namespaces: [shop]
controllers: {cloneSet: {maxConcurrentReconciles: 2}, statefulSet: {maxConcurrentReconciles: 3}}
imagePull: {policy: None, maxConcurrent: 5}
leaderElection: {enabled: false}
clientConnection: {qps: 50}
metrics: {bindAddress: "0", secure: false}
health: {bindAddress: "127.0.0.1:9000"}
logging: {format: text, verbosity: 4}
gracefulShutdownTimeout: 0s
`))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Namespaces).To(Equal([]string{"shop"}))
	g.Expect(*c.Controllers.CloneSet.MaxConcurrentReconciles).To(BeEquivalentTo(2))
	g.Expect(*c.Controllers.StatefulSet.MaxConcurrentReconciles).To(BeEquivalentTo(3))
	g.Expect(c.ImagePull.Policy).To(Equal(configv1alpha1.NoImagePull))
	g.Expect(*c.ImagePull.MaxConcurrent).To(BeEquivalentTo(5))
	g.Expect(*c.LeaderElection.Enabled).To(BeFalse())
	g.Expect(*c.ClientConnection.QPS).To(BeEquivalentTo(50))
	g.Expect(*c.ClientConnection.Burst).To(BeEquivalentTo(50), "burst defaults to qps")
	g.Expect(c.Metrics.BindAddress).To(Equal("0"))
	g.Expect(*c.Metrics.Secure).To(BeFalse())
	g.Expect(c.Health.BindAddress).To(Equal("127.0.0.1:9000"))
	g.Expect(c.Logging.Format).To(Equal(configv1alpha1.LogFormatText))
	g.Expect(*c.Logging.Verbosity).To(BeEquivalentTo(4))
	g.Expect(c.GracefulShutdownTimeout.Duration).To(BeZero())
}

func TestDecodeRefuses(t *testing.T) {
	tests := map[string]struct {
		file string
		want []string
	}{
		"an unknown field": {
			file: header + "leaderElection: {enable: true}\n",
			want: []string{`unknown field "leaderElection.enable"`},
		},
		"a field in the wrong case": {
			file: header + "Namespaces: [shop]\n",
			want: []string{`unknown field "Namespaces"`},
		},
		"a duplicate field": {
			file: header + "metrics:\n  secure: true\n  secure: false\n",
			want: []string{`"secure" already set`, "line 5"},
		},
		"a duplicate field in JSON": {
			file: `{"apiVersion":"config.insitu.dev/v1alpha1","kind":"InsituConfiguration","health":{"bindAddress":":1","bindAddress":":2"}}`,
			want: []string{`duplicate field "health.bindAddress"`},
		},
		"a value of the wrong type": {
			file: header + "clientConnection: {qps: fast}\n",
			want: []string{"clientConnection.qps", "int32"},
		},
		"a duration without a unit": {
			file: header + "gracefulShutdownTimeout: \"30\"\n",
			want: []string{`gracefulShutdownTimeout: Invalid value: "30": must be a duration with its unit`},
		},
		"a duration that is a number": {
			file: header + "leaderElection: {retryPeriod: 2}\n",
			want: []string{`leaderElection.retryPeriod: Invalid value: 2: must be a duration with its unit`},
		},
		"a version that is not served": {
			file: "apiVersion: config.insitu.dev/v1\nkind: InsituConfiguration\n",
			want: []string{`found apiVersion "config.insitu.dev/v1"`, "accepted is apiVersion config.insitu.dev/v1alpha1 with kind InsituConfiguration"},
		},
		"another kind": {
			file: "apiVersion: config.insitu.dev/v1alpha1\nkind: ManagerConfiguration\n",
			want: []string{`kind "ManagerConfiguration"`, "accepted is apiVersion config.insitu.dev/v1alpha1 with kind InsituConfiguration"},
		},
		"a kind that every group has": {
			file: "apiVersion: config.insitu.dev/v1alpha1\nkind: ListOptions\n",
			want: []string{`kind "ListOptions"`, "accepted is"},
		},
		"no version": {
			file: "namespaces: [shop]\n",
			want: []string{"accepted is apiVersion config.insitu.dev/v1alpha1 with kind InsituConfiguration"},
		},
		"an empty file": {
			file: "\n",
			want: []string{"0 YAML documents found: accepted is one"},
		},
		"a second document": {
			file: header + "---\n" + header,
			want: []string{"2 YAML documents found: accepted is one"},
		},
		"every mistake at once": {
			file: header + "namespaces: [Shop]\nlogging: {format: xml, verbosity: 11}\n",
			want: []string{`namespaces[0]: Invalid value: "Shop"`, `logging.format: Unsupported value: "xml"`, "logging.verbosity: Invalid value: 11"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := configv1alpha1.Decode([]byte(test.file))

			g.Expect(err).To(HaveOccurred())
			for _, want := range test.want {
				g.Expect(err.Error()).To(ContainSubstring(want))
			}
		})
	}
}

func TestLoad(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "good.yaml"), filepath.Join(folder, "bad.yaml")
	g.Expect(os.WriteFile(good, []byte(header+"namespaces: [shop]\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(bad, []byte(header+"namespace: shop\n"), 0o600)).To(Succeed())

	c, err := configv1alpha1.Load(good)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Namespaces).To(Equal([]string{"shop"}))

	_, err = configv1alpha1.Load(bad)
	g.Expect(err).To(MatchError(ContainSubstring(bad)), "the error names the file")

	_, err = configv1alpha1.Load(filepath.Join(folder, "absent.yaml"))
	g.Expect(err).To(MatchError(os.ErrNotExist))

	defaults, err := configv1alpha1.Load("")
	g.Expect(err).NotTo(HaveOccurred())
	decoded, err := configv1alpha1.Decode([]byte(header))
	g.Expect(err).NotTo(HaveOccurred())
	decoded.TypeMeta = defaults.TypeMeta
	g.Expect(defaults).To(Equal(decoded), "no file means the same as an empty configuration")
}
