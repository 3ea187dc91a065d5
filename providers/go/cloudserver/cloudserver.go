// Package cloudserver serves a cloudprovider.Interface over the protocol cloud.v1, so that the controllers of clouds run
// as operators and the provider stays as it is.
//
// Calls that upstream's interface does not promise to be repeatable are made so: a route that exists is created, and one
// that is gone is deleted.
package cloudserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"

	"operators.local/providers/go/cloudv1"
)

// MaxMessageSize is what both sides accept: a load balancer's call carries every node behind it.
const MaxMessageSize = 64 << 20

// The parts of the protocol, each on the part of the interface that it needs.
type (
	info struct {
		cloudv1.UnimplementedCloudServer
		cloud cloudprovider.Interface
	}
	loadBalancers struct {
		cloudv1.UnimplementedLoadBalancersServer
		lb cloudprovider.LoadBalancer
	}
	instances struct {
		cloudv1.UnimplementedInstancesServer
		v2 cloudprovider.InstancesV2
	}
	routes struct {
		cloudv1.UnimplementedRoutesServer
		routes cloudprovider.Routes
	}
)

// Route has the fields of cloudprovider.Route under the protocol's names.
type Route struct {
	Name                string           `json:"name,omitempty"`
	TargetNode          types.NodeName   `json:"targetNode,omitempty"`
	EnableNodeAddresses bool             `json:"enableNodeAddresses"`
	TargetNodeAddresses []v1.NodeAddress `json:"targetNodeAddresses,omitempty"`
	DestinationCIDR     string           `json:"destinationCIDR"`
	Blackhole           bool             `json:"blackhole"`
}

// instanceMetadata has the fields of cloudprovider.InstanceMetadata under the protocol's names.
type instanceMetadata struct {
	ProviderID       string            `json:"providerID,omitempty"`
	InstanceType     string            `json:"instanceType,omitempty"`
	NodeAddresses    []v1.NodeAddress  `json:"nodeAddresses,omitempty"`
	Zone             string            `json:"zone,omitempty"`
	Region           string            `json:"region,omitempty"`
	AdditionalLabels map[string]string `json:"additionalLabels,omitempty"`
}

// New returns a server of the provider, which has been initialized.
func New(cloud cloudprovider.Interface, options ...grpc.ServerOption) *grpc.Server {
	options = append(options, grpc.MaxRecvMsgSize(MaxMessageSize), grpc.MaxSendMsgSize(MaxMessageSize))
	turns := &turns{running: map[string]chan struct{}{}}
	server := grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(withReasons, turns.intercept))...)
	cloudv1.RegisterCloudServer(server, &info{cloud: cloud})
	if lb, ok := cloud.LoadBalancer(); ok {
		cloudv1.RegisterLoadBalancersServer(server, &loadBalancers{lb: lb})
	}
	if v2, ok := cloud.InstancesV2(); ok {
		cloudv1.RegisterInstancesServer(server, &instances{v2: v2})
	}
	if r, ok := cloud.Routes(); ok {
		cloudv1.RegisterRoutesServer(server, &routes{routes: r})
	}
	return server
}

// withReasons turns the interface's special errors into the protocol's, and a panic into an error of its call.
func withReasons(ctx context.Context, request any, call *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.ErrorS(nil, "provider panicked", "call", call.FullMethod, "cause", cause, "stack", string(debug.Stack()))
			answer, err = nil, status.Errorf(codes.Internal, "the cloud provider panicked: %v", cause)
		}
	}()
	if answer, err = handler(ctx, request); err == nil {
		return answer, nil
	}
	code, detail := codes.Unknown, &cloudv1.ErrorDetail{}
	var retry *api.RetryError
	switch {
	case errors.As(err, &retry):
		code, detail.Reason = codes.Unavailable, cloudv1.ErrorDetail_RETRY_AFTER
		detail.RetryAfterMilliseconds = uint64(max(retry.RetryAfter(), 0) / time.Millisecond)
	case errors.Is(err, cloudprovider.InstanceNotFound):
		code, detail.Reason = codes.NotFound, cloudv1.ErrorDetail_INSTANCE_NOT_FOUND
	case errors.Is(err, cloudprovider.ImplementedElsewhere):
		code, detail.Reason = codes.Unimplemented, cloudv1.ErrorDetail_IMPLEMENTED_ELSEWHERE
	case errors.Is(err, cloudprovider.NotImplemented):
		return nil, status.Error(codes.Unimplemented, err.Error())
	}
	failed := status.New(code, err.Error())
	if detail.Reason != cloudv1.ErrorDetail_REASON_UNSPECIFIED {
		if detailed, err := failed.WithDetails(detail); err == nil {
			failed = detailed
		}
	}
	return nil, failed.Err()
}

func read[T any](object []byte) (*T, error) {
	value := new(T)
	if err := json.Unmarshal(object, value); err != nil {
		return nil, fmt.Errorf("the call is not the JSON it should be: %w", err)
	}
	return value, nil
}

func readAll[T any](objects [][]byte) ([]*T, error) {
	values := make([]*T, 0, len(objects))
	for _, object := range objects {
		value, err := read[T](object)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (s *info) GetInfo(context.Context, *cloudv1.GetInfoRequest) (*cloudv1.GetInfoResponse, error) {
	_, lb := s.cloud.LoadBalancer()
	_, v2 := s.cloud.InstancesV2()
	_, r := s.cloud.Routes()
	return &cloudv1.GetInfoResponse{
		Name: s.cloud.ProviderName(), ProtocolVersion: 1, LoadBalancers: lb, Instances: v2, Routes: r,
		HasClusterId: s.cloud.HasClusterID(),
	}, nil
}

func (s *loadBalancers) Get(ctx context.Context, q *cloudv1.GetLoadBalancerRequest) (*cloudv1.GetLoadBalancerResponse, error) {
	service, err := read[v1.Service](q.Service)
	if err != nil {
		return nil, err
	}
	answer := &cloudv1.GetLoadBalancerResponse{Name: s.lb.GetLoadBalancerName(ctx, q.ClusterName, service)}
	is, exists, err := s.lb.GetLoadBalancer(ctx, q.ClusterName, service)
	if err == nil && exists && is != nil {
		answer.Status, err = json.Marshal(is)
	}
	return answer, err
}

func (s *loadBalancers) Ensure(ctx context.Context, q *cloudv1.EnsureLoadBalancerRequest) (*cloudv1.EnsureLoadBalancerResponse, error) {
	service, err := read[v1.Service](q.Service)
	if err != nil {
		return nil, err
	}
	nodes, err := readAll[v1.Node](q.Nodes)
	if err != nil {
		return nil, err
	}
	is, err := s.lb.EnsureLoadBalancer(ctx, q.ClusterName, service, nodes)
	if err != nil {
		return nil, err
	}
	if is == nil {
		return nil, errors.New("service status returned by EnsureLoadBalancer is nil")
	}
	written, err := json.Marshal(is)
	return &cloudv1.EnsureLoadBalancerResponse{Status: written}, err
}

func (s *loadBalancers) Update(ctx context.Context, q *cloudv1.UpdateLoadBalancerRequest) (*cloudv1.UpdateLoadBalancerResponse, error) {
	service, err := read[v1.Service](q.Service)
	if err != nil {
		return nil, err
	}
	nodes, err := readAll[v1.Node](q.Nodes)
	if err != nil {
		return nil, err
	}
	return &cloudv1.UpdateLoadBalancerResponse{}, s.lb.UpdateLoadBalancer(ctx, q.ClusterName, service, nodes)
}

func (s *loadBalancers) Delete(ctx context.Context, q *cloudv1.DeleteLoadBalancerRequest) (*cloudv1.DeleteLoadBalancerResponse, error) {
	service, err := read[v1.Service](q.Service)
	if err != nil {
		return nil, err
	}
	return &cloudv1.DeleteLoadBalancerResponse{}, s.lb.EnsureLoadBalancerDeleted(ctx, q.ClusterName, service)
}

func (s *instances) Exists(ctx context.Context, q *cloudv1.InstanceExistsRequest) (*cloudv1.InstanceExistsResponse, error) {
	node, err := read[v1.Node](q.Node)
	if err != nil {
		return nil, err
	}
	exists, err := s.v2.InstanceExists(ctx, node)
	if errors.Is(err, cloudprovider.InstanceNotFound) {
		exists, err = false, nil
	}
	return &cloudv1.InstanceExistsResponse{Exists: exists}, err
}

func (s *instances) Shutdown(ctx context.Context, q *cloudv1.InstanceShutdownRequest) (*cloudv1.InstanceShutdownResponse, error) {
	node, err := read[v1.Node](q.Node)
	if err != nil {
		return nil, err
	}
	is, err := s.v2.InstanceShutdown(ctx, node)
	return &cloudv1.InstanceShutdownResponse{IsShutdown: is}, err
}

func (s *instances) Metadata(ctx context.Context, q *cloudv1.InstanceMetadataRequest) (*cloudv1.InstanceMetadataResponse, error) {
	node, err := read[v1.Node](q.Node)
	if err != nil {
		return nil, err
	}
	answer := &cloudv1.InstanceMetadataResponse{}
	metadata, err := s.v2.InstanceMetadata(ctx, node)
	if err == nil && metadata != nil {
		answer.Metadata, err = json.Marshal(instanceMetadata(*metadata))
	}
	return answer, err
}

func (s *routes) List(ctx context.Context, q *cloudv1.ListRoutesRequest) (*cloudv1.ListRoutesResponse, error) {
	listed, err := s.routes.ListRoutes(ctx, q.ClusterName)
	if err != nil {
		return nil, err
	}
	answer := &cloudv1.ListRoutesResponse{}
	for _, r := range listed {
		written, err := json.Marshal(Route(*r))
		if err != nil {
			return nil, err
		}
		answer.Routes = append(answer.Routes, written)
	}
	return answer, nil
}

func (s *routes) Create(ctx context.Context, q *cloudv1.CreateRouteRequest) (*cloudv1.CreateRouteResponse, error) {
	wanted, err := read[Route](q.Route)
	if err != nil {
		return nil, err
	}
	err = s.routes.CreateRoute(ctx, q.ClusterName, q.NameHint, (*cloudprovider.Route)(wanted))
	if err != nil {
		is, listed := s.find(ctx, q.ClusterName, wanted)
		if listed == nil && is != nil && !is.Blackhole && (!is.EnableNodeAddresses || sameAddresses(is, wanted)) {
			err = nil
		}
	}
	return &cloudv1.CreateRouteResponse{}, err
}

func (s *routes) Delete(ctx context.Context, q *cloudv1.DeleteRouteRequest) (*cloudv1.DeleteRouteResponse, error) {
	old, err := read[Route](q.Route)
	if err != nil {
		return nil, err
	}
	err = s.routes.DeleteRoute(ctx, q.ClusterName, (*cloudprovider.Route)(old))
	if err != nil {
		if is, listed := s.find(ctx, q.ClusterName, old); listed == nil && is == nil {
			err = nil
		}
	}
	return &cloudv1.DeleteRouteResponse{}, err
}

// find returns the route to the same pods of the same node, or nil if the cloud lists none.
func (s *routes) find(ctx context.Context, cluster string, of *Route) (*cloudprovider.Route, error) {
	listed, err := s.routes.ListRoutes(ctx, cluster)
	for _, is := range listed {
		if is.TargetNode == of.TargetNode && is.DestinationCIDR == of.DestinationCIDR {
			return is, err
		}
	}
	return nil, err
}

func sameAddresses(is *cloudprovider.Route, wanted *Route) bool {
	return sets.New(is.TargetNodeAddresses...).Equal(sets.New(wanted.TargetNodeAddresses...))
}
