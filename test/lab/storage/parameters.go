// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
)

// metadataPrefix is of parameters that do not come from a class. The sidecars
// tell in them for which claim a request is.
const (
	metadataPrefix = "csi.storage.k8s.io/"
	claimName      = metadataPrefix + "pvc/name"
	claimNamespace = metadataPrefix + "pvc/namespace"
)

// onlyFor is a regular expression for names of claims, nil for all of them.
type onlyFor struct{ *regexp.Regexp }

func (o onlyFor) matches(claim string) bool { return o.Regexp == nil || o.MatchString(claim) }

// fault is how a request fails, if at all.
type fault struct {
	code  codes.Code // codes.OK for none
	stall bool
}

// expansion is how a volume grows.
type expansion struct {
	offline, nodeOffline bool
	controller, node     fault
	limit                int64 // in bytes, 0 for none
	coolDown             time.Duration
}

// class is what a StorageClass says of a volume.
type class struct {
	expansion

	provision fault
}

// parseClass reads the parameters of a StorageClass, for a volume of the claim.
func parseClass(parameters map[string]string, claim string) (class, error) {
	var all class
	var only onlyFor
	err := parse(parameters, map[string]func(string) error{
		"provisionError":  code(&all.provision.code),
		"provisionStall":  yes(&all.provision.stall),
		"expand":          mode(&all.offline),
		"nodeExpand":      mode(&all.nodeOffline),
		"expandLimit":     size(&all.limit),
		"expandError":     code(&all.controller.code),
		"expandStall":     yes(&all.controller.stall),
		"nodeExpandError": code(&all.node.code),
		"coolDownSeconds": seconds(&all.coolDown),
		"claims":          pattern(&only),
	})
	if err != nil || only.matches(claim) {
		return all, err
	}
	return class{expansion: expansion{offline: all.offline, nodeOffline: all.nodeOffline}}, nil
}

// parseAttributes reads the parameters of a VolumeAttributesClass, for a volume
// of the claim. It returns those that are recorded.
func parseAttributes(parameters map[string]string, claim string) (map[string]string, fault, error) {
	attributes := map[string]string{}
	var modify fault
	var only onlyFor
	err := parse(parameters, map[string]func(string) error{
		"iops": func(value string) error {
			attributes["iops"] = value
			if number, err := strconv.ParseUint(value, 10, 31); err != nil || number == 0 {
				return fmt.Errorf("found %q, a whole number above 0 is accepted", value)
			}
			return nil
		},
		"modifyError": code(&modify.code),
		"modifyStall": yes(&modify.stall),
		"claims":      pattern(&only),
	})
	if !only.matches(claim) {
		modify = fault{}
	}
	return attributes, modify, err
}

// parseSnapshot reads the parameters of a VolumeSnapshotClass, for a volume of
// the claim.
func parseSnapshot(parameters map[string]string, claim string) (fault, error) {
	var create fault
	var only onlyFor
	err := parse(parameters, map[string]func(string) error{
		"snapshotError": code(&create.code),
		"snapshotStall": yes(&create.stall),
		"claims":        pattern(&only),
	})
	if !only.matches(claim) {
		create = fault{}
	}
	return create, err
}

// parse calls the function of each parameter. Its error has the code
// InvalidArgument and names the parameter, and what is accepted.
func parse(parameters map[string]string, known map[string]func(string) error) error {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if strings.HasPrefix(name, metadataPrefix) {
			continue
		}
		read, ok := known[name]
		if !ok {
			return status.Errorf(codes.InvalidArgument, "parameter %s is not known, there are %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := read(parameters[name]); err != nil {
			return status.Errorf(codes.InvalidArgument, "parameter %s: %v", name, err)
		}
	}
	return nil
}

func mode(offline *bool) func(string) error {
	return func(value string) error {
		*offline = value == "offline"
		if value != "online" && value != "offline" {
			return fmt.Errorf("found %q, online and offline are accepted", value)
		}
		return nil
	}
}

func yes(target *bool) func(string) error {
	return func(value string) error {
		*target = value == "true"
		if value != "true" && value != "false" {
			return fmt.Errorf("found %q, true and false are accepted", value)
		}
		return nil
	}
}

func code(target *codes.Code) func(string) error {
	return func(value string) error {
		for each := codes.Canceled; each <= codes.Unauthenticated; each++ {
			if each.String() == value {
				*target = each
				return nil
			}
		}
		return fmt.Errorf("found %q, the name of a gRPC code such as Internal is accepted", value)
	}
}

func size(target *int64) func(string) error {
	return func(value string) error {
		quantity, err := resource.ParseQuantity(value)
		*target = quantity.Value()
		return err
	}
}

func seconds(target *time.Duration) func(string) error {
	return func(value string) error {
		number, err := strconv.ParseUint(value, 10, 31)
		*target = time.Duration(number) * time.Second
		return err
	}
}

func pattern(target *onlyFor) func(string) error {
	return func(value string) (err error) {
		target.Regexp, err = regexp.Compile(value)
		return err
	}
}
