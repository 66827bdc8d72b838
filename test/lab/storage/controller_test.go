// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"
)

// driver is a Controller that is a new one at each call, as if its process had
// been restarted.
type driver struct {
	Gomega
	ctx    context.Context
	store  Store
	clock  *clocktesting.FakePassiveClock
	staged bool
}

func newDriver(t *testing.T) *driver {
	t.Helper()
	return &driver{
		Gomega: NewWithT(t), ctx: t.Context(),
		store: Store{Dir: t.TempDir()}, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
	}
}

func (d *driver) controller() *Controller {
	freeze := func(context.Context, string, string) (func(), error) { return nil, errors.New("no node can be asked") }
	controller := NewController(d.store, freeze)
	controller.clock = d.clock
	controller.devices = func(string) ([]string, error) {
		if d.staged {
			return []string{"loop0"}, nil
		}
		return nil, nil
	}
	return controller
}

// request asks for a volume of 32 MiB for the claim data-0.
func request(name string, parameters map[string]string) *csi.CreateVolumeRequest {
	all := map[string]string{claimName: "data-0", claimNamespace: "default"}
	maps.Copy(all, parameters)
	return &csi.CreateVolumeRequest{
		Name:          name,
		Parameters:    all,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mebibyte},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
}

func (d *driver) create(request *csi.CreateVolumeRequest) *csi.Volume {
	response, err := d.controller().CreateVolume(d.ctx, request)
	d.Expect(err).NotTo(HaveOccurred())
	return response.GetVolume()
}

// expand returns the new size in mebibytes.
func (d *driver) expand(id string, mebibytes int64) (int64, error) {
	response, err := d.controller().ControllerExpandVolume(d.ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: mebibytes * mebibyte},
	})
	return response.GetCapacityBytes() / mebibyte, err
}

func (d *driver) modify(id string, parameters map[string]string) error {
	_, err := d.controller().ControllerModifyVolume(d.ctx, &csi.ControllerModifyVolumeRequest{VolumeId: id, MutableParameters: parameters})
	return err
}

func (d *driver) snapshot(name, volume string, parameters map[string]string) (*csi.Snapshot, error) {
	response, err := d.controller().CreateSnapshot(d.ctx, &csi.CreateSnapshotRequest{
		Name: name, SourceVolumeId: volume, Parameters: parameters,
	})
	return response.GetSnapshot(), err
}

// failWith matches errors with a code and a text in them.
func failWith(code codes.Code, text string) gomegatypes.GomegaMatcher {
	return And(WithTransform(status.Code, Equal(code)), MatchError(ContainSubstring(text)))
}

func TestExpand(t *testing.T) {
	for name, c := range map[string]struct {
		parameters map[string]string
		staged     bool
		mebibytes  int64
		code       codes.Code
		text       string
	}{
		"online":                      {staged: true, mebibytes: 64},
		"online when asked for":       {parameters: map[string]string{"expand": "online"}, staged: true, mebibytes: 64},
		"offline on a node":           {map[string]string{"expand": "offline"}, true, 64, codes.FailedPrecondition, "v is in use on a node"},
		"offline on no node":          {parameters: map[string]string{"expand": "offline"}, mebibytes: 64},
		"offline to the same size":    {parameters: map[string]string{"expand": "offline"}, staged: true, mebibytes: 32},
		"up to the limit":             {parameters: map[string]string{"expandLimit": "64Mi"}, mebibytes: 64},
		"beyond the limit":            {map[string]string{"expandLimit": "64Mi"}, false, 65, codes.OutOfRange, "v can grow to 67108864 bytes, not to 68157440"},
		"with an error":               {map[string]string{"expandError": "Aborted"}, false, 64, codes.Aborted, "grow volume v to 67108864 bytes: its class says that this fails"},
		"to the same size, no error":  {parameters: map[string]string{"expandError": "Aborted"}, mebibytes: 32},
		"up to the limit, no error":   {parameters: map[string]string{"expandError": "Aborted", "expandLimit": "64Mi"}, mebibytes: 64},
		"beyond the limit, an error":  {map[string]string{"expandError": "Aborted", "expandLimit": "64Mi"}, false, 65, codes.Aborted, "its class says"},
		"for its claim, an error":     {map[string]string{"expandError": "Aborted", "claims": "0$"}, false, 64, codes.Aborted, "its class says"},
		"for another claim, no error": {parameters: map[string]string{"expandError": "Aborted", "claims": "1$"}, mebibytes: 64},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			d.create(request("v", c.parameters))
			d.staged = c.staged
			got, err := d.expand("v", c.mebibytes)
			want := c.mebibytes
			if c.code == codes.OK {
				d.Expect(err).NotTo(HaveOccurred())
				d.Expect(got).To(Equal(want))
			} else {
				d.Expect(err).To(failWith(c.code, c.text))
				want = 32
			}
			image, err := os.Stat(d.store.volumes().image("v"))
			d.Expect(err).NotTo(HaveOccurred())
			d.Expect(image.Size()).To(Equal(want * mebibyte))
			d.Expect(d.store.volumes().read("v")).To(HaveField("CapacityBytes", want*mebibyte))
		})
	}
}

func TestStalls(t *testing.T) {
	d := newDriver(t)
	d.create(request("v", map[string]string{"expandStall": "true"}))
	everything := d.ctx
	ctx, cancel := context.WithTimeout(everything, 50*time.Millisecond)
	defer cancel()
	d.ctx = ctx
	_, err := d.expand("v", 64)
	d.Expect(err).To(failWith(codes.DeadlineExceeded, "grow volume v to 67108864 bytes: it takes longer"))
	d.Expect(d.modify("v", map[string]string{"modifyStall": "true"})).To(failWith(codes.DeadlineExceeded, "give volume v its attributes: it takes longer"))
	_, err = d.controller().CreateVolume(ctx, request("w", map[string]string{"provisionStall": "true"}))
	d.Expect(err).To(failWith(codes.DeadlineExceeded, "make volume w: it takes longer"))

	// A volume that stalls is not locked.
	ctx, cancel = context.WithCancel(everything)
	d.ctx = ctx
	stalled := make(chan error, 1)
	go func() {
		_, err := d.expand("v", 64)
		stalled <- err
	}()
	other := *d
	other.ctx = everything
	d.Expect(other.modify("v", map[string]string{"iops": "7"})).To(Succeed())
	cancel()
	d.Expect(<-stalled).To(failWith(codes.Canceled, "it takes longer"))
}

func TestCoolDown(t *testing.T) {
	const refused = "v was changed less than 30s ago, try again in "
	now := time.Unix(1e9, 0)
	d := newDriver(t)
	at := func(second int) *driver {
		d.clock.SetTime(now.Add(time.Duration(second) * time.Second))
		return d
	}
	gold, silver := map[string]string{"iops": "1000"}, map[string]string{"iops": "100"}
	d.create(request("v", map[string]string{"coolDownSeconds": "30"}))
	d.Expect(at(0).expand("v", 64)).To(BeEquivalentTo(64), "the first change")
	d.Expect(at(2).modify("v", gold)).To(Succeed(), "a change of another kind at about the same time")
	_, err := at(2).expand("v", 65)
	d.Expect(err).To(failWith(codes.Internal, refused+"28s"))
	d.Expect(at(2).expand("v", 64)).To(BeEquivalentTo(64), "no change")
	d.Expect(at(20).modify("v", gold)).To(Succeed(), "no change")
	d.Expect(at(31).modify("v", silver)).To(failWith(codes.Internal, refused+"1s"))
	_, err = at(31).expand("v", 65)
	d.Expect(err).To(failWith(codes.Internal, refused+"1s"), "the attributes were changed")
	d.Expect(at(32).modify("v", silver)).To(Succeed())
	d.Expect(at(62).expand("v", 65)).To(BeEquivalentTo(65))

	d.create(request("w", map[string]string{"coolDownSeconds": "30", "claims": "another"}))
	d.Expect(at(0).expand("w", 64)).To(BeEquivalentTo(64))
	d.Expect(at(0).expand("w", 65)).To(BeEquivalentTo(65), "it is for another claim")
}

func TestModify(t *testing.T) {
	d := newDriver(t)
	gold := request("v", nil)
	gold.MutableParameters = map[string]string{"iops": "1000"}
	d.create(gold)
	attributes := func() map[string]string {
		volume, err := d.store.volumes().read("v")
		d.Expect(err).NotTo(HaveOccurred())
		return volume.Attributes
	}
	d.Expect(attributes()).To(Equal(map[string]string{"iops": "1000"}))
	d.Expect(d.modify("v", map[string]string{"iops": "100"})).To(Succeed())
	d.Expect(attributes()).To(Equal(map[string]string{"iops": "100"}))

	d.Expect(d.modify("v", map[string]string{"iops": "0"})).To(failWith(codes.InvalidArgument, `iops: found "0"`))
	d.Expect(d.modify("v", map[string]string{"speed": "1"})).To(failWith(codes.InvalidArgument, "speed is not known, there are claims, iops"))
	refused := map[string]string{"iops": "5", "modifyError": "ResourceExhausted", "claims": "^data-0$"}
	d.Expect(d.modify("v", refused)).To(failWith(codes.ResourceExhausted, "its class says that this fails"))
	d.Expect(attributes()).To(Equal(map[string]string{"iops": "100"}), "nothing was changed")
	refused["claims"] = "^data-1$"
	d.Expect(d.modify("v", refused)).To(Succeed())
	d.Expect(attributes()).To(Equal(map[string]string{"iops": "5"}))

	gold.Name, gold.MutableParameters = "w", map[string]string{"modifyError": "InvalidArgument"}
	_, err := d.controller().CreateVolume(d.ctx, gold)
	d.Expect(err).To(failWith(codes.InvalidArgument, "give volume w its attributes"))
}

func TestSnapshotFaults(t *testing.T) {
	d := newDriver(t)
	d.create(request("v", nil))
	_, err := d.snapshot("s", "v", map[string]string{"snapshotError": "Internal"})
	d.Expect(err).To(failWith(codes.Internal, "make snapshot s of volume v: its class says that this fails"))
	d.Expect(d.snapshot("s", "v", map[string]string{"snapshotError": "Internal", "claims": "1$"})).
		To(HaveField("ReadyToUse", true), "it is for another claim")
	d.Expect(d.snapshot("t", "v", map[string]string{"snapshotStall": "true"})).To(HaveField("ReadyToUse", false))
	d.Expect(d.snapshot("t", "v", nil)).To(HaveField("ReadyToUse", false), "it is asked for again")
	_, err = d.snapshot("u", "v", map[string]string{"ready": "true"})
	d.Expect(err).To(failWith(codes.InvalidArgument, "ready is not known, there are claims, snapshotError"))

	response, err := d.controller().ListSnapshots(d.ctx, &csi.ListSnapshotsRequest{})
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(response.GetEntries()).To(HaveExactElements(
		HaveField("Snapshot", And(HaveField("SnapshotId", "s"), HaveField("ReadyToUse", true))),
		HaveField("Snapshot", And(HaveField("SnapshotId", "t"), HaveField("ReadyToUse", false))),
	))
}

func TestVolumesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   gomegatypes.GomegaMatcher
	}{
		"a parameter": {
			func(r *csi.CreateVolumeRequest) { r.Parameters["size"] = "1" },
			failWith(codes.InvalidArgument, "parameter size is not known"),
		},
		"raw block": {
			func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
			},
			failWith(codes.InvalidArgument, "volumeMode Block is not offered, use Filesystem"),
		},
		"many nodes": {
			func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities[0].AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
			},
			failWith(codes.InvalidArgument, "MULTI_NODE_MULTI_WRITER is not offered, use ReadWriteOnce"),
		},
		"another file system": {
			func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().FsType = "ntfs" },
			failWith(codes.InvalidArgument, `file system "ntfs" is not offered, use xfs`),
		},
		"a class that fails": {
			func(r *csi.CreateVolumeRequest) {
				r.Parameters["provisionError"], r.Parameters["claims"] = "ResourceExhausted", "^data-0$"
			},
			failWith(codes.ResourceExhausted, "make volume v: its class says that this fails"),
		},
		"a path for a name": {
			func(r *csi.CreateVolumeRequest) { r.Name = "../v" },
			failWith(codes.InvalidArgument, `name "../v"`),
		},
		"a size between two": {
			func(r *csi.CreateVolumeRequest) {
				r.CapacityRange = &csi.CapacityRange{RequiredBytes: 32*mebibyte + 1, LimitBytes: 32*mebibyte + 2}
			},
			failWith(codes.OutOfRange, "the next is 34603008"),
		},
		"smaller than its source": {
			func(r *csi.CreateVolumeRequest) {
				r.CapacityRange.RequiredBytes--
				r.CapacityRange.RequiredBytes -= mebibyte
				r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
					Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "first"},
				}}
			},
			failWith(codes.OutOfRange, "what it is a copy of has 33554432"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			d.create(request("first", nil))
			request := request("v", nil)
			c.change(request)
			_, err := d.controller().CreateVolume(d.ctx, request)
			d.Expect(err).To(c.want)
			response, err := d.controller().ListVolumes(d.ctx, &csi.ListVolumesRequest{})
			d.Expect(err).NotTo(HaveOccurred())
			d.Expect(response.GetEntries()).To(HaveLen(1), "nothing is left of it")
		})
	}
}

func TestVolumeOfAnotherClaimIsMade(t *testing.T) {
	d := newDriver(t)
	faults := map[string]string{"provisionError": "Internal", "provisionStall": "true", "claims": "1$"}
	d.Expect(d.create(request("v", faults))).To(HaveField("VolumeId", "v"))
}

func TestVolumeThatANodeHasIsNotDeleted(t *testing.T) {
	d := newDriver(t)
	d.create(request("v", nil))
	remove := &csi.DeleteVolumeRequest{VolumeId: "v"}
	d.staged = true
	_, err := d.controller().DeleteVolume(d.ctx, remove)
	d.Expect(err).To(failWith(codes.FailedPrecondition, "v is in use on a node"))
	d.staged = false
	_, err = d.controller().DeleteVolume(d.ctx, remove)
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(filepath.Join(d.store.Dir, "volumes", "v")).NotTo(BeAnExistingFile())
}

func TestVolumeWhoseMakingWasCutShort(t *testing.T) {
	d := newDriver(t)
	d.create(request("v", nil))
	d.Expect(os.Remove(d.store.volumes().record("v"))).To(Succeed())
	_, err := d.expand("v", 64)
	d.Expect(err).To(failWith(codes.NotFound, `there is no "v"`))
	d.Expect(d.create(request("v", nil))).To(HaveField("CapacityBytes", BeEquivalentTo(32*mebibyte)))
}
