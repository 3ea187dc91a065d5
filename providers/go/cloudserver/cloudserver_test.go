package cloudserver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	fakecloud "k8s.io/cloud-provider/fake"

	"operators.local/providers/go/cloudv1"
)

// connect serves the provider on a socket, and returns a connection to it.
func connect(t *testing.T, cloud cloudprovider.Interface, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cloud.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := New(cloud, options...)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func marshal(t *testing.T, object any) []byte {
	t.Helper()
	written, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func reasonOf(err error) cloudv1.ErrorDetail_Reason {
	for _, detail := range status.Convert(err).Details() {
		if detail, ok := detail.(*cloudv1.ErrorDetail); ok {
			return detail.Reason
		}
	}
	return cloudv1.ErrorDetail_REASON_UNSPECIFIED
}

func TestInfoSaysWhatTheProviderHas(t *testing.T) {
	client := cloudv1.NewCloudClient(connect(t, &fakecloud.Cloud{DisableRoutes: true, EnableInstancesV2: true}))
	info, err := client.GetInfo(context.Background(), &cloudv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "fake" || info.ProtocolVersion != 1 || !info.LoadBalancers || !info.Instances || info.Routes {
		t.Errorf("%v", info)
	}
}

func TestACapabilityThatIsMissingIsUnimplemented(t *testing.T) {
	client := cloudv1.NewRoutesClient(connect(t, &fakecloud.Cloud{DisableRoutes: true}))
	_, err := client.List(context.Background(), &cloudv1.ListRoutesRequest{})
	if status.Code(err) != codes.Unimplemented || reasonOf(err) != cloudv1.ErrorDetail_REASON_UNSPECIFIED {
		t.Errorf("%v", err)
	}
}

func TestSpecialErrorsKeepTheirMeaning(t *testing.T) {
	service := marshal(t, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}})
	for _, c := range []struct {
		err    error
		code   codes.Code
		reason cloudv1.ErrorDetail_Reason
	}{
		{cloudprovider.InstanceNotFound, codes.NotFound, cloudv1.ErrorDetail_INSTANCE_NOT_FOUND},
		{cloudprovider.ImplementedElsewhere, codes.Unimplemented, cloudv1.ErrorDetail_IMPLEMENTED_ELSEWHERE},
		{cloudprovider.NotImplemented, codes.Unimplemented, cloudv1.ErrorDetail_REASON_UNSPECIFIED},
		{api.NewRetryError("busy", 1500*time.Millisecond), codes.Unavailable, cloudv1.ErrorDetail_RETRY_AFTER},
		{errors.New("no subnet"), codes.Unknown, cloudv1.ErrorDetail_REASON_UNSPECIFIED},
	} {
		client := cloudv1.NewLoadBalancersClient(connect(t, &fakecloud.Cloud{Err: c.err}))
		_, err := client.Ensure(context.Background(), &cloudv1.EnsureLoadBalancerRequest{Service: service})
		if status.Code(err) != c.code || reasonOf(err) != c.reason || status.Convert(err).Message() != c.err.Error() {
			t.Errorf("%v became %v, %v", c.err, err, reasonOf(err))
		}
		if c.reason == cloudv1.ErrorDetail_RETRY_AFTER {
			detail := status.Convert(err).Details()[0].(*cloudv1.ErrorDetail)
			if detail.RetryAfterMilliseconds != 1500 {
				t.Errorf("%v", detail)
			}
		}
	}
}

type panicking struct{ fakecloud.Cloud }

func (p *panicking) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return p, true }

func (p *panicking) EnsureLoadBalancerDeleted(context.Context, string, *v1.Service) error {
	panic("nil map")
}

func TestAPanicIsAnErrorOfItsCall(t *testing.T) {
	client := cloudv1.NewLoadBalancersClient(connect(t, &panicking{}))
	for range 2 {
		_, err := client.Delete(context.Background(), &cloudv1.DeleteLoadBalancerRequest{Service: []byte("{}")})
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "nil map") {
			t.Errorf("%v", err)
		}
	}
}

// slow ends its calls once finish is closed, fails a call whose context ends, and counts how many run at the same time.
type slow struct {
	fakecloud.Cloud
	started, finish chan struct{}

	mu            sync.Mutex
	running, most int
	canceled      bool
}

func (s *slow) count(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += change
	s.most = max(s.most, s.running)
}

func (s *slow) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return s, true }

func (s *slow) EnsureLoadBalancerDeleted(ctx context.Context, _ string, _ *v1.Service) error {
	s.count(1)
	defer s.count(-1)
	s.started <- struct{}{}
	select {
	case <-ctx.Done():
		s.mu.Lock()
		s.canceled = true
		s.mu.Unlock()
		return ctx.Err()
	case <-s.finish:
		return nil
	}
}

func newSlow() *slow {
	return &slow{started: make(chan struct{}, 2), finish: make(chan struct{})}
}

// await fails the test if nothing happens for long.
func await(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(30 * time.Second):
		t.Errorf("waited in vain: %s", what)
	}
}

func serviceOf(t *testing.T, uid types.UID) []byte {
	t.Helper()
	return marshal(t, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}})
}

func TestACallGoesOnAfterItsDeadlineAndItsRepetitionWaits(t *testing.T) {
	fake, arrived := newSlow(), make(chan struct{}, 3)
	arrives := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		arrived <- struct{}{}
		return handler(ctx, request)
	}
	client := cloudv1.NewLoadBalancersClient(connect(t, fake, grpc.ChainUnaryInterceptor(arrives)))
	request := &cloudv1.DeleteLoadBalancerRequest{Service: serviceOf(t, "1")}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		await(t, "the call starts", fake.started)
		cancel()
	}()
	if _, err := client.Delete(ctx, request); status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	await(t, "the call arrives", arrived)
	var repetition sync.WaitGroup
	repetition.Go(func() {
		if _, err := client.Delete(context.Background(), request); err != nil {
			t.Error(err)
		}
	})
	await(t, "the repetition arrives", arrived)
	// While this one is answered, the server sees the cancellation, and the repetition would start.
	other := &cloudv1.GetLoadBalancerRequest{Service: serviceOf(t, "2")}
	if _, err := client.Get(context.Background(), other); err != nil {
		t.Error(err)
	}
	close(fake.finish)
	repetition.Wait()
	if fake.canceled || fake.most != 1 {
		t.Errorf("canceled: %v, at the same time: %d", fake.canceled, fake.most)
	}
}

func TestCallsForDifferentObjectsRunAtTheSameTime(t *testing.T) {
	fake := newSlow()
	client := cloudv1.NewLoadBalancersClient(connect(t, fake))
	var calls sync.WaitGroup
	for _, uid := range []types.UID{"1", "2"} {
		request := &cloudv1.DeleteLoadBalancerRequest{Service: serviceOf(t, uid)}
		calls.Go(func() {
			if _, err := client.Delete(context.Background(), request); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		await(t, "a call starts", fake.started)
	}
	close(fake.finish)
	calls.Wait()
	if fake.most != 2 {
		t.Errorf("at the same time: %d", fake.most)
	}
}

func TestACallThatIsNoJSONIsRefused(t *testing.T) {
	client := cloudv1.NewLoadBalancersClient(connect(t, &fakecloud.Cloud{}))
	_, err := client.Ensure(context.Background(), &cloudv1.EnsureLoadBalancerRequest{Service: []byte("{")})
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "not the JSON") {
		t.Errorf("%v", err)
	}
}

// forgiving forgets an error with the next list. The fake remembers it for ever.
type forgiving struct{ *fakecloud.Cloud }

func (f forgiving) Routes() (cloudprovider.Routes, bool) { return f, true }

func (f forgiving) ListRoutes(ctx context.Context, cluster string) ([]*cloudprovider.Route, error) {
	f.Err = nil
	return f.Cloud.ListRoutes(ctx, cluster)
}

// The fake fails a second creation and a second deletion, as some clouds do.
func TestARouteIsCreatedAndDeletedAsOftenAsThatIsAsked(t *testing.T) {
	ctx, cluster := context.Background(), "c"
	client := cloudv1.NewRoutesClient(connect(t, forgiving{&fakecloud.Cloud{RouteMap: map[string]*fakecloud.Route{}}}))
	list := func() []Route {
		listed, err := client.List(ctx, &cloudv1.ListRoutesRequest{ClusterName: cluster})
		if err != nil {
			t.Fatal(err)
		}
		var routes []Route
		for _, written := range listed.Routes {
			var r Route
			if err := json.Unmarshal(written, &r); err != nil {
				t.Fatal(err)
			}
			routes = append(routes, r)
		}
		return routes
	}
	wanted := marshal(t, Route{
		TargetNode: "a", DestinationCIDR: "10.0.0.0/24",
		TargetNodeAddresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.1.0.1"}},
	})
	for range 2 {
		if _, err := client.Create(ctx, &cloudv1.CreateRouteRequest{ClusterName: cluster, Route: wanted}); err != nil {
			t.Fatal(err)
		}
		if routes := list(); len(routes) != 1 || routes[0].TargetNode != "a" || len(routes[0].TargetNodeAddresses) != 1 {
			t.Fatalf("%v", routes)
		}
	}
	old := marshal(t, list()[0])
	for range 2 {
		if _, err := client.Delete(ctx, &cloudv1.DeleteRouteRequest{ClusterName: cluster, Route: old}); err != nil {
			t.Fatal(err)
		}
		if routes := list(); len(routes) != 0 {
			t.Fatalf("%v", routes)
		}
	}
}

func TestAnInstanceThatIsNotFoundDoesNotExist(t *testing.T) {
	ctx, node := context.Background(), marshal(t, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	client := cloudv1.NewInstancesClient(connect(t, &fakecloud.Cloud{
		EnableInstancesV2: true, ErrByProviderID: cloudprovider.InstanceNotFound, MetadataErr: cloudprovider.InstanceNotFound,
	}))
	exists, err := client.Exists(ctx, &cloudv1.InstanceExistsRequest{Node: node})
	if err != nil || exists.Exists {
		t.Errorf("%v, %v", exists, err)
	}
	_, err = client.Metadata(ctx, &cloudv1.InstanceMetadataRequest{Node: node})
	if status.Code(err) != codes.NotFound || reasonOf(err) != cloudv1.ErrorDetail_INSTANCE_NOT_FOUND {
		t.Errorf("%v", err)
	}
}

func TestMetadataHasTheProtocolsNames(t *testing.T) {
	fake := &fakecloud.Cloud{
		EnableInstancesV2: true, ProviderID: map[types.NodeName]string{"a": "fake://1"}, Zone: cloudprovider.Zone{FailureDomain: "z", Region: "r"},
		Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.1.0.1"}}, AdditionalLabels: map[string]string{"k": "v"},
	}
	client := cloudv1.NewInstancesClient(connect(t, fake))
	node := marshal(t, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	answer, err := client.Metadata(context.Background(), &cloudv1.InstanceMetadataRequest{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	expected := `{"providerID":"fake://1","nodeAddresses":[{"type":"InternalIP","address":"10.1.0.1"}],"zone":"z","region":"r",` +
		`"additionalLabels":{"k":"v"}}`
	if string(answer.Metadata) != expected {
		t.Errorf("%s", answer.Metadata)
	}
}
