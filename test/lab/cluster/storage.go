// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/insitu-dev/insitu/test/lab/storage"
	"github.com/insitu-dev/insitu/test/lab/supervise"
)

// Names of the programs of storage, which labs with real nodes have. The
// sidecars are those of the program of that name, which hack/lab builds beside
// the lab's.
const (
	storageVerb   = "storage"
	csiController = "csi-controller"
	csiNode       = "csi-node"
	sidecars      = "sidecars"
)

// storageUser is the name under which the sidecars talk to the API server. What
// they may do changes with their releases, so they may do everything.
const storageUser = "insitu-lab:storage"

// storage returns the programs that make volumes and snapshots.
func (l *Lab) storage() []supervise.Process {
	all := []supervise.Process{{
		Name:  csiController,
		Path:  selfPath(),
		Args:  []string{"lab", "--dir", l.Dir, storageVerb},
		Log:   l.Log(csiController),
		Ready: &supervise.Probe{Unix: l.csiSocket()},
	}}
	for _, name := range []string{"csi-provisioner", "csi-resizer", "csi-snapshotter", "snapshot-controller"} {
		all = append(all, supervise.Process{
			Name:  name,
			Path:  l.state(sidecars, sidecars),
			Args:  []string{name, "--kubeconfig=" + l.config(storageVerb+".kubeconfig"), "--csi-address=" + l.csiSocket()},
			Log:   l.Log(name),
			After: []string{apiServer, csiController},
		})
	}
	return all
}

// storage is what mounts volumes on the node.
func (n Node) storage() supervise.Process {
	return supervise.Process{
		Name:  csiNode,
		Path:  selfPath(),
		Args:  []string{"lab", "--dir", n.lab.Dir, storageVerb, "--node", n.Name()},
		Log:   n.lab.Log(n.Name() + "-" + csiNode),
		Ready: &supervise.Probe{Unix: nodeCSISocket},
	}
}

// csiSocket is where the driver answers calls that are not for a node.
func (l *Lab) csiSocket() string { return filepath.Join(l.run(), "csi.sock") }

// nodeCSISocket is where it answers those for a node, as seen there.
var nodeCSISocket = filepath.Join(kubeletRoot, "plugins", storage.DriverName, "csi.sock")

// freezeSocket is where a node stops writing to a volume that is copied.
func (n Node) freezeSocket() string { return n.run("freeze.sock") }

func (l *Lab) store() storage.Store { return storage.Store{Dir: l.state("storage")} }

// RunStorage is the driver beside the control plane.
func (l *Lab) RunStorage(ctx context.Context) error {
	freeze := storage.FreezeOver(func(name string) string {
		node, err := l.Node(name)
		if err != nil {
			return name // There is no such socket.
		}
		return node.freezeSocket()
	})
	return storage.Serve(ctx, l.csiSocket(), storage.NewController(l.store(), freeze), nil)
}

// RunNodeStorage is the driver on a node.
func (l *Lab) RunNodeStorage(ctx context.Context, name string) error {
	node, err := l.Node(name)
	if err != nil {
		return err
	}
	driver := storage.NewNode(l.store(), name)
	if err := driver.Recover(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return storage.Serve(ctx, nodeCSISocket, nil, driver) })
	group.Go(func() error { return driver.ServeFreezes(ctx, node.freezeSocket()) })
	group.Go(func() error { return storage.Register(ctx, kubeletRoot, nodeCSISocket) })
	return group.Wait()
}

// installSidecars puts what hack/lab has built beside this program into the
// lab's own folder, so that it is there as long as the lab: older builds are
// removed at some time.
func (l *Lab) installSidecars() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the sidecars: %w", err)
	}
	built := filepath.Join(filepath.Dir(self), sidecars)
	files, err := os.ReadDir(built)
	if err != nil {
		return fmt.Errorf("find what is built beside %s: build it with hack/lab: %w", self, err)
	}
	if err := os.MkdirAll(l.state(sidecars), 0o755); err != nil {
		return fmt.Errorf("make folder of sidecars: %w", err)
	}
	for _, file := range files {
		if err := link(filepath.Join(built, file.Name()), l.state(sidecars, file.Name())); err != nil {
			return fmt.Errorf("install %s: %w", file.Name(), err)
		}
	}
	return nil
}

// link makes a file of the same content: the same one where that is possible.
func link(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// checkStorage returns nil if every node that runs can mount volumes.
func (l *Lab) checkStorage(ctx context.Context, client kubernetes.Interface) error {
	stopped, err := l.stoppedNodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range l.RealNodes() {
		if stopped.Has(node.Name()) {
			continue
		}
		drivers, err := client.StorageV1().CSINodes().Get(ctx, node.Name(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("find drivers of node: %w", err)
		}
		if !slices.ContainsFunc(drivers.Spec.Drivers, func(driver storagev1.CSINodeDriver) bool { return driver.Name == storage.DriverName }) {
			return fmt.Errorf("%s has not registered on %s, see %s", csiNode, node.Name(), l.Log(node.Name()+"-"+csiNode))
		}
	}
	return nil
}
