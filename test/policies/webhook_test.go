// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

const (
	registry = "registry.example.io/"
	// mirrored is the label of workloads whose images the webhook takes from its registry.
	mirrored = "example.io/mirrored"
)

// TestWebhook has a webhook that rewrites templates, as registries do. It runs after the
// policies: what it undoes is not held, and what it changes is.
func TestWebhook(t *testing.T) {
	u := newUser(t)
	mirror(t, u.c)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			obj := base(t, u.c, kind, "mirrored")
			workload := reference(kind, "mirrored")
			obj.GetLabels()[mirrored] = ""
			must(t, u.c.Update(t.Context(), obj))
			g.Expect(obj.GetLabels()).To(HaveKeyWithValue(native.HeldLabel, native.Held), "the webhook has changed the image")
			u.expectHeld(workload, "by what a webhook changes")
			u.kubectl(nil, "label", resourceOf(kind, "mirrored"), "--overwrite", "insitu.dev/held=release")
			before := u.get(workload)
			g.Expect(before.GetLabels()).NotTo(HaveKey(native.HeldLabel))
			g.Expect(image(before)).To(HavePrefix(registry))

			u.kubectl(nil, "set", "image", resourceOf(kind, "mirrored"), "main="+strings.TrimPrefix(image(before), registry))
			after := u.get(workload)
			g.Expect(after.GetLabels()).To(Equal(before.GetLabels()), "the webhook has undone the change")
			g.Expect(after.Object["spec"]).To(Equal(before.Object["spec"]))
			g.Expect(after.GetAnnotations()).To(Equal(before.GetAnnotations()))
			g.Expect(after.GetGeneration()).To(Equal(before.GetGeneration()))

			u.kubectl(nil, "set", "image", resourceOf(kind, "mirrored"), "main=nginx:2")
			u.expectHeld(workload, "by a new image")
			g.Expect(image(u.get(workload))).To(Equal(registry + "nginx:2"))
		})
	}
}

func image(workload *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	name, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")

	return name
}

// mirror registers the webhook until the test ends.
func mirror(t *testing.T, c client.Client) {
	t.Helper()
	hook := httptest.NewTLSServer(http.HandlerFunc(rewrite))
	t.Cleanup(hook.Close)
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"*"}},
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mirror"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mirror.example.io", AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To(hook.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
			},
			Rules:          []admissionregistrationv1.RuleWithOperations{rule},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: mirrored, Operator: "Exists"}}},
			SideEffects:    ptr.To(admissionregistrationv1.SideEffectClassNone),
		}},
	}
	must(t, c.Create(t.Context(), configuration))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { must(t, c.Delete(ctx, configuration)) })
	probe := base(t, c, "Deployment", "is-there-a-webhook").(*appsv1.Deployment)
	probe.Labels[mirrored] = ""
	NewWithT(t).Eventually(func() (string, error) {
		tried := probe.DeepCopy()
		err := c.Update(ctx, tried, client.DryRunAll)

		return tried.Spec.Template.Spec.Containers[0].Image, err
	}, switchDelay).Should(HavePrefix(registry))
}

// rewrite answers the API server.
func rewrite(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var workload unstructured.Unstructured
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &workload.Object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if name := image(&workload); !strings.HasPrefix(name, registry) {
		review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
		review.Response.Patch = []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"` + registry + name + `"}]`)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
