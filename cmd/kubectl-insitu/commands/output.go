// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// output is how a report is printed: for people, or as JSON or YAML.
type output string

// The outputs.
const (
	forPeople output = ""
	asJSON    output = "json"
	asYAML    output = "yaml"
)

// addFlag adds the flag -o.
func (o *output) addFlag(flags *pflag.FlagSet) {
	flags.StringVarP((*string)(o), "output", "o", "", "print as json or yaml instead of for people")
}

// print prints a report, or calls what prints it for people.
func (o output) print(out io.Writer, report any, people func() error) error {
	var raw []byte
	var err error
	switch o {
	case forPeople:
		return people()
	case asJSON:
		raw, err = json.MarshalIndent(report, "", "  ")
		raw = append(raw, '\n')
	case asYAML:
		raw, err = yaml.Marshal(report)
	default:
		return fmt.Errorf("flag --output: found %q: accepted are json and yaml", string(o))
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	_, err = out.Write(raw)
	return err
}
