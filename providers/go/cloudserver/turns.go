package cloudserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
)

// callLimit ends a call that hangs. A call that works is shorter.
const callLimit = 15 * time.Minute

// turns calls a provider as upstream's controllers do: one call at a time for each object, and none canceled early.
//
// A canceled call may fail others. The AWS provider batches calls, and sends each batch with the context of its first.
type turns struct {
	mu sync.Mutex
	// A channel for each object with a running call, closed when the call ends.
	running map[string]chan struct{}
}

func (t *turns) intercept(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if key := objectOf(request); key != "" {
		if err := t.take(ctx, key); err != nil {
			return nil, err
		}
		defer t.release(key)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	return handler(ctx, request)
}

// take waits until no other call for the object is running, or until the caller gives up.
func (t *turns) take(ctx context.Context, key string) error {
	for {
		t.mu.Lock()
		running, busy := t.running[key]
		if !busy {
			t.running[key] = make(chan struct{})
		}
		t.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-running:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *turns) release(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.running[key])
	delete(t.running, key)
}

// objectOf returns the key of the object that a call works on, or nothing if calls like it may run side by side.
func objectOf(request any) string {
	switch q := request.(type) {
	case interface{ GetService() []byte }:
		var service struct {
			Metadata struct {
				UID types.UID `json:"uid"`
			} `json:"metadata"`
		}
		// The handler reports an object that cannot be read.
		if json.Unmarshal(q.GetService(), &service) == nil && service.Metadata.UID != "" {
			return "service " + string(service.Metadata.UID)
		}
	case interface{ GetRoute() []byte }:
		var r Route
		if json.Unmarshal(q.GetRoute(), &r) == nil {
			return "route " + string(r.TargetNode) + " " + r.DestinationCIDR
		}
	}
	return ""
}
