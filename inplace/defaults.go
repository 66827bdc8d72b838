// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// probeDefaults are those of every probe.
var probeDefaults = map[string]any{
	"initialDelaySeconds": int64(0), "timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3),
}

// containerDefaults are those of every container.
var containerDefaults = map[string]any{
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	"stdin": false, "stdinOnce": false, "tty": false,
}

// modeDefaults are those of volumes with files that Kubernetes writes.
var modeDefaults = map[string]any{"defaultMode": int64(0o644)}

// defaults are the values that an absent field of a pod template has, by the field that
// holds the object, or the list of objects, in which it is. The pull policy has none of
// its own: it depends on the image, see alignedWith.
//
// Source: pkg/apis/core/v1/defaults.go of k8s.io/kubernetes; the name of the service
// account is that of its admission plugin.
var defaults = map[string]map[string]any{
	"spec": {
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "serviceAccountName": "default",
		"terminationGracePeriodSeconds": int64(30), "enableServiceLinks": true, "hostNetwork": false, "hostPID": false, "hostIPC": false,
		"volumeMode": "Filesystem", // of an ephemeral claim
	},
	"containers": containerDefaults, "initContainers": containerDefaults,
	"livenessProbe": probeDefaults, "readinessProbe": probeDefaults, "startupProbe": probeDefaults,
	"httpGet":               {"scheme": "HTTP", "path": "/"},
	"grpc":                  {"service": ""},
	"ports":                 {"protocol": "TCP", "hostPort": int64(0)},
	"fieldRef":              {"apiVersion": "v1"},
	"resourceFieldRef":      {"divisor": "0"},
	"fileKeyRef":            {"optional": false},
	"volumeMounts":          {"readOnly": false},
	"secret":                modeDefaults,
	"configMap":             modeDefaults,
	"downwardAPI":           modeDefaults,
	"projected":             modeDefaults,
	"serviceAccountToken":   {"expirationSeconds": int64(3600)},
	"hostPath":              {"type": ""},
	"persistentVolumeClaim": {"readOnly": false},
	"iscsi":                 {"iscsiInterface": "default"},
	"rbd":                   {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
	"azureDisk":             {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"},
	"scaleIO":               {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}

// withoutDefaults returns fields without those that are written out with their defaults:
// they say what absent ones say.
func withoutDefaults(fields map[string]any) map[string]any {
	kept, _ := withoutDefaultsIn("", fields).(map[string]any)
	kept, _ = normalise(kept).(map[string]any)
	return kept
}

func withoutDefaultsIn(holder string, value any) any {
	switch typed := value.(type) {
	case map[string]any:
		kept := maps.Clone(typed)
		for key, field := range kept {
			if isDefault(typed, holder, key, field) {
				delete(kept, key)
				continue
			}
			kept[key] = withoutDefaultsIn(key, field)
		}
		return kept
	case []any:
		kept := make([]any, 0, len(typed))
		for _, item := range typed {
			if holder != "resizePolicy" || !isDefaultResize(item) {
				kept = append(kept, withoutDefaultsIn(holder, item))
			}
		}
		return kept
	default:
		return value
	}
}

func isDefault(object map[string]any, holder, key string, value any) bool {
	standard, ok := defaults[holder][key]
	switch {
	case holder == "spec" && key == "serviceAccount": // the old name of another field
		return value == object["serviceAccountName"] || value == defaults[holder]["serviceAccountName"]
	case holder == "image" && key == "pullPolicy": // of a volume
		image, _ := object["reference"].(string)
		return value == string(defaultPullPolicy(image))
	default:
		return ok && value == standard
	}
}

// isDefaultResize reports whether an item of a container's resizePolicy is the one that
// the API server adds.
func isDefaultResize(item any) bool {
	policy, _ := item.(map[string]any)
	return policy["restartPolicy"] == string(corev1.NotRequired)
}

// alignedWith returns the template with the pull policies of another one, where in both
// they are what the API server fills in. The one for nginx:latest is another than that
// for nginx:alpine, although the user has changed only the image.
func (t *Template) alignedWith(other *Template) *Template {
	theirs := defaultPullPolicies(other.fields)
	aligned := map[string]string{}
	for container, policy := range defaultPullPolicies(t.fields) {
		if found, ok := theirs[container]; ok && found != policy {
			aligned[container] = found
		}
	}
	if len(aligned) == 0 {
		return t
	}
	like := *t
	like.meaning = withPullPolicies(t.meaning, aligned)
	like.fixed = withPullPolicies(t.fixed, aligned)
	return &like
}

// defaultPullPolicies returns the pull policies that are those by default, by
// container: empty for one that says none.
func defaultPullPolicies(fields map[string]any) map[string]string {
	found := map[string]string{}
	for _, container := range containerFields(fields) {
		name, _ := container["name"].(string)
		image, _ := container["image"].(string)
		policy, written := container["imagePullPolicy"].(string)
		if !written || policy == string(defaultPullPolicy(image)) {
			found[name] = policy
		}
	}
	return found
}

// defaultPullPolicy returns the pull policy of a container that does not say one.
// Source: SetDefaults_Container of k8s.io/kubernetes.
func defaultPullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// withPullPolicies returns a copy of fields with other pull policies, or with none.
func withPullPolicies(fields map[string]any, policies map[string]string) map[string]any {
	fields = runtime.DeepCopyJSON(fields)
	for _, container := range containerFields(fields) {
		name, _ := container["name"].(string)
		policy, ok := policies[name]
		switch {
		case !ok:
		case policy == "":
			delete(container, "imagePullPolicy")
		default:
			container["imagePullPolicy"] = policy
		}
	}
	return fields
}

// containerFields returns the containers and init containers in the fields of a
// template, which may be changed by them.
func containerFields(fields map[string]any) []map[string]any {
	spec, _ := fields["spec"].(map[string]any)
	var found []map[string]any
	for _, kind := range containerKinds {
		list, _ := spec[kind].([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok {
				found = append(found, container)
			}
		}
	}
	return found
}
