// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

const claimStrategy = "spec.volumeClaimUpdateStrategy"

// withClaims returns a patch of the strategy for claims and of claim templates, each
// with the fields of its spec that matter, of 1Gi unless they say otherwise.
func withClaims(strategy string, templates ...string) string {
	patch := "spec:\n  volumeClaimUpdateStrategy: " + strategy + "\n  volumeClaimTemplates:\n"
	for i, fields := range templates {
		patch += fmt.Sprintf("  - {metadata: {name: data%d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, %s}}\n", i, fields)
	}
	return patch
}

// forBothKinds runs a test for each kind with claim templates, in each version.
func forBothKinds(t *testing.T, name string, test func(t *testing.T, patched func(patch string) *unstructured.Unstructured)) {
	t.Helper()
	for kind, base := range map[string]string{"StatefulSet": valid, "CloneSet": validCloneSet} {
		for _, version := range versions() {
			t.Run(kind+"/"+version+"/"+name, func(t *testing.T) {
				test(t, func(patch string) *unstructured.Unstructured { return patchOf(t, base, version, patch) })
			})
		}
	}
}

func TestMaxConcurrentOfClaims(t *testing.T) {
	c := strictClient(t)
	for _, value := range []string{"1", "3", "2147483647", `"1%"`, `"25%"`, `"99%"`, `"100%"`} {
		forBothKinds(t, value, func(t *testing.T, patched func(string) *unstructured.Unstructured) {
			t.Helper()
			must(t, c.Create(t.Context(), patched(`spec: {volumeClaimUpdateStrategy: {type: OnPodRollingUpdate, maxConcurrent: `+value+`}}`), client.DryRunAll))
			must(t, c.Create(t.Context(), patched(`spec: {volumeClaimUpdateStrategy: {maxConcurrent: `+value+`}}`), client.DryRunAll))
		})
	}
	for value, found := range map[string]string{
		"0": "found 0", "-1": "found -1", `"0%"`: `found "0%"`, `"01%"`: `found "01%"`, `"101%"`: `found "101%"`,
		`"2"`: `found "2"`, `"all"`: `found "all"`, `"%"`: `found "%"`, `""`: `found ""`, `"1000%"`: "Too long", `"-1%"`: `found "-1%"`,
	} {
		forBothKinds(t, value, func(t *testing.T, patched func(string) *unstructured.Unstructured) {
			t.Helper()
			err := c.Create(t.Context(), patched(`spec: {volumeClaimUpdateStrategy: {type: OnPodRollingUpdate, maxConcurrent: `+value+`}}`))
			assertRefused(t, err, claimStrategy+".maxConcurrent", found)
		})
	}
}

func TestCloneSetClaimStrategy(t *testing.T) {
	c := strictClient(t)
	for _, version := range versions() {
		create := func(strategy string) error {
			return c.Create(t.Context(), patchOf(t, validCloneSet, version, "spec: {volumeClaimUpdateStrategy: "+strategy+"}"), client.DryRunAll)
		}
		for _, accepted := range []string{"{}", "{type: OnDelete}", "{type: OnPodRollingUpdate}", "{type: OnPodRollingUpdate, maxConcurrent: 2}"} {
			must(t, create(accepted))
		}
		assertRefused(t, create("{type: Recreate}"), claimStrategy+".type", "Recreate is not accepted for a CloneSet", "OnDelete or OnPodRollingUpdate")
		assertRefused(t, create("{type: OnPodRollingUpdate, recreate: {holdSeconds: 1}}"), "unknown field", claimStrategy+".recreate")
		assertRefused(t, create("{type: InPlace}"), claimStrategy+".type", `Unsupported value: "InPlace"`)
	}
}

func TestVolumeModeOfClaimTemplates(t *testing.T) {
	c := strictClient(t)
	for _, mode := range []string{"Filesystem", "Block"} {
		forBothKinds(t, mode, func(t *testing.T, patched func(string) *unstructured.Unstructured) {
			t.Helper()
			must(t, c.Create(t.Context(), patched(withClaims("{}", "volumeMode: "+mode)), client.DryRunAll))
		})
	}
	for _, mode := range []string{"filesystem", "Raw", `""`} {
		forBothKinds(t, mode, func(t *testing.T, patched func(string) *unstructured.Unstructured) {
			t.Helper()
			assertRefused(t, c.Create(t.Context(), patched(withClaims("{}", "volumeMode: "+mode))),
				"spec.volumeClaimTemplates[0].spec.volumeMode", "Unsupported value", `"Filesystem", "Block"`)
		})
	}
}

const (
	followed  = "{type: OnPodRollingUpdate}"
	untouched = "{type: OnDelete}"
	recreated = "{type: Recreate}"
)

// TestClaimTemplatesThatFollow: what no claim can become is refused where claims are
// to follow, and nothing else is.
func TestClaimTemplatesThatFollow(t *testing.T) {
	c := strictClient(t)
	for name, test := range map[string]struct {
		before, after string
		refused       bool
	}{
		"another class":             {withClaims(followed, "storageClassName: a"), withClaims(followed, "storageClassName: b"), true},
		"no class by an empty name": {withClaims(followed, "storageClassName: a"), withClaims(followed, `storageClassName: ""`), true},
		"another mode":              {withClaims(followed, ""), withClaims(followed, "volumeMode: Block"), true},
		"the other mode":            {withClaims(followed, "volumeMode: Block"), withClaims(followed, "volumeMode: Filesystem"), true},
		"the mode is the default":   {withClaims(followed, "volumeMode: Block"), withClaims(followed, ""), true},
		"another access mode":       {withClaims(followed, ""), withClaims(followed, "accessModes: [ReadWriteMany]"), true},
		"one access mode more":      {withClaims(followed, ""), withClaims(followed, "accessModes: [ReadWriteOnce, ReadOnlyMany]"), true},
		"one access mode less":      {withClaims(followed, "accessModes: [ReadWriteOnce, ReadOnlyMany]"), withClaims(followed, ""), true},
		"the second template":       {withClaims(followed, "", "storageClassName: a"), withClaims(followed, "", "storageClassName: b"), true},
		"beside a size":             {withClaims(followed, "storageClassName: a"), withClaims(followed, "storageClassName: b, resources: {requests: {storage: 2Gi}}"), true},
		"beside maxConcurrent": {
			withClaims(followed, "storageClassName: a"), withClaims("{type: OnPodRollingUpdate, maxConcurrent: 1}", "storageClassName: b"), true,
		},

		"nothing":                         {withClaims(followed, "storageClassName: a"), withClaims(followed, "storageClassName: a"), false},
		"larger":                          {withClaims(followed, ""), withClaims(followed, "resources: {requests: {storage: 2Gi}}"), false},
		"smaller, as in a rollback":       {withClaims(followed, ""), withClaims(followed, "resources: {requests: {storage: 512Mi}}"), false},
		"an attributes class":             {withClaims(followed, ""), withClaims(followed, "volumeAttributesClassName: gold"), false},
		"another attributes class":        {withClaims(followed, "volumeAttributesClassName: silver"), withClaims(followed, "volumeAttributesClassName: gold"), false},
		"no attributes class":             {withClaims(followed, "volumeAttributesClassName: silver"), withClaims(followed, ""), false},
		"the class is named":              {withClaims(followed, ""), withClaims(followed, "storageClassName: a"), false},
		"the default mode is named":       {withClaims(followed, ""), withClaims(followed, "volumeMode: Filesystem"), false},
		"the order of access modes":       {withClaims(followed, "accessModes: [ReadWriteOnce, ReadOnlyMany]"), withClaims(followed, "accessModes: [ReadOnlyMany, ReadWriteOnce]"), false},
		"a template more":                 {withClaims(followed, "storageClassName: a"), withClaims(followed, "storageClassName: a", "storageClassName: b"), false},
		"a template less":                 {withClaims(followed, "", "storageClassName: a"), withClaims(followed, ""), false},
		"no templates":                    {withClaims(followed, "storageClassName: a"), "spec: {volumeClaimTemplates: null}", false},
		"OnDelete":                        {withClaims(untouched, "storageClassName: a"), withClaims(untouched, "storageClassName: b, volumeMode: Block, accessModes: [ReadWriteMany]"), false},
		"to OnDelete in the same write":   {withClaims(followed, "storageClassName: a"), withClaims(untouched, "storageClassName: b"), false},
		"from OnDelete in the same write": {withClaims(untouched, "storageClassName: a"), withClaims(followed, "storageClassName: b"), false},
		"the strategy is taken off":       {withClaims(followed, "storageClassName: a"), withClaims("null", "storageClassName: b"), false},
		"another name": {
			withClaims(followed, "storageClassName: a"),
			`spec: {volumeClaimTemplates: [{metadata: {name: disk}, spec: {storageClassName: b, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`, false,
		},
	} {
		forBothKinds(t, name, func(t *testing.T, patched func(string) *unstructured.Unstructured) {
			t.Helper()
			object := patched(test.before)
			created(t, c, object)
			err := c.Update(t.Context(), mergePatch(t, object, test.after), client.DryRunAll)
			if !test.refused {
				must(t, err)
				return
			}
			assertRefused(t, err, "spec.volumeClaimTemplates", "storageClassName, volumeMode and accessModes", "OnPodRollingUpdate", "another name", "OnDelete")
		})
	}
}

// TestRecreatedClaimTemplates: a claim that cannot change is recreated, so that
// nothing is refused.
func TestRecreatedClaimTemplates(t *testing.T) {
	c := strictClient(t)
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			object := patchOf(t, valid, version, withClaims(recreated, "storageClassName: a"))
			created(t, c, object)
			must(t, c.Update(t.Context(), mergePatch(t, object, withClaims(recreated, "storageClassName: b, volumeMode: Block")), client.DryRunAll))
		})
	}
}

// TestManyClaimTemplates: as many as are accepted at all can be changed.
func TestManyClaimTemplates(t *testing.T) {
	c := strictClient(t)
	before, after := []string{}, []string{}
	for range 20 {
		before = append(before, "storageClassName: a, accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod]")
		after = append(after, "storageClassName: a, accessModes: [ReadWriteOncePod, ReadOnlyMany, ReadWriteMany, ReadWriteOnce], resources: {requests: {storage: 2Gi}}")
	}
	forBothKinds(t, "20", func(t *testing.T, patched func(string) *unstructured.Unstructured) {
		t.Helper()
		object := patched(withClaims(followed, before...))
		created(t, c, object)
		must(t, c.Update(t.Context(), mergePatch(t, object, withClaims(followed, after...)), client.DryRunAll))
	})
}

// TestStatusOfClaims: what is counted of claims survives a write and both versions.
func TestStatusOfClaims(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)
	status := []appsv1beta1.VolumeClaimStatus{{
		VolumeClaimName: "data", CompatibleReplicas: 5, CompatibleReadyReplicas: 4, UpdatingReplicas: 3, BlockedReplicas: 2,
	}}
	set, clones := typedSet(t, c, "claims-status"), typedCloneSet(t, c, "claims-status")
	set.Status.VolumeClaims, clones.Status.VolumeClaims = status, status
	must(t, c.Status().Update(t.Context(), set))
	must(t, c.Status().Update(t.Context(), clones))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(clones), clones))
	g.Expect(set.Status.VolumeClaims).To(Equal(status))
	g.Expect(clones.Status.VolumeClaims).To(Equal(status))
	for kind, key := range map[string]client.ObjectKey{"StatefulSet": client.ObjectKeyFromObject(set), "CloneSet": client.ObjectKeyFromObject(clones)} {
		for _, version := range versions() {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion(version)
			object.SetKind(kind)
			must(t, c.Get(t.Context(), key, object))
			claims, _, err := unstructured.NestedSlice(object.Object, "status", "volumeClaims")
			must(t, err)
			g.Expect(claims).To(Equal([]any{map[string]any{
				"volumeClaimName": "data", "compatibleReplicas": int64(5), "compatibleReadyReplicas": int64(4), "updatingReplicas": int64(3), "blockedReplicas": int64(2),
			}}), "%s in %s", kind, version)
		}
	}
}
