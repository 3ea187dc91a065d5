package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"

	"operators.local/providers/go/cloudserver"
	"operators.local/providers/go/cloudv1"
)

const connectTimeout = 30 * time.Second

// cloud implements upstream's interface by calls of the protocol.
type cloud struct {
	info      *cloudv1.GetInfoResponse
	balancers cloudv1.LoadBalancersClient
	instances cloudv1.InstancesClient
	routes    cloudv1.RoutesClient
}

func newCloud(endpoint string) (*cloud, error) {
	connection, err := grpc.NewClient(
		endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(withUpstreamsErrors),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(cloudserver.MaxMessageSize), grpc.MaxCallSendMsgSize(cloudserver.MaxMessageSize),
		),
	)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	info, err := cloudv1.NewCloudClient(connection).GetInfo(ctx, &cloudv1.GetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	return &cloud{
		info:      info,
		balancers: cloudv1.NewLoadBalancersClient(connection),
		instances: cloudv1.NewInstancesClient(connection),
		routes:    cloudv1.NewRoutesClient(connection),
	}, nil
}

func withUpstreamsErrors(
	ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	return upstreamsError(invoke(ctx, method, request, answer, connection, options...))
}

// upstreamsError has the message of the provider alone, as it would be without a protocol in between.
func upstreamsError(err error) error {
	if err == nil {
		return nil
	}
	failed := status.Convert(err)
	for _, detail := range failed.Details() {
		detail, ok := detail.(*cloudv1.ErrorDetail)
		if !ok {
			continue
		}
		switch detail.Reason {
		case cloudv1.ErrorDetail_INSTANCE_NOT_FOUND:
			return cloudprovider.InstanceNotFound
		case cloudv1.ErrorDetail_IMPLEMENTED_ELSEWHERE:
			return cloudprovider.ImplementedElsewhere
		case cloudv1.ErrorDetail_RETRY_AFTER:
			after := time.Duration(detail.RetryAfterMilliseconds) * time.Millisecond
			return api.NewRetryError(failed.Message(), after)
		}
	}
	if failed.Code() == codes.Unimplemented {
		return cloudprovider.NotImplemented
	}
	return errors.New(failed.Message())
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (c *cloud) ProviderName() string                                              { return c.info.Name }
func (c *cloud) HasClusterID() bool                                                { return c.info.HasClusterId }
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool)                  { return c, c.info.LoadBalancers }
func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                    { return c, c.info.Instances }
func (c *cloud) Routes() (cloudprovider.Routes, bool)                              { return c, c.info.Routes }
func (c *cloud) Instances() (cloudprovider.Instances, bool)                        { return nil, false }
func (c *cloud) Zones() (cloudprovider.Zones, bool)                                { return nil, false }
func (c *cloud) Clusters() (cloudprovider.Clusters, bool)                          { return nil, false }

// GetLoadBalancerName makes no call: the clouds that are compared name balancers as upstream does by default.
func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

func (c *cloud) GetLoadBalancer(
	ctx context.Context, cluster string, service *v1.Service,
) (*v1.LoadBalancerStatus, bool, error) {
	written, err := json.Marshal(service)
	if err != nil {
		return nil, false, err
	}
	answer, err := c.balancers.Get(ctx, &cloudv1.GetLoadBalancerRequest{ClusterName: cluster, Service: written})
	if err != nil || answer.Status == nil {
		return nil, false, err
	}
	is, err := read[v1.LoadBalancerStatus](answer.Status)
	return is, err == nil, err
}

func (c *cloud) EnsureLoadBalancer(
	ctx context.Context, cluster string, service *v1.Service, nodes []*v1.Node,
) (*v1.LoadBalancerStatus, error) {
	written, names, err := balanced(service, nodes)
	if err != nil {
		return nil, err
	}
	request := &cloudv1.EnsureLoadBalancerRequest{ClusterName: cluster, Service: written, Nodes: names}
	answer, err := c.balancers.Ensure(ctx, request)
	if err != nil {
		return nil, err
	}
	return read[v1.LoadBalancerStatus](answer.Status)
}

func (c *cloud) UpdateLoadBalancer(ctx context.Context, cluster string, service *v1.Service, nodes []*v1.Node) error {
	written, names, err := balanced(service, nodes)
	if err != nil {
		return err
	}
	request := &cloudv1.UpdateLoadBalancerRequest{ClusterName: cluster, Service: written, Nodes: names}
	_, err = c.balancers.Update(ctx, request)
	return err
}

func (c *cloud) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, service *v1.Service) error {
	written, err := json.Marshal(service)
	if err != nil {
		return err
	}
	_, err = c.balancers.Delete(ctx, &cloudv1.DeleteLoadBalancerRequest{ClusterName: cluster, Service: written})
	return err
}

// balanced writes only the names of the nodes: the clouds of tests and benchmarks read nothing else of them. A provider
// that is linked with upstream's controllers gets nodes without writing them, so writing more would only be measured.
func balanced(service *v1.Service, nodes []*v1.Node) (written []byte, names [][]byte, err error) {
	for _, node := range nodes {
		name, err := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: node.Name}})
		if err != nil {
			return nil, nil, err
		}
		names = append(names, name)
	}
	written, err = json.Marshal(service)
	return written, names, err
}

func (c *cloud) InstanceExists(ctx context.Context, node *v1.Node) (bool, error) {
	written, err := json.Marshal(node)
	if err != nil {
		return false, err
	}
	answer, err := c.instances.Exists(ctx, &cloudv1.InstanceExistsRequest{Node: written})
	return answer.GetExists(), err
}

func (c *cloud) InstanceShutdown(ctx context.Context, node *v1.Node) (bool, error) {
	written, err := json.Marshal(node)
	if err != nil {
		return false, err
	}
	answer, err := c.instances.Shutdown(ctx, &cloudv1.InstanceShutdownRequest{Node: written})
	return answer.GetIsShutdown(), err
}

// InstanceMetadata reads into upstream's type, whose fields have the protocol's names but for their first letters.
func (c *cloud) InstanceMetadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	written, err := json.Marshal(node)
	if err != nil {
		return nil, err
	}
	answer, err := c.instances.Metadata(ctx, &cloudv1.InstanceMetadataRequest{Node: written})
	if err != nil || answer.Metadata == nil {
		return nil, err
	}
	return read[cloudprovider.InstanceMetadata](answer.Metadata)
}

func (c *cloud) ListRoutes(ctx context.Context, cluster string) ([]*cloudprovider.Route, error) {
	answer, err := c.routes.List(ctx, &cloudv1.ListRoutesRequest{ClusterName: cluster})
	if err != nil {
		return nil, err
	}
	var routes []*cloudprovider.Route
	for _, written := range answer.Routes {
		one, err := read[cloudserver.Route](written)
		if err != nil {
			return nil, err
		}
		routes = append(routes, (*cloudprovider.Route)(one))
	}
	return routes, nil
}

func (c *cloud) CreateRoute(ctx context.Context, cluster, nameHint string, wanted *cloudprovider.Route) error {
	written, err := json.Marshal((*cloudserver.Route)(wanted))
	if err != nil {
		return err
	}
	_, err = c.routes.Create(ctx, &cloudv1.CreateRouteRequest{ClusterName: cluster, NameHint: nameHint, Route: written})
	return err
}

func (c *cloud) DeleteRoute(ctx context.Context, cluster string, old *cloudprovider.Route) error {
	written, err := json.Marshal((*cloudserver.Route)(old))
	if err != nil {
		return err
	}
	_, err = c.routes.Delete(ctx, &cloudv1.DeleteRouteRequest{ClusterName: cluster, Route: written})
	return err
}

func read[T any](object []byte) (*T, error) {
	value := new(T)
	if err := json.Unmarshal(object, value); err != nil {
		return nil, fmt.Errorf("the answer is not the JSON it should be: %w", err)
	}
	return value, nil
}
