// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
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

// report shows every pod before and after, and says which claims hold. It returns an
// error if one does not.
func report(out io.Writer, before, after []observe.Pod, image string) error {
	printTable(out, before, after)
	wrong := recreated(before, after)
	if len(wrong) == 0 {
		wrong = append(observe.Differences(before, after, 1), unlike(before, after, image)...)
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

// recreated names the pods that are gone.
func recreated(before, after []observe.Pod) []string {
	var gone []string
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a observe.Pod) bool { return a.UID == b.UID }) {
			gone = append(gone, fmt.Sprintf("pod %s was recreated: no pod has the UID %s any more", b.Name, b.UID))
		}
	}
	return gone
}

// unlike tells how pods are not as they should be at an image.
func unlike(before, after []observe.Pod, image string) []string {
	var wrong []string
	if len(after) != replicas {
		wrong = append(wrong, fmt.Sprintf("there are %d pods instead of %d", len(after), replicas))
	}
	for i, p := range after {
		if p.Image != image || !p.Ready {
			wrong = append(wrong, fmt.Sprintf("pod %s: image %s, ready %t", p.Name, p.Image, p.Ready))
		}
		if i < len(before) && p.Page == before[i].Page {
			wrong = append(wrong, fmt.Sprintf("pod %s still serves %q", p.Name, p.Page))
		}
	}
	return wrong
}
