// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWordsOnPods(t *testing.T) {
	g := NewWithT(t)
	g.Expect([]string{Pods(0), Pods(1), Pods(int32(2))}).To(Equal([]string{"0 pods", "1 pod", "2 pods"}))
	g.Expect([]string{PodsThat(1, "is", "are"), PodsThat(0, "is", "are")}).To(Equal([]string{"1 pod is", "0 pods are"}))
	g.Expect([]string{WhenDeleted(1), WhenDeleted(2)}).To(Equal([]string{
		"1 pod gets the new revision when it is deleted", "2 pods get the new revision when they are deleted",
	}))
	g.Expect(Withheld(1)).To(HavePrefix("1 pod is created"))
	for words, counts := range map[string][3]int{
		"0 of 3 pods exist":                         {0, 3, 0},
		"3 of 3 pods exist":                         {3, 3, 0},
		"8 pods exist, 4 are wanted":                {8, 4, 0},
		"1 of 3 pods exist, 1 pod is to be deleted": {1, 3, 1},
		"2 pods are to be deleted":                  {0, 0, 2},
	} {
		g.Expect(Scaling(counts[0], counts[1], counts[2])).To(Equal(words))
	}
}
