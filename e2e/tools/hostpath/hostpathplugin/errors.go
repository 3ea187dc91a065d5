package main

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func missing(what string) error {
	return status.Errorf(codes.InvalidArgument, "%s missing in the request", what)
}

func internal(err error) error { return status.Error(codes.Internal, err.Error()) }

// find names a volume of a request.
func (d *driver) find(id string) (*volume, error) {
	if id == "" {
		return nil, missing("volume id")
	}
	if v := d.Volumes[id]; v != nil {
		return v, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no volume %s", id)
}
