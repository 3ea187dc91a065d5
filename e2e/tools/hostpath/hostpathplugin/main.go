// Command hostpathplugin is a CSI driver that keeps volumes as folders and block files of its node, with the flags of
// upstream's driver of this name that manifests and tests give it. Nodes that share its folder share its volumes, too.
// With -proxy-endpoint it is no driver, but a pipe to one elsewhere.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"tools/hostpath/endpoint"
)

// options are the flags that are not the driver's own.
type options struct {
	folder, address, proxy string
}

// flags are those of upstream's driver that manifests and tests give it.
func flags(d *driver, o *options) *flag.FlagSet {
	f := flag.NewFlagSet("hostpathplugin", flag.ContinueOnError)
	f.StringVar(&d.name, "drivername", "hostpath.csi.k8s.io", "the driver's name")
	f.StringVar(&d.node, "nodeid", "", "the name of this node")
	f.Int64Var(&d.maxVolumes, "maxvolumespernode", 0, "how many volumes the scheduler may send to a node; 0 for any number")
	f.Int64Var(&d.attachLimit, "attach-limit", 0, "how many volumes are attached to a node; 0 for any number")
	f.Int64Var(&d.maxSize, "max-volume-size", 1<<40, "how large a volume may be, in bytes")
	f.BoolVar(&d.attach, "enable-attach", false, "whether volumes are attached to nodes before they are mounted")
	f.BoolVar(&d.topology, "enable-topology", true, "whether a volume can be reached from its node alone")
	f.BoolVar(&d.modify, "enable-controller-modify-volume", false, "whether mutable parameters can be changed")
	f.BoolVar(&d.checkLifecycle, "check-volume-lifecycle", false, "refuse calls that come before others that must precede them")
	f.BoolVar(&d.expandOnNode, "node-expand-required", true, "whether a volume that was expanded is to be expanded on its node, too")
	f.Func("accepted-mutable-parameter-names", "the mutable parameters there are; any, if not given", func(names string) error {
		d.mutable = strings.Split(names, ",")
		return nil
	})
	f.StringVar(&o.folder, "statedir", "/csi-data-dir", "where volumes and snapshots are kept, for each driver in a folder of its name")
	f.StringVar(&o.address, "endpoint", "unix:///csi/csi.sock", "the driver's socket")
	f.StringVar(&o.proxy, "proxy-endpoint", "", "where to wait for the connections to join those to the driver's socket with")
	f.Int("v", 0, "without effect")
	return f
}

func main() {
	d, o := &driver{}, &options{}
	if err := flags(d, o).Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}

	// As the first process of a container it would be sent no signal that it does not wait for.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		os.Exit(0)
	}()

	listener, err := endpoint.Listen(o.address)
	if err != nil {
		log.Fatal("listen for calls: ", err)
	}
	if o.proxy != "" {
		other, err := endpoint.Listen(o.proxy)
		if err != nil {
			log.Fatal("listen for the driver: ", err)
		}
		log.Fatal(pipe(listener, other))
	}
	if err := d.open(o.folder); err != nil {
		log.Fatal("open the state: ", err)
	}
	log.Fatal(d.server().Serve(listener))
}

// pipe joins each connection to a with one to b.
func pipe(a, b net.Listener) error {
	for {
		one, err := a.Accept()
		if err != nil {
			return err
		}
		other, err := b.Accept()
		if err != nil {
			return err
		}
		go join(one, other)
	}
}

// join copies both ways until one side ends.
func join(one, other net.Conn) {
	ended := make(chan struct{}, 2)
	copyAll := func(to, from net.Conn) {
		// An error ends this connection as its end does.
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go copyAll(one, other)
	go copyAll(other, one)
	<-ended
	_ = one.Close()
	_ = other.Close()
}
