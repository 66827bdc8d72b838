// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
	manifests "github.com/insitu-dev/insitu/config/policies"
	"github.com/insitu-dev/insitu/inplace"
)

// SwitchNamespace is where config/policies looks for the switch.
const SwitchNamespace = "insitu-system"

// The API server takes up policies when its watch shows them.
const (
	patience = 2 * time.Minute
	pause    = 100 * time.Millisecond
)

// Install creates the policies of config/policies, their bindings and the switch, and
// returns when the API server acts by them.
func Install(ctx context.Context, c client.Client) error {
	objects, err := Objects()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SwitchNamespace}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create namespace %s: %w", SwitchNamespace, err)
	}
	if err := c.Create(ctx, Switch()); err != nil {
		return fmt.Errorf("create the switch: %w", err)
	}
	if err := Beat(ctx, c, Lasting, true); err != nil {
		return err
	}
	for _, obj := range objects {
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("install policy: %w", err)
		}
	}
	cases, err := Cases()
	if err != nil {
		return err
	}
	for _, kind := range kinds { // each kind has policies of its own
		if err := awaitHold(ctx, c, cases[kind.name][0].Old); err != nil {
			return fmt.Errorf("wait until a %s is held: %w", kind.name, err)
		}
	}

	return AwaitDrain(ctx, c, metav1.NamespaceDefault, true)
}

// InstallDrain creates the policy that keeps drained pods out of service, its binding and
// the switch, and returns when the API server acts by it.
func InstallDrain(ctx context.Context, c client.Client) error {
	objects, err := objectsIn("drain.yaml")
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SwitchNamespace}}
	for _, obj := range append([]client.Object{namespace, Switch()}, asObjects(objects)...) {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, obj)); err != nil {
			return fmt.Errorf("install policy: %w", err)
		}
	}

	return AwaitDrain(ctx, c, metav1.NamespaceDefault, true)
}

func asObjects(all []*unstructured.Unstructured) []client.Object {
	objects := make([]client.Object, 0, len(all))
	for _, obj := range all {
		objects = append(objects, obj)
	}

	return objects
}

// DrainBinding returns the binding without which drained pods are not kept out of service.
func DrainBinding() client.Object {
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: DrainPolicy}}
}

// TakeAway deletes an object without which drained pods are not kept out of service: Switch
// or DrainBinding. It returns when the API server acts without it, and what gives it back.
func TakeAway(ctx context.Context, c client.Client, object client.Object) (giveBack func(context.Context) error, err error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("find what to take away: %w", err)
	}
	if err := c.Delete(ctx, object); err != nil {
		return nil, fmt.Errorf("take %s away: %w", object.GetName(), err)
	}
	giveBack = func(ctx context.Context) error {
		again, _ := object.DeepCopyObject().(client.Object)
		again.SetResourceVersion("")
		again.SetUID("")
		if err := client.IgnoreAlreadyExists(c.Create(ctx, again)); err != nil {
			return fmt.Errorf("give %s back: %w", object.GetName(), err)
		}

		return AwaitDrain(ctx, c, metav1.NamespaceDefault, true)
	}

	return giveBack, AwaitDrain(ctx, c, metav1.NamespaceDefault, false)
}

// AwaitDrain waits until the API server keeps drained pods of a namespace out of service, or
// until it does not. It asks by dry runs, with a pod that is deleted again.
func AwaitDrain(ctx context.Context, c client.Client, namespace string, wanted bool) error {
	pod := DrainSide{}.Pod()
	pod.Namespace, pod.GenerateName = namespace, "is-it-drained-"
	if err := c.Create(ctx, pod); err != nil {
		return fmt.Errorf("create a pod to drain: %w", err)
	}
	kept := func(ctx context.Context) (bool, error) {
		body, err := inplace.TrialDrain(pod, metav1.Now())
		if err != nil {
			return false, err
		}
		answer := pod.DeepCopy()
		err = c.Status().Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, body), client.DryRunAll)

		return inplace.KeepsDrained(answer) == wanted, err
	}
	if err := wait.PollUntilContextTimeout(ctx, pause, patience, true, kept); err != nil {
		return fmt.Errorf("wait until drained pods are kept out of service (%t): %w", wanted, err)
	}

	return c.Delete(ctx, pod, client.GracePeriodSeconds(0))
}

// Switch returns the object without which nothing is held.
func Switch() client.Object {
	return &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: SwitchNamespace, Name: native.SwitchName}, AutomountServiceAccountToken: ptr.To(false),
	}
}

// Lasting is the age of a heartbeat that does not get old while tests run.
const Lasting = -24 * time.Hour

// Beat writes the heartbeat of a manager to the switch so long ago, where the API server notes
// the time of writes, or where it does not.
func Beat(ctx context.Context, c client.Client, age time.Duration, notes bool) error {
	account, written := Switch(), time.Now().Add(-age).UTC()
	patch := `{"metadata":{"annotations":{"` + native.HeartbeatAnnotation + `":"` + written.Format(time.RFC3339) + `"}}}`
	if err := c.Patch(ctx, account, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("write the heartbeat: %w", err)
	}
	fields := account.GetManagedFields()
	for i := range fields {
		fields[i].Time = &metav1.Time{Time: written}
	}
	if !notes {
		fields = []metav1.ManagedFieldsEntry{{}}
	}
	account.SetManagedFields(fields)
	if err := c.Update(ctx, account); err != nil {
		return fmt.Errorf("write when the heartbeat was: %w", err)
	}
	if got := len(account.GetManagedFields()); (got > 0) != notes {
		return fmt.Errorf("the switch has %d entries of managedFields", got)
	}

	return nil
}

// Alive returns the switch with the heartbeat of a manager.
func Alive() client.Object {
	account := Switch()
	account.SetAnnotations(map[string]string{native.HeartbeatAnnotation: "2026-01-02T12:00:00Z"})

	return account
}

// Objects returns the policies of config/policies and their bindings.
func Objects() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests.Manifests, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := objectsIn(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}

	return all, nil
}

// objectsIn returns the objects of a manifest.
func objectsIn(file string) ([]*unstructured.Unstructured, error) {
	data, err := manifests.Manifests.ReadFile(file)
	if err != nil {
		return nil, err
	}

	return decodeAll(data)
}

func decodeAll(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
}

// awaitHold asks, by dry runs, for a hold of a workload that is deleted again.
func awaitHold(ctx context.Context, c client.Client, workload client.Object) error {
	workload.SetNamespace(metav1.NamespaceDefault)
	workload.SetName("is-there-a-policy")
	if err := Create(ctx, c, workload); err != nil {
		return err
	}
	held := func(ctx context.Context) (bool, error) {
		probe := workload.DeepCopyObject().(client.Object)
		if err := mergeInto(probe, json.RawMessage(`{"spec":{"template":{"metadata":{"labels":{"probe":""}}}}}`)); err != nil {
			return false, err
		}
		err := c.Update(ctx, probe, client.DryRunAll)

		return probe.GetLabels()[native.HeldLabel] == native.Held, err
	}
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, held)

	return errors.Join(err, c.Delete(ctx, workload))
}
