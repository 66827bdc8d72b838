// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/observe"
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	return scheme, nil
}

// printTable shows every pod before and after, one line each.
func printTable(out io.Writer, before, after []observe.Pod) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tPOD\tUID\tIP\tNODE\tRESTARTS\tIMAGE\tPAGE")
	for _, row := range []struct {
		when string
		pods []observe.Pod
	}{{"before", before}, {"after", after}} {
		for _, p := range row.pods {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", row.when, p.Name, p.UID, p.IP, p.Node, p.Restarts, p.Image, p.Page)
		}
	}
	// The table is for reading; that a terminal went away is no error.
	_ = w.Flush()
}

// judge says which claims hold, and returns an error if one does not.
func judge(out io.Writer, before, after []observe.Pod) error {
	wrong := observe.Differences(before, after, 1)
	if len(after) != replicas {
		wrong = append(wrong, fmt.Sprintf("there are %d pods instead of %d", len(after), replicas))
	}
	for i, p := range after {
		if p.Image != newImage || !p.Ready {
			wrong = append(wrong, fmt.Sprintf("pod %s: image %s, ready %t", p.Name, p.Image, p.Ready))
		}
		if i < len(before) && p.Page == before[i].Page {
			wrong = append(wrong, fmt.Sprintf("pod %s still serves %q", p.Name, p.Page))
		}
	}
	if len(wrong) > 0 {
		for _, w := range wrong {
			fmt.Fprintln(out, "WRONG:", w)
		}
		return errors.New("the update was not in place")
	}
	fmt.Fprintf(out, "\nAll %d pods kept their UID, IP and node, restarted once, and serve the new page.\n", len(after))
	return nil
}
