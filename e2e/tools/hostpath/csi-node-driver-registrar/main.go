// Command csi-node-driver-registrar tells the kubelet of a CSI driver, with the flags of upstream's program that manifests
// give it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"tools/hostpath/endpoint"
)

func main() {
	address := flag.String("csi-address", "/csi/csi.sock", "the driver's socket")
	pathOnNode := flag.String("kubelet-registration-path", "", "the driver's socket, as the kubelet sees it")
	folder := flag.String("plugin-registration-path", "/registration", "where the kubelet looks for plugins")
	timeout := flag.Duration("timeout", 10*time.Second, "how long the driver may take for an answer")
	flag.Int("v", 0, "without effect")
	flag.Parse()
	if err := register(*address, *pathOnNode, *folder, *timeout); err != nil {
		log.Fatal(err)
	}
}

// register serves the kubelet's questions until the process ends.
func register(address, pathOnNode, folder string, timeout time.Duration) error {
	connection, err := endpoint.Dial(address)
	if err != nil {
		return fmt.Errorf("dial the driver: %w", err)
	}
	name := driverName(csi.NewIdentityClient(connection), timeout)
	listener, err := endpoint.Listen(filepath.Join(folder, name+"-reg.sock"))
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, registrar{name: name, socket: pathOnNode})
	return server.Serve(listener)
}

// driverName asks until the driver answers, because containers of a pod start in any order.
func driverName(driver csi.IdentityClient, timeout time.Duration) string {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		info, err := driver.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			return info.GetName()
		}
		log.Print("ask the driver for its name: ", err)
		time.Sleep(time.Second)
	}
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	name, socket string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.name,
		Endpoint:          r.socket,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus ends the process if the kubelet refuses the driver: a new one registers again.
func (r registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.GetPluginRegistered() {
		log.Print("the kubelet refuses the driver: ", status.GetError())
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
