// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/builders"
)

// server is the API server that all tests of this package share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

// world is a namespace with one owner of revisions.
type world struct {
	*WithT
	t      *testing.T
	ctx    context.Context
	client client.Client
	keeper *Keeper
	owner  Owner
	// writes are the requests that the keeper has made: "create", "patch" or
	// "delete".
	writes []string
}

// newWorld makes a namespace on the API server. Functions replace calls of the
// keeper's client.
func newWorld(t *testing.T, funcs interceptor.Funcs) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, ctx: t.Context()}
	direct, err := client.NewWithWatch(server, client.Options{})
	w.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "history-"}}
	w.Expect(direct.Create(w.ctx, namespace)).To(Succeed())
	w.client = direct
	w.keeper = NewKeeper(interceptor.NewClient(w.counting(direct), funcs))

	set := builders.StatefulSet(namespace.Name, "sample", "nginx:alpine").Build()
	set.UID = "0f3c7d53-6f8b-4f0e-9d6c-6a8a7f4e7b11"
	w.owner = Owner{
		Object: set, Kind: appsv1beta1.GroupVersion.WithKind("StatefulSet"),
		Labels: set.Spec.Selector.MatchLabels,
	}
	return w
}

// counting notes each write that reaches the API server.
func (w *world) counting(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.writes = append(w.writes, "create")
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes = append(w.writes, "patch")
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.writes = append(w.writes, "delete")
			return c.Delete(ctx, obj, opts...)
		},
	})
}

// read reads the history as the API server has it.
func (w *world) read() *History {
	w.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	w.Expect(w.client.List(w.ctx, list, client.InNamespace(w.owner.GetNamespace()))).To(Succeed())
	owned := slices.DeleteFunc(list.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, w.owner) })
	h, err := Read(owned)
	w.Expect(err).NotTo(HaveOccurred())
	return h
}

// ensure ensures a content on the history that the API server has, and notes the
// collision count as a workload's status does. It returns the revision and what
// was written.
func (w *world) ensure(content Content) (*Revision, []string) {
	w.t.Helper()
	w.writes = nil
	revision, collisions, err := w.keeper.Ensure(w.ctx, w.owner, w.read(), content)
	w.Expect(err).NotTo(HaveOccurred())
	w.owner.Collisions = collisions
	return revision, w.writes
}

// numbers returns the revision numbers on the API server by name.
func (w *world) numbers() map[string]int64 {
	w.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	w.Expect(w.client.List(w.ctx, list, client.InNamespace(w.owner.GetNamespace()))).To(Succeed())
	numbers := map[string]int64{}
	for i := range list.Items {
		numbers[list.Items[i].Name] = list.Items[i].Revision
	}
	return numbers
}

func (w *world) names() []string {
	w.t.Helper()
	return slices.Sorted(maps.Keys(w.numbers()))
}
