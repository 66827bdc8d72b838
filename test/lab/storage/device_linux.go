// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

const (
	// autoClear detaches a loop device when it is neither open nor mounted any
	// more, see loop(4).
	autoClear = 4
	// attachAttempts is how often a device may be taken by another process
	// between being found free and being used.
	attachAttempts = 20
	// ioctls that stop and go on with writing to a file system, see ioctl_fs(2).
	freezeWrites = 0xC0045877
	thawWrites   = 0xC0045878
	loopMajor    = 7
)

// newMounter returns what mounts by the mount program, without asking systemd,
// which a node does not have.
func newMounter() mount.Interface { return mount.NewWithoutSystemd("") }

// attach gives the image a loop device. The device is detached when the
// returned file is closed and it is not mounted.
func attach(image string) (*os.File, error) {
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	defer backing.Close() // The device holds it from then on.
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: autoClear}}
	copy(config.Info.File_name[:unix.LO_NAME_SIZE-1], image)
	for range attachAttempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := openDevice(number)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s to %s: %w", image, device.Name(), err)
		}
	}
	return nil, errors.New("attach: others took every loop device that was free")
}

// openDevice opens a loop device. Where /dev is not the kernel's, as in
// containers, its file may have to be made.
func openDevice(number int) (*os.File, error) {
	path := fmt.Sprintf("/dev/loop%d", number)
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(number)))); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
		device, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open loop device: %w", err)
	}
	return device, nil
}

// growFileSystem makes the file system that is mounted at the path as large as
// its image.
func growFileSystem(ctx context.Context, path string) error {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return fmt.Errorf("find device of %s: %w", path, err)
	}
	if unix.Major(stat.Dev) != loopMajor {
		return fmt.Errorf("find device of %s: it is not a loop device", path)
	}
	device, err := openDevice(int(unix.Minor(stat.Dev)))
	if err != nil {
		return err
	}
	defer device.Close()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow %s: %w", device.Name(), err)
	}
	return command(ctx, "xfs_growfs", "-d", path)
}

// freeze puts all that was written to the file system at the path on its
// device, and makes writers wait until it thaws.
func freeze(path string) error { return onFileSystem(path, freezeWrites) }

// thaw is for a file system that may be frozen.
func thaw(path string) error {
	err := onFileSystem(path, thawWrites)
	if errors.Is(err, unix.EINVAL) {
		return nil // It was not.
	}
	return err
}

func onFileSystem(path string, request uint) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open file system: %w", err)
	}
	defer folder.Close()
	if err := unix.IoctlSetInt(int(folder.Fd()), request, 0); err != nil {
		return fmt.Errorf("freeze or thaw %s: %w", path, err)
	}
	return nil
}

// thawUnmounted is for a loop device whose file system may have been frozen when
// its last mount went: that keeps both for ever, and it takes a mount to thaw.
func thawUnmounted(device string) error {
	path, err := os.MkdirTemp("", "insitu-lab-thaw-")
	if err != nil {
		return fmt.Errorf("make folder to mount at: %w", err)
	}
	if err := unix.Mount("/dev/"+device, path, fileSystem, 0, "nouuid"); err != nil {
		return errors.Join(fmt.Errorf("mount %s: %w", device, err), os.Remove(path))
	}
	return errors.Join(thaw(path), unix.Unmount(path, 0), os.Remove(path))
}

// usage returns what there is, is used and is free, in bytes and in files.
func usage(path string) (bytes, files measure, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return bytes, files, fmt.Errorf("measure %s: %w", path, err)
	}
	block := stat.Bsize
	bytes = measure{
		total: int64(stat.Blocks) * block,
		used:  int64(stat.Blocks-stat.Bfree) * block,
		free:  int64(stat.Bavail) * block,
	}
	files = measure{total: int64(stat.Files), used: int64(stat.Files - stat.Ffree), free: int64(stat.Ffree)}
	return bytes, files, nil
}
