// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
)

// podWith returns a template with a container main of nginx:alpine: with more of its spec,
// and more of the container.
func podWith(t *testing.T, spec, container string) *Template {
	t.Helper()
	return parse(t, `{"spec":{`+spec+`"containers":[{"name":"main",`+container+`"image":"nginx:alpine"}]}}`)
}

// Writing out a default changes nothing, and so does leaving it out again.
func TestWrittenDefaultsAreNoChange(t *testing.T) {
	for name, test := range map[string]struct{ before, after *Template }{
		"of the pod":       {podWith(t, "", ""), podWith(t, `"terminationGracePeriodSeconds":30,"restartPolicy":"Always","dnsPolicy":"ClusterFirst",`, "")},
		"of the container": {podWith(t, "", ""), podWith(t, "", `"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log",`)},
		"of a port":        {podWith(t, "", `"ports":[{"containerPort":80}],`), podWith(t, "", `"ports":[{"containerPort":80,"protocol":"TCP"}],`)},
		"of a probe": {
			podWith(t, "", `"livenessProbe":{"httpGet":{"port":80}},`),
			podWith(t, "", `"livenessProbe":{"httpGet":{"port":80,"path":"/","scheme":"HTTP"},"periodSeconds":10,"failureThreshold":3},`),
		},
		"of a volume": {
			podWith(t, `"volumes":[{"name":"a","secret":{"secretName":"a"}}],`, ""),
			podWith(t, `"volumes":[{"name":"a","secret":{"secretName":"a","defaultMode":420}}],`, ""),
		},
		"of the account, by both its names": {
			podWith(t, `"serviceAccountName":"web",`, ""), podWith(t, `"serviceAccountName":"web","serviceAccount":"web",`, ""),
		},
		"of resizes": {
			podWith(t, "", ""), podWith(t, "", `"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}],`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.after.Equal(test.before)).To(BeTrue())
			g.Expect(test.before.Equal(test.after)).To(BeTrue())
			g.Expect(refusal(test.before, test.after)).To(BeNil())
			g.Expect(refusal(test.after, test.before)).To(BeNil())
			g.Expect(test.after.MarshalJSON()).NotTo(Equal(must(test.before.MarshalJSON())), "it is kept as the user wrote it")
		})
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// What is not the default is a change, and so is going back to the default.
func TestOtherValuesThanDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *Template
		says          string
	}{
		"added":         {podWith(t, "", ""), podWith(t, `"terminationGracePeriodSeconds":60,`, ""), "spec.terminationGracePeriodSeconds was changed from 30, the default, to 60, and the API server"},
		"removed":       {podWith(t, `"terminationGracePeriodSeconds":60,`, ""), podWith(t, "", ""), "spec.terminationGracePeriodSeconds was changed from 60 to 30, the default"},
		"changed":       {podWith(t, `"dnsPolicy":"Default",`, ""), podWith(t, `"dnsPolicy":"ClusterFirst",`, ""), "spec.dnsPolicy was changed from Default to ClusterFirst, the default"},
		"in a probe":    {podWith(t, "", `"livenessProbe":{"httpGet":{"port":80}},`), podWith(t, "", `"livenessProbe":{"httpGet":{"port":80},"periodSeconds":5},`), "spec.containers[main].livenessProbe.periodSeconds was changed from 10, the default, to 5"},
		"of the image":  {podWith(t, "", ""), podWith(t, "", `"imagePullPolicy":"Always",`), "spec.containers[main].imagePullPolicy was added"},
		"of no default": {podWith(t, "", ""), podWith(t, `"hostname":"a",`, ""), "spec.hostname was added, and the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.before.Equal(test.after)).To(BeFalse())
			g.Expect(refusal(test.before, test.after)).To(HaveField("Message", HavePrefix(test.says)))
		})
	}
}

func TestPullPoliciesThatFollowTheImage(t *testing.T) {
	for name, test := range map[string]struct {
		from, fromPolicy, to, toPolicy string
		inPlace                        bool
	}{
		"both are defaults":           {"nginx:alpine", "IfNotPresent", "nginx:latest", "Always", true},
		"back again":                  {"nginx", "Always", "nginx:alpine", "IfNotPresent", true},
		"a digest is no tag":          {"nginx@" + digest, "IfNotPresent", "nginx:latest", "Always", true},
		"a port is no tag":            {"registry:5000/nginx", "Always", "registry:5000/nginx:1", "IfNotPresent", true},
		"the same":                    {"nginx:alpine", "IfNotPresent", "nginx:latest", "IfNotPresent", true},
		"written out meanwhile":       {"nginx:alpine", "", "nginx:latest", "Always", true},
		"left out meanwhile":          {"nginx:latest", "Always", "nginx:alpine", "", true},
		"none at all":                 {"nginx:latest", "", "nginx:alpine", "", true},
		"the user wants another":      {"nginx:alpine", "IfNotPresent", "nginx:1", "Always", false},
		"the user wants none anymore": {"nginx:alpine", "Always", "nginx:1", "IfNotPresent", false},
		"the user wants one":          {"nginx:alpine", "", "nginx:latest", "IfNotPresent", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := func(image, policy string) *Template {
				if policy != "" {
					policy = `,"imagePullPolicy":"` + policy + `"`
				}
				return parse(t, `{"spec":{"containers":[{"name":"main","image":"`+image+`"`+policy+`}]}}`)
			}
			from, to := template(test.from, test.fromPolicy), template(test.to, test.toPolicy)

			refused := refusal(from, to)

			if test.inPlace {
				g.Expect(refused).To(BeNil())
			} else {
				g.Expect(refused).To(HaveField("Field", "spec.containers[main].imagePullPolicy"))
			}
			g.Expect(from.image("main")).To(Equal(test.from))
		})
	}
}
