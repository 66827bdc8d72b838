// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/insitu-dev/insitu/cmd/build"
)

// The exit codes. Everything that is no state of a workload is ExitError.
const (
	// ExitOK: done, nothing to do, or the workload is healthy.
	ExitOK = 0
	// ExitError: what was asked for could not be done. The error output says why.
	ExitError = 1
	// ExitProgressing, ExitPaused, ExitStalled and ExitUnknown: the phase of the workload.
	ExitProgressing = 3
	ExitPaused      = 4
	ExitStalled     = 5
	ExitUnknown     = 6
	// ExitTimeout: --timeout passed before the workload came to rest.
	ExitTimeout = 7
	// ExitDisrupts: the planned change recreates pods, or is refused.
	ExitDisrupts = 8
	// ExitInterrupted: the user ended it before it was done, as by Ctrl-C.
	ExitInterrupted = 130
)

// exitError ends the program with a code other than 0 and 1, and without an error that
// is printed.
type exitError int

// Error implements error.
func (c exitError) Error() string {
	return fmt.Sprintf("exit code %d", int(c))
}

// Run runs the plugin of a build with these arguments until it is done or ctx ends, and
// returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, b build.Build) int {
	// What libraries log is for their authors; users read our errors.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	root := NewCommand(streams, b) //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := exitError(ExitError)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return ExitInterrupted
	default:
		fmt.Fprintln(streams.ErrOut, "error:", strings.TrimSuffix(err.Error(), "\n"))
		return ExitError
	}
}

// NewCommand returns the command kubectl insitu with all others under it.
func NewCommand(streams genericiooptions.IOStreams, b build.Build) *cobra.Command {
	env := &environment{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()}
	root := &cobra.Command{
		Use:   "kubectl-insitu",
		Short: "Show and steer rollouts that go in place",
		Long: "Shows where rollouts are, what they wait for and what to do about it, and steers them: for StatefulSets, CloneSets and " +
			"DaemonSets of apps.kruise.io, and for Deployments, StatefulSets and DaemonSets of Kubernetes with the label insitu.dev/update-policy.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl insitu"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	env.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newStatusCommand(env),
		newWhyCommand(env),
		newPlanCommand(env),
		newDashboardCommand(env, env.newSource),
		newVersionCommand(env, b),
		newHistoryCommand(env),
		newUndoCommand(env),
		newRestartCommand(env),
		newPauseCommand(env),
		newResumeCommand(env),
		newPromoteCommand(env),
		newSetCommand(env),
		newVolumesCommand(env),
	)
	return root
}
