// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// rival returns a client before whose first writes another client writes the workload.
func (w *world) rival(of client.Object, times int) client.Client {
	w.t.Helper()
	direct, err := client.NewWithWatch(server, client.Options{Scheme: w.c.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(direct, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if times > 0 {
				times--
				other := w.read(of)
				// What the command has read is out of date: another image of a container before it.
				body := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:rival"},` +
					`{"op":"add","path":"/metadata/annotations","value":{"rival":"` + string(rune('a'+times)) + `"}}]`
				w.Expect(c.Patch(ctx, other, client.RawPatch(types.JSONPatchType, []byte(body)))).To(Succeed())
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
}

func TestAWriteInBetweenIsKept(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet()
	writer := change.Writer{Client: w.rival(set, 1), FieldManager: "test"}

	result, err := writer.Write(t.Context(), kinds.All()[0], client.ObjectKeyFromObject(set), change.SetImages([]change.ContainerImage{{Container: "proxy", Image: "envoy:2"}}))

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.Words).To(Equal("image updated"))
	containers, _, _ := unstructured.NestedSlice(w.read(set).Object, "spec", "template", "spec", "containers")
	w.Expect(containers[0]).To(HaveKeyWithValue("image", "nginx:rival"))
	proxies, _, _ := unstructured.NestedSlice(w.read(set).Object, "spec", "template", "spec", "initContainers")
	w.Expect(proxies[1]).To(HaveKeyWithValue("image", "envoy:2"))
}

func TestWhoeverIsAlwaysOvertakenIsToldSo(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet()
	writer := change.Writer{Client: w.rival(set, 20), FieldManager: "test"}

	_, err := writer.Write(t.Context(), kinds.All()[0], client.ObjectKeyFromObject(set), change.Pause())

	w.Expect(err).To(MatchError(HavePrefix("statefulset.apps.kruise.io/web is written again and again by another client; it stays as it is, try again: ")))
}

func TestFieldsHaveAnOwner(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet()
	_, stderr, code := w.run("pause", "sts/web", "--field-manager=me")
	w.Expect(code).To(BeZero(), stderr)
	w.Expect(w.read(set).GetManagedFields()).To(ContainElement(And(HaveField("Manager", "me"), HaveField("Operation", HaveLen(6)))))
}
