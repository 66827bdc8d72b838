// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// options is what the labels and annotations of a workload say.
type options struct {
	policy   appsv1beta1.PodUpdateStrategyType
	strategy appsv1beta1.InPlaceUpdateStrategy
	// maxUnavailable is how many pods may be out of service; nil for what the strategy says.
	// partition is how many pods stay at their revision; nil for none.
	maxUnavailable, partition *intstr.IntOrString
	paused                    bool
}

// ownAnnotations are those with the prefix of options that are none.
var ownAnnotations = []string{
	native.HeldPartitionAnnotation, native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation,
	native.HeldMinReadySecondsAnnotation, native.HeldProgressDeadlineSecondsAnnotation, native.StatusAnnotation,
	native.HeldObservedGenerationAnnotation,
	native.PreviousRevisionAnnotation, native.KeeperAnnotation, // kubectl rollout undo may bring them from a ReplicaSet
}

// parser reads the value of one option.
type parser func(o *options, value string) error

var parsers = map[string]parser{
	native.GracePeriodSecondsAnnotation:  parseGracePeriod,
	native.KeepReadyAnnotation:           parseKeepReady,
	native.DeadlineSecondsAnnotation:     parseDeadline,
	native.PodDisruptionBudgetAnnotation: parsePodDisruptionBudget,
	native.ResizeAnnotation:              parseResize,
	native.ImagePullAnnotation:           parseImagePull,
	native.MaxUnavailableAnnotation:      parseMaxUnavailable,
	native.PausedAnnotation:              parsePaused,
	native.PartitionAnnotation:           parsePartition,
}

// parseOptions reads the options of a workload. The error names every label and
// annotation that is not as accepted, with what was found and what is accepted.
func parseOptions(obj client.Object, kind Kind) (options, error) {
	o := options{strategy: appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: native.DefaultGracePeriodSeconds}}
	var errs []error
	switch policy := appsv1beta1.PodUpdateStrategyType(obj.GetLabels()[native.UpdatePolicyLabel]); policy {
	case appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
		o.policy = policy
	default:
		errs = append(errs, fmt.Errorf("label %s: found %q, accepted are %s and %s", native.UpdatePolicyLabel, policy,
			appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
	}
	accepted := acceptedOptions(kind)
	annotations := obj.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, native.OptionPrefix) || slices.Contains(ownAnnotations, key) {
			continue
		}
		if !slices.Contains(accepted, key) {
			errs = append(errs, fmt.Errorf("annotation %s is no option of a %s: accepted are %s", key, kind, strings.Join(accepted, ", ")))
			continue
		}
		if err := parsers[key](&o, annotations[key]); err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: found %q, %w", key, annotations[key], err))
		}
	}
	return o, errors.Join(errs...)
}

// acceptedOptions returns the options of a kind, sorted. A StatefulSet has a
// partition of its own.
func acceptedOptions(kind Kind) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(parsers)), func(key string) bool {
		return kind == StatefulSet && key == native.PartitionAnnotation
	})
}

func parseGracePeriod(o *options, value string) error {
	seconds, err := parseSeconds(value, 0)
	o.strategy.GracePeriodSeconds = seconds
	return err
}

func parseDeadline(o *options, value string) error {
	seconds, err := parseSeconds(value, 1)
	o.strategy.DeadlineSeconds = ptr.To(seconds)
	return err
}

func parseSeconds(value string, least int32) (int32, error) {
	seconds, err := strconv.ParseInt(value, 10, 32)
	if err != nil || seconds < int64(least) {
		return 0, fmt.Errorf("accepted is a number of seconds from %d to %d", least, math.MaxInt32)
	}
	return int32(seconds), nil
}

func parseKeepReady(o *options, value string) error {
	if err := json.Unmarshal([]byte(value), &o.strategy.KeepReady); err != nil {
		return errors.New(`accepted is a list of container names as JSON: ["proxy","log"]`)
	}
	return nil
}

func parsePodDisruptionBudget(o *options, value string) error {
	policy := appsv1beta1.PodDisruptionBudgetPolicy(value)
	if policy != appsv1beta1.IgnorePodDisruptionBudget && policy != appsv1beta1.RespectPodDisruptionBudget {
		return fmt.Errorf("accepted are %s and %s", appsv1beta1.IgnorePodDisruptionBudget, appsv1beta1.RespectPodDisruptionBudget)
	}
	o.strategy.PodDisruptionBudget = policy
	return nil
}

func parsePaused(o *options, value string) error {
	switch value {
	case "true", "false":
		o.paused = value == "true"
		return nil
	default:
		return errors.New("accepted are true and false")
	}
}

func parseMaxUnavailable(o *options, value string) error {
	if !isCount(value) || value == "0" || value == "0%" {
		return errors.New(`accepted is a number of pods from 1, or a percentage of them from 1% to 100%`)
	}
	o.maxUnavailable = ptr.To(intstr.Parse(value))
	return nil
}

func parsePartition(o *options, value string) error {
	partition := intstr.Parse(value)
	if number, err := intstr.GetScaledValueFromIntOrPercent(&partition, 100, true); err != nil || number < 0 || !isCount(value) {
		return errors.New(`accepted is a number of pods from 0, or a percentage of them from 0% to 100%`)
	}
	o.partition = &partition
	return nil
}

// isCount reports whether a text is a number, or a percentage up to 100%.
func isCount(value string) bool {
	digits, isPercent := strings.CutSuffix(value, "%")
	number, err := strconv.ParseInt(digits, 10, 32)
	return err == nil && number >= 0 && (!isPercent || number <= 100)
}

// resizeValues are the accepted values of the fields of a ResizePolicy.
const resizeValues = `accepted is JSON of these keys and values: ` +
	`{"onDeferred":"Wait" or "Recreate","onInfeasible":"Keep" or "Recreate","onError":"Keep" or "Recreate",` +
	`"deferredTimeoutSeconds":from 1,"maxConcurrent":from 1 or "1%" to "100%","drift":"Leave" or "Enforce"}`

func parseResize(o *options, value string) error {
	policy := decode[appsv1beta1.ResizePolicy](value)
	if policy == nil || !isResizePolicy(policy) {
		return errors.New(resizeValues)
	}
	o.strategy.Resize = policy
	return nil
}

// decode reads a value of JSON; nil if it is none, is null, or has unknown fields.
func decode[T any](value string) *T {
	decoder := json.NewDecoder(bytes.NewBufferString(value))
	decoder.DisallowUnknownFields()
	var into *T
	if err := decoder.Decode(&into); err != nil {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil // there is more
	}
	return into
}

// imagePullValues are the accepted values of the fields of an ImagePullPolicy.
const imagePullValues = `accepted is JSON of these keys and values: ` +
	`{"policy":"Require", "Prefer" or "None","timeoutSeconds":from 1,"parallelism":from 1}`

func parseImagePull(o *options, value string) error {
	policy := decode[appsv1beta1.ImagePullPolicy](value)
	accepted := []appsv1beta1.ImagePullPolicyType{"", appsv1beta1.RequireImagePull, appsv1beta1.PreferImagePull, appsv1beta1.NoImagePull}
	if policy == nil || !slices.Contains(accepted, policy.Policy) ||
		ptr.Deref(policy.TimeoutSeconds, 1) < 1 || ptr.Deref(policy.Parallelism, 1) < 1 {
		return errors.New(imagePullValues)
	}
	o.strategy.ImagePull = policy
	return nil
}

// mayRequireImages reports whether the value of an option, which need not be as accepted, may be
// meant to have pods wait for their images.
func mayRequireImages(value string) bool {
	policy := decode[appsv1beta1.ImagePullPolicy](value)
	return policy == nil || policy.Policy != appsv1beta1.PreferImagePull && policy.Policy != appsv1beta1.NoImagePull
}

func isResizePolicy(policy *appsv1beta1.ResizePolicy) bool {
	failure := func(p appsv1beta1.ResizeFailurePolicy) bool {
		return p == "" || p == appsv1beta1.KeepResizeFailure || p == appsv1beta1.RecreateResizeFailure
	}
	deferred := policy.OnDeferred == "" || policy.OnDeferred == appsv1beta1.WaitResizeDeferred || policy.OnDeferred == appsv1beta1.RecreateResizeDeferred
	drift := policy.Drift == "" || policy.Drift == appsv1beta1.LeaveResizeDrift || policy.Drift == appsv1beta1.EnforceResizeDrift
	limit := policy.MaxConcurrent
	return deferred && drift && failure(policy.OnInfeasible) && failure(policy.OnError) &&
		ptr.Deref(policy.DeferredTimeoutSeconds, 1) >= 1 &&
		(limit == nil || isCount(limit.String()) && limit.String() != "0" && limit.String() != "0%")
}
