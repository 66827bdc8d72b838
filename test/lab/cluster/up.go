// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/insitu-dev/insitu/test/lab/host"
	"github.com/insitu-dev/insitu/test/lab/images"
)

// UpOptions say what lab to bring up.
type UpOptions struct {
	// Dir is the lab's folder, see Canonical.
	Dir string
	// Spec is what the lab has. If it is nil, a lab that is there keeps what
	// it has, and a new one gets DefaultSpec.
	Spec *Spec
	// Fresh says that a lab which is there is taken down first.
	Fresh bool
	// ImageCache is the folder in which images are kept between labs.
	ImageCache string
	// Say is called with what is going on, a line at a time.
	Say func(string)
}

// DefaultSpec is a lab with two real nodes.
var DefaultSpec = Spec{Nodes: 2}

// Up brings the lab up and returns when pods can run in it. A lab that is up
// already stays as it is; one whose processes died continues with its data.
// A lab that was left by a runner is taken down first, as by UpOptions.Fresh.
// If a new lab cannot be brought up, or the context ends, nothing of it is
// left but its logs. Before, Up sweeps the other labs.
func Up(ctx context.Context, opts UpOptions) (*Lab, error) {
	if err := Sweep(opts.Say, opts.Dir); err != nil {
		// This lab does not need what the others have.
		opts.Say("Not everything could be swept: " + err.Error())
	}
	unlock, err := lockFolder(opts.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clearFolder(opts); err != nil {
		return nil, err
	}
	lab, err := Load(opts.Dir)
	switch {
	case errors.Is(err, ErrNoLab):
		return create(ctx, opts)
	case err != nil:
		return nil, err
	case !lab.Complete:
		opts.Say("An earlier attempt was cut short, starting over")
		if err := down(opts.Dir); err != nil {
			return nil, err
		}
		return create(ctx, opts)
	}
	if opts.Spec != nil && *opts.Spec != lab.Spec {
		return nil, fmt.Errorf("the lab in %s has %s, not %s: take it down first", lab.Dir, lab.Spec, opts.Spec)
	}
	return lab, resume(ctx, lab, opts)
}

// create brings up a new lab.
func create(ctx context.Context, opts UpOptions) (*Lab, error) {
	lab := &Lab{Spec: DefaultSpec, Dir: opts.Dir}
	if opts.Spec != nil {
		lab.Spec = *opts.Spec
	}
	if err := lab.Validate(); err != nil {
		return nil, err
	}
	if err := checkNew(lab); err != nil {
		return nil, err
	}
	// Those of a lab that was here before.
	if err := os.RemoveAll(lab.Logs()); err != nil {
		return nil, fmt.Errorf("remove old logs: %w", err)
	}
	err := start(ctx, lab, opts)
	if err == nil {
		lab.Complete = true
		err = lab.save()
	}
	if err != nil {
		opts.Say("Taking down what is there")
		err = errors.Join(err, down(opts.Dir))
		_ = os.Remove(opts.Dir) // Fails, as it should, if logs are there.
		return nil, err
	}
	return lab, nil
}

// checkNew returns an error if the lab cannot be made here.
func checkNew(lab *Lab) error {
	if _, err := host.DefaultSlots.Find(lab.Dir); err == nil {
		return fmt.Errorf("%s has lost its record, but its lab may still run: take it down first", lab.Dir)
	}
	if lab.Nodes > 0 {
		if err := host.WhyNoNodes(); err != nil {
			return fmt.Errorf("%w; without real nodes the lab runs anywhere: use --nodes 0 --simulated-nodes %d", err, lab.Nodes)
		}
	}
	if err := checkName(lab); err != nil {
		return err
	}
	return checkUnused(lab.Dir)
}

// resume brings up a lab that is there, whatever has become of it.
func resume(ctx context.Context, lab *Lab, opts UpOptions) error {
	alive, err := lab.confinement().alive()
	if err != nil {
		return err
	}
	if !alive {
		opts.Say("The lab's processes are gone, starting them again with its data")
		return start(ctx, lab, opts)
	}
	checks, err := lab.readyChecks(func(string) {})
	if err != nil {
		return err
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			opts.Say("The lab is up already, but not ready: " + err.Error())
			return lab.awaitReady(ctx, opts.Say)
		}
	}
	opts.Say(fmt.Sprintf("The lab is up already, with %s: nothing to do", lab.Spec))
	return nil
}

// start starts the lab and returns when it is ready.
func start(ctx context.Context, lab *Lab, opts UpOptions) error {
	if err := prepare(ctx, lab, opts); err != nil {
		return err
	}
	launched, err := lab.launch()
	if err != nil {
		return err
	}
	defer launched.abandon()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lab.serveImages(ctx, opts) })
	group.Go(func() error { return lab.awaitReady(ctx, opts.Say) })
	if err := group.Wait(); err != nil {
		return err
	}
	return launched.commit()
}

// prepare makes everything that the lab's processes need.
func prepare(ctx context.Context, lab *Lab, opts UpOptions) error {
	var err error
	if lab.Nodes > 0 {
		err = prepareIsolated(ctx, lab, opts.Say)
	} else if lab.Ports == nil {
		lab.Ports, err = freePorts(ctx)
	}
	if err != nil {
		return err
	}
	if err := lab.save(); err != nil {
		return err
	}
	if err := os.MkdirAll(lab.Logs(), 0o755); err != nil {
		return fmt.Errorf("make folder of logs: %w", err)
	}
	opts.Say(fmt.Sprintf("Starting a lab with %s in %s", lab.Spec, lab.Dir))
	if lab.Nodes > 0 {
		if err := lab.installSidecars(); err != nil {
			return err
		}
	}
	return errors.Join(lab.writePKI(), lab.writeConfigs(), lab.writeKubeconfigs())
}

func prepareIsolated(ctx context.Context, lab *Lab, say func(string)) error {
	if err := host.WhyNoNodes(); err != nil {
		return err
	}
	if err := host.EnsurePackages(ctx, say); err != nil {
		return err
	}
	if err := host.CheckVersions(ctx); err != nil {
		return err
	}
	host.LoadModules(ctx, "overlay", "veth", "nf_conntrack", "loop", "xfs")
	var err error
	if lab.Complete {
		// Certificates and data are bound to the slot's addresses.
		err = host.DefaultSlots.ClaimExactly(lab.Slot, lab.Dir)
	} else {
		lab.Slot, err = host.DefaultSlots.Claim(lab.Dir)
	}
	if err != nil {
		return err
	}
	return host.DefaultSlots.MakeFolders(kubeletRoot, cniRoot)
}

// serveImages puts the images that every lab has into its registry.
func (l *Lab) serveImages(ctx context.Context, opts UpOptions) error {
	if l.Nodes == 0 {
		return nil
	}
	set, err := images.BuildSet(ctx, images.SetOptions{CacheDir: opts.ImageCache, Progress: opts.Say})
	if err != nil {
		return err
	}
	quiet := func(string) {}
	if err := await(ctx, quiet, l.processCheck(quiet)(registry)); err != nil {
		return err
	}
	if err := images.LoadAll(ctx, l.Registry(), set); err != nil {
		return err
	}
	opts.Say(fmt.Sprintf("%d images are served", len(set)))
	return nil
}

// String returns, for example, "2 nodes and 10 simulated nodes".
func (s Spec) String() string {
	var parts []string
	if s.Nodes > 0 {
		parts = append(parts, count(s.Nodes, "node"))
	}
	if s.SimulatedNodes > 0 {
		parts = append(parts, count(s.SimulatedNodes, "simulated node"))
	}
	if len(parts) == 0 {
		return "no nodes"
	}
	return strings.Join(parts, " and ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
