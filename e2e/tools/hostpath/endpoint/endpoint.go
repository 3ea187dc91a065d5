// Package endpoint is how the parts of a CSI driver reach each other.
package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Listen listens at unix://PATH, at tcp://ADDRESS, or at the socket of a plain path.
func Listen(endpoint string) (net.Listener, error) {
	if address, ok := strings.CutPrefix(endpoint, "tcp://"); ok {
		return net.Listen("tcp", address)
	}
	path := strings.TrimPrefix(endpoint, "unix://")
	// A process that was killed leaves its socket behind.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the former socket: %w", err)
	}
	return net.Listen("unix", path)
}

// Dial connects to the driver's socket, which need not exist yet.
func Dial(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+strings.TrimPrefix(path, "unix://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
}
