// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// Classes of claims are read to tell why a claim cannot follow its template before
// anything is tried.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses;volumeattributesclasses,verbs=get;list;watch

// Claims are the claims of a workload, each read once, and what is known of their
// classes.
type Claims struct {
	// ClassesUnknown is true when classes may not be read. It is set before anything is
	// read.
	ClassesUnknown bool

	reader    client.Reader
	owner     types.UID
	namespace string
	refusals  func(*corev1.PersistentVolumeClaim) []volumes.Refusal

	byName map[string]*corev1.PersistentVolumeClaim
	// inUseSince is, by template, when a claim was found to grow only with its pod
	// gone.
	inUseSince map[string]time.Time
	// classes and attributes hold what was read of classes, by name. A class that does
	// not exist is nil.
	classes    map[string]*storagev1.StorageClass
	attributes map[string]bool
	// recreations are those of claims that are, or are to be, recreated, by name.
	recreations map[string]*volumes.Recreation
}

// NewClaims returns the claims of a workload. refusals tells what the
// API server said to changes of a claim that it refused.
func NewClaims(reader client.Reader, owner client.Object, refusals func(*corev1.PersistentVolumeClaim) []volumes.Refusal) *Claims {
	return &Claims{
		reader: reader, owner: owner.GetUID(), namespace: owner.GetNamespace(), refusals: refusals,
		byName: map[string]*corev1.PersistentVolumeClaim{}, inUseSince: map[string]time.Time{},
		classes: map[string]*storagev1.StorageClass{}, attributes: map[string]bool{},
		recreations: map[string]*volumes.Recreation{},
	}
}

// Recreate notes that a claim is, or is to be, recreated; nil takes that back.
func (c *Claims) Recreate(name string, recreation *volumes.Recreation) {
	c.recreations[name] = recreation
}

// Forget has the claim of a name read again.
func (c *Claims) Forget(name string) {
	delete(c.byName, name)
}

// Read reads the claims that a pod has from templates, whether there is the pod or
// not. Those that do not exist are no error.
func (c *Claims) Read(ctx context.Context, pod string, templates []corev1.PersistentVolumeClaim) error {
	for i := range templates {
		name := volumes.ClaimName(templates[i].Name, pod)
		if _, known := c.byName[name]; known {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := c.reader.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, claim)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get claim %s/%s: %w", c.namespace, name, err)
		}
		c.byName[name] = claim
		since := volumes.GrewDetached(volumes.RecordOf(claim), claim.Status.Capacity[corev1.ResourceStorage])
		if since.After(c.inUseSince[templates[i].Name]) {
			c.inUseSince[templates[i].Name] = since
		}
	}
	return nil
}

// Get returns a claim that was read; nil if it does not exist.
func (c *Claims) Get(name string) *corev1.PersistentVolumeClaim {
	return c.byName[name]
}

// PodOfClaims is what claims have to know of the pod that uses them.
type PodOfClaims struct {
	Name string
	// Pod is the pod; nil if there is none.
	Pod *corev1.Pod
	// Keep says why it is not to be deleted for its claims; empty if it may be.
	Keep string
}

// Facts returns the facts of the claims that a pod has from templates, one for each
// template.
func (c *Claims) Facts(ctx context.Context, pod PodOfClaims, templates []corev1.PersistentVolumeClaim) ([]volumes.Facts, error) {
	facts := make([]volumes.Facts, 0, len(templates))
	for i := range templates {
		template := &templates[i]
		f := volumes.Facts{
			Claim: c.byName[volumes.ClaimName(template.Name, pod.Name)], Template: template,
			Pod: podFacts(pod.Pod), WhyNotDetached: pod.Keep, InUseSince: c.inUseSince[template.Name],
			Recreation: c.recreations[volumes.ClaimName(template.Name, pod.Name)],
		}
		if c.BelongsToOthers(f.Claim) {
			controller := metav1.GetControllerOf(f.Claim)
			f.Controller, f.Recreation = controller.Kind+" "+controller.Name, nil
		}
		if f.Claim != nil && f.Controller == "" && !volumes.Compare(f.Claim, template).Ready {
			f.Refused = c.refusals(f.Claim)
			if err := c.readClasses(ctx, &f); err != nil {
				return nil, err
			}
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// Await returns until when a pod is kept away that was deleted for its claims, zero if
// it may come back, and what they need meanwhile.
func (c *Claims) Await(ctx context.Context, pod PodOfClaims, templates []corev1.PersistentVolumeClaim, now time.Time) (time.Time, volumes.Claims, error) {
	facts, err := c.Facts(ctx, pod, templates)
	if err != nil {
		return time.Time{}, nil, err
	}
	until, steps := time.Time{}, volumes.Claims{}
	for _, f := range facts {
		if at := volumes.AwaitDetached(f, now); !at.IsZero() {
			until, steps = at, append(steps, volumes.Next(f, now))
		}
	}
	return until, steps, nil
}

// Away returns the blocker of a pod that is kept away.
func Away(pod, namespace string, steps volumes.Claims) inplace.Blocker {
	blocker := inplace.Blocker{
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}},
		State: inplace.UpdatingClaims, Reason: steps[0].Reason, Since: steps.Since(),
		Message: "it is made again when its volume has grown; " + steps.Message(),
	}
	if blocker.Reason == "" {
		// The claim is what it should be, and a node may still hold its volume.
		blocker.Reason, blocker.Message = volumes.ReasonVolumeNotRemounted, "it is made again when its node has unmounted its volume"
	}
	return blocker
}

// Steps returns the next steps of the claims that a pod has from templates.
func (c *Claims) Steps(ctx context.Context, pod PodOfClaims, templates []corev1.PersistentVolumeClaim, now time.Time) (volumes.Claims, error) {
	facts, err := c.Facts(ctx, pod, templates)
	if err != nil {
		return nil, err
	}
	steps := make(volumes.Claims, 0, len(facts))
	for _, f := range facts {
		steps = append(steps, volumes.Next(f, now))
	}
	return steps, nil
}

// BelongsToOthers reports whether a claim is controlled by an object that is neither
// the workload nor a pod. It is not ours to change.
func (c *Claims) BelongsToOthers(claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil {
		return false
	}
	controller := metav1.GetControllerOf(claim)
	return controller != nil && controller.UID != c.owner && controller.Kind != "Pod"
}

func podFacts(pod *corev1.Pod) *volumes.Pod {
	if pod == nil {
		return nil
	}
	return &volumes.Pod{
		UID: pod.UID, Since: pod.CreationTimestamp.Time, Ready: podutils.IsPodReady(pod), Leaving: pod.DeletionTimestamp != nil,
	}
}

// readClasses reads the classes that the change of a claim depends on.
func (c *Claims) readClasses(ctx context.Context, f *volumes.Facts) error {
	if c.ClassesUnknown {
		f.ClassesUnknown = true
		return nil
	}
	if name := volumehelpers.GetPersistentVolumeClaimClass(f.Claim); name != "" {
		if _, known := c.classes[name]; !known {
			class := &storagev1.StorageClass{}
			exists, err := Find(ctx, c.reader, client.ObjectKey{Name: name}, class)
			if err != nil {
				return err
			}
			if !exists {
				class = nil
			}
			c.classes[name] = class
		}
		f.StorageClass = c.classes[name]
	}
	if name := ptr.Deref(f.Template.Spec.VolumeAttributesClassName, ""); name != "" {
		if _, known := c.attributes[name]; !known {
			exists, err := Find(ctx, c.reader, client.ObjectKey{Name: name}, &storagev1.VolumeAttributesClass{})
			if err != nil {
				return err
			}
			c.attributes[name] = exists
		}
		f.LacksAttributesClass = !c.attributes[name]
	}
	return nil
}

// Find reads an object, and reports whether it is there. A kind that the API server does
// not serve has no objects.
func Find(ctx context.Context, reader client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := reader.Get(ctx, key, object)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	default:
		return false, fmt.Errorf("get %T %s: %w", object, key, err)
	}
}
