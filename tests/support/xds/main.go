// A real control plane (go-control-plane's server and snapshot cache) that gives rate limit
// configurations to one node.
//
// Usage: xds ADDRESS NODE [CERTIFICATE KEY CLIENT-CA]
//
// Every line of standard input is the JSON list of a state: the RateLimitConfigs that hold from then
// on. What the node says to them is printed: "request" for its first words, "ack VERSION" and
// "nack VERSION why". Versions count the lines from 1.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
)

// Every response has a nonce of the server's; the request that follows names it.
type witness struct {
	mutex    sync.Mutex
	versions map[string]string // nonce → version
}

func (w *witness) sent(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, response *discovery.DiscoveryResponse) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.versions[response.GetNonce()] = response.GetVersionInfo()
}

func (w *witness) asked(_ int64, request *discovery.DiscoveryRequest) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	version := w.versions[request.GetResponseNonce()]
	switch {
	case request.GetResponseNonce() == "":
		fmt.Println("request", request.GetNode().GetId(), request.GetTypeUrl(), "version", request.GetVersionInfo())
	case request.GetErrorDetail() != nil:
		fmt.Println("nack", version, request.GetErrorDetail().GetMessage())
	default:
		fmt.Println("ack", version)
	}
	return nil
}

func read(line []byte) ([]types.Resource, error) {
	var texts []json.RawMessage
	if err := json.Unmarshal(line, &texts); err != nil {
		return nil, err
	}
	var resources []types.Resource
	for _, text := range texts {
		config := &ratelimit.RateLimitConfig{}
		if err := protojson.Unmarshal(text, config); err != nil {
			return nil, err
		}
		resources = append(resources, config)
	}
	return resources, nil
}

func transport(files []string) grpc.ServerOption {
	if len(files) < 3 {
		return grpc.EmptyServerOption{}
	}
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	check(err)
	authority, err := os.ReadFile(files[2])
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	node := os.Args[2]
	states := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	seen := &witness{versions: map[string]string{}}
	plane := server.NewServer(context.Background(), states, server.CallbackFuncs{
		StreamRequestFunc:  seen.asked,
		StreamResponseFunc: seen.sent,
	})
	service := grpc.NewServer(transport(os.Args[3:]))
	discovery.RegisterAggregatedDiscoveryServiceServer(service, plane)
	listener, err := net.Listen("tcp", os.Args[1])
	check(err)
	go func() { check(service.Serve(listener)) }()
	fmt.Println("listening", listener.Addr())

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for version := 1; lines.Scan(); version++ {
		resources, err := read(lines.Bytes())
		check(err)
		snapshot, err := cache.NewSnapshot(strconv.Itoa(version),
			map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
		check(err)
		check(states.SetSnapshot(context.Background(), node, snapshot))
	}
}
