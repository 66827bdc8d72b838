// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// The kinds of what is kept of recreated claims.
const (
	KeptVolume   = "PersistentVolume"
	KeptSnapshot = "VolumeSnapshot"
)

// KeptStorage is a volume or a snapshot that is kept of a recreated claim.
type KeptStorage struct {
	// Kind is KeptVolume or KeptSnapshot.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Namespace and Claim are those of the claim. StatefulSet is empty if it is gone.
	Namespace   string `json:"namespace"`
	Claim       string `json:"claim"`
	StatefulSet string `json:"statefulSet,omitempty"`
	// Size is the capacity of a volume, and what a snapshot restores to. What a snapshot
	// costs is known to its driver only.
	Size resource.Quantity `json:"size"`
	// Class is the storage class of a volume, or the class of a snapshot.
	Class string `json:"class,omitempty"`
	// State says why it is kept.
	State recreate.KeptState `json:"state"`
	// Since is since when it is kept, and Until when it goes by itself.
	Since metav1.Time `json:"since"`
	Until metav1.Time `json:"until,omitzero"`
	// Loses says what is lost when it is discarded.
	Loses string `json:"loses"`

	recreate.Kept `json:"-"`
}

// Ref names it as in volume/pvc-1 and snapshot/data-db-0.
func (k KeptStorage) Ref() string {
	if k.Kind == KeptVolume {
		return "volume/" + k.Name
	}
	return "snapshot/" + k.Name
}

// NewKept returns what is told of what is kept in a namespace with these StatefulSets.
func NewKept(all []recreate.Kept, owners []appsv1beta1.StatefulSet) []KeptStorage {
	told := make([]KeptStorage, 0, len(all))
	for _, one := range all {
		kept := KeptStorage{
			Kind: KeptSnapshot, Name: one.Name(), Namespace: one.Namespace, Claim: one.Claim, Size: one.Size(),
			State: one.State, Since: metav1.NewTime(one.Since), Kept: one,
		}
		if !one.Until.IsZero() {
			kept.Until = metav1.NewTime(one.Until)
		}
		if one.Volume != nil {
			kept.Kind, kept.Class = KeptVolume, one.Volume.Spec.StorageClassName
		} else if class := one.Snapshot.Spec.VolumeSnapshotClassName; class != nil {
			kept.Class = *class
		}
		if owner := OwnerOf(owners, one.Owner, one.Claim); owner != nil {
			kept.StatefulSet = owner.Name
		}
		kept.Loses = loses(one, all)
		told = append(told, kept)
	}
	return told
}

// LosesTogether says what is lost with each of the chosen when all of them are discarded.
func LosesTogether(chosen, all []KeptStorage) []KeptStorage {
	var others []recreate.Kept
	for _, kept := range all {
		if !slices.ContainsFunc(chosen, func(c KeptStorage) bool { return c.Ref() == kept.Ref() && c.Namespace == kept.Namespace }) {
			others = append(others, kept.Kept)
		}
	}
	together := slices.Clone(chosen)
	for i := range together {
		together[i].Loses = loses(together[i].Kept, others)
	}
	return together
}

// OwnerOf returns the StatefulSet of a UID or, if that is empty, the one of whose pods a
// claim has the name; nil if there is none.
func OwnerOf(owners []appsv1beta1.StatefulSet, uid types.UID, claim string) *appsv1beta1.StatefulSet {
	i := slices.IndexFunc(owners, func(set appsv1beta1.StatefulSet) bool {
		return uid == set.UID || uid == "" && hasClaim(&set, claim)
	})
	if i < 0 {
		return nil
	}
	return &owners[i]
}

// hasClaim reports whether a claim has a name that the claims of a StatefulSet have.
func hasClaim(set *appsv1beta1.StatefulSet, claim string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		ordinal, ok := strings.CutPrefix(claim, volumes.ClaimName(template.Name, set.Name)+"-")
		_, err := strconv.ParseUint(ordinal, 10, 31)
		return ok && err == nil
	})
}

// loses says what is lost with something that is kept.
func loses(one recreate.Kept, all []recreate.Kept) string {
	at := "as it was " + one.TakenAt().UTC().Format(time.RFC3339)
	partner := func(isVolume bool) string {
		i := slices.IndexFunc(all, func(other recreate.Kept) bool {
			return other.ClaimUID == one.ClaimUID && (other.Volume != nil) == isVolume && other.State != recreate.KeptDeleting
		})
		if i < 0 {
			return ""
		}
		return all[i].Name()
	}
	switch {
	case one.State == recreate.KeptNeeded:
		return fmt.Sprintf("the data of claim %s would be lost", one.Claim)
	case one.State == recreate.KeptDeleting:
		return "it is being deleted"
	case one.IsOnlyCopy():
		return fmt.Sprintf("claim %s %s is lost: nothing else has all of it", one.Claim, at)
	case one.Volume != nil && partner(false) != "":
		return fmt.Sprintf("claim %s cannot have it back any more; snapshot %s has the same data", one.Claim, partner(false))
	case one.Volume != nil:
		return fmt.Sprintf("claim %s %s is lost, and it cannot have that back any more", one.Claim, at)
	case partner(true) != "":
		return fmt.Sprintf("nothing is lost: volume %s has the same data", partner(true))
	default:
		return fmt.Sprintf("claim %s %s is lost: no volume of it is held any more", one.Claim, at)
	}
}
