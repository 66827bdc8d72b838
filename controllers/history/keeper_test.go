// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestEnsureMakesARevisionOnce(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	content := contentOf(t, template("a"), claim("data", "1Gi"))

	first, writes := w.ensure(content)
	w.Expect(writes).To(Equal([]string{"create"}))
	w.Expect(w.numbers()).To(Equal(map[string]int64{first.Name(): 1}))

	again, writes := w.ensure(content)
	w.Expect(writes).To(BeEmpty())
	w.Expect(again.Name()).To(Equal(first.Name()))

	w.Expect(w.owner.Collisions).To(BeZero())
}

func TestRevisionsCarryWhatOthersLookFor(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.owner.SetAnnotations(map[string]string{changeCause: "more cowbell"})
	revision, _ := w.ensure(contentOf(t, template("a")))

	stored := &appsv1.ControllerRevision{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.owner.GetNamespace(), Name: revision.Name()}, stored)).To(Succeed())
	w.Expect(metav1.IsControlledBy(stored, w.owner)).To(BeTrue())
	w.Expect(stored.Name).To(Equal("sample-" + stored.Labels[appsv1beta1.ControllerRevisionHashLabel]))
	w.Expect(stored.Labels).To(HaveKeyWithValue("app", "sample"))
	w.Expect(stored.Annotations).To(HaveKeyWithValue("kubernetes.io/change-cause", "more cowbell"))
}

func TestEnsureRenumbersAnOldRevision(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	a, b := contentOf(t, template("a")), contentOf(t, template("b"))
	first, _ := w.ensure(a)
	second, writes := w.ensure(b)
	w.Expect(writes).To(Equal([]string{"create"}))

	back, writes := w.ensure(a)
	w.Expect(writes).To(Equal([]string{"patch"}))
	w.Expect(back.Name()).To(Equal(first.Name()))
	w.Expect(w.numbers()).To(Equal(map[string]int64{first.Name(): 3, second.Name(): 2}))

	_, writes = w.ensure(a)
	w.Expect(writes).To(BeEmpty())
	third, _ := w.ensure(contentOf(t, template("c")))
	w.Expect(w.numbers()).To(HaveKeyWithValue(third.Name(), int64(4)))
}

// Claims are to follow their templates from now on: a revision from before, which is silent
// about claims, is another one.
func TestEnsureOfWhatSpeaksOfClaims(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	speaking := contentOf(t, template("a"), claim("data", "1Gi"))
	silent := Content{Template: speaking.Template}
	old, _ := w.ensure(silent)
	speaking.SpeaksOfClaims = true

	found, writes := w.ensure(speaking)
	w.Expect(writes).To(Equal([]string{"create"}))
	w.Expect(found.Name()).NotTo(Equal(old.Name()))

	found, writes = w.ensure(speaking)
	w.Expect(writes).To(BeEmpty())
	w.Expect(found.Name()).NotTo(Equal(old.Name()))
}

// Two revisions with the same content are made by hand, for example by applying
// a backup (kubernetes/kubernetes#111280). They must not stop anything.
func TestEnsureChoosesTheNewestOfDuplicates(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	a, b := contentOf(t, template("a")), contentOf(t, template("b"))
	original, _ := w.ensure(a)
	duplicate := newRevision(w.owner, encoded(t, a), "byhand", 2)
	w.Expect(w.client.Create(w.ctx, duplicate)).To(Succeed())

	found, writes := w.ensure(a)
	w.Expect(writes).To(BeEmpty())
	w.Expect(found.Name()).To(Equal(duplicate.Name))

	w.ensure(b)
	back, writes := w.ensure(a)
	w.Expect(writes).To(Equal([]string{"patch"}))
	w.Expect(back.Name()).To(Equal(duplicate.Name))
	w.Expect(w.numbers()).To(HaveKeyWithValue(duplicate.Name, int64(4)))
	w.Expect(w.numbers()).To(HaveKeyWithValue(original.Name(), int64(1)))

	_, writes = w.ensure(a)
	w.Expect(writes).To(BeEmpty())
}

func TestEnsureAvoidsATakenName(t *testing.T) {
	stranger := []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "DaemonSet", Name: "sample", UID: "6a1c0b8e-0f43-4a0e-8d59-c1f4d8b0a001", Controller: ptr.To(true),
	}}
	tests := map[string]func(*appsv1.ControllerRevision, Content){
		"by other content of the same owner": func(r *appsv1.ControllerRevision, other Content) {
			r.Data.Raw = encoded(t, other)
		},
		"by equal content of another owner": func(r *appsv1.ControllerRevision, _ Content) {
			r.OwnerReferences = stranger
		},
		"by something that cannot be read": func(r *appsv1.ControllerRevision, _ Content) {
			r.OwnerReferences, r.Data = stranger, runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
		},
	}
	for name, taken := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{})
			content := contentOf(t, template("a"))
			raw := encoded(t, content)
			existing := newRevision(w.owner, raw, hash(raw, 0), 1)
			taken(existing, contentOf(t, template("b")))
			w.Expect(w.client.Create(w.ctx, existing)).To(Succeed())

			revision, _ := w.ensure(content)
			w.Expect(revision.Name()).To(Equal("sample-" + hash(raw, 1)))
			w.Expect(w.owner.Collisions).To(BeEquivalentTo(1))

			_, writes := w.ensure(content)
			w.Expect(writes).To(BeEmpty())
			w.owner.Collisions = 0 // the write of the status got lost
			again, writes := w.ensure(content)
			w.Expect(writes).To(BeEmpty())
			w.Expect(again.Name()).To(Equal(revision.Name()))
		})
	}
}

// A manager that died after it made the revision left one that the next manager
// does not see yet.
func TestEnsureTakesTheRevisionOfACrashedPredecessor(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	content := contentOf(t, template("a"))
	made, _ := w.ensure(content)

	nothing := &History{}
	found, collisions, err := w.keeper.Ensure(w.ctx, w.owner, nothing, content)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(found.Name()).To(Equal(made.Name()))
	w.Expect(collisions).To(BeZero())
	w.Expect(nothing.Get(made.Name())).NotTo(BeNil(), "it is in the history from now on")
	w.Expect(w.names()).To(Equal([]string{made.Name()}))
}

// The reads of a manager come from a cache that may not show yet what is there
// (kubernetes/kubernetes#56355). That must not make one more revision.
func TestEnsureWaitsForAColdCache(t *testing.T) {
	cold := true
	w := newWorld(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if cold {
				return apierrors.NewNotFound(appsv1.Resource("controllerrevisions"), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	content := contentOf(t, template("a"))
	made, _ := w.ensure(content)

	_, collisions, err := w.keeper.Ensure(w.ctx, w.owner, &History{}, content)
	w.Expect(err).To(HaveOccurred())
	w.Expect(collisions).To(BeZero())
	w.Expect(w.names()).To(Equal([]string{made.Name()}))

	cold = false
	found, _, err := w.keeper.Ensure(w.ctx, w.owner, &History{}, content)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(found.Name()).To(Equal(made.Name()))
}

func TestEnsureNamesWhatItCannotCreate(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(appsv1.Resource("controllerrevisions"), "x", nil)
		},
	})
	_, _, err := w.keeper.Ensure(w.ctx, w.owner, &History{}, contentOf(t, template("a")))
	w.Expect(err).To(MatchError(And(ContainSubstring("create ControllerRevision"), ContainSubstring(w.owner.GetNamespace()+"/sample-"))))
	w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the kind of the error is kept")
}

func TestRevisionsOfOpenKruiseAreTaken(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	theirs := newRevision(w.owner, []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},`+
		`"spec":{"containers":[{"image":"a","name":"main","resources":{}}],"terminationGracePeriodSeconds":5,"volumes":[{"emptyDir":{},"name":"tmp"}]}}}}`),
		"79b9c4f5d", 4)
	w.Expect(w.client.Create(w.ctx, theirs)).To(Succeed())

	found, writes := w.ensure(contentOf(t, template("a"), claim("data", "1Gi")))
	w.Expect(writes).To(BeEmpty())
	w.Expect(found.Name()).To(Equal("sample-79b9c4f5d"))
	next, writes := w.ensure(contentOf(t, template("b"), claim("data", "1Gi")))
	w.Expect(writes).To(Equal([]string{"create"}))
	w.Expect(w.numbers()).To(HaveKeyWithValue(next.Name(), int64(5)))
}

func TestReadNamesARevisionThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	_, err := Read([]appsv1.ControllerRevision{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sample-1"}, Data: runtime.RawExtension{Raw: []byte(`{}`)},
	}})
	g.Expect(err).To(MatchError(And(ContainSubstring("shop/sample-1"), ContainSubstring("spec.template"))))
}
