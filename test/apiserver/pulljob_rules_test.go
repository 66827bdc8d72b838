// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

const (
	// validPullJob and validListPullJob are the smallest jobs that the API server accepts.
	validPullJob = `
kind: ImagePullJob
metadata: {name: sample, namespace: default}
spec: {image: "nginx:alpine"}
`
	validListPullJob = `
kind: ImageListPullJob
metadata: {name: sample, namespace: default}
spec: {images: ["nginx:alpine"]}
`
)

func TestPullJobRefusedOnCreate(t *testing.T) {
	digest := strings.Repeat("a", 64)
	testRefusedOnCreate(t, validPullJob, map[string]map[string]refusal{
		"common": pullJobRefusals(),
		"image": {
			"none":              {`spec: {image: null}`, []string{"spec.image: Required value"}},
			"empty":             {`spec: {image: ""}`, []string{"spec.image", "at least 1 chars"}},
			"capitals":          {`spec: {image: "Shop/Web"}`, []string{"spec.image", "must name an image", `found "Shop/Web"`}},
			"two tags":          {`spec: {image: "web:1:2"}`, []string{"spec.image", `found "web:1:2"`}},
			"space":             {`spec: {image: "web :1"}`, []string{"spec.image", `found "web :1"`}},
			"half a digest":     {`spec: {image: "web@sha256:abc"}`, []string{"spec.image", "must name an image"}},
			"scheme":            {`spec: {image: "https://web"}`, []string{"spec.image", `found "https://web"`}},
			"a name after it":   {`spec: {image: "web@sha256:` + digest + `:1"}`, []string{"spec.image", "must name an image"}},
			"longer than names": {`spec: {image: "` + strings.Repeat("a", 700) + `"}`, []string{"spec.image", "Too long"}},
		},
	})
}

func TestListPullJobRefusedOnCreate(t *testing.T) {
	testRefusedOnCreate(t, validListPullJob, map[string]map[string]refusal{
		"common": pullJobRefusals(),
		"images": {
			"none":  {`spec: {images: []}`, []string{"spec.images", "at least 1 items"}},
			"twice": {`spec: {images: [web, web]}`, []string{"spec.images[1]", "Duplicate value"}},
			"wrong": {`spec: {images: [web, "web:"]}`, []string{"spec.images[1]", "must name an image", `found "web:"`}},
			"many":  {`spec: {images: ["` + strings.Join(numbered("web:", 256), `","`) + `"]}`, []string{"spec.images", "at most 255 items"}},
		},
	})
}

func numbered(prefix string, n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, prefix+strings.Repeat("x", i%100+1)+strings.Repeat("y", i/100))
	}
	return texts
}

// pullJobRefusals are those of both kinds.
func pullJobRefusals() map[string]refusal {
	return map[string]refusal{
		"negative parallelism":    {`spec: {parallelism: -1}`, []string{"spec.parallelism", "a number from 0", "found -1"}},
		"percentage":              {`spec: {parallelism: "50%"}`, []string{"spec.parallelism", "no percentage", `found "50%"`}},
		"both selectors":          {`spec: {selector: {names: [a]}, podSelector: {}}`, []string{"spec.podSelector", "must not both be there"}},
		"names and labels":        {`spec: {selector: {names: [a], matchLabels: {a: b}}}`, []string{"spec.selector.names", "names and labels must not both be there"}},
		"label value":             {`spec: {podSelector: {matchLabels: {a: "b c"}}}`, []string{"spec.podSelector.matchLabels[a]", `found "b c"`}},
		"operator":                {`spec: {selector: {matchExpressions: [{key: a, operator: Like}]}}`, []string{"spec.selector.matchExpressions[0].operator", `"In", "NotIn"`}},
		"values that are missing": {`spec: {selector: {matchExpressions: [{key: a, operator: In}]}}`, []string{"spec.selector.matchExpressions[0]", "need values"}},
		"no time":                 {`spec: {pullPolicy: {timeoutSeconds: 0}}`, []string{"spec.pullPolicy.timeoutSeconds", "greater than or equal to 1"}},
		"negative tries":          {`spec: {pullPolicy: {backoffLimit: -1}}`, []string{"spec.pullPolicy.backoffLimit", "greater than or equal to 0"}},
		"unknown completion":      {`spec: {completionPolicy: {type: Often}}`, []string{"spec.completionPolicy.type", `"Always", "Never"`}},
		"endless with ttl":        {`spec: {completionPolicy: {type: Never, ttlSecondsAfterFinished: 1}}`, []string{"spec.completionPolicy", "such a job does not complete"}},
		"endless with a deadline": {`spec: {completionPolicy: {type: Never, activeDeadlineSeconds: 900}}`, []string{"spec.completionPolicy", "such a job does not complete"}},
		"deadline before timeout": {`spec: {completionPolicy: {activeDeadlineSeconds: 599}}`, []string{"spec.completionPolicy.activeDeadlineSeconds", "at least pullPolicy.timeoutSeconds"}},
		"pull policy":             {`spec: {imagePullPolicy: Never}`, []string{"spec.imagePullPolicy", `"IfNotPresent", "Always"`}},
		"unknown field":           {`spec: {retries: 3}`, []string{`unknown field "spec.retries"`}},
		"no spec":                 {`spec: null`, []string{"spec: Required value"}},
	}
}

// TestPullJobAccepted: what users of OpenKruise have, and what the registry's grammar allows.
func TestPullJobAccepted(t *testing.T) {
	c := strictClient(t)
	digest := strings.Repeat("a", 64)
	for _, version := range versions() {
		for _, image := range []string{
			"web", "web:1", "registry.example:5000/shop/web:v1.2_3-x", "registry.example/shop/web@sha256:" + digest, "web:1@sha256:" + digest, "[fd00::1]:5000/web", "LOCALHOST/web",
		} {
			object := patchOf(t, validPullJob, version, `spec: {image: "`+image+`"}`)
			must(t, c.Create(t.Context(), object, client.DryRunAll))
		}
		for _, patch := range []string{
			`spec: {parallelism: "10"}`, `spec: {parallelism: 0}`, `spec: {selector: {}}`, `spec: {podSelector: {}}`, `spec: {selector: {names: [], matchLabels: {a: b}}}`,
			`spec: {completionPolicy: {activeDeadlineSeconds: 30, ttlSecondsAfterFinished: 0}, pullPolicy: {timeoutSeconds: 20, backoffLimit: 0}}`,
			`spec: {pullSecrets: [a, b], imagePullPolicy: Always, sandboxConfig: {labels: {a: b}, annotations: {c: d e}}}`,
		} {
			must(t, c.Create(t.Context(), patchOf(t, validPullJob, version, patch), client.DryRunAll))
			must(t, c.Create(t.Context(), patchOf(t, validListPullJob, version, patch), client.DryRunAll))
		}
	}
}

func TestPullJobDefaultsAndUpdates(t *testing.T) {
	g, c := NewWithT(t), strictClient(t)
	object := patchOf(t, validPullJob, versions()[1], `spec: {pullSecrets: [mirror]}`)
	created(t, c, object)

	job := &appsv1beta1.ImagePullJob{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), job))
	g.Expect(job.Spec.Parallelism).To(HaveValue(HaveField("IntVal", int32(1))))
	g.Expect(job.Spec.PullPolicy.TimeoutSeconds).To(HaveValue(Equal(int32(600))))
	g.Expect(job.Spec.PullPolicy.BackoffLimit).To(HaveValue(Equal(int32(3))))
	g.Expect(job.Spec.CompletionPolicy.Type).To(Equal(appsv1beta1.AlwaysCompletion))
	g.Expect(string(job.Spec.ImagePullPolicy)).To(Equal("IfNotPresent"))

	change := func(patch string) error {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(appsv1beta1.ImagePullJobKind)
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), current))
		return c.Update(t.Context(), mergePatch(t, current, patch), client.DryRunAll)
	}
	assertRefused(t, change(`spec: {pullSecrets: [other]}`), "spec.pullSecrets", "cannot be changed")
	assertRefused(t, change(`spec: {pullSecrets: null}`), "spec.pullSecrets", "cannot be changed")
	must(t, change(`spec: {image: "nginx:latest", parallelism: 5}`))
	// What a client wrote that knows no observedGeneration.
	must(t, c.Status().Update(t.Context(), func() client.Object {
		job.Status = appsv1beta1.ImagePullJobStatus{Desired: 6, Failed: 6, FailedNodes: []string{"a"}, Message: "job exceeds activeDeadlineSeconds"}
		return job
	}()))
}
