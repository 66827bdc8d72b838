// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// everyContainer stands for the names of all.
const everyContainer = "*"

// ContainerImage is the image that a container is to have.
type ContainerImage struct {
	// Container is its name; * for all, init containers among them.
	Container string
	Image     string
}

// ParseImages reads arguments of the form container=image.
func ParseImages(args []string) ([]ContainerImage, error) {
	if len(args) == 0 {
		return nil, errors.New("found no image: accepted are CONTAINER=IMAGE, and *=IMAGE for all containers")
	}
	images := make([]ContainerImage, 0, len(args))
	named := map[string]bool{}
	for _, arg := range args {
		name, image, ok := strings.Cut(arg, "=")
		switch {
		case !ok || name == "" || image == "":
			return nil, fmt.Errorf("found %q: accepted are CONTAINER=IMAGE, and *=IMAGE for all containers", arg)
		case named[name]:
			return nil, fmt.Errorf("found two images for container %s: accepted is one", name)
		case len(args) > 1 && name == everyContainer:
			return nil, errors.New("found *=IMAGE beside others: it is for all containers already")
		}
		named[name] = true
		images = append(images, ContainerImage{name, image})
	}
	return images, nil
}

// SetImages gives containers other images, as kubectl set image does.
func SetImages(images []ContainerImage) Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{Done: "image updated", Nothing: "image already set"}
		containers := w.containers()
		for _, image := range images {
			found := false
			for _, c := range containers {
				if c.name == image.Container || image.Container == everyContainer {
					c.fields["image"], found = image.Image, true
				}
			}
			if !found {
				return outcome, w.errNoContainer(image.Container)
			}
		}
		outcome.Notes = w.notesOnRollout()
		return outcome, nil
	}
}
