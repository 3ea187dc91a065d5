package cloudserver

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/clientcmd"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"
)

// Main serves the provider that its package registered under this name, until the process is told to stop.
func Main(name string) {
	klog.InitFlags(nil)
	socket := flag.String("socket", "/run/cloud/cloud.sock", "path of the Unix socket to serve on")
	config := flag.String("cloud-config", "", "path of the provider's configuration file")
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig; without one, the ServiceAccount of the pod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, name, *config, *kubeconfig, *socket); err != nil {
		klog.ErrorS(err, "Failed to serve the cloud provider", "name", name)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func serve(ctx context.Context, name, config, kubeconfig, socket string) error {
	cloud, err := cloudprovider.InitCloudProvider(name, config)
	if err != nil {
		return err
	}
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// As upstream's manager starts a provider.
	builder := clientbuilder.SimpleControllerClientBuilder{ClientConfig: client}
	cloud.Initialize(builder, ctx.Done())
	if user, ok := cloud.(cloudprovider.InformerUser); ok {
		factory := informers.NewSharedInformerFactory(builder.ClientOrDie(name), 0)
		user.SetInformers(factory)
		factory.Start(ctx.Done())
	}
	// A killed process leaves its socket behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := New(cloud)
	context.AfterFunc(ctx, server.GracefulStop)
	klog.InfoS("Serving the cloud provider", "name", name, "socket", socket)
	return server.Serve(listener)
}
