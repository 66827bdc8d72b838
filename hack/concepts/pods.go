// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

var (
	//go:embed pod.yaml
	podYAML []byte
	//go:embed changes.yaml
	changesYAML []byte
)

// change is one row of the table: a change of the template of a live pod.
type change struct {
	// Change says what is changed, in words.
	Change string `json:"change"`
	// Before is applied to the template that the pod was made from, Patch to that as
	// well, for the template that it shall be like.
	Before json.RawMessage `json:"before,omitempty"`
	Patch  json.RawMessage `json:"patch"`
	// Native is true where only workloads of Kubernetes behave so.
	Native bool `json:"native,omitempty"`
	// Unknown is true when the template that the pod was made from is not known.
	Unknown bool `json:"unknown,omitempty"`
}

// outcome is what happens to a live pod.
type outcome struct {
	// possible and only say it for the policies InPlaceIfPossible and InPlaceOnly.
	possible, only string
	reason         string
}

// podTable returns the table of changes of pods.
func podTable() (string, error) {
	var changes []change
	if err := yaml.UnmarshalStrict(changesYAML, &changes); err != nil {
		return "", fmt.Errorf("read changes.yaml: %w", err)
	}
	fixed, err := fixedFields()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("| What changes in the template | `InPlaceIfPossible` | `InPlaceOnly` | Reason |\n|---|---|---|---|\n")
	for _, c := range append(changes, fixed...) {
		found, err := c.judge()
		if err != nil {
			return "", fmt.Errorf("judge the change of %s: %w", c.Change, err)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", c.Change, found.possible, found.only, found.reason)
	}

	return text.String(), nil
}

// judge returns what happens to a pod that runs and is ready.
func (c change) judge() (outcome, error) {
	template, err := yaml.YAMLToJSON(podYAML)
	if err != nil {
		return outcome{}, err
	}
	before, err := patched(template, c.Before)
	if err != nil {
		return outcome{}, err
	}
	after, err := patched(before, c.Patch)
	if err != nil {
		return outcome{}, err
	}
	if jsonpatch.Equal(before, after) {
		return outcome{}, errors.New("the patch changes nothing")
	}
	pod, err := livePod(before)
	if err != nil {
		return outcome{}, err
	}
	from, to, err := c.templates(before, after)
	if err != nil {
		return outcome{}, err
	}

	return judge(pod, from, to), nil
}

// patched applies a JSON patch, if there is one.
func patched(document []byte, patch json.RawMessage) ([]byte, error) {
	if patch == nil {
		return document, nil
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}

	return decoded.Apply(document)
}

func (c change) templates(before, after []byte) (from, to *inplace.Template, err error) {
	if from, err = inplace.ParseTemplate(before); err != nil {
		return nil, nil, err
	}
	if to, err = inplace.ParseTemplate(after); err != nil {
		return nil, nil, err
	}
	if c.Native {
		from, to = from.Native(), to.Native()
	}
	if c.Unknown {
		from = nil
	}

	return from, to, nil
}

const (
	oldRevision = "web-1"
	newRevision = "web-2"
)

// now is long after the pod was started.
var now = builders.Start.Add(time.Hour)

// livePod returns a pod that was made from a template, runs and is ready.
func livePod(template []byte) (*corev1.Pod, error) {
	pod := builders.Pod("web-0", oldRevision, "").Gated(corev1.ConditionTrue, builders.Start).Build()
	spec := corev1.PodTemplateSpec{}
	if err := json.Unmarshal(template, &spec); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	pod.Spec, pod.Annotations = spec.Spec, spec.Annotations
	maps.Copy(pod.Labels, spec.Labels)
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil
	for _, c := range spec.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, running(c))
	}
	for _, c := range spec.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, running(c))
	}

	return pod, nil
}

// running returns the status of a container as a kubelet reports it that can change
// sizes.
func running(c corev1.Container) corev1.ContainerStatus {
	status := builders.RunningContainer(c.Name, c.Name+"-1", c.Image, builders.Start)
	status.Resources, status.AllocatedResources = &c.Resources, c.Resources.Requests

	return status
}

// judge returns what happens to a pod for each policy. The pod restarts the containers
// that the change names.
func judge(pod *corev1.Pod, from, to *inplace.Template) outcome {
	facts := inplace.PodFacts{Pod: pod}
	if from != nil {
		facts.From = &inplace.Revision{Name: oldRevision, Template: from}
	}
	found := outcome{}
	for policy, words := range map[appsv1beta1.PodUpdateStrategyType]*string{
		appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType: &found.possible,
		appsv1beta1.InPlaceOnlyPodUpdateStrategyType:       &found.only,
	} {
		step := inplace.Next(facts, inplace.Target{
			Revision: inplace.Revision{Name: newRevision, Template: to}, Policy: policy,
		}, now)
		switch {
		case step.Action == inplace.Recreate:
			*words, found.reason = "recreated", code(step.Reason)
		case step.State == inplace.Stuck:
			*words, found.reason = "stays as it is", code(step.Reason)
		default:
			*words = inPlace(pod, from, to)
		}
	}

	return found
}

// inPlace says which containers restart for a change in place.
func inPlace(pod *corev1.Pod, from, to *inplace.Template) string {
	made, _ := inplace.Compare(pod, from, to, now)
	switch restarted := made.RestartedContainers(); {
	case len(restarted) == 0:
		return "in place, nothing restarts"
	case len(restarted) == len(to.Containers()):
		return "in place, all containers restart"
	default:
		return "in place, the container restarts"
	}
}

func code(text string) string {
	return "`" + text + "`"
}
