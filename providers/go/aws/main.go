// Serves the AWS provider, unmodified.
package main

import (
	_ "k8s.io/cloud-provider-aws/pkg/providers/v1"

	"operators.local/providers/go/cloudserver"
)

func main() {
	cloudserver.Main("aws")
}
