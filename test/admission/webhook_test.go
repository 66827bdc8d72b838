// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// verifier is a webhook that admits images whose digest is signed by a key.
type verifier struct {
	public ed25519.PublicKey

	mutex      sync.Mutex
	signatures map[string][]byte // by digest
}

func (v *verifier) isSigned(image string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	_, digest, found := strings.Cut(image, "@")

	return found && ed25519.Verify(v.public, []byte(digest), v.signatures[digest])
}

// ServeHTTP answers reviews of pods.
func (v *verifier) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	review, pod := admissionv1.AdmissionReview{}, corev1.Pod{}
	if json.NewDecoder(req.Body).Decode(&review) != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
		http.Error(w, "no review of a pod", http.StatusBadRequest)

		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	for _, image := range imagesOf(pod.Spec) {
		if !v.isSigned(image) {
			answer.Allowed = false
			answer.Result = &metav1.Status{Code: http.StatusForbidden, Message: "no valid signature of " + image}
		}
	}
	review.Response, review.Request = answer, nil
	_ = json.NewEncoder(w).Encode(review)
}

func imagesOf(spec corev1.PodSpec) []string {
	var images []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images = append(images, container.Image)
	}
	for _, container := range spec.EphemeralContainers {
		images = append(images, container.Image)
	}
	for _, volume := range spec.Volumes {
		if volume.Image != nil {
			images = append(images, volume.Image.Reference)
		}
	}

	return images
}

func TestVerifierWebhook(t *testing.T) {
	g := NewWithT(t)
	public, private, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(HaveOccurred())
	judge := &verifier{public: public}
	served := httptest.NewTLSServer(judge)
	t.Cleanup(served.Close)
	install(t, "verifier-webhook.yaml", "verified-by-webhook", func(obj *unstructured.Unstructured) {
		webhooks, _, err := unstructured.NestedSlice(obj.Object, "webhooks")
		g.Expect(err).NotTo(HaveOccurred())
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})
		webhook, _ := webhooks[0].(map[string]any)
		// In a cluster it is a Service; here it is beside the API server.
		webhook["clientConfig"] = map[string]any{"url": served.URL + "/verify", "caBundle": ca}
		g.Expect(unstructured.SetNestedSlice(obj.Object, []any{encoded(t, webhook)}, "webhooks")).To(Succeed())
	})

	signed(t, "verified-by-webhook", "no valid signature of", func(t *testing.T, images ...string) {
		t.Helper()
		signatures := map[string][]byte{}
		for _, image := range images {
			_, digest, _ := strings.Cut(image, "@")
			signatures[digest] = ed25519.Sign(private, []byte(digest))
		}
		judge.mutex.Lock()
		defer judge.mutex.Unlock()
		judge.signatures = signatures
	})

	// A signature of another key, or of another digest, is none.
	_, other, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, digest, _ := strings.Cut(imageA, "@")
	judge.signatures = map[string][]byte{digest: ed25519.Sign(other, []byte(digest))}
	g.Expect(judge.isSigned(imageA)).To(BeFalse())
	judge.signatures = map[string][]byte{digest: ed25519.Sign(private, []byte("sha256:other"))}
	g.Expect(judge.isSigned(imageA)).To(BeFalse())
}

// A verifier that does not answer refuses, by failurePolicy: nothing moves, and nothing is drained.
func TestVerifierThatIsDown(t *testing.T) {
	g := NewWithT(t)
	a, b := state{imageA, "100m", imageB}, state{imageB, "100m", imageB}
	install(t, "verifier-webhook.yaml", "verifier-down", func(obj *unstructured.Unstructured) {
		webhooks, _, err := unstructured.NestedSlice(obj.Object, "webhooks")
		g.Expect(err).NotTo(HaveOccurred())
		webhook, _ := webhooks[0].(map[string]any)
		webhook["clientConfig"] = map[string]any{"url": "https://127.0.0.1:1/verify"}
		// The pod is there before.
		webhook["rules"] = webhook["rules"].([]any)[:1]
		webhook["rules"].([]any)[0].(map[string]any)["operations"] = []any{"UPDATE"}
		g.Expect(unstructured.SetNestedSlice(obj.Object, webhooks, "webhooks")).To(Succeed())
	})
	pod := newPod(t, "verifier-down", "web", a, true)
	await(t, func() error { return setImage(t, clientOf(t, ""), pod, imageB) }, "failed calling webhook")

	mustBeDenied(t, operator(t), pod, a, b, "failed calling webhook")
}

// encoded has bytes as base64, as unstructured objects want them.
func encoded(t *testing.T, webhook map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(webhook)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var plain map[string]any
	NewWithT(t).Expect(utiljson.Unmarshal(raw, &plain)).To(Succeed())

	return plain
}
