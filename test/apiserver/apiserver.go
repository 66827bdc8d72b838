// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a real etcd and kube-apiserver for tests, with the
// definitions of config/crd installed.
//
// In a package of plain tests, one server serves them all:
//
//	func TestMain(m *testing.M) {
//		os.Exit(apiserver.Main(m, func(c *rest.Config) { config = c }))
//	}
//
// A Ginkgo suite calls Start in BeforeSuite and Stop in AfterSuite.
package apiserver

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/config/crd"
)

// assetsVariable names the folder with the binaries etcd and kube-apiserver.
const assetsVariable = "KUBEBUILDER_ASSETS"

// auditPolicy logs what is done to pods, and nothing else.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, resources: [{group: "", resources: [pods, pods/status, pods/resize]}]}
- {level: None}
`

// patience is how long a server may take to start, and to serve definitions, beside
// other suites.
const patience = 2 * time.Minute

// Server is a running API server with its etcd.
type Server struct {
	environment *envtest.Environment
	config      *rest.Config
}

// Start starts etcd and kube-apiserver from the folder that KUBEBUILDER_ASSETS
// names, and returns when the definitions of config/crd are served, and those of
// more files.
func Start(more ...string) (*Server, error) {
	return start("", more...)
}

// start also has writes to pods logged, in a file, if it is not empty.
func start(auditLog string, more ...string) (*Server, error) {
	if os.Getenv(assetsVariable) == "" {
		return nil, errors.New("find etcd and kube-apiserver: " + assetsVariable + " is not set; run the tests through `make test`")
	}

	definitions, err := definitions()
	if err != nil {
		return nil, err
	}

	environment := &envtest.Environment{
		CRDs: definitions, CRDDirectoryPaths: more, ErrorIfCRDPathMissing: true,
		// Otherwise the variable USE_EXISTING_CLUSTER would turn the tests loose on a cluster of the user's.
		UseExistingCluster:       new(false),
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: patience},
	}

	if auditLog != "" {
		policy := auditLog + ".policy"
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("write audit policy: %w", err)
		}

		environment.ControlPlane.GetAPIServer().Configure().
			Append("audit-log-path", auditLog).Append("audit-policy-file", policy).Append("audit-log-mode", "blocking")
	}

	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start API server: %w", err), environment.Stop())
	}

	return &Server{environment: environment, config: config}, nil
}

// Config returns a copy of the configuration of an administrator.
func (s *Server) Config() *rest.Config {
	return rest.CopyConfig(s.config)
}

// Stop stops both processes and removes their data.
func (s *Server) Stop() error {
	if err := s.environment.Stop(); err != nil {
		return fmt.Errorf("stop API server: %w", err)
	}

	return nil
}

// Main runs the tests of a package with one server for all of them, and returns
// the code to exit with.
func Main(m *testing.M, use func(*rest.Config)) int {
	return run(m, "", use)
}

// MainAudited is Main with a server that writes what is done to pods to an audit log,
// before it answers.
func MainAudited(m *testing.M, auditLog string, use func(*rest.Config)) int {
	return run(m, auditLog, use)
}

func run(m *testing.M, auditLog string, use func(*rest.Config)) int {
	server, err := start(auditLog)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	use(server.Config())
	code := m.Run()

	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return max(code, 1)
	}

	return code
}

// definitions reads the manifests of config/crd.
func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := crd.Manifests.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}

	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))

	for _, file := range files {
		raw, err := crd.Manifests.ReadFile(file.Name())
		if err != nil {
			return nil, fmt.Errorf("read definition: %w", err)
		}

		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, definition); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", file.Name(), err)
		}

		definitions = append(definitions, definition)
	}

	return definitions, nil
}
