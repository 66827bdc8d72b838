// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// targets are the flags that say which workloads a command is for, beside its arguments.
type targets struct {
	files    resource.FilenameOptions
	selector string
	all      bool
}

// target is a workload that a command is for.
type target struct {
	kind kinds.Kind
	key  client.ObjectKey
}

func (t target) String() string {
	return t.kind.String() + "/" + t.key.Name
}

func (t *targets) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVarP(&t.files.Filenames, "filename", "f", nil, "Manifests of the workloads: files, directories, URLs, or - for the standard input")
	flags.BoolVarP(&t.files.Recursive, "recursive", "R", false, "Look into the directories of the directories of -f")
	flags.StringVarP(&t.selector, "selector", "l", "", "The workloads of KIND with these labels")
	flags.BoolVar(&t.all, "all", false, "All workloads of KIND in the namespace")
}

// resolve returns the workloads that are meant.
func (t *targets) resolve(ctx context.Context, e *environment, args []string) (*cluster.Cluster, []target, error) {
	c, namespace, err := e.connect()
	if err != nil {
		return nil, nil, err
	}
	var found []target
	switch {
	case len(t.files.Filenames) > 0 && len(args) > 0:
		err = fmt.Errorf("found -f and %q: accepted is one of them", strings.Join(args, " "))
	case len(t.files.Filenames) > 0 && (t.selector != "" || t.all):
		err = errors.New("found -f with -l or --all: accepted is one of them")
	case len(t.files.Filenames) > 0:
		found, err = t.inFiles(e, namespace)
	case t.selector != "" || t.all:
		found, err = t.selected(ctx, c, namespace, args)
	default:
		found, err = named(ctx, c, namespace, args)
	}
	return c, found, err
}

// named returns workloads by their names: KIND/NAME ..., or KIND NAME ....
func named(ctx context.Context, c *cluster.Cluster, namespace string, args []string) ([]target, error) {
	if len(args) == 0 {
		return nil, errors.New("found no workload: accepted are KIND/NAME, KIND NAME, KIND -l SELECTOR, KIND --all, -f FILE")
	}
	words := args
	if !strings.Contains(args[0], "/") && len(args) > 1 {
		words = nil
		for _, name := range args[1:] {
			words = append(words, args[0]+"/"+name)
		}
	}
	found := make([]target, 0, len(words))
	for _, word := range words {
		one, err := c.Find(ctx, namespace, word)
		if err != nil {
			return nil, err
		}
		found = append(found, target{one.Kind, client.ObjectKeyFromObject(one.Object)})
	}
	return found, nil
}

// selected returns the workloads of a kind that the flags select.
func (t *targets) selected(ctx context.Context, c *cluster.Cluster, namespace string, args []string) ([]target, error) {
	switch {
	case t.selector != "" && t.all:
		return nil, errors.New("found -l and --all: accepted is one of them")
	case len(args) != 1 || strings.Contains(args[0], "/"):
		return nil, fmt.Errorf("found %q beside -l or --all: accepted is one KIND", strings.Join(args, " "))
	}
	selector, err := labels.Parse(t.selector)
	if err != nil {
		return nil, fmt.Errorf("-l: found %q: %w", t.selector, err)
	}
	workloads, err := c.Select(ctx, namespace, args[0], selector)
	if err != nil {
		return nil, err
	}
	found := make([]target, 0, len(workloads))
	for _, one := range workloads {
		found = append(found, target{one.Kind, client.ObjectKeyFromObject(one.Object)})
	}
	return found, nil
}

// inFiles returns the workloads that manifests name. Objects of other kinds beside them
// are left out.
func (t *targets) inFiles(e *environment, namespace string) ([]target, error) {
	_, enforced, err := e.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	infos, err := resource.NewLocalBuilder().Unstructured().Local().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforced, &t.files).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var found []target
	for _, info := range infos {
		kind, ok := kinds.Of(info.Object)
		if !ok {
			continue
		}
		key := client.ObjectKey{Namespace: info.Namespace, Name: info.Name}
		if key.Namespace == "" {
			key.Namespace = namespace
		}
		found = append(found, target{kind, key})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no workload was found in %s: accepted are %s", strings.Join(t.files.Filenames, ", "), kinds.Spellings())
	}
	return found, nil
}
