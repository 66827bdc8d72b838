// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// Prometheus is one that runs as a process of this machine, on 127.0.0.1, and scrapes
// and evaluates every second.
type Prometheus struct {
	prometheusv1.API

	command *exec.Cmd
}

// Options say what a Prometheus does.
type Options struct {
	// Folder is for its configuration, its data and its log. It is removed by whoever
	// made it.
	Folder string
	// Targets are the addresses, with ports, that it scrapes by https as the job insitu.
	// Their certificates are not verified.
	Targets []string
	// Token is shown to the targets.
	Token string
	// Rules are in the form of a rule file.
	Rules []byte
	// Lookback is for how long a series whose target is gone still has its last value.
	Lookback time.Duration
}

// Start starts a Prometheus and waits until it answers. Whoever called it calls Stop.
func Start(ctx context.Context, o Options) (*Prometheus, error) {
	program, err := tool("prometheus")
	if err != nil {
		return nil, err
	}
	if err := o.configure(); err != nil {
		return nil, fmt.Errorf("configure Prometheus: %w", err)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(o.LogFile())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Prometheus{command: exec.CommandContext(context.WithoutCancel(ctx), program,
		"--config.file="+filepath.Join(o.Folder, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(o.Folder, "data"),
		"--web.listen-address="+address, "--query.lookback-delta="+o.Lookback.String())}
	p.command.Stdout, p.command.Stderr = log, log
	connection, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, err
	}
	p.API = prometheusv1.NewAPI(connection)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	if err := awaitReady(ctx, "http://"+address+"/-/ready"); err != nil {
		p.Stop()
		return nil, fmt.Errorf("wait for Prometheus, see %s: %w", o.LogFile(), err)
	}
	return p, nil
}

// Stop ends the process. To do so twice is no error.
func (p *Prometheus) Stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// LogFile is where the log is written to.
func (o Options) LogFile() string { return filepath.Join(o.Folder, "log") }

// configure writes the files that Prometheus reads.
func (o Options) configure() error {
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{
			"job_name": "insitu", "scheme": "https", "honor_labels": true,
			"authorization":  map[string]any{"credentials_file": "token"},
			"tls_config":     map[string]any{"insecure_skip_verify": true},
			"static_configs": []any{map[string]any{"targets": o.Targets}},
		}},
	})
	return errors.Join(err,
		os.WriteFile(filepath.Join(o.Folder, "prometheus.yaml"), config, 0o600),
		os.WriteFile(filepath.Join(o.Folder, "token"), []byte(o.Token), 0o600),
		os.WriteFile(filepath.Join(o.Folder, "rules.yaml"), o.Rules, 0o600),
	)
}

// freeAddress returns an address of this machine on which no process listens.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// patience is how long Prometheus may take to start on a loaded machine.
const patience = 3 * time.Minute

func awaitReady(ctx context.Context, url string) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		doesListen := err == nil
		if !doesListen {
			return false, nil
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}
