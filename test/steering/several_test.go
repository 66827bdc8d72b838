// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSeveralWorkloads(t *testing.T) {
	w := newWorld(t)
	w.statefulSet()
	w.deployment(optedIn)
	w.daemonSet(nil)
	manifest := filepath.Join(t.TempDir(), "manifest.yaml")
	w.Expect(os.WriteFile(manifest, []byte(`
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps.kruise.io/v1alpha1
kind: StatefulSet
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
`), 0o600)).To(Succeed())
	for _, test := range []struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		{
			args:   []string{"pause", "sts/web", "deploy/web"},
			stdout: "statefulset.apps.kruise.io/web paused\ndeployment.apps/web paused\n",
		},
		{
			args:   []string{"resume", "-f", manifest},
			stdout: "statefulset.apps.kruise.io/web resumed\ndeployment.apps/web resumed\n",
		},
		{
			args:   []string{"pause", "deploy", "-l", "insitu.dev/update-policy"},
			stdout: "deployment.apps/web paused\n",
		},
		{
			args:   []string{"resume", "deployments", "--all"},
			stdout: "deployment.apps/web resumed\n",
		},
		{
			args:   []string{"set", "image", "ds/web", "deploy/web", "other=nginx:2"},
			stderr: "error: daemonset.apps/web: found container \"other\": accepted are main, setup, proxy\ndeployment.apps/web: found container \"other\": accepted are main, setup, proxy\n",
			code:   1,
		},
		{
			args: []string{"pause", "ds/web", "deploy/web"}, code: 1,
			stdout: "deployment.apps/web paused\n",
			stderr: "error: daemonset.apps/web: a pause of the update is not possible: Kubernetes updates the pods, since the label insitu.dev/update-policy is missing. " +
				"To have Insitu update them in place: kubectl label daemonset.apps/web insitu.dev/update-policy=InPlaceIfPossible\n",
		},
		{
			args: []string{"pause", "ds", "-l", "tier=db"}, code: 1,
			stderr: "error: no ds was found in namespace " + w.namespace + " with labels \"tier=db\"\n",
		},
		{
			args: []string{"pause"}, code: 1,
			stderr: "error: found no workload: accepted are KIND/NAME, KIND NAME, KIND -l SELECTOR, KIND --all, -f FILE\n",
		},
		{
			args: []string{"pause", "ds/web", "-l", "tier=db"}, code: 1,
			stderr: "error: found \"ds/web\" beside -l or --all: accepted is one KIND\n",
		},
		{
			args: []string{"pause", "ds", "-l", "tier=db", "--all"}, code: 1,
			stderr: "error: found -l and --all: accepted is one of them\n",
		},
		{
			args: []string{"pause", "ds/web", "-f", manifest}, code: 1,
			stderr: "error: found -f and \"ds/web\": accepted is one of them\n",
		},
		{
			args: []string{"set", "image", "main=nginx:2", "ds/web"}, code: 1,
			stderr: "error: found \"ds/web\" behind an image: accepted are the workloads first, then CONTAINER=IMAGE\n",
		},
		{
			args: []string{"restart", "job/web"}, code: 1,
			stderr: "error: found kind \"job\": accepted are statefulset.apps.kruise.io, cloneset.apps.kruise.io, daemonset.apps.kruise.io, deployment.apps, statefulset.apps, daemonset.apps\n",
		},
		{
			args: []string{"history", "sts/web", "-o", "wide"}, code: 1,
			stderr: "error: -o: found \"wide\", accepted are json and yaml\n",
		},
	} {
		stdout, stderr, code := w.run(test.args...)
		w.Expect(stdout).To(Equal(test.stdout), "%v", test.args)
		w.Expect(stderr).To(Equal(test.stderr), "%v", test.args)
		w.Expect(code).To(Equal(test.code), "%v", test.args)
	}
}
