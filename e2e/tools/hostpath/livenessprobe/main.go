// Command livenessprobe answers the kubelet's probes for a CSI driver, with the flags of upstream's program that manifests
// give it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"tools/hostpath/endpoint"
)

func main() {
	address := flag.String("csi-address", "/csi/csi.sock", "the driver's socket")
	port := flag.Int("health-port", 9808, "where probes are answered")
	timeout := flag.Duration("probe-timeout", time.Second, "how long the driver may take for an answer")
	flag.Int("v", 0, "without effect")
	flag.Parse()
	connection, err := endpoint.Dial(*address)
	if err != nil {
		log.Fatal("dial the driver: ", err)
	}
	http.Handle("/healthz", health(csi.NewIdentityClient(connection), *timeout))
	log.Fatal(http.ListenAndServe(fmt.Sprintf(":%d", *port), nil))
}

func health(driver csi.IdentityClient, timeout time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		if _, err := driver.Probe(ctx, &csi.ProbeRequest{}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}
