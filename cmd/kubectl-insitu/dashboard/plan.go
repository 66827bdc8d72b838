// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// planRequest is what the page asks for.
type planRequest struct {
	Workload   report.Ref         `json:"workload"`
	Containers []requestContainer `json:"containers"`
}

type requestContainer struct {
	Name     string                         `json:"name"`
	Image    string                         `json:"image"`
	Requests map[corev1.ResourceName]string `json:"requests"`
	Limits   map[corev1.ResourceName]string `json:"limits"`
}

func (s *Server) servePlan(w http.ResponseWriter, r *http.Request) {
	var request planRequest
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("read the change: %v", err))
		return
	}
	change, err := request.change()
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	plan, err := s.source.Plan(ctx, request.Workload, change)
	switch {
	case errors.Is(err, ErrNotFound):
		writeError(w, http.StatusNotFound, err.Error())
	case err != nil:
		writeError(w, http.StatusBadGateway, err.Error())
	default:
		writeJSON(w, http.StatusOK, plan)
	}
}

// change returns what is asked for; an error names the field that cannot be read.
func (r *planRequest) change() (Change, error) {
	var change Change
	for _, c := range r.Containers {
		requests, err := parseQuantities(c.Name, "requests", c.Requests)
		if err != nil {
			return Change{}, err
		}
		limits, err := parseQuantities(c.Name, "limits", c.Limits)
		if err != nil {
			return Change{}, err
		}
		if c.Image == "" && len(requests)+len(limits) == 0 {
			continue
		}
		change.Containers = append(change.Containers, ContainerChange{
			Name: c.Name, Image: c.Image, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		})
	}
	if len(change.Containers) == 0 {
		return Change{}, errors.New("nothing changes: give an image, requests or limits that differ")
	}
	return change, nil
}

func parseQuantities(container, field string, values map[corev1.ResourceName]string) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	for name, text := range values {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s.%s of container %s: found %q, accepted is an amount such as 500m or 256Mi", field, name, container, text)
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = quantity
	}
	return list, nil
}
