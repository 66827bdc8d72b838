// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// annotated returns a Deployment with annotations.
func annotated(annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{native.UpdatePolicyLabel: "InPlaceOnly"}, Annotations: annotations,
	}}
}

func TestOptions(t *testing.T) {
	g := NewWithT(t)

	o, err := parseOptions(annotated(map[string]string{
		"insitu.dev/gracePeriodSeconds":  "10",
		"insitu.dev/keepReady":           `["proxy","log"]`,
		"insitu.dev/deadlineSeconds":     "600",
		"insitu.dev/podDisruptionBudget": "Respect",
		"insitu.dev/resize":              `{"onDeferred":"Recreate","maxConcurrent":"10%"}`,
		"insitu.dev/imagePull":           `{"policy":"Prefer","timeoutSeconds":60,"parallelism":4}`,
		"insitu.dev/maxUnavailable":      "20%",
		"insitu.dev/partition":           "50%",
		"insitu.dev/paused":              "true",
		"insitu.dev/status":              "ours",
		"insitu.dev/previous-revision":   "brought back by an undo",
		"example.io/paused":              "theirs",
	}), Deployment)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(Equal(options{
		policy: appsv1beta1.InPlaceOnlyPodUpdateStrategyType,
		strategy: appsv1beta1.InPlaceUpdateStrategy{
			GracePeriodSeconds: 10, KeepReady: []string{"proxy", "log"}, DeadlineSeconds: ptr.To[int32](600),
			PodDisruptionBudget: appsv1beta1.RespectPodDisruptionBudget,
			Resize:              &appsv1beta1.ResizePolicy{OnDeferred: "Recreate", MaxConcurrent: ptr.To(intstr.FromString("10%"))},
			ImagePull:           &appsv1beta1.ImagePullPolicy{Policy: "Prefer", TimeoutSeconds: ptr.To[int32](60), Parallelism: ptr.To[int32](4)},
		},
		maxUnavailable: ptr.To(intstr.FromString("20%")),
		partition:      ptr.To(intstr.FromString("50%")),
		paused:         true,
	}))
}

func TestOptionsThatAreNotAccepted(t *testing.T) {
	for name, test := range map[string]struct{ key, value, want string }{
		"no such option":    {"insitu.dev/gracePeriod", "10", "annotation insitu.dev/gracePeriod is no option of a Deployment: accepted are insitu.dev/deadlineSeconds, "},
		"no number":         {"insitu.dev/gracePeriodSeconds", "10s", `found "10s", accepted is a number of seconds from 0 to 2147483647`},
		"negative":          {"insitu.dev/gracePeriodSeconds", "-1", `found "-1", accepted is a number of seconds from 0`},
		"too large":         {"insitu.dev/gracePeriodSeconds", "3000000000", "accepted is a number of seconds"},
		"zero deadline":     {"insitu.dev/deadlineSeconds", "0", "accepted is a number of seconds from 1"},
		"no list":           {"insitu.dev/keepReady", "proxy", `found "proxy", accepted is a list of container names as JSON`},
		"no budget policy":  {"insitu.dev/podDisruptionBudget", "respect", `accepted are Ignore and Respect`},
		"no boolean":        {"insitu.dev/paused", "yes", "accepted are true and false"},
		"no pod at a time":  {"insitu.dev/maxUnavailable", "0", "accepted is a number of pods from 1"},
		"no percent":        {"insitu.dev/maxUnavailable", "0%", "from 1% to 100%"},
		"no budget":         {"insitu.dev/maxUnavailable", "few", `found "few"`},
		"no partition":      {"insitu.dev/partition", "half", "accepted is a number of pods from 0"},
		"negative pods":     {"insitu.dev/partition", "-1", "accepted is a number of pods from 0"},
		"more than all":     {"insitu.dev/partition", "101%", "from 0% to 100%"},
		"no JSON":           {"insitu.dev/resize", "Recreate", "accepted is JSON"},
		"more than JSON":    {"insitu.dev/resize", `{"onError":"Keep"}x`, "accepted is JSON"},
		"no field":          {"insitu.dev/resize", `{"onDefered":"Wait"}`, `{"onDeferred":"Wait" or "Recreate"`},
		"no value":          {"insitu.dev/resize", `{"onError":"Ignore"}`, `"onError":"Keep" or "Recreate"`},
		"none at a time":    {"insitu.dev/resize", `{"maxConcurrent":0}`, `"maxConcurrent":from 1`},
		"too many percent":  {"insitu.dev/resize", `{"maxConcurrent":"200%"}`, `"1%" to "100%"`},
		"no time":           {"insitu.dev/resize", `{"deferredTimeoutSeconds":0}`, `"deferredTimeoutSeconds":from 1`},
		"no JSON of pulls":  {"insitu.dev/imagePull", "Require", `found "Require", accepted is JSON`},
		"no field of pulls": {"insitu.dev/imagePull", `{"timeout":60}`, `"timeoutSeconds":from 1`},
		"no policy":         {"insitu.dev/imagePull", `{"policy":"Always"}`, `"policy":"Require", "Prefer" or "None"`},
		"no time to pull":   {"insitu.dev/imagePull", `{"timeoutSeconds":0}`, `"timeoutSeconds":from 1`},
		"no node at a time": {"insitu.dev/imagePull", `{"parallelism":0}`, `"parallelism":from 1`},
		"null":              {"insitu.dev/imagePull", "null", "accepted is JSON"},
		"a brace too many":  {"insitu.dev/resize", "{}}", "accepted is JSON"},
		"text after number": {"insitu.dev/partition", "1 pod", `found "1 pod"`},
	} {
		t.Run(name+" "+test.key, func(t *testing.T) {
			_, err := parseOptions(annotated(map[string]string{test.key: test.value}), Deployment)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestOptionsNameEveryMistake(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{native.UpdatePolicyLabel: "InPlace"},
		Annotations: map[string]string{"insitu.dev/paused": "1", "insitu.dev/partition": "1"},
	}}

	_, err := parseOptions(set, StatefulSet)

	g.Expect(err).To(MatchError(And(
		ContainSubstring(`label insitu.dev/update-policy: found "InPlace", accepted are InPlaceIfPossible and InPlaceOnly`),
		ContainSubstring(`annotation insitu.dev/paused: found "1"`),
		ContainSubstring("annotation insitu.dev/partition is no option of a StatefulSet"),
	)))
}
