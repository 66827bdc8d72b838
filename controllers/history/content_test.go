// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// template returns a template with one container of an image.
func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "sample"}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "main", Image: image}},
			Volumes:                       []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			TerminationGracePeriodSeconds: ptr.To[int64](5),
		},
	}
}

// claim returns a claim template that asks for some storage.
func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
}

// contentOf returns the content of templates.
func contentOf(t *testing.T, template corev1.PodTemplateSpec, claims ...corev1.PersistentVolumeClaim) Content {
	t.Helper()
	content, err := NewContent(template, claims)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

// encoded returns the data of the revision with a content.
func encoded(t *testing.T, content Content) []byte {
	t.Helper()
	raw, err := content.encode()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return raw
}

// decoded reads the data of a revision.
func decoded(t *testing.T, raw []byte) Content {
	t.Helper()
	content, err := decode(raw)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

func TestContentComesBackAsItWas(t *testing.T) {
	for name, content := range map[string]Content{
		"no claims":  contentOf(t, template("nginx:alpine")),
		"two claims": contentOf(t, template("nginx:alpine"), claim("data", "1Gi"), claim("logs", "100Mi")),
		"empty":      contentOf(t, corev1.PodTemplateSpec{}),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			raw := encoded(t, content)
			back := decoded(t, raw)
			g.Expect(back.Equal(content)).To(BeTrue())
			g.Expect(content.Equal(back)).To(BeTrue())
			g.Expect(back.Claims).To(Equal(content.Claims))
			g.Expect(encoded(t, back)).To(Equal(raw), "equal contents give equal bytes")
		})
	}
}

// What kubectl and other tools send to undo a rollout is the data as a strategic
// merge patch. Without the directive it would merge into the present template.
func TestDataIsAPatchThatReplacesTheTemplate(t *testing.T) {
	g := NewWithT(t)
	raw := encoded(t, contentOf(t, template("nginx:alpine")))
	var data struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	g.Expect(json.Unmarshal(raw, &data)).To(Succeed())
	g.Expect(data.Spec.Template).To(HaveKeyWithValue("$patch", "replace"))

	back, err := decoded(t, raw).Template.MarshalJSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(back)).NotTo(ContainSubstring("$patch"), "it is no field of the template")
}

func TestDataOfAnyReleaseIsCompared(t *testing.T) {
	const ours = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"sample"}},` +
		`"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}},"volumeClaimTemplates":[]}}`
	tests := map[string]struct {
		other string
		equal bool
	}{
		"the same": {ours, true},
		"as OpenKruise wrote it: a null timestamp, empty resources, no claims": {
			`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},` +
				`"spec":{"containers":[{"image":"nginx:alpine","name":"main","resources":{}}]}}}}`, true,
		},
		"with empty fields that mean nothing": {
			`{"spec":{"template":{"metadata":{"annotations":{},"labels":{"app":"sample"}},` +
				`"spec":{"containers":[{"name":"main","image":"nginx:alpine","env":[],"ports":null}],"securityContext":{}}}}}`, true,
		},
		"another image": {strings.Replace(ours, "nginx:alpine", "nginx:latest", 1), false},
		"a field more":  {strings.Replace(ours, `"image":`, `"imagePullPolicy":"Always","image":`, 1), false},
		"a field that this release does not know": {
			strings.Replace(ours, `"image":`, `"teleport":{"to":"moon"},"image":`, 1), false,
		},
		"a label more": {strings.Replace(ours, `"app":"sample"`, `"app":"sample","tier":"web"`, 1), false},
		"claims": {strings.Replace(ours, `"volumeClaimTemplates":[]`,
			`"volumeClaimTemplates":[{"metadata":{"name":"data"}}]`, 1), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, b := decoded(t, []byte(ours)), decoded(t, []byte(test.other))
			g.Expect(a.Equal(b)).To(Equal(test.equal))
			g.Expect(b.Equal(a)).To(Equal(test.equal), "in both directions")
		})
	}
}

func TestClaimsAreComparedByMeaning(t *testing.T) {
	with := func(claims ...corev1.PersistentVolumeClaim) Content {
		return contentOf(t, template("nginx:alpine"), claims...)
	}
	stamped := claim("data", "1Gi")
	stamped.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	silent := with()
	silent.Claims = nil
	ignoring := with(claim("data", "2Gi"))
	ignoring.IgnoresClaims = true
	tests := map[string]struct {
		a, b  Content
		equal bool
	}{
		"other spelling of a size":       {with(claim("data", "1Gi")), with(claim("data", "1024Mi")), true},
		"other size":                     {with(claim("data", "1Gi")), with(claim("data", "2Gi")), false},
		"other order":                    {with(claim("a", "1Gi"), claim("b", "1Gi")), with(claim("b", "1Gi"), claim("a", "1Gi")), false},
		"a claim more":                   {with(claim("data", "1Gi")), with(claim("data", "1Gi"), claim("logs", "1Gi")), false},
		"a revision silent about claims": {with(claim("data", "1Gi")), silent, true},
		"two silent ones":                {silent, silent, true},
		"claims that make no difference": {with(claim("data", "1Gi")), ignoring, true},
		"a type that is spelled out":     {with(stamped), with(stamped), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.a.Equal(test.b)).To(Equal(test.equal))
			g.Expect(test.b.Equal(test.a)).To(Equal(test.equal), "in both directions")
			g.Expect(decoded(t, encoded(t, test.a)).Equal(test.b)).To(Equal(test.equal), "after it was stored")
		})
	}
}

func TestFieldsOfANewerReleaseAreKept(t *testing.T) {
	g := NewWithT(t)
	raw := `{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"main","image":"a","teleport":{"to":"moon"}}],"orbit":7}}}}`
	back := encoded(t, decoded(t, []byte(raw)))
	g.Expect(string(back)).To(And(ContainSubstring(`"teleport":{"to":"moon"}`), ContainSubstring(`"orbit":7`)))
	g.Expect(string(back)).NotTo(ContainSubstring("volumeClaimTemplates"), "what was silent about claims stays silent")
}

// A number that does not fit into a float would come back as another number:
// then the stored revision would never equal the template it was made from, and
// every reconciliation would make one more.
func TestLargeNumbersAreKept(t *testing.T) {
	for _, seconds := range []int64{1<<53 + 1, 1<<63 - 1} {
		g := NewWithT(t)
		large := template("nginx:alpine")
		large.Spec.TerminationGracePeriodSeconds = ptr.To(seconds)
		content := contentOf(t, large)
		g.Expect(decoded(t, encoded(t, content)).Equal(content)).To(BeTrue(), "%d seconds", seconds)
	}
}

func TestUnreadableDataIsNamed(t *testing.T) {
	for raw, complaint := range map[string]string{
		``:                              "parse revision",
		`[]`:                            "parse revision",
		`{}`:                            "spec.template is missing",
		`{"spec":{"template":null}}`:    "spec.template is missing",
		`{"spec":{"template":"nginx"}}`: "parse revision",
	} {
		g := NewWithT(t)
		_, err := decode([]byte(raw))
		g.Expect(err).To(MatchError(ContainSubstring(complaint)), "data %q", raw)
	}
}

func TestNamesDependOnContentAndCollisions(t *testing.T) {
	g := NewWithT(t)
	a, b := encoded(t, contentOf(t, template("a"))), encoded(t, contentOf(t, template("b")))
	names := map[string]bool{hash(a, 0): true, hash(a, 1): true, hash(b, 0): true, hash(b, 1): true}
	g.Expect(names).To(HaveLen(4))
	g.Expect(hash(a, 0)).To(Equal(hash(a, 0)))
	for name := range names {
		g.Expect(name).To(MatchRegexp("^[a-z0-9]{1,10}$"), "with the longest name of a set, 52 characters, it fits into a label")
	}
}

// A workload's revisions are read at every look at it.
func TestARevisionThatIsReadAgainIsNotParsedAgain(t *testing.T) {
	g := NewWithT(t)
	raw := encoded(t, contentOf(t, template("app:1"), claim("data", "1Gi")))
	revisions := []appsv1.ControllerRevision{{Data: runtime.RawExtension{Raw: raw}}}
	keeper := NewKeeper(nil)
	first, err := keeper.Read(revisions)
	g.Expect(err).NotTo(HaveOccurred())
	first.revisions[0].Claims[0].Name = "spoilt by a caller"

	again, err := keeper.Read(revisions)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.revisions[0].Template).To(BeIdenticalTo(first.revisions[0].Template))
	g.Expect(again.revisions[0].Claims[0].Name).To(Equal("data"))
	revisions[0].Data.Raw = encoded(t, contentOf(t, template("app:1")))
	none, err := keeper.Read(revisions)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.revisions[0].Claims).To(Equal([]corev1.PersistentVolumeClaim{}), "no claims are not silence")
}
