// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package verbs is the command line of the lab.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

// dirVariable is the environment variable for the default of --dir.
const dirVariable = "INSITU_LAB"

// options are the flags that every verb has.
type options struct {
	dir string
}

// Run runs the command line in os.Args and returns the exit code.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second Ctrl-C ends at once; "lab down" cleans up then.
	context.AfterFunc(ctx, stop)
	if err := cluster.CompletePath(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	// Kubernetes' packages register flags for every program that they are
	// linked into; these are not the lab's.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	opts := &options{}
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes on one machine, for tests and demonstrations",
		Long: "A real Kubernetes on one machine: etcd, API server, controller manager, scheduler, kube-proxy, CoreDNS, " +
			"metrics-server and storage, and real nodes, each with containerd and a kubelet of its own.\n\n" +
			"Real nodes need Linux and root. Labs in different folders do not disturb each other.",
		SilenceUsage:     true,
		SilenceErrors:    true,
		TraverseChildren: true,
	}
	root.PersistentFlags().StringVar(&opts.dir, "dir", defaultDir(), "folder of the lab (default from "+dirVariable+" if set)")
	root.AddCommand(
		newUp(opts), newDown(opts), newSweep(), newStatus(opts), newKubeconfig(opts), newLogs(opts), newLoad(opts), newBandwidth(opts), newNode(opts),
		newKubectl(opts), newAssets(),
		newSupervise(opts), newRegistry(opts), newSimulatedNodes(opts), newStorage(opts),
	)
	return root
}

func defaultDir() string {
	if dir := os.Getenv(dirVariable); dir != "" {
		return dir
	}
	return ".lab"
}

// load returns the lab that the flags name.
func (o *options) load() (*cluster.Lab, error) {
	dir, err := cluster.Canonical(o.dir)
	if err != nil {
		return nil, err
	}
	lab, err := cluster.Load(dir)
	if errors.Is(err, cluster.ErrNoLab) {
		return nil, fmt.Errorf("there is no lab in %s: bring one up with \"lab up --dir %s\"", dir, o.dir)
	}
	return lab, err
}

// cacheDir is where what takes long to make is kept between labs.
func cacheDir() (string, error) {
	if dir := os.Getenv("INSITU_LAB_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the cache, set INSITU_LAB_CACHE: %w", err)
	}
	return filepath.Join(dir, "insitu-lab"), nil
}

// narrator returns a function that prints lines with the time since now.
func narrator(command *cobra.Command) func(string) {
	began := time.Now()
	return func(line string) {
		command.Printf("%6.1fs  %s\n", time.Since(began).Seconds(), line)
	}
}

// logTo makes a verb that runs as a program of the lab log to standard error.
func logTo(ctx context.Context) context.Context {
	return klog.NewContext(ctx, klog.Background())
}
