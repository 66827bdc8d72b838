// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Files of objects that a lab with nodes brings along.
const (
	addons         = "addons.yaml"
	storageObjects = "storage.yaml"
)

// coreDNSUser is the name under which CoreDNS talks to the API server; the
// addons give it its rights.
const coreDNSUser = "insitu-lab:coredns"

// metricsServerUser is the name under which metrics-server talks to the API
// server and the kubelets; the addons give it its rights.
const metricsServerUser = "insitu-lab:metrics-server"

// fieldManager owns the fields of the addons.
const fieldManager = "insitu-lab"

// applyAddons creates or updates the addons, if the lab has real nodes. Those of
// kinds that come with others are not known before it is called again.
func (l *Lab) applyAddons(ctx context.Context, config *rest.Config) error {
	if l.Nodes == 0 {
		return nil
	}
	data, err := l.readAddons()
	if err != nil {
		return err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	resources, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return fmt.Errorf("find resources: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read addons: %w", err)
		}
		if object.Object == nil {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("find resource of addon %s: %w", object.GetName(), err)
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).
			Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("apply addon %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
}

// readAddons returns all addons as one file, kinds of objects first.
func (l *Lab) readAddons() ([]byte, error) {
	kinds, err := filepath.Glob(l.state(sidecars, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find kinds of snapshots: %w", err)
	}
	var data []byte
	for _, file := range append(kinds, l.config(addons), l.config(storageObjects)) {
		more, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read addons: %w", err)
		}
		data = append(append(data, "---\n"...), more...)
	}
	return data, nil
}
