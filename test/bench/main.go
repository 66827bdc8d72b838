// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Insitu costs: writes, requests, time, CPU and
// memory for each pod of a rollout. It is run by make bench, on a lab with
// simulated nodes:
//
//	bench measure --kind StatefulSet --pods 500 --out FILE
//	bench report --out .out/bench.json FILE...
//	bench foreign --pods 2000 --out .out/bench-foreign.json
//	bench pulls --from IMAGE --images IMAGE,... --out .out/bench-pulls.json
//
// A measurement creates one workload, lets the manager update it in place, then
// stops the manager and lets a minimal client do the same to the same pods. All
// that both asked of the API server is read from its audit log. Foreign is another
// measurement: the memory of a manager that has nothing to do. Pulls is one on real nodes: for
// how long pods are out of service for images that their nodes do not have.
//
// Start reading at measure.go; minimal.go is what the manager is compared with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // the signal handler ends with the process
	}
}

// usage is what is said when no verb, or an unknown one, is given.
const usage = "want measure, report, foreign or pulls, see --help of each"

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "measure":
		return runMeasure(ctx, args[1:])
	case "report":
		return runReport(args[1:])
	case "foreign":
		return runForeign(ctx, args[1:])
	case "pulls":
		return runPulls(ctx, args[1:])
	default:
		return fmt.Errorf("unknown verb %q: %s", args[0], usage)
	}
}

func runMeasure(ctx context.Context, args []string) error {
	var s settings
	out := ""
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.StringVar(&s.kind, "kind", "StatefulSet", "`kind` of the workload")
	flags.StringVar(&s.change, "change", "image", "what is changed, `image` or resize")
	flags.IntVar(&s.pods, "pods", 500, "how many pods the workload has")
	flags.StringVar(&s.lab, "lab", ".lab-bench", "`folder` of the lab")
	flags.StringVar(&s.manager, "manager", "bin/insitu", "`path` of the manager's binary")
	flags.BoolVar(&s.service, "service", false, "put the pods behind a Service")
	flags.StringVar(&out, "out", "", "`file` for the result, as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	result, err := measure(ctx, config, s)
	if err != nil {
		return err
	}
	return writeJSON(out, result)
}

func runReport(args []string) error {
	out, plan := "", ""
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.StringVar(&out, "out", "", "`file` for all figures, as JSON")
	flags.StringVar(&plan, "plan", "", "`file` with the output of the planner's benchmark")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := readReport(plan, flags.Args())
	if err != nil {
		return err
	}
	if err := writeJSON(out, r); err != nil {
		return err
	}
	fmt.Print(r.table())
	return r.check()
}

func runForeign(ctx context.Context, args []string) error {
	var s foreignSettings
	out := ""
	flags := flag.NewFlagSet("foreign", flag.ContinueOnError)
	flags.IntVar(&s.pods, "pods", 2000, "how many pods there are, ten of each Deployment")
	flags.StringVar(&s.lab, "lab", ".lab-bench", "`folder` of the lab")
	flags.StringVar(&s.manager, "manager", "bin/insitu", "`path` of the manager's binary")
	flags.StringVar(&out, "out", "", "`file` for the figures, as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	f, err := foreign(ctx, config, s)
	if err != nil {
		return err
	}
	fmt.Print(f.table())
	return writeJSON(out, f)
}
