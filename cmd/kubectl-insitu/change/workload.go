// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// Workload is a workload as the API server holds it, or as it is to be. It keeps fields
// that this release does not know.
type Workload struct {
	Kind kinds.Kind
	*unstructured.Unstructured
}

// String names the workload as kubectl does: statefulset.apps.kruise.io/db.
func (w *Workload) String() string {
	return w.Kind.String() + "/" + w.GetName()
}

// isDriven reports whether Insitu updates the pods.
func (w *Workload) isDriven() bool {
	_, hasOptedIn := w.GetLabels()[native.UpdatePolicyLabel]
	return w.Kind.IsOurs() || hasOptedIn
}

// isHeld reports whether the controller of Kubernetes is held.
func (w *Workload) isHeld() bool {
	_, isHeld := w.GetLabels()[native.HeldLabel]
	return !w.Kind.IsOurs() && isHeld
}

// view returns what the plugin reads of the workload.
func (w *Workload) view() (kinds.View, error) {
	object := w.Kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object, object); err != nil {
		return kinds.View{}, fmt.Errorf("read %s: %w", w, err)
	}
	return kinds.Read(object)
}
