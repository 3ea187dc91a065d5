package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A driver answers one call after the other, and those of one folder take turns.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	name, node, dir                          string
	maxVolumes, attachLimit, maxSize         int64
	attach, topology, modify, checkLifecycle bool
	expandOnNode                             bool
	mutable                                  []string

	turn sync.Mutex
	state
}

// state is what outlives the process, read before a call and written after it.
type state struct {
	Volumes   map[string]*volume
	Snapshots map[string]*snapshot
	// Nodes are those whose kubelet has asked for itself.
	Nodes map[string]bool
}

type volume struct {
	ID, Name string
	// Size in bytes, which nothing enforces.
	Size             int64
	Block, Ephemeral bool
	Parameters       map[string]string
	// Staged and Published are the paths where it is, each with its node.
	Staged, Published map[string]string
	// Node is where it is attached.
	Node           string
	ReadOnlyAttach bool
}

type snapshot struct {
	ID, Name, Volume string
	Size             int64
	Created          time.Time
	Block            bool
}

// open makes the driver's own folder in one that several drivers have.
func (d *driver) open(folder string) error {
	d.dir = filepath.Join(folder, d.name)
	return os.MkdirAll(d.dir, 0o755)
}

func (d *driver) server() *grpc.Server {
	server := grpc.NewServer(grpc.UnaryInterceptor(d.inTurn))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	return server
}

// inTurn answers a call with the state as the last one left it, whichever process answered that.
func (d *driver) inTurn(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if strings.HasSuffix(info.FullMethod, "/Probe") {
		return handle(ctx, request)
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	lock, err := os.OpenFile(filepath.Join(d.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, internal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, internal(err)
	}
	if err := d.read(); err != nil {
		return nil, internal(err)
	}
	answer, err := handle(ctx, request)
	// What a call has done before it failed is done.
	if saved := d.write(); saved != nil && err == nil {
		answer, err = nil, internal(saved)
	}
	logCall(info.FullMethod, request, answer, err)
	return answer, err
}

func (d *driver) read() error {
	d.state = state{Volumes: map[string]*volume{}, Snapshots: map[string]*snapshot{}, Nodes: map[string]bool{}}
	kept, err := os.ReadFile(filepath.Join(d.dir, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(kept, &d.state)
}

// write replaces the whole file, so that nobody reads half of it.
func (d *driver) write() error {
	kept, err := json.Marshal(d.state)
	if err != nil {
		return err
	}
	path := filepath.Join(d.dir, "state.json")
	if err := os.WriteFile(path+".new", kept, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// logCall writes the line that upstream's tests read from the driver's log.
func logCall(method string, request, answer any, err error) {
	line := map[string]any{"Method": method, "Request": message(request), "Error": ""}
	if err == nil {
		line["Response"] = message(answer)
	} else {
		line["Error"] = err.Error()
		line["FullError"] = map[string]any{"code": status.Code(err), "message": status.Convert(err).Message()}
	}
	text, err := json.Marshal(line)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprintln(os.Stderr, "gRPCCall:", string(text))
}

func message(value any) json.RawMessage {
	if m, ok := value.(proto.Message); ok {
		if text, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(m); err == nil {
			return text
		}
	}
	return json.RawMessage("null")
}
