// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// toy is a set that only notes what is done with it.
type toy struct {
	Round
	told *[]string
}

var toyKey = types.NamespacedName{Namespace: "shop", Name: "toy"}

func wordsOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// play reconciles a toy whose second phase and whose report end with errors, where they are
// given some. It returns what was called.
func play(t *testing.T, object client.Object, phase, report error, second func(*toy)) ([]string, ctrl.Result, error) {
	t.Helper()
	var told []string
	builder := fake.NewClientBuilder()
	for _, index := range podcache.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	if object != nil {
		builder = builder.WithObjects(object)
	}
	shell := &Shell[*corev1.ConfigMap, *toy]{
		Core:  &Core{Client: builder.Build()},
		Begin: func(*corev1.ConfigMap) *toy { return &toy{Round: Round{Now: time.Unix(0, 0)}, told: &told} },
		Phases: []Phase[*toy]{
			func(_ context.Context, s *toy) error { *s.told = append(*s.told, "first"); return nil },
			func(_ context.Context, s *toy) error {
				*s.told = append(*s.told, "second")
				if second != nil {
					second(s)
				}
				return phase
			},
			func(_ context.Context, s *toy) error { *s.told = append(*s.told, "third"); return nil },
		},
		Report: func(_ context.Context, s *toy, failure error) error {
			*s.told = append(*s.told, strings.TrimSpace("report "+wordsOf(failure)))
			return report
		},
		Gone: func(context.Context, types.NamespacedName) error { told = append(told, "gone"); return nil },
	}
	result, err := shell.Reconcile(t.Context(), toyKey, &corev1.ConfigMap{})
	return told, result, err
}

func TestTheShellRunsTheRound(t *testing.T) {
	object := func(change func(*corev1.ConfigMap)) client.Object {
		toy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: toyKey.Namespace, Name: toyKey.Name}}
		if change != nil {
			change(toy)
		}
		return toy
	}
	conflict, lasting := apierrors.NewConflict(corev1.Resource("pods"), "a", nil), errors.New("no")
	for name, test := range map[string]struct {
		object        client.Object
		phase, report error
		second        func(*toy)
		told          []string
		after         time.Duration
		fails         bool
	}{
		"it runs all":          {object: object(nil), told: []string{"first", "second", "third", "report"}},
		"a phase fails":        {object: object(nil), phase: lasting, told: []string{"first", "second", "report no"}, fails: true},
		"its report fails":     {object: object(nil), report: lasting, told: []string{"first", "second", "third", "report"}, fails: true},
		"a phase is overtaken": {object: object(nil), phase: conflict, told: []string{"first", "second", "report " + conflict.Error()}, after: time.Second},
		"a pod cannot be made": {
			object: object(nil), second: func(s *toy) { s.Scaling.Add(lasting); s.Requeue.Within(time.Hour) },
			told: []string{"first", "second", "third", "report"}, after: 15 * time.Second,
		},
		"it is gone": {told: []string{"gone"}},
		"it goes": {object: object(func(o *corev1.ConfigMap) {
			o.Finalizers, o.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: time.Unix(1, 0)}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			told, result, err := play(t, test.object, test.phase, test.report, test.second)
			g.Expect(told).To(Equal(test.told))
			g.Expect(err != nil).To(Equal(test.fails), "%v", err)
			g.Expect(result.RequeueAfter).To(Equal(test.after))
		})
	}
}
