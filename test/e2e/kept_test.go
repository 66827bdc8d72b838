// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("What is kept of recreated claims", func() {
	It("is listed, deleted and released by kubectl insitu volumes", func(ctx context.Context) {
		namespace := newRecreateNamespace(ctx)
		set := create(ctx, nginxWithVolume(namespace, classStandard).Replicas(2).With(recreating(nil)))
		fillVolumes(ctx, set)
		output, code := plugin(ctx, namespace, "volumes")
		Expect(output).To(Equal("Nothing is kept of recreated claims in namespace " + namespace + "\n"))
		Expect(code).To(Equal(0))
		old := boundTo(ctx, namespace)
		change(ctx, set, toClass(classNoatime))
		waitVolumes(ctx, set)

		By("listing it")
		var taken []string
		for _, snapshot := range keptSnapshots(ctx, namespace) {
			taken = append(taken, snapshot.GetName())
		}
		Expect(taken).To(HaveLen(2))
		list := func(ctx context.Context) string {
			output, _ := plugin(ctx, namespace, "volumes")
			return output
		}
		Eventually(ctx, list).ShouldNot(ContainSubstring("Needed"))
		output = list(ctx)
		AddReportEntry("kubectl insitu volumes", output)
		for i := range 2 {
			claim := fmt.Sprintf("data-sample-%d", i)
			Expect(output).To(MatchRegexp(`volume/%s +%s +sample +1Gi +standard +Retained `, old[claim], claim))
			Expect(output).To(MatchRegexp(`snapshot/%s-\S+ +%s +sample +1Gi +\S+ +Retained `, claim, claim))
		}
		Expect(output).To(HaveSuffix("2 volumes with 2Gi, and 2 snapshots\n"))
		const kept = "{.status.volumeClaims[0].kept"
		Expect(kubectl(ctx, "get", "statefulsets.apps.kruise.io", "sample", "-n", namespace, "-o", "jsonpath="+kept+".volumes} "+kept+".capacity} "+kept+".snapshots}")).
			To(Equal("2 2Gi 2"))
		output, _ = plugin(ctx, namespace, "status", "statefulset.apps.kruise.io/sample")
		Expect(output).To(ContainSubstring("2 volumes with 2Gi and 2 snapshots of recreated claims"))

		By("deleting a volume")
		volume := "volume/" + old["data-sample-0"]
		output, code = plugin(ctx, namespace, "volumes", "discard", volume)
		Expect(output).To(And(ContainSubstring("claim data-sample-0 cannot have it back any more; snapshot data-sample-0-"), ContainSubstring("--yes is needed")))
		Expect(code).To(Equal(1))
		output, code = plugin(ctx, namespace, "volumes", "discard", volume, "--dry-run=server")
		Expect(output).To(HaveSuffix(volume + " discarded (server dry run)\n"))
		Expect(code).To(Equal(0))
		pv := &corev1.PersistentVolume{}
		Expect(api.Get(ctx, client.ObjectKey{Name: old["data-sample-0"]}, pv)).To(Succeed())
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		output, code = plugin(ctx, namespace, "volumes", "discard", volume, "--yes")
		AddReportEntry("discard", output)
		Expect(code).To(Equal(0))
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKey{Name: old["data-sample-0"]}, pv))
		}).WithTimeout(volumePatience).Should(BeTrue(), "the driver has deleted it")

		By("keeping the others as volumes and snapshots like any other")
		names := []string{"volume/" + old["data-sample-1"], "snapshot/" + taken[0], "snapshot/" + taken[1]}
		output, code = plugin(ctx, namespace, append([]string{"volumes", "release", "--yes"}, names...)...)
		AddReportEntry("release", output)
		Expect(code).To(Equal(0))
		Expect(strings.Count(output, " released\n")).To(Equal(3))
		DeferCleanup(func(ctx context.Context) {
			_, err := kubectl(ctx, "patch", "pv", old["data-sample-1"], "--patch", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(list(ctx)).To(HavePrefix("Nothing is kept"))
		Expect(api.Get(ctx, client.ObjectKey{Name: old["data-sample-1"]}, pv)).To(Succeed())
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		Expect(keptSnapshots(ctx, namespace)).To(HaveLen(2))
		output, code = plugin(ctx, namespace, "volumes", "discard", names[0], "--yes")
		Expect(output).To(ContainSubstring(`found "` + names[0] + `": accepted are the names that kubectl insitu volumes`))
		Expect(code).To(Equal(1))
		waitVolumes(ctx, set)
	})
})
