// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Cluster is a cluster, as its user may see it.
type Cluster struct {
	// Client reads and writes without a cache.
	Client       client.Client
	config       *rest.Config
	capabilities *workload.Capabilities
}

// New returns the cluster of a connection. It does not ask the API server for anything
// yet.
func New(config *rest.Config) (*Cluster, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Cluster{Client: c, config: config, capabilities: workload.NewCapabilities(asks, clock.RealClock{})}, nil
}

// NewScheme returns a scheme with all kinds that the plugin reads.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return scheme, nil
}

// Found is a workload that was found by its name.
type Found struct {
	Kind   kinds.Kind
	Object client.Object
}

// String names the workload as kubectl does: statefulset.apps.kruise.io/db.
func (f Found) String() string {
	return f.Kind.String() + "/" + f.Object.GetName()
}

// Find finds the workload that the arguments of a command name: KIND/NAME, or KIND and
// NAME. A kind that is of two groups, as sts is, means the one that has an object of the
// name.
func (c *Cluster) Find(ctx context.Context, namespace string, args ...string) (Found, error) {
	word, name, err := split(args)
	if err != nil {
		return Found{}, err
	}
	called, err := kinds.Called(word)
	if err != nil {
		return Found{}, err
	}
	var found []Found
	var missing []kinds.Kind
	var forbidden error
	for _, kind := range called {
		object := kind.New()
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		switch {
		case err == nil:
			found = append(found, Found{kind, object})
		case apierrors.IsNotFound(err):
		case meta.IsNoMatchError(err):
			missing = append(missing, kind)
		case IsForWantOfRights(err):
			forbidden = Explain(fmt.Errorf("read %s/%s in namespace %s: %w", kind, name, namespace, err))
		default:
			return Found{}, fmt.Errorf("read %s/%s in namespace %s: %w", kind, name, namespace, err)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Found{}, fmt.Errorf("%s/%s is the name of two objects in namespace %s: accepted are %s and %s", word, name, namespace, found[0], found[1])
	case forbidden != nil:
		return Found{}, forbidden
	case len(missing) == len(called):
		return Found{}, fmt.Errorf("the cluster does not serve %s: Insitu is not installed, or without its CustomResourceDefinitions", missing[0])
	default:
		return Found{}, fmt.Errorf("%s/%s was not found in namespace %s", word, name, namespace)
	}
}

// split reads KIND/NAME, or KIND and NAME.
func split(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("found %q: accepted is one workload as KIND/NAME, such as deployment/web", strings.Join(args, " "))
	}
	return kind, name, nil
}
