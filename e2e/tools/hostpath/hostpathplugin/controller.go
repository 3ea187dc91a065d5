package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// topologyKey is the label by which the scheduler knows a volume's node, as upstream's driver has it.
const topologyKey = "topology.hostpath.csi/node"

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	types := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if d.attach {
		types = append(types,
			csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
			csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
			csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES)
	}
	if d.modify {
		types = append(types, csi.ControllerServiceCapability_RPC_MODIFY_VOLUME)
	}
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, rpc := range types {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: rpc}},
		})
	}
	return response, nil
}

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" {
		return nil, missing("name")
	}
	block, err := isBlock(r.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	limit := r.GetCapacityRange().GetLimitBytes()
	size := cmp.Or(r.GetCapacityRange().GetRequiredBytes(), limit)
	if size > d.maxSize {
		return nil, status.Errorf(codes.OutOfRange, "a volume has at most %d bytes", d.maxSize)
	}
	if err := d.checkMutable(r.GetMutableParameters()); err != nil {
		return nil, err
	}
	for _, v := range d.Volumes {
		if v.Name != r.GetName() {
			continue
		}
		if v.Size < size || (limit > 0 && v.Size > limit) {
			return nil, status.Errorf(codes.AlreadyExists, "%s exists with another size", v.Name)
		}
		return d.created(v, r), nil
	}
	from, err := d.source(r.GetVolumeContentSource(), block, size)
	if err != nil {
		return nil, err
	}
	v := &volume{ID: newID(), Name: r.GetName(), Size: size, Block: block, Parameters: r.GetMutableParameters()}
	if err := d.make(v, from); err != nil {
		return nil, err
	}
	return d.created(v, r), nil
}

func (d *driver) created(v *volume, r *csi.CreateVolumeRequest) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           v.ID,
		CapacityBytes:      v.Size,
		VolumeContext:      r.GetParameters(),
		ContentSource:      r.GetVolumeContentSource(),
		AccessibleTopology: d.accessible(),
	}}
}

// source is the id of the snapshot or volume whose content a new volume gets, or "".
func (d *driver) source(content *csi.VolumeContentSource, block bool, size int64) (string, error) {
	if content == nil {
		return "", nil
	}
	var id string
	var ofBlock bool
	var least int64
	if of := content.GetSnapshot(); of != nil {
		s := d.Snapshots[of.GetSnapshotId()]
		if s == nil {
			return "", status.Errorf(codes.NotFound, "there is no snapshot %s", of.GetSnapshotId())
		}
		id, ofBlock, least = s.ID, s.Block, s.Size
	} else {
		v, err := d.find(content.GetVolume().GetVolumeId())
		if err != nil {
			return "", err
		}
		id, ofBlock, least = v.ID, v.Block, v.Size
	}
	if ofBlock != block || size < least {
		return "", status.Error(codes.InvalidArgument, "the source has another mode, or is larger")
	}
	return id, nil
}

func isBlock(capabilities []*csi.VolumeCapability) (bool, error) {
	var block, mount bool
	for _, capability := range capabilities {
		block = block || capability.GetBlock() != nil
		mount = mount || capability.GetMount() != nil
	}
	if block == mount {
		return false, status.Error(codes.InvalidArgument, "a volume is for block or for mount, one of the two")
	}
	return block, nil
}

func (d *driver) accessible() []*csi.Topology {
	if !d.topology {
		return nil
	}
	return []*csi.Topology{{Segments: map[string]string{topologyKey: d.node}}}
}

func (d *driver) checkMutable(parameters map[string]string) error {
	for name := range parameters {
		if d.mutable != nil && !slices.Contains(d.mutable, name) {
			return status.Errorf(codes.InvalidArgument, "there is no mutable parameter %q", name)
		}
	}
	return nil
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	v := d.Volumes[r.GetVolumeId()]
	if v == nil {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if d.checkLifecycle && (len(v.Published) > 0 || len(v.Staged) > 0 || v.Node != "") {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is in use", v.ID)
	}
	if err := d.remove(v); err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.GetNodeId() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("node id or capability")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r.GetNodeId() != d.node && !d.Nodes[r.GetNodeId()] {
		return nil, status.Errorf(codes.NotFound, "there is no node %s", r.GetNodeId())
	}
	switch v.Node {
	case r.GetNodeId():
		if v.ReadOnlyAttach != r.GetReadonly() {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s is attached with another readonly", v.ID)
		}
	case "":
		if d.attachLimit > 0 && d.attachedTo(r.GetNodeId()) >= d.attachLimit {
			return nil, status.Errorf(codes.ResourceExhausted, "a node has at most %d volumes", d.attachLimit)
		}
	default:
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s", v.ID, v.Node)
	}
	v.Node, v.ReadOnlyAttach = r.GetNodeId(), r.GetReadonly()
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// attachedTo is how many volumes a node has.
func (d *driver) attachedTo(node string) int64 {
	var count int64
	for _, v := range d.Volumes {
		if v.Node == node {
			count++
		}
	}
	return count
}

// ControllerUnpublishVolume takes a volume from a node that is dead, too: then it is staged and published there no longer.
func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	v := d.Volumes[r.GetVolumeId()]
	if v == nil || v.Node == "" || (r.GetNodeId() != "" && r.GetNodeId() != v.Node) {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if d.checkLifecycle && (len(v.Published) > 0 || len(v.Staged) > 0) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is still staged", v.ID)
	}
	for _, paths := range []map[string]string{v.Staged, v.Published} {
		for path, node := range paths {
			if node == v.Node {
				delete(paths, path)
			}
		}
	}
	v.Node = ""
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, missing("capabilities")
	}
	if _, err := d.find(r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      r.GetVolumeContext(),
		VolumeCapabilities: r.GetVolumeCapabilities(),
		Parameters:         r.GetParameters(),
	}}, nil
}

func (d *driver) ListVolumes(_ context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	var all []*csi.ListVolumesResponse_Entry
	for _, v := range d.Volumes {
		entry := &csi.ListVolumesResponse_Entry{
			Volume: &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Size},
			Status: &csi.ListVolumesResponse_VolumeStatus{},
		}
		if v.Node != "" {
			entry.Status.PublishedNodeIds = []string{v.Node}
		}
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b *csi.ListVolumesResponse_Entry) int {
		return cmp.Compare(a.GetVolume().GetVolumeId(), b.GetVolume().GetVolumeId())
	})
	entries, next, err := page(all, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	return &csi.ListVolumesResponse{Entries: entries, NextToken: next}, nil
}

// page cuts a list as it was asked for: the token is the index of the next entry.
func page[T any](all []T, token string, most int32) ([]T, string, error) {
	start := 0
	if token != "" {
		var err error
		if start, err = strconv.Atoi(token); err != nil || start < 0 || start > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "there is no token %q", token)
		}
	}
	if most <= 0 || len(all)-start <= int(most) {
		return all[start:], "", nil
	}
	end := start + int(most)
	return all[start:end], strconv.Itoa(end), nil
}

func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: d.maxSize, MaximumVolumeSize: wrapperspb.Int64(d.maxSize)}, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r.GetCapacityRange() == nil {
		return nil, missing("capacity range")
	}
	if r.GetCapacityRange().GetRequiredBytes() > d.maxSize {
		return nil, status.Errorf(codes.OutOfRange, "a volume has at most %d bytes", d.maxSize)
	}
	v.Size = max(v.Size, r.GetCapacityRange().GetRequiredBytes())
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Size, NodeExpansionRequired: d.expandOnNode}, nil
}

func (d *driver) ControllerModifyVolume(_ context.Context, r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := d.checkMutable(r.GetMutableParameters()); err != nil {
		return nil, err
	}
	v.Parameters = r.GetMutableParameters()
	return &csi.ControllerModifyVolumeResponse{}, nil
}

func (d *driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if r.GetName() == "" || r.GetSourceVolumeId() == "" {
		return nil, missing("name or source")
	}
	for _, s := range d.Snapshots {
		if s.Name != r.GetName() {
			continue
		}
		if s.Volume != r.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "%s is of another volume", s.Name)
		}
		return &csi.CreateSnapshotResponse{Snapshot: s.message()}, nil
	}
	v, err := d.find(r.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	s, err := d.snapshot(v, r.GetName())
	if err != nil {
		return nil, internal(err)
	}
	return &csi.CreateSnapshotResponse{Snapshot: s.message()}, nil
}

func (d *driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if r.GetSnapshotId() == "" {
		return nil, missing("snapshot id")
	}
	if s := d.Snapshots[r.GetSnapshotId()]; s != nil {
		if err := os.RemoveAll(d.path(s.ID)); err != nil {
			return nil, internal(err)
		}
		delete(d.Snapshots, s.ID)
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *driver) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	var all []*csi.ListSnapshotsResponse_Entry
	for _, s := range d.Snapshots {
		if (r.GetSnapshotId() == "" || r.GetSnapshotId() == s.ID) && (r.GetSourceVolumeId() == "" || r.GetSourceVolumeId() == s.Volume) {
			all = append(all, &csi.ListSnapshotsResponse_Entry{Snapshot: s.message()})
		}
	}
	slices.SortFunc(all, func(a, b *csi.ListSnapshotsResponse_Entry) int {
		return cmp.Compare(a.GetSnapshot().GetSnapshotId(), b.GetSnapshot().GetSnapshotId())
	})
	entries, next, err := page(all, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	return &csi.ListSnapshotsResponse{Entries: entries, NextToken: next}, nil
}
