// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// systemNamespace is where the chart was installed.
const systemNamespace = "insitu-system"

// account is a service account of the system namespace. Both the manager and the
// minimal client have one, so that the API server treats their requests alike.
type account string

const (
	managerAccount account = "insitu-manager"
	minimalAccount account = "bench-minimal"
)

// user is the name of the account in audit logs.
func (a account) user() string { return "system:serviceaccount:" + systemNamespace + ":" + string(a) }

// connection returns a copy of an administrator's connection that acts as the
// account, as a pod would, and is limited by the server only.
func (a account) connection(ctx context.Context, api client.Client, admin *rest.Config) (*rest.Config, error) {
	tokens := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: string(a)}}
	if err := api.SubResource("token").Create(ctx, owner, tokens); err != nil {
		return nil, fmt.Errorf("create token of %s: %w", a, err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = tokens.Status.Token
	config.QPS = -1
	return config, nil
}

// writeKubeconfig writes a connection to a file.
func writeKubeconfig(config *rest.Config, path string) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["lab"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "user"}
	file.CurrentContext = "lab"
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// createMinimalAccount creates the account of the minimal client and lets it do
// what it does.
func createMinimalAccount(ctx context.Context, api client.Client) error {
	name := string(minimalAccount)
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/resize"}, Verbs: strings.Fields("list watch patch"),
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	} {
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("create account of the minimal client: %w", err)
		}
	}
	return nil
}
