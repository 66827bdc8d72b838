// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Output is the flag --output of a command: empty for what people read. The printers of
// kubectl do the same, but only for objects of the API, which reports are not.
type Output struct {
	Format string
}

// formats are those that programs read.
var formats = []string{"json", "yaml", "name"}

// AddFlag adds -o and --output.
func (o *Output) AddFlag(flags *pflag.FlagSet) {
	flags.VarP(o, "output", "o", "Output format for programs. One of: "+strings.Join(formats, ", ")+".")
}

// String implements pflag.Value.
func (o *Output) String() string {
	return o.Format
}

// Set implements pflag.Value.
func (o *Output) Set(format string) error {
	if !slices.Contains(formats, format) {
		return fmt.Errorf("found %q: accepted are %s", format, strings.Join(formats, ", "))
	}
	o.Format = format
	return nil
}

// Type implements pflag.Value.
func (o *Output) Type() string {
	return "format"
}

// ForPrograms reports whether a format was asked for, and Print is to be used.
func (o *Output) ForPrograms() bool {
	return o.Format != ""
}

// Print writes a value in the format that was asked for, where name is the workload, or
// the workloads, that it is about.
func (o *Output) Print(w io.Writer, value any, names ...report.Ref) error {
	switch o.Format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case "yaml":
		raw, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	default:
		for _, name := range names {
			if _, err := fmt.Fprintln(w, name); err != nil {
				return err
			}
		}
		return nil
	}
}
