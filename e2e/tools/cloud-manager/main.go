// Upstream's controllers of clouds as they are, with a cloud behind the protocol cloud.v1: they are compared with the
// operators before the same cloud.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/klog/v2"
)

func main() {
	settings, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatalf("cannot set up the options: %v", err)
	}
	command := app.NewCloudControllerManagerCommand(
		settings, connect, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{},
		wait.NeverStop,
	)
	os.Exit(cli.Run(command))
}

// connect takes the endpoint of the cloud (unix:///PATH) from --cloud-config.
func connect(config *config.CompletedConfig) cloudprovider.Interface {
	endpoint := config.ComponentConfig.KubeCloudShared.CloudProvider.CloudConfigFile
	cloud, err := newCloud(endpoint)
	if err != nil {
		klog.Fatalf("cannot ask the cloud at %q what it can do: %v", endpoint, err)
	}
	return cloud
}
