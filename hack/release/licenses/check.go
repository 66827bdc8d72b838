// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Allowed are the licenses that what we link may have. All of them let a program be
// passed on under terms of one's own, when their texts come with it.
var Allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// Check returns an error that names every library whose license is not known or not
// allowed.
func Check(libraries []Library, allowed []string) error {
	var problems []error
	for _, library := range libraries {
		if err := library.check(allowed); err != nil {
			problems = append(problems, err)
		}
	}

	return errors.Join(problems...)
}

func (l Library) check(allowed []string) error {
	if len(l.Names) == 0 {
		return fmt.Errorf("%s %s: no license was found; accepted are %s", l.Module, l.Version, strings.Join(allowed, ", "))
	}
	for _, name := range l.Names {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s %s: the license in %s is %s; accepted are %s", l.Module, l.Version, l.File, name, strings.Join(allowed, ", "))
		}
	}

	return nil
}

// Notices returns the texts that have to come with a program made from libraries.
func Notices(program string, libraries []Library) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s contains code of others. These are their licenses.\n", program)
	for _, library := range libraries {
		if library.Text == "" {
			return "", fmt.Errorf("write notices: %s %s has no license", library.Module, library.Version)
		}
		fmt.Fprintf(&text, "\n%[1]s\n%[2]s %[3]s, %[4]s: %[5]s\n%[1]s\n\n%[6]s\n", strings.Repeat("=", 80),
			library.Module, library.Version, library.File, strings.Join(library.Names, ", "), strings.TrimSpace(library.Text))
		if library.Notice != "" {
			fmt.Fprintf(&text, "\n%s\n\n%s\n", strings.Repeat("-", 80), strings.TrimSpace(library.Notice))
		}
	}

	return text.String(), nil
}

// ByModule returns the names of all licenses in each module.
func ByModule(libraries []Library) map[string][]string {
	names := map[string][]string{}
	for _, library := range libraries {
		for _, name := range library.Names {
			if !slices.Contains(names[library.Module], name) {
				names[library.Module] = append(names[library.Module], name)
			}
		}
		slices.Sort(names[library.Module])
	}

	return names
}
