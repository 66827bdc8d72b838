// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// partition is how many pods of a workload stay at their revision, wherever its kind
// writes that down.
type partition struct {
	// field is where it is written, as a user would call it.
	field    string
	current  intstr.IntOrString
	replicas int
	// takesPercentages: the field may hold a percentage.
	takesPercentages bool
	// kept returns how many pods a value keeps.
	kept func(intstr.IntOrString) int
	// write puts a value into the workload.
	write func(intstr.IntOrString) error
}

// partition returns that of the workload.
func (w *Workload) partition(typed any) (*partition, error) {
	zero := intstr.FromInt32(0)
	switch set := typed.(type) {
	case *appsv1beta1.StatefulSet:
		return w.partitionOfOurs(set), nil
	case *appsv1beta1.CloneSet:
		places := placesOfPartition(set)
		return &partition{
			field: strings.Join(field(places[0], "partition"), "."), current: ptr.Deref(set.GetRollingUpdate().Partition, zero), replicas: int(set.GetReplicas()),
			takesPercentages: true,
			kept: func(value intstr.IntOrString) int {
				return keptClones(set, value)
			},
			write: func(value intstr.IntOrString) error {
				return w.writeClonePartition(value, places)
			},
		}, nil
	case *appsv1.StatefulSet:
		return w.partitionOfNativeStatefulSet(set)
	case *appsv1.Deployment, *appsv1.DaemonSet:
		return w.partitionInAnnotation(replicas(typed))
	default:
		return nil, fmt.Errorf("a %s has no partition", w.Kind)
	}
}

// partitionOfOurs is that of our StatefulSet: a number of pods.
func (w *Workload) partitionOfOurs(set *appsv1beta1.StatefulSet) *partition {
	return &partition{
		field:   "spec.updateStrategy.rollingUpdate.partition",
		current: intstr.FromInt32(set.GetPartition()), replicas: int(set.GetReplicas()),
		kept:  func(value intstr.IntOrString) int { return min(value.IntValue(), int(set.GetReplicas())) },
		write: w.writeNumber,
	}
}

// partitionOfNativeStatefulSet is its own field or, while it is held, what the hold has
// put aside. It is written to the field in either case: the policy of the hold takes it
// from there, and keeps what else it has put aside.
func (w *Workload) partitionOfNativeStatefulSet(set *appsv1.StatefulSet) (*partition, error) {
	p := &partition{
		field: "spec.updateStrategy.rollingUpdate.partition", replicas: replicas(set),
		kept:  func(value intstr.IntOrString) int { return min(value.IntValue(), replicas(set)) },
		write: w.writeNumber,
	}
	switch rolling := set.Spec.UpdateStrategy.RollingUpdate; {
	case w.isHeld():
		p.field = "annotation " + native.HeldPartitionAnnotation
		text := orZero(set.Annotations[native.HeldPartitionAnnotation])
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: found %q, accepted is a number", p.field, text)
		}
		p.current = intstr.FromInt32(int32(number))
	case rolling != nil:
		p.current = intstr.FromInt32(ptr.Deref(rolling.Partition, 0))
	}
	return p, nil
}

// partitionInAnnotation is that of a Deployment or a DaemonSet.
func (w *Workload) partitionInAnnotation(replicas int) (*partition, error) {
	p := &partition{
		field: "annotation " + native.PartitionAnnotation, replicas: replicas, takesPercentages: true,
		kept: func(value intstr.IntOrString) int {
			kept, err := intstr.GetScaledValueFromIntOrPercent(&value, replicas, true)
			if err != nil {
				return replicas
			}
			return min(kept, replicas)
		},
		write: func(value intstr.IntOrString) error {
			text := value.String()
			if isZero(value) {
				text = "" // without it no pod is kept
			}
			w.setAnnotation(native.PartitionAnnotation, text)
			return nil
		},
	}
	var err error
	text := orZero(w.GetAnnotations()[native.PartitionAnnotation])
	if p.current, err = parseCount(text); err != nil {
		return nil, fmt.Errorf("%s: found %q, %w", p.field, text, err)
	}
	return p, nil
}

func (w *Workload) writeNumber(value intstr.IntOrString) error {
	return unstructured.SetNestedField(w.Object, int64(value.IntValue()), "spec", "updateStrategy", "rollingUpdate", "partition")
}

// placesOfPartition returns where the partition of a CloneSet is written. A place that
// holds 0 is one that the API server has filled in, unless both do.
func placesOfPartition(set *appsv1beta1.CloneSet) [][]string {
	isWritten := func(value *intstr.IntOrString) bool { return value != nil && !isZero(*value) }
	flat := isWritten(set.Spec.UpdateStrategy.Partition)
	nested := isWritten(ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, appsv1beta1.RollingUpdateCloneSetStrategy{}).Partition)
	switch {
	case flat && nested:
		return [][]string{flatParameters, nestedParameters}
	case flat:
		return [][]string{flatParameters}
	case nested:
		return [][]string{nestedParameters}
	default:
		return [][]string{parametersOf(set)}
	}
}

// writeClonePartition writes a partition in all places that hold one.
func (w *Workload) writeClonePartition(value intstr.IntOrString, places [][]string) error {
	var written any = int64(value.IntVal)
	if value.Type == intstr.String {
		written = value.StrVal
	}
	for _, parameters := range places {
		if err := unstructured.SetNestedField(w.Object, written, field(parameters, "partition")...); err != nil {
			return err
		}
	}
	return nil
}

// keptClones returns how many pods a partition of a CloneSet keeps.
func keptClones(set *appsv1beta1.CloneSet, value intstr.IntOrString) int {
	probe := &appsv1beta1.CloneSet{Spec: appsv1beta1.CloneSetSpec{Replicas: set.Spec.Replicas}}
	probe.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{
		CloneSetUpdateParameters: appsv1beta1.CloneSetUpdateParameters{Partition: &value},
	}
	return int(probe.GetPartition())
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
	return p.kept(value) > p.kept(p.current)
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
