// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/insitu-dev/insitu/apis/native"
)

const deploymentSelector = "app=web" // as kubectl create deployment sets it

// updateDeployment updates the image of a plain Deployment, and rolls it back, with
// nothing but what users of Deployments know: and one label. A client counts its requests.
func (d *demo) updateDeployment(ctx context.Context) error {
	if err := d.kubectlInTurn(ctx,
		fmt.Sprintf("create deployment web --image=%s --replicas=%d", oldImage, replicas),
		"expose deployment web --port=80",
		"rollout status deployment/web",
		"label deployment web "+native.UpdatePolicyLabel+"=InPlaceIfPossible",
	); err != nil {
		return err
	}
	if err := d.startClient(ctx, "web"); err != nil {
		return err
	}
	if err := d.rollOut(ctx, newImage, "set image deployment/web nginx="+newImage); err != nil {
		return err
	}
	if err := d.rollOut(ctx, oldImage, "rollout undo deployment/web"); err != nil {
		return err
	}
	return d.kubectlInTurn(ctx, "rollout history deployment/web", "get deployments,replicasets,pods --selector="+deploymentSelector)
}

// rollOut runs a command that makes the Deployment run an image, waits until it
// does, and shows what became of its pods.
func (d *demo) rollOut(ctx context.Context, image, command string) error {
	before, err := d.pods(ctx, deploymentSelector)
	if err != nil {
		return err
	}
	asked, err := d.requests(ctx)
	if err != nil {
		return err
	}
	if err := d.kubectlInTurn(ctx, command, fmt.Sprintf("rollout status deployment/web --timeout=%s", patience)); err != nil {
		return err
	}
	after, err := d.pods(ctx, deploymentSelector)
	if err != nil {
		return err
	}
	if err := report(d.out, before, after, image); err != nil {
		return err
	}
	return d.reportRequests(ctx, asked)
}
