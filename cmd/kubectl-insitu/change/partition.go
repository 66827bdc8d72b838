// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// partition is how many pods of a workload stay at their revision.
type partition struct {
	kinds.Partition
	// field is where it is written, as a user would call it.
	field    string
	current  intstr.IntOrString
	replicas int
}

// partition returns that of the workload.
func (w *Workload) partition(view kinds.View) (*partition, error) {
	p := &partition{Partition: view.Partition, current: view.Partition.Value, replicas: int(view.Replicas)}
	switch {
	case p.Annotation != "":
		p.field = "annotation " + p.Annotation
		return p, p.read(orZero(w.GetAnnotations()[p.Annotation]))
	case len(p.Paths) > 0:
		p.field = strings.Join(p.Paths[0], ".")
		return p, nil
	default:
		return nil, fmt.Errorf("a %s has no partition", w.Kind)
	}
}

// read takes the value from the text of an annotation.
func (p *partition) read(text string) error {
	var err error
	if p.current, err = p.parse(text); err != nil {
		return fmt.Errorf("%s: found %q, %w", p.field, text, err)
	}
	return nil
}

// parse returns the value that a text says.
func (p *partition) parse(text string) (intstr.IntOrString, error) {
	if p.TakesPercentages {
		return parseCount(text)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return intstr.IntOrString{}, errors.New("accepted is a number")
	}
	return intstr.FromInt32(int32(number)), nil
}

// writePartition puts a value into the workload, in all places that hold one.
func (w *Workload) writePartition(p *partition, value intstr.IntOrString) error {
	if len(p.Paths) == 0 {
		text := value.String()
		if isZero(value) {
			text = "" // without it no pod is kept
		}
		w.setAnnotation(p.Annotation, text)
		return nil
	}
	var written any = int64(value.IntVal)
	if value.Type == intstr.String {
		written = value.StrVal
	}
	for _, path := range p.Paths {
		if err := unstructured.SetNestedField(w.Object, written, path...); err != nil {
			return err
		}
	}
	return nil
}

// keepingPods returns the value that keeps so many pods.
func (p *partition) keepingPods(pods int) intstr.IntOrString {
	return intstr.FromInt32(int32(min(pods, math.MaxInt32)))
}

// isRaisedBy reports whether a value keeps more than the present one.
func (p *partition) isRaisedBy(value intstr.IntOrString) bool {
	if p.current.Type == value.Type {
		return number(value) > number(p.current)
	}
	return p.Keeps(value) > p.Keeps(p.current)
}

// parseCount reads a number of pods, or a percentage of them.
func parseCount(text string) (intstr.IntOrString, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	count, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || count < 0 || strings.HasPrefix(digits, "+") || isPercentage && count > 100 {
		return intstr.IntOrString{}, fmt.Errorf("accepted is a number of pods from 0, or a percentage of them from 0%% to 100%%")
	}
	if isPercentage {
		return intstr.FromString(strconv.FormatInt(count, 10) + "%"), nil
	}
	return intstr.FromInt32(int32(count)), nil
}

// number returns the number of a count, whatever it is of.
func number(value intstr.IntOrString) int {
	if value.Type == intstr.Int {
		return value.IntValue()
	}
	count, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	if err != nil {
		return math.MaxInt
	}
	return count
}

func isZero(value intstr.IntOrString) bool { return number(value) == 0 }

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}
