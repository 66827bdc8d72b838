// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusers are who refuses to create objects of a kind, with the error of the real
// server.
var refusers = map[string][]refuser{
	"Pod": {
		{"quota", forbidden("exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3")},
		{"service account", forbidden(`error looking up service account default/app: serviceaccount "app" not found`)},
		{"PodSecurity", forbidden(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false ` +
			`(containers "app", "log" must set securityContext.allowPrivilegeEscalation=false)`)},
		{"injector that is down", uncalled("sidecar-injector.example.io", "/inject?timeout=10s", "dial tcp 10.96.0.17:443: connect: connection refused")},
		{"injector that times out", uncalled("sidecar-injector.example.io", "/inject?timeout=10s", "context deadline exceeded")},
	},
	"PersistentVolumeClaim": {
		{"quota", forbidden("exceeded quota: storage, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=3, limited: persistentvolumeclaims=3")},
		{"webhook that is down", uncalled("claims.example.io", "/validate?timeout=5s", "dial tcp 10.96.0.18:443: connect: connection refused")},
	},
	"ControllerRevision": {
		{"quota", forbidden("exceeded quota: objects, requested: count/controllerrevisions.apps=1, " +
			"used: count/controllerrevisions.apps=10, limited: count/controllerrevisions.apps=10")},
		{"policy webhook that times out", uncalled("validate.policies.example.io", "/validate/fail?timeout=10s", "context deadline exceeded")},
	},
}

// refuser is who refuses creations, and the error that it gives.
type refuser struct {
	name string
	err  func(client.Object) error
}

// forbidden answers as admission plugins of the server do.
func forbidden(words string) func(client.Object) error {
	return func(obj client.Object) error {
		return apierrors.NewForbidden(plurals[kindOf(obj)], obj.GetName(), errors.New(words))
	}
}

// uncalled answers as the server does when it cannot ask a webhook that it must ask.
func uncalled(webhook, path, words string) func(client.Object) error {
	return func(client.Object) error {
		return apierrors.NewInternalError(fmt.Errorf(
			"failed calling webhook %q: failed to call webhook: Post %q: %s", webhook, "https://hooks.example.svc:443"+path, words))
	}
}

// refuse lets the server refuse to create objects of a kind for a time.
func (w *World) refuse(kind string, by refuser, period time.Duration) {
	w.say("admission: %s refuses every new %s for %s", by.name, kind, period)
	if w.server.admission.refusals == nil {
		w.server.admission.refusals = map[string]refusal{}
	}
	w.server.admission.refusals[kind] = refusal{since: w.clock.Now(), until: w.clock.Now().Add(period), err: by.err}
}

// refuseCreations lets the server refuse one of the kinds.
func (w *World) refuseCreations() {
	if !w.settings.wider.refuses {
		return
	}
	kind := pick(w.choices, slices.Sorted(maps.Keys(refusers)))
	w.refuse(kind, pick(w.choices, refusers[kind]), 10*time.Second+w.choices.seconds(110))
}

// isRefused reports whether the server refuses to create objects of a kind now.
func (w *World) isRefused(kind string) bool {
	r, is := w.server.admission.refusals[kind]
	return is && w.clock.Now().Before(r.until)
}
