// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/inplace"
)

// everyDefault is a pod template with everything in it to which the API server adds
// defaults, and none of them.
const everyDefault = `
metadata: {labels: {app: sample}}
spec:
  initContainers:
  - name: setup
    image: busybox
    resources: {requests: {cpu: 10m, memory: 16Mi}}
  containers:
  - name: main
    image: nginx:alpine
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 20m, memory: 32Mi}}
    ports: [{containerPort: 80}]
    env:
    - name: NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: CPU
      valueFrom: {resourceFieldRef: {resource: limits.cpu}}
    - name: KEY
      valueFrom: {secretKeyRef: {name: a, key: b}}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 80}}
    startupProbe: {tcpSocket: {port: 80}}
    lifecycle:
      postStart: {httpGet: {port: 80}}
      preStop: {exec: {command: ["true"]}}
    securityContext: {runAsUser: 1}
    volumeMounts: [{name: emptydir, mountPath: /a}]
  securityContext: {runAsUser: 1}
  tolerations: [{key: a, effect: NoExecute}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]
  volumes:
  - {name: emptydir, emptyDir: {}}
  - {name: secret, secret: {secretName: a, items: [{key: a, path: b}]}}
  - {name: configmap, configMap: {name: a}}
  - {name: downward, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
  - name: projected
    projected:
      sources:
      - serviceAccountToken: {path: a}
      - downwardAPI: {items: [{path: b, fieldRef: {fieldPath: metadata.name}}]}
      - configMap: {name: a}
      - secret: {name: a}
  - {name: hostpath, hostPath: {path: /a}}
  - {name: claim, persistentVolumeClaim: {claimName: a}}
  - {name: iscsi, iscsi: {targetPortal: "1.2.3.4:3260", iqn: "iqn.2001-04.com.example:a", lun: 0}}
  - {name: rbd, rbd: {monitors: [a], image: b}}
  - {name: azuredisk, azureDisk: {diskName: a, diskURI: "https://blob/vhds/a.vhd"}}
  - {name: scaleio, scaleIO: {gateway: a, system: b, secretRef: {name: c}, volumeName: d}}
  - {name: csi, csi: {driver: a.example.io}}
  - name: ephemeral
    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
`

// behindGates are what the oldest releases that are supported leave out of a template.
var behindGates = map[string]struct {
	add    func(*corev1.PodSpec)
	isKept func(*corev1.PodSpec) bool
}{
	"fileKeyRef": {
		func(spec *corev1.PodSpec) {
			ref := &corev1.FileKeySelector{VolumeName: "emptydir", Path: "env", Key: "A"}
			env := &spec.Containers[0].Env
			*env = append(*env, corev1.EnvVar{Name: "FILE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: ref}})
		},
		func(spec *corev1.PodSpec) bool {
			return slices.ContainsFunc(spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil })
		},
	},
	"volumes from images": {
		func(spec *corev1.PodSpec) {
			source := corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "example.io/a:1"}}
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "image", VolumeSource: source})
		},
		func(spec *corev1.PodSpec) bool {
			return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Image != nil })
		},
	},
}

// What the API server adds to a template by default is no change, whether it is written
// out or not.
func TestTemplatesWithTheirDefaultsSayTheSame(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(server, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	object := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "every-default"}}
	g.Expect(yaml.UnmarshalStrict([]byte(everyDefault), &object.Template)).To(Succeed())
	for name, gated := range behindGates {
		tried := object.DeepCopy()
		gated.add(&tried.Template.Spec)
		if err := c.Create(t.Context(), tried, client.DryRunAll); err == nil && gated.isKept(&tried.Template.Spec) {
			gated.add(&object.Template.Spec)
		} else {
			t.Logf("this server has no %s: %v", name, err)
		}
	}
	written, err := inplace.NewTemplate(object.Template)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(c.Create(t.Context(), object, client.DryRunAll)).To(Succeed())

	raw, err := json.Marshal(object.Template)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(ContainSubstring("terminationGracePeriodSeconds"), "the server has added its defaults")
	defaulted, err := inplace.ParseTemplate(raw)
	g.Expect(err).NotTo(HaveOccurred())
	_, refused := inplace.Compare(&corev1.Pod{}, written, defaulted, metav1.Now().Time)
	g.Expect(refused).To(BeNil(), string(raw))
	g.Expect(written.Equal(defaulted)).To(BeTrue(), string(raw))
	g.Expect(defaulted.Equal(written)).To(BeTrue(), string(raw))
}
