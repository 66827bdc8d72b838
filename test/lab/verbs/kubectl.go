// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func newKubectl(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGUMENTS...",
		Short: "Run the built-in kubectl on the lab",
		Long:  "Run the built-in kubectl on the lab. A --dir for the lab comes before all arguments of kubectl.",
		// What follows is kubectl's.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			args = opts.takeDir(args)
			lab, err := opts.load()
			if err != nil {
				return err
			}
			if err := os.Setenv("KUBECONFIG", lab.Kubeconfig()); err != nil {
				return fmt.Errorf("run kubectl: %w", err)
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("run kubectl: %w", err)
			}
			return syscall.Exec(self, append([]string{"kubectl"}, args...), os.Environ())
		},
	}
}

// takeDir takes a leading --dir out of the arguments.
func (o *options) takeDir(args []string) []string {
	if len(args) == 0 {
		return args
	}
	if dir, ok := strings.CutPrefix(args[0], "--dir="); ok {
		o.dir = dir
		return args[1:]
	}
	if args[0] == "--dir" && len(args) > 1 {
		o.dir = args[1]
		return args[2:]
	}
	return args
}

// assetNames are the programs that controller-runtime's envtest starts.
var assetNames = []string{"etcd", "kube-apiserver", "kubectl"}

func newAssets() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a folder for KUBEBUILDER_ASSETS",
		Long:  "Print a folder with etcd, kube-apiserver and kubectl, for controller-runtime's KUBEBUILDER_ASSETS. All are links to this program.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			folder := filepath.Join(filepath.Dir(self), "assets")
			if err := linkAssets(folder, self); err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), folder)
			return nil
		},
	}
}

func linkAssets(folder, program string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder of assets: %w", err)
	}
	for _, name := range assetNames {
		link := filepath.Join(folder, name)
		if target, err := os.Readlink(link); err == nil && target == program {
			continue
		}
		// Made beside and moved, as others may be using the folder.
		temporary := fmt.Sprintf("%s.%d", link, os.Getpid())
		if err := os.Symlink(program, temporary); err != nil {
			return fmt.Errorf("link asset %s: %w", name, err)
		}
		if err := os.Rename(temporary, link); err != nil {
			return fmt.Errorf("link asset %s: %w", name, err)
		}
	}
	return nil
}
