// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Load reads the configuration from a file. An empty path is a configuration of
// defaults. The result is complete and valid.
func Load(path string) (*InsituConfiguration, error) {
	if path == "" {
		c := &InsituConfiguration{}
		SetDefaults(c)

		return c, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}

	return c, nil
}

// Decode reads the configuration from YAML or JSON. The result is complete and
// valid. Unknown and duplicate fields, and more than one document, are errors.
func Decode(data []byte) (*InsituConfiguration, error) {
	document, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	if err := checkKind(document); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register configuration types: %w", err)
	}
	c := &InsituConfiguration{}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	if _, _, err := decoder.Decode(document, nil, c); err != nil {
		if errs := checkDurations(document); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}

		return nil, fmt.Errorf("decode: %w", err)
	}
	scheme.Default(c)
	if errs := Validate(c); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}

	return c, nil
}

func checkKind(document []byte) error {
	var found metav1.TypeMeta
	if err := yaml.Unmarshal(document, &found); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if found.GroupVersionKind() == ConfigurationKind {
		return nil
	}

	return fmt.Errorf("found apiVersion %q with kind %q: accepted is apiVersion %s with kind %s",
		found.APIVersion, found.Kind, GroupVersion, ConfigurationKind.Kind)
}

// checkDurations returns the durations of a document that cannot be read. The
// decoder refuses them without naming the field.
func checkDurations(document []byte) field.ErrorList {
	var fields map[string]any
	if err := yaml.Unmarshal(document, &fields); err != nil {
		return nil
	}
	var errs field.ErrorList
	for _, path := range [][]string{
		{"gracefulShutdownTimeout"},
		{"leaderElection", "leaseDuration"},
		{"leaderElection", "renewDeadline"},
		{"leaderElection", "retryPeriod"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(fields, path...)
		if !found || err != nil {
			continue
		}
		text, _ := value.(string)
		if _, err := time.ParseDuration(text); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path[0], path[1:]...), value, `must be a duration with its unit, such as "15s"`))
		}
	}

	return errs
}

// onlyDocument returns the one YAML document of a file. A decoder would read the
// first and say nothing of the others.
func onlyDocument(data []byte) ([]byte, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents = append(documents, document)
		}
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%d YAML documents found: accepted is one", len(documents))
	}

	return documents[0], nil
}
