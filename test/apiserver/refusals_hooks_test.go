// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

func hookRefusals() map[string]refusal {
	refusals := map[string]refusal{}

	for _, hook := range []string{"preDelete", "inPlaceUpdate", "preNormal"} {
		field := "spec.lifecycle." + hook
		in := func(fields string) string { return "spec: {lifecycle: {" + hook + ": " + fields + "}}" }

		refusals[hook+" finalizer without domain"] = refusal{
			in(`{finalizersHandler: [drain]}`),
			[]string{field + ".finalizersHandler[0]", "qualified names with a domain", `found "drain"`},
		}
		refusals[hook+" finalizer no qualified name"] = refusal{
			in(`{finalizersHandler: [example.io/a b]}`),
			[]string{field + ".finalizersHandler[0]", "qualified names with a domain", `found "example.io/a b"`},
		}
		refusals[hook+" finalizer twice"] = refusal{
			in(`{finalizersHandler: [example.io/a, example.io/a]}`),
			[]string{field + ".finalizersHandler[1]", `Duplicate value: "example.io/a"`},
		}
		refusals[hook+" label key"] = refusal{
			in(`{labelsHandler: {"example.io/a b": "true"}}`),
			[]string{field + ".labelsHandler", "must hold label keys"},
		}
		refusals[hook+" label value"] = refusal{
			in(`{labelsHandler: {example.io/a: "not a value"}}`),
			[]string{field + ".labelsHandler[example.io/a]", `found "not a value"`},
		}
		refusals[hook+" label no string"] = refusal{
			in(`{labelsHandler: {example.io/a: true}}`),
			[]string{field + ".labelsHandler", "must be of type string"},
		}
	}

	return refusals
}
