// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a pod that say how it behaves. The first three take "*" or no
// name for all containers.
const (
	// StopSecondsAnnotation is how long containers take to end after SIGTERM:
	// "30", or by name "main=30,proxy=0.5". More than the pod's grace period
	// ends with SIGKILL.
	StopSecondsAnnotation = "insitu.dev/sim-stop-seconds"
	// CrashAnnotation names the containers that crash: "main,proxy" or "*".
	CrashAnnotation = "insitu.dev/sim-crash"
	// UnreadyAnnotation names the containers that do not become ready.
	UnreadyAnnotation = "insitu.dev/sim-unready"
	// ResizeAnnotation is what becomes of resizes: "Deferred" and "Infeasible"
	// are not accepted, "InProgress" is accepted and never done.
	ResizeAnnotation = "insitu.dev/sim-resize"
)

// Tags of images that start with these words misbehave.
const (
	missingTag = "missing"
	crashTag   = "crash"
	unreadyTag = "unready"
)

// knobs are the annotations of a pod, read.
type knobs struct {
	stop           map[string]time.Duration
	crash, unready []string
	resize         string
}

// readKnobs returns what can be read, and an error that names every annotation
// that cannot.
func readKnobs(annotations map[string]string) (knobs, error) {
	stop, stopErr := readSeconds(annotations[StopSecondsAnnotation])
	resize, resizeErr := readResize(annotations[ResizeAnnotation])
	return knobs{
		stop:    stop,
		crash:   readNames(annotations[CrashAnnotation]),
		unready: readNames(annotations[UnreadyAnnotation]),
		resize:  resize,
	}, errors.Join(stopErr, resizeErr)
}

func readSeconds(value string) (map[string]time.Duration, error) {
	seconds := map[string]time.Duration{}
	for _, part := range readNames(value) {
		name, number, ok := strings.Cut(part, "=")
		if !ok {
			name, number = "*", part
		}
		parsed, err := strconv.ParseFloat(number, 64)
		if err != nil || parsed < 0 {
			return nil, fmt.Errorf("read annotation %s: %q is not a number of seconds", StopSecondsAnnotation, number)
		}
		seconds[name] = time.Duration(parsed * float64(time.Second))
	}
	return seconds, nil
}

func readResize(value string) (string, error) {
	switch value {
	case "", corev1.PodReasonDeferred, corev1.PodReasonInfeasible, "InProgress":
		return value, nil
	}
	return "", fmt.Errorf("read annotation %s: found %q, want Deferred, Infeasible or InProgress", ResizeAnnotation, value)
}

func readNames(value string) []string {
	if value == "" {
		return nil
	}
	names := strings.Split(value, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// stopTime returns how long a container takes to end after SIGTERM.
func (k knobs) stopTime(container string, standard time.Duration) time.Duration {
	for _, name := range []string{container, "*"} {
		if seconds, ok := k.stop[name]; ok {
			return seconds
		}
	}
	return standard
}

func (k knobs) crashes(container *corev1.Container) bool {
	return named(k.crash, container.Name) || strings.HasPrefix(tagOf(container.Image), crashTag)
}

func (k knobs) neverReady(container *corev1.Container) bool {
	return named(k.unready, container.Name) || strings.HasPrefix(tagOf(container.Image), unreadyTag)
}

func named(names []string, container string) bool {
	return slices.Contains(names, container) || slices.Contains(names, "*")
}
