// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes one kubeconfig per user, and the administrator's
// also to the place that users are told.
func (l *Lab) writeKubeconfigs() error {
	for _, user := range l.users() {
		if err := l.writeKubeconfig(l.config(user.file+".kubeconfig"), user.file); err != nil {
			return err
		}
	}
	return l.writeKubeconfig(l.Kubeconfig(), "admin")
}

// writeKubeconfig writes a kubeconfig that stands alone: certificates are in
// it, so it may be copied elsewhere.
func (l *Lab) writeKubeconfig(path, user string) error {
	files := map[string][]byte{clusterCA + ".crt": nil, user + ".crt": nil, user + ".key": nil}
	for name := range files {
		data, err := os.ReadFile(l.pki(name))
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", user, err)
		}
		files[name] = data
	}
	const name = "insitu-lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   l.APIServer(),
		CertificateAuthorityData: files[clusterCA+".crt"],
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: files[user+".crt"],
		ClientKeyData:         files[user+".key"],
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return writeFile(path, data, 0o600)
}
