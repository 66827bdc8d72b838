// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestTruncateKeepsTheNewestAndWhatIsInUse(t *testing.T) {
	tests := map[string]struct {
		limit int
		inUse []string
		keeps []string
	}{
		"all fit":                       {10, nil, []string{"a", "b", "c", "d"}},
		"exactly":                       {4, nil, []string{"a", "b", "c", "d"}},
		"the oldest goes":               {3, nil, []string{"b", "c", "d"}},
		"those in use do not count":     {1, []string{"a", "b"}, []string{"a", "b", "d"}},
		"limit 0 keeps what is in use":  {0, []string{"b"}, []string{"b"}},
		"limit 0 and nothing is in use": {0, nil, nil},
		"in use but not there":          {2, []string{"z", ""}, []string{"c", "d"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{})
			names := map[string]string{}
			for _, image := range []string{"a", "b", "c", "d"} {
				revision, _ := w.ensure(contentOf(t, template(image)))
				names[image] = revision.Name()
			}
			inUse := sets.New[string]()
			for _, image := range test.inUse {
				inUse.Insert(names[image])
			}
			w.Expect(w.keeper.Truncate(w.ctx, w.read(), inUse, test.limit)).To(Succeed())

			var kept []string
			for _, image := range test.keeps {
				kept = append(kept, names[image])
			}
			w.Expect(w.names()).To(ConsistOf(kept))
		})
	}
}

// What was renumbered is new, also in the reconciliation that renumbered it.
func TestTruncateFollowsTheNewOrder(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	a, b := contentOf(t, template("a")), contentOf(t, template("b"))
	first, _ := w.ensure(a)
	w.ensure(b)
	h := w.read()
	_, _, err := w.keeper.Ensure(w.ctx, w.owner, h, a)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.keeper.Truncate(w.ctx, h, sets.New[string](), 1)).To(Succeed())
	w.Expect(w.names()).To(Equal([]string{first.Name()}))
}

// A revision that another client deleted is no error; one that was recreated
// under the same name is not ours to delete.
func TestTruncateDeletesOnlyWhatItHasRead(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	old, _ := w.ensure(contentOf(t, template("a")))
	gone, _ := w.ensure(contentOf(t, template("b")))
	w.ensure(contentOf(t, template("c")))
	h := w.read()

	stored := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: w.owner.GetNamespace(), Name: old.Name()}
	w.Expect(w.client.Get(w.ctx, key, stored)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, stored)).To(Succeed())
	stored.UID, stored.ResourceVersion = "", ""
	w.Expect(w.client.Create(w.ctx, stored)).To(Succeed())

	w.Expect(w.keeper.Truncate(w.ctx, h, sets.New[string](), 2)).NotTo(Succeed())
	w.Expect(w.names()).To(ContainElement(old.Name()))

	w.Expect(w.client.Delete(w.ctx, stored)).To(Succeed())
	w.Expect(w.keeper.Truncate(w.ctx, h, sets.New(old.Name()), 1)).To(Succeed())
	w.Expect(w.names()).NotTo(ContainElement(gone.Name()))
	w.Expect(w.keeper.Truncate(w.ctx, h, sets.New[string](), 1)).To(Succeed(), "both are gone already")
}
