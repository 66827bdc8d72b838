// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// manager is a running manager: the real binary, with the account and the
// configuration of the chart, outside of a pod.
type manager struct {
	process
	command *exec.Cmd
	log     *os.File
	// metrics is the URL of its metrics.
	metrics string
	// ended is closed when the process has ended, with err.
	ended chan struct{}
	err   error
}

// managerOptions say which manager to start.
type managerOptions struct {
	// binary is its program, log the file it logs to, folder where its
	// configuration is written to.
	binary, log, folder string
	connection          *rest.Config
}

// startManager returns when the manager leads and its caches have synced.
func startManager(ctx context.Context, api client.Client, opts managerOptions) (*manager, error) {
	config, err := chartConfig(ctx, api)
	if err != nil {
		return nil, err
	}
	if err := configureOutside(ctx, config); err != nil {
		return nil, err
	}
	configFile, kubeconfig := filepath.Join(opts.folder, "config.yaml"), filepath.Join(opts.folder, "kubeconfig")
	if err := writeYAML(configFile, config); err != nil {
		return nil, err
	}
	if err := writeKubeconfig(opts.connection, kubeconfig); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(opts.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of the manager: %w", err)
	}
	m := &manager{log: log, metrics: "http://" + config.Metrics.BindAddress + "/metrics", ended: make(chan struct{})}
	m.command = exec.Command(opts.binary, "--config="+configFile, "--kubeconfig="+kubeconfig) //nolint:noctx // stop ends it, with time to give up its lease
	m.command.Stdout, m.command.Stderr = log, log
	if err := m.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the manager: %w", err), log.Close())
	}
	go func() {
		m.err = m.command.Wait()
		close(m.ended)
	}()
	if m.process, err = newProcess(byManager, m.command.Process.Pid); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	if err := m.awaitReady(ctx, config.Health.BindAddress); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

// chartConfig returns the configuration that the chart has installed.
func chartConfig(ctx context.Context, api client.Client) (*configv1alpha1.InsituConfiguration, error) {
	installed := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: systemNamespace, Name: "insitu-manager"}
	if err := api.Get(ctx, key, installed); err != nil {
		return nil, fmt.Errorf("read the configuration that the chart installs: %w", err)
	}
	return configv1alpha1.Decode([]byte(installed.Data["config.yaml"]))
}

// configureOutside changes what a manager outside of a pod needs otherwise: the
// addresses it serves at, and to know its namespace. Metrics are served without
// TLS: no other program reads them.
func configureOutside(ctx context.Context, config *configv1alpha1.InsituConfiguration) error {
	var err error
	config.LeaderElection.ResourceNamespace = systemNamespace
	config.Metrics.Secure = ptr.To(false)
	// Simulated nodes have all images, and list none.
	config.ImagePull.Policy = configv1alpha1.NoImagePull
	if config.Metrics.BindAddress, err = freeAddress(ctx); err != nil {
		return err
	}
	config.Health.BindAddress, err = freeAddress(ctx)
	return err
}

// freeAddress returns an address of this machine that no process listens at.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func writeYAML(path string, value any) error {
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return os.WriteFile(path, data, 0o600)
}

// during returns a context that ends with the manager.
func (m *manager) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-m.ended:
			cancel(errors.New("the manager has ended"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (m *manager) awaitReady(ctx context.Context, health string) error {
	ctx, cancel := m.during(ctx)
	defer cancel()
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		metrics, err := scrape(ctx, m.metrics)
		return err == nil && metrics["leader_election_master_status"] == 1 && isOK(ctx, "http://"+health+"/readyz"), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the manager, see %s: %w", m.log.Name(), errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

func isOK(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop ends the manager as a kubelet does, and waits for its end. One that has
// ended by itself is an error.
func (m *manager) stop() error {
	err := m.command.Process.Signal(syscall.SIGTERM)
	<-m.ended
	if err = errors.Join(err, m.err, m.log.Close()); err != nil {
		return fmt.Errorf("stop the manager: %w", err)
	}
	return nil
}
