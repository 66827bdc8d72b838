// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// shipped are the definitions of config/crd with the size that each may have as
// JSON. kubectl apply stores that in an annotation, and all annotations together
// may have 256 KiB; etcd takes 1.5 MiB. What is left of that is for releases of
// Kubernetes, which add fields to pods: a limit is a little above what is used, so
// that each step nearer is noticed.
var shipped = map[string]int{
	"clonesets":                 240 << 10,
	"containerrecreaterequests": 32 << 10,
	"daemonsets":                179 << 10,
	"imagelistpulljobs":         32 << 10,
	"imagepulljobs":             32 << 10,
	"statefulsets":              214 << 10,
}

// templated are the kinds whose objects have a pod template.
var templated = []string{"clonesets", "daemonsets", "statefulsets"}

func readShipped(t *testing.T, plural string) ([]byte, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()

	raw, err := os.ReadFile(filepath.Join("../../config/crd", "apps.kruise.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}

	return raw, crd
}

// TestEveryDefinitionIsTested checks that shipped names what config/crd holds.
func TestEveryDefinitionIsTested(t *testing.T) {
	g := NewWithT(t)

	files, err := filepath.Glob("../../config/crd/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(shipped)))
}

func TestFitsKubectlApply(t *testing.T) {
	for plural, limit := range shipped {
		raw, _ := readShipped(t, plural)

		asJSON, err := yaml.YAMLToJSON(raw)
		if err != nil {
			t.Fatal(err)
		}

		if len(asJSON) > limit {
			t.Errorf("the definition of %s has %d bytes as JSON, want at most %d", plural, len(asJSON), limit)
		}
	}
}

func TestVersions(t *testing.T) {
	for plural := range shipped {
		t.Run(plural, func(t *testing.T) {
			g := NewWithT(t)
			_, crd := readShipped(t, plural)

			g.Expect(crd.Spec.Versions).To(HaveLen(2))
			stored, older := crd.Spec.Versions[0], crd.Spec.Versions[1]

			g.Expect(stored.Name).To(Equal("v1beta1"))
			g.Expect(stored.Storage).To(BeTrue())
			g.Expect(older.Name).To(Equal("v1alpha1"))
			g.Expect(older.Storage).To(BeFalse())
			g.Expect(older.Served && stored.Served).To(BeTrue())
			g.Expect(older.Schema).To(Equal(stored.Schema))
			g.Expect(older.Subresources).To(Equal(stored.Subresources))
			g.Expect(older.AdditionalPrinterColumns).To(Equal(stored.AdditionalPrinterColumns))
			g.Expect(crd.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
		})
	}
}

func TestDescriptions(t *testing.T) {
	for plural := range shipped {
		t.Run(plural, func(t *testing.T) {
			_, crd := readShipped(t, plural)
			spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]

			for name, property := range spec.Properties {
				if property.Description == "" {
					t.Errorf("spec.%s has no description", name)
				}

				if name != "template" && name != "volumeClaimTemplates" {
					continue
				}

				eachChild(&property, func(_ string, child *schemaProps) {
					embedded := 0

					walk(child, func(node *schemaProps) {
						if node.Description != "" && node != child {
							embedded++
						}
					})

					if embedded > 0 {
						t.Errorf("spec.%s has %d descriptions inside", name, embedded)
					}
				})
			}
		})
	}
}

// TestTemplated checks that templated names all kinds that have a template.
func TestTemplated(t *testing.T) {
	for plural := range shipped {
		_, crd := readShipped(t, plural)

		_, found := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"]
		if found != slices.Contains(templated, plural) {
			t.Errorf("%s: the definition has a template: %t; templated says something else", plural, found)
		}
	}
}

// TestTemplatesHaveNoDefaults checks that every default inside a template is
// the key of a list.
func TestTemplatesHaveNoDefaults(t *testing.T) {
	for _, plural := range templated {
		t.Run(plural, func(t *testing.T) {
			_, crd := readShipped(t, plural)
			root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema

			keys, others := 0, 0
			count := func(node *schemaProps) {
				if node.Items != nil && node.Items.Schema != nil {
					for _, key := range node.XListMapKeys {
						if node.Items.Schema.Properties[key].Default != nil {
							keys++
						}
					}
				}

				if node.Default != nil {
					others++
				}
			}

			paths := []string{template}
			if _, found := root.Properties["spec"].Properties["volumeClaimTemplates"]; found {
				paths = append(paths, claim)
			}

			for _, path := range paths {
				if err := edit(root, path, func(node *schemaProps) { walk(node, count) }); err != nil {
					t.Fatal(err)
				}
			}

			if keys == 0 || others != keys {
				t.Errorf("found %d defaults, %d of them keys of a list: want only those", others, keys)
			}
		})
	}
}

// small returns a definition with as little as process needs, or less.
func small(root schemaProps) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1beta1", Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
		}},
	}}
}

func TestProcessNamesWhatIsMissing(t *testing.T) {
	crd := small(schemaProps{Properties: map[string]schemaProps{"spec": {Properties: map[string]schemaProps{
		"template": {Properties: map[string]schemaProps{"metadata": {Properties: map[string]schemaProps{}}}},
	}}}})

	err := process(crd)
	for _, part := range []string{`"spec.volumeClaimTemplates.[]"`, `"spec.template.spec.containers.[].image"`, "the schema has no such field"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %s: %v", part, err)
		}
	}

	crd.Spec.Versions = append(crd.Spec.Versions, crd.Spec.Versions[0])
	if err := process(crd); err == nil || !strings.Contains(err.Error(), "found 2 versions") {
		t.Errorf("got %v, want an error about two versions", err)
	}
}

func TestEditAddressesEveryKindOfChild(t *testing.T) {
	g := NewWithT(t)

	leaf := schemaProps{Type: "string"}
	root := &schemaProps{Properties: map[string]schemaProps{
		"list": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schemaProps{
			Properties: map[string]schemaProps{
				"labels": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &leaf}},
			},
		}}},
	}}

	g.Expect(edit(root, "list.[].labels.{}", maxLength(63), minLength(1))).To(Succeed())
	g.Expect(leaf.MaxLength).To(HaveValue(Equal(int64(63))))
	g.Expect(leaf.MinLength).To(HaveValue(Equal(int64(1))))

	g.Expect(edit(root, "list.[].label.{}", maxLength(63))).To(MatchError(ContainSubstring(`"list.[].label.{}"`)))
	g.Expect(edit(root, "list", maxItems(3))).To(Succeed())
	g.Expect(root.Properties["list"].MaxItems).To(HaveValue(Equal(int64(3))))
}

func TestDropDefaultsKeepsKeys(t *testing.T) {
	g := NewWithT(t)

	value := &apiextensionsv1.JSON{Raw: []byte(`"TCP"`)}
	port := schemaProps{Properties: map[string]schemaProps{
		"protocol": {Default: value},
		"appName":  {Default: value},
		"nested":   {Properties: map[string]schemaProps{"protocol": {Default: value}}},
	}}
	root := &schemaProps{Default: value, Properties: map[string]schemaProps{
		"ports": {XListMapKeys: []string{"port", "protocol"}, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &port}},
		"other": {Default: value},
	}}

	dropDefaults(root, nil)

	g.Expect(port.Properties["protocol"].Default).To(Equal(value))
	g.Expect(port.Properties["appName"].Default).To(BeNil())
	g.Expect(port.Properties["nested"].Properties["protocol"].Default).To(BeNil())
	g.Expect(root.Properties["other"].Default).To(BeNil())
}

func TestAcceptNumbersOnlyInQuantities(t *testing.T) {
	g := NewWithT(t)

	port := schemaProps{XIntOrString: true}
	name := schemaProps{Type: "string", Pattern: "^a$"}
	quantity := schemaProps{XIntOrString: true, Pattern: "^[0-9]+$", AnyOf: []schemaProps{{Type: "integer"}, {Type: "string"}}}

	for _, node := range []*schemaProps{&port, &name, &quantity} {
		acceptNumbers(node)
	}

	g.Expect(port).To(Equal(schemaProps{XIntOrString: true}))
	g.Expect(name).To(Equal(schemaProps{Type: "string", Pattern: "^a$"}))
	g.Expect(quantity.XPreserveUnknownFields).To(Equal(ptr.To(true)))
	g.Expect(quantity.Pattern).To(Equal(quantityPattern))
	g.Expect(quantity.AnyOf).To(BeNil())
}

func TestBoundIntegers(t *testing.T) {
	g := NewWithT(t)

	port := schemaProps{XIntOrString: true}
	partition := schemaProps{Type: "integer", Format: "int32", Minimum: ptr.To[float64](0)}
	seconds := schemaProps{Type: "integer", Format: "int64"}

	for _, node := range []*schemaProps{&port, &partition, &seconds} {
		boundIntegers(node)
	}

	g.Expect(port.Minimum).To(HaveValue(Equal(float64(math.MinInt32))))
	g.Expect(port.Maximum).To(HaveValue(Equal(float64(math.MaxInt32))))
	g.Expect(partition.Minimum).To(HaveValue(BeZero()))
	g.Expect(partition.Maximum).To(HaveValue(Equal(float64(math.MaxInt32))))
	g.Expect(seconds.Maximum).To(BeNil())
}

// TestQuantityPattern checks that the pattern accepts every spelling in use,
// and nothing from which a Quantity cannot be read.
func TestQuantityPattern(t *testing.T) {
	pattern := regexp.MustCompile(quantityPattern)
	used := []string{"0", "1", "-1", "+1", "1.", "1.5", ".5", "500m", "1.5Gi", "100n", "1u", "1k", "1Ki", "1e3", "1E3", "1e-3", "1e+3", "3E", "3Ei"}
	odd := []string{"", ".", "+", "1.5.5", "1e1.5", "1e", "Gi", "1gi", "1 Gi", "1kB", "1mi", "0x10", "1,5", "lots", "1u1"}

	for _, text := range used {
		if !pattern.MatchString(text) {
			t.Errorf("the pattern refuses %q", text)
		}
	}

	for _, text := range append(odd, used...) {
		if _, err := resource.ParseQuantity(text); pattern.MatchString(text) && err != nil {
			t.Errorf("the pattern accepts %q, which cannot be read: %v", text, err)
		}
	}
}

func TestMarshalLeavesOutStatus(t *testing.T) {
	for plural := range shipped {
		t.Run(plural, func(t *testing.T) {
			g := NewWithT(t)
			raw, crd := readShipped(t, plural)

			out, err := marshal(crd)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(out)).To(Equal(string(raw)), "the file must be as marshal writes it")
			g.Expect(string(out)).NotTo(ContainSubstring("\nstatus:"))
		})
	}
}
