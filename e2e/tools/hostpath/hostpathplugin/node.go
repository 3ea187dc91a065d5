package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ephemeralSize is the reported size of inline volumes, which request none.
const ephemeralSize = 100 << 20

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, rpc := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: rpc}},
		})
	}
	return response, nil
}

// NodeGetInfo also makes the node known: volumes can be attached to it from now on.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	d.Nodes[d.node] = true
	response := &csi.NodeGetInfoResponse{NodeId: d.node, MaxVolumesPerNode: d.maxVolumes}
	if d.attachLimit > 0 {
		response.MaxVolumesPerNode = d.attachLimit
	}
	if accessible := d.accessible(); accessible != nil {
		response.AccessibleTopology = accessible[0]
	}
	return response, nil
}

func (d *driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if r.GetStagingTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("staging path or capability")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if d.attach && v.Node != d.node {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not attached to %s", v.ID, d.node)
	}
	v.Staged[r.GetStagingTargetPath()] = d.node
	return &csi.NodeStageVolumeResponse{}, nil
}

func (d *driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if r.GetStagingTargetPath() == "" {
		return nil, missing("staging path")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if d.checkLifecycle && len(v.Published) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is still published", v.ID)
	}
	delete(v.Staged, r.GetStagingTargetPath())
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if r.GetTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("target path or capability")
	}
	v, err := d.find(r.GetVolumeId())
	if status.Code(err) == codes.NotFound && r.GetVolumeContext()["csi.storage.k8s.io/ephemeral"] == "true" {
		v, err = d.makeEphemeral(r.GetVolumeId())
	}
	if err != nil {
		return nil, err
	}
	if !v.Ephemeral && (r.GetStagingTargetPath() == "" || (d.checkLifecycle && len(v.Staged) == 0)) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged", v.ID)
	}
	_, again := v.Published[r.GetTargetPath()]
	if r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER && len(v.Published) > 0 && !again {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is in use by another pod", v.ID)
	}
	if err := d.mount(v, r.GetTargetPath(), r.GetReadonly()); err != nil {
		return nil, internal(err)
	}
	v.Published[r.GetTargetPath()] = d.node
	return &csi.NodePublishVolumeResponse{}, nil
}

// makeEphemeral makes a volume of a pod's own spec, whose id the kubelet made.
func (d *driver) makeEphemeral(id string) (*volume, error) {
	if filepath.Base(id) != id {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no id", id)
	}
	v := &volume{ID: id, Name: id, Size: ephemeralSize, Ephemeral: true}
	if err := d.make(v, ""); err != nil {
		return nil, err
	}
	return v, nil
}

func (d *driver) mount(v *volume, target string, readOnly bool) error {
	if there, err := mounted(target); there || err != nil {
		return err
	}
	source := d.path(v.ID)
	if v.Block {
		var err error
		if source, err = attach(source); err != nil {
			return err
		}
		if err := os.WriteFile(target, nil, 0o660); err != nil {
			return err
		}
	} else if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		// A retry must not accept the writable mount as read-only.
		return errors.Join(err, unix.Unmount(target, 0))
	}
	return nil
}

func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.GetTargetPath() == "" {
		return nil, missing("target path")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := unmount(r.GetTargetPath()); err != nil {
		return nil, internal(err)
	}
	delete(v.Published, r.GetTargetPath())
	if len(v.Published) > 0 {
		return &csi.NodeUnpublishVolumeResponse{}, nil
	}
	if v.Block {
		err = detach(d.path(v.ID))
	}
	if v.Ephemeral {
		err = d.remove(v)
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// unmount leaves nothing at the path. Nothing that is mounted there is removed with it, for it would be the volume's content.
func unmount(target string) error {
	there, err := mounted(target)
	if err != nil {
		return err
	}
	if there {
		if err := unix.Unmount(target, 0); err != nil {
			return err
		}
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *driver) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if r.GetVolumePath() == "" {
		return nil, missing("volume path")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(r.GetVolumePath(), &stat); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if v.Block {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size}}}, nil
	}
	size := stat.Bsize
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{
			Unit:      csi.VolumeUsage_BYTES,
			Total:     int64(stat.Blocks) * size,
			Available: int64(stat.Bavail) * size,
			Used:      int64(stat.Blocks-stat.Bfree) * size,
		},
		{
			Unit:      csi.VolumeUsage_INODES,
			Total:     int64(stat.Files),
			Available: int64(stat.Ffree),
			Used:      int64(stat.Files - stat.Ffree),
		},
	}}, nil
}

func (d *driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if r.GetVolumePath() == "" {
		return nil, missing("volume path")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(r.GetVolumePath()); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if v.Block {
		if err := grow(d.path(v.ID), v.Size); err != nil {
			return nil, internal(err)
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}
