// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseImagesNamesWhatItFinds(t *testing.T) {
	for want, args := range map[string][]string{
		"found no image: accepted are CONTAINER=IMAGE, and *=IMAGE for all containers":        {},
		`found "main": accepted are CONTAINER=IMAGE, and *=IMAGE for all containers`:          {"main"},
		`found "main=": accepted are CONTAINER=IMAGE, and *=IMAGE for all containers`:         {"main="},
		`found "=nginx:alpine": accepted are CONTAINER=IMAGE, and *=IMAGE for all containers`: {"=nginx:alpine"},
		"found two images for container main: accepted is one":                                {"main=a", "main=b"},
		"found *=IMAGE beside others: it is for all containers already":                       {"main=a", "*=b"},
	} {
		_, err := ParseImages(args)
		NewWithT(t).Expect(err).To(MatchError(want))
	}
}

func TestParseImagesTakesDigests(t *testing.T) {
	g := NewWithT(t)
	images, err := ParseImages([]string{"main=registry:5000/a@sha256:00=1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images).To(Equal([]ContainerImage{{"main", "registry:5000/a@sha256:00=1"}}))
}

func TestParseResourcesNamesWhatItFinds(t *testing.T) {
	for text, want := range map[string]string{
		"cpu":          `found "cpu": accepted is RESOURCE=AMOUNT, such as cpu=100m,memory=1Gi`,
		"cpu=1,":       `found "": accepted is RESOURCE=AMOUNT, such as cpu=100m,memory=1Gi`,
		"=1":           `found "=1": accepted is RESOURCE=AMOUNT, such as cpu=100m,memory=1Gi`,
		"memory=large": `found "memory=large": accepted are amounts such as 100m, 2, 512Mi, 1Gi`,
	} {
		_, err := ParseResources(text)
		NewWithT(t).Expect(err).To(MatchError(want))
	}
}

func TestParseCount(t *testing.T) {
	for _, text := range []string{"", "-1", "+1", "101%", "1.5", "%", "many", "99999999999"} {
		_, err := parseCount(text)
		NewWithT(t).Expect(err).To(MatchError("accepted is a number of pods from 0, or a percentage of them from 0% to 100%"), text)
	}
	for _, text := range []string{"0", "7", "0%", "100%"} {
		count, err := parseCount(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(count.String()).To(Equal(text))
	}
}
