package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tools/hostpath/endpoint"
)

// serve starts a driver over this folder, and answers where.
func serve(t *testing.T, d *driver, folder string) string {
	t.Helper()
	if err := d.open(folder); err != nil {
		t.Fatal(err)
	}
	// A path of a socket is at most 107 bytes long, and that of a test's folder has its name.
	sockets, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "csi.sock")
	listener, err := endpoint.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := d.server()
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(listener) }()
	return socket
}

func client(t *testing.T, d *driver, folder string) *grpc.ClientConn {
	t.Helper()
	connection, err := endpoint.Dial(serve(t, d, folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func newDriver(node string) *driver {
	return &driver{name: "hostpath.csi.k8s.io", node: node, maxSize: 1 << 40, attach: true, modify: true, expandOnNode: true}
}

// Upstream's tests of any CSI driver. They mount, so they are root's.
func TestSanity(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts")
	}
	d := newDriver("node")
	d.topology, d.checkLifecycle = true, true
	d.mutable = []string{"e2eVacTest"}
	config := sanity.NewTestConfig()
	config.Address = "unix://" + serve(t, d, t.TempDir())
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeMutableParameters = map[string]string{"e2eVacTest": "value"}
	sanity.Test(t, config)
	if len(d.Volumes) != 0 || len(d.Snapshots) != 0 {
		t.Errorf("left: %v %v", d.Volumes, d.Snapshots)
	}
}

var writer = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// Two processes over one folder stand for two nodes that reach the same storage.
func TestAVolumeIsAttachedToOneNodeAtATime(t *testing.T) {
	folder := t.TempDir()
	one, other := client(t, newDriver("one"), folder), client(t, newDriver("other"), folder)
	ctx := t.Context()
	for _, node := range []*grpc.ClientConn{one, other} {
		if _, err := csi.NewNodeClient(node).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	controller := csi.NewControllerClient(one)
	created, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "pvc", VolumeCapabilities: []*csi.VolumeCapability{writer}})
	if err != nil {
		t.Fatal(err)
	}
	id := created.GetVolume().GetVolumeId()
	attach := func(node string) error {
		_, err := controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: writer})
		return err
	}
	stage := func(node *grpc.ClientConn) error {
		_, err := csi.NewNodeClient(node).NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: "/staging", VolumeCapability: writer})
		return err
	}
	if err := attach("nowhere"); status.Code(err) != codes.NotFound {
		t.Errorf("attached to a node that is not known: %v", err)
	}
	if err := attach("other"); err != nil {
		t.Fatal(err)
	}
	if err := attach("one"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("attached to two nodes: %v", err)
	}
	if err := stage(one); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("staged where it is not attached: %v", err)
	}
	if err := stage(other); err != nil {
		t.Error(err)
	}

	// The other node is dead, and never unstages it.
	if _, err := controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := attach("one"); err != nil {
		t.Error(err)
	}
	if err := stage(one); err != nil {
		t.Error(err)
	}
	if err := stage(other); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("staged where it was taken away: %v", err)
	}
}

// As test/e2e/testing-manifests/storage-csi and test/e2e/storage/drivers/csi.go have them.
func TestFlagsOfUpstreamsManifestsAreKnown(t *testing.T) {
	for _, args := range [][]string{
		{"-v=5", "-nodeid=node", "-endpoint=/csi/csi.sock", "-proxy-endpoint=tcp://:9000"},
		{"--drivername=mock", "--enable-attach", "--enable-topology", "--attach-limit", "2", "--node-expand-required=true", "--statedir=/tmp"},
		{"--maxvolumespernode=10", "--check-volume-lifecycle=true", "--enable-controller-modify-volume=true", "--accepted-mutable-parameter-names=e2eVacTest"},
	} {
		if err := flags(&driver{}, &options{}).Parse(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestACopyOfBlocksKeepsTheSizeOfTheLargerFile(t *testing.T) {
	folder := t.TempDir()
	from, to, small := filepath.Join(folder, "from"), filepath.Join(folder, "to"), filepath.Join(folder, "small")
	content := append(make([]byte, 2<<20), "data"...)
	content = append(content, make([]byte, 3<<20)...)
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, size := range map[string]int{to: 8 << 20, small: len(content)} {
		if err := copyBlocks(from, path); err != nil {
			t.Fatal(err)
		}
		copied, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(copied) != size || string(copied[2<<20:2<<20+4]) != "data" {
			t.Errorf("%s has %d bytes, not %d, or other content", path, len(copied), size)
		}
	}
}

func TestAPageEndsWhereTheListDoes(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	for _, row := range []struct {
		token string
		most  int32
		want  int
		next  string
		code  codes.Code
	}{
		{"", 0, 5, "", codes.OK},
		{"", 2, 2, "2", codes.OK},
		{"3", 2, 2, "", codes.OK},
		{"5", 2, 0, "", codes.OK},
		{"6", 2, 0, "", codes.Aborted},
		{"-1", 2, 0, "", codes.Aborted},
		{"x", 2, 0, "", codes.Aborted},
	} {
		got, next, err := page(all, row.token, row.most)
		if len(got) != row.want || next != row.next || status.Code(err) != row.code {
			t.Errorf("%+v: %v %q %v", row, got, next, err)
		}
	}
}

func TestAPipeJoinsBothSides(t *testing.T) {
	listen := func() net.Listener {
		listener, err := endpoint.Listen("tcp://127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	a, b := listen(), listen()
	go func() { _ = pipe(a, b) }()
	dial := func(to net.Listener) net.Conn {
		connection, err := net.Dial("tcp", to.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	one, other := dial(a), dial(b)
	for _, way := range [][2]net.Conn{{one, other}, {other, one}} {
		if _, err := way[0].Write([]byte("word")); err != nil {
			t.Fatal(err)
		}
		read := make([]byte, 4)
		if _, err := way[1].Read(read); err != nil || string(read) != "word" {
			t.Errorf("%q %v", read, err)
		}
	}
}
