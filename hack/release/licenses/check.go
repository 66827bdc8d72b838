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

// Notices returns the texts that have to come with a program made from libraries. A text
// that several have, but for its line breaks, is there once.
func Notices(program string, libraries []Library) (string, error) {
	under, texts := map[string][]string{}, map[string]string{}
	var order []string
	for _, library := range libraries {
		if library.Text == "" {
			return "", fmt.Errorf("write notices: %s %s has no license", library.Module, library.Version)
		}
		text := strings.TrimSpace(library.Text)
		if library.Notice != "" {
			text += "\n\n" + strings.Repeat("-", 80) + "\n\n" + strings.TrimSpace(library.Notice)
		}
		key := strings.Join(strings.Fields(text), " ")
		if _, known := texts[key]; !known {
			order, texts[key] = append(order, key), text
		}
		under[key] = append(under[key], fmt.Sprintf("%s %s, %s: %s", library.Module, library.Version, library.File, strings.Join(library.Names, ", ")))
	}
	var notices strings.Builder
	fmt.Fprintf(&notices, "%s contains code of others. These are their licenses.\n", program)
	line := strings.Repeat("=", 80)
	for _, key := range order {
		fmt.Fprintf(&notices, "\n%s\n%s\n%[1]s\n\n%[3]s\n", line, strings.Join(under[key], "\n"), texts[key])
	}

	return notices.String(), nil
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
