// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// DriverName is the name of the driver in classes and volumes.
const DriverName = "csi.lab.insitu.dev"

// identity is the CSI service that says what the driver is.
type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: DriverName, VendorVersion: "1"}, nil
}

func (identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// Serve answers calls for the services that are not nil on the Unix socket
// until the context ends.
func Serve(ctx context.Context, socket string, controller *Controller, node *Node) error {
	return serve(ctx, socket, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{})
		if controller != nil {
			csi.RegisterControllerServer(server, controller)
		}
		if node != nil {
			csi.RegisterNodeServer(server, node)
		}
	})
}

// serve serves gRPC on a Unix socket. A socket file left by an earlier process
// is replaced.
func serve(ctx context.Context, socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return fmt.Errorf("make folder of socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logCall))
	register(server)
	stopped := context.AfterFunc(ctx, server.Stop)
	defer stopped()
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serve %s: %w", socket, err)
	}
	return nil
}

// logCall logs what changes something, or fails.
func logCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := handle(ctx, request)
	of, about := request.(interface{ GetVolumeId() string })
	switch {
	case err != nil:
		// The caller reports it, too, but shortens or drops it now and then.
		klog.FromContext(ctx).Info("Refused", "call", info.FullMethod, "request", request, "reason", err)
	case about:
		klog.FromContext(ctx).Info("Done", "call", info.FullMethod, "volume", of.GetVolumeId())
	}
	return response, err
}

// registrar tells the kubelet of the driver.
type registrar struct {
	registration.UnimplementedRegistrationServer

	endpoint string
}

// Register tells the kubelet with that root folder where the Node answers,
// whenever the kubelet asks, until the context ends.
func Register(ctx context.Context, kubeletRoot, endpoint string) error {
	socket := filepath.Join(kubeletRoot, "plugins_registry", DriverName+"-reg.sock")
	return serve(ctx, socket, func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, registrar{endpoint: endpoint})
	})
}

// GetInfo implements registration.RegistrationServer.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: DriverName, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (registrar) NotifyRegistrationStatus(
	ctx context.Context, outcome *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	klog.FromContext(ctx).Info("The kubelet has answered", "registered", outcome.GetPluginRegistered(), "reason", outcome.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}
