// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/apis/native"
)

// The leader says every minute that it is there, also after a failure, and when the switch
// was gone for a time.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var refusal error
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if refusal != nil {
					return refusal
				}
				return c.Patch(ctx, object, patch, options...)
			},
		}).Build()
		account := func() *corev1.ServiceAccount {
			return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: native.SwitchName}}
		}
		// age is how old the heartbeat is.
		age := func() time.Duration {
			found := account()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(found), found)).To(Succeed())
			beaten, err := time.Parse(time.RFC3339, found.Annotations[native.HeartbeatAnnotation])
			g.Expect(err).NotTo(HaveOccurred())
			return time.Since(beaten)
		}
		beats := &heartbeat{client: c, clock: clock.RealClock{}, namespace: "system"}
		g.Expect(beats.NeedLeaderElection()).To(BeTrue())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		go func() { ended <- beats.Start(ctx) }()
		pass(time.Second)
		g.Expect(c.Create(t.Context(), account())).To(Succeed())
		pass(time.Minute)
		g.Expect(age()).To(BeNumerically("<=", time.Second))
		pass(59 * time.Second)
		g.Expect(age()).To(BeNumerically("<=", time.Minute))

		refusal = errors.New("no leader")
		pass(10 * time.Minute)
		g.Expect(age()).To(BeNumerically(">=", 10*time.Minute))
		refusal = nil
		pass(time.Minute)
		g.Expect(age()).To(BeNumerically("<=", time.Minute))

		stop()
		g.Expect(<-ended).NotTo(HaveOccurred())
	})
}

func TestSwitchNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("of-the-pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*configv1alpha1.InsituConfiguration)
		file   string
		want   string
	}{
		"that of the pod":                   {file: file, want: "of-the-pod"},
		"that of the pod, not of the Lease": {change: leaseIn("lease"), file: file, want: "of-the-pod"},
		"that of the Lease, in no cluster":  {change: leaseIn("lease"), file: file + "-not-there", want: "lease"},
		"some namespaces, of a cluster":     {change: func(c *configv1alpha1.InsituConfiguration) { c.Namespaces = []string{"shop"} }, file: file, want: "of-the-pod"},
		"that of a tenant":                  {change: tenantOf("shop"), file: file, want: "shop"},
		"nothing, if it runs in no cluster": {file: file + "-not-there", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := &configv1alpha1.InsituConfiguration{}
			if tc.change != nil {
				tc.change(config)
			}
			g := NewWithT(t)
			found, err := switchNamespace(config, tc.file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(tc.want))
		})
	}
}

func leaseIn(namespace string) func(*configv1alpha1.InsituConfiguration) {
	return func(c *configv1alpha1.InsituConfiguration) { c.LeaderElection.ResourceNamespace = namespace }
}

func tenantOf(namespace string) func(*configv1alpha1.InsituConfiguration) {
	return func(c *configv1alpha1.InsituConfiguration) {
		c.Scope, c.Namespaces = configv1alpha1.NamespaceScope, []string{namespace}
	}
}
