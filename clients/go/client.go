// Package crewd is a client of the crewd daemon: generated clients that find it and outlive its
// restarts, errors by reason, watches that go on, lists as iterators, and crewd's JSON form.
package crewd

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	crewdv1 "crewd.dev/go/crewd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const patience, firstWait, longestWait = 10 * time.Second, 50 * time.Millisecond, time.Second

// Options say which daemon is meant and who calls. The zero value means the user's own daemon.
type Options struct {
	StateDir, Socket string              // as --state-dir and --socket
	Env              func(string) string // gives a variable of the environment; nil: os.Getenv
	Name             string              // name/version of the caller, for the daemon's records
}

// Client has a generated client for each service. A unary call gets a deadline of 10 s if it has none
// and is tried again while the daemon is away: every write has a request id, made up if need be.
type Client struct {
	Runs     crewdv1.RunServiceClient
	Asks     crewdv1.AskServiceClient
	Worker   crewdv1.WorkerServiceClient // for a worker, with its task's token
	Catalog  crewdv1.CatalogServiceClient
	Daemon   crewdv1.DaemonServiceClient
	conn     *grpc.ClientConn
	options  Options
	location atomic.Pointer[Location]
	answered atomic.Bool   // a daemon that never did is not waited for
	silence  time.Duration // that breaks a watch
}

// Connect finds the daemon and checks that it is the one meant; code Unavailable if none answers.
// With a task's token it checks nothing: the token allows that task's calls only.
func Connect(ctx context.Context, options Options) (*Client, error) {
	location, err := Locate(options)
	if err != nil {
		return nil, err
	}
	options.Name = cmp.Or(options.Name, "crewd-client-go/0.1.0")
	c := &Client{options: options, silence: 45 * time.Second} // heartbeats come every 15 s
	c.location.Store(&location)
	pace := backoff.Config{BaseDelay: firstWait, Multiplier: 2, MaxDelay: longestWait}
	c.conn, err = grpc.NewClient("passthrough:localhost", grpc.WithContextDialer(c.dial), grpc.WithNoProxy(),
		grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: patience}),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithPerRPCCredentials(caller{c}),
		grpc.WithUnaryInterceptor(c.unary), grpc.WithStreamInterceptor(c.stream))
	if err != nil {
		return nil, c.translate(err)
	}
	c.Runs, c.Asks = crewdv1.NewRunServiceClient(c.conn), crewdv1.NewAskServiceClient(c.conn)
	c.Worker, c.Catalog = crewdv1.NewWorkerServiceClient(c.conn), crewdv1.NewCatalogServiceClient(c.conn)
	c.Daemon = crewdv1.NewDaemonServiceClient(c.conn)
	if location.TaskToken {
		return c, nil
	}
	info, err := c.Daemon.GetServerInfo(ctx, &crewdv1.GetServerInfoRequest{})
	if served := info.GetServer().GetStateDir(); err == nil && !location.anyStateDir && resolve(served) != location.StateDir {
		err = &Error{Code: codes.Unavailable, Message: fmt.Sprintf("the daemon at %s serves %s, not %s",
			location.Socket, served, location.StateDir)}
	}
	if err != nil {
		_ = c.Close() // the first error tells more
		return nil, err
	}
	return c, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error { return c.conn.Close() }

// dial looks for the daemon anew: one that comes back may have another socket and token.
func (c *Client) dial(ctx context.Context, _ string) (net.Conn, error) {
	location, err := Locate(c.options)
	if err != nil {
		return nil, err
	}
	c.location.Store(&location)
	return new(net.Dialer).DialContext(ctx, "unix", location.Socket)
}

type caller struct{ *Client }

func (caller) RequireTransportSecurity() bool { return false }

func (c caller) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	said := map[string]string{"x-crewd-client": c.options.Name}
	if token := c.location.Load().Token; token != "" {
		said["authorization"] = "Bearer " + token
	}
	return said, nil
}

func (c *Client) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	tries, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, _ := tries.Deadline()
	if _, limited := ctx.Deadline(); !limited {
		ctx = tries
	}
	message := proto.CloneOf(request.(proto.Message)) // a request id is filled in on a copy
	if id := message.ProtoReflect().Descriptor().Fields().ByName("request_id"); id != nil && !message.ProtoReflect().Has(id) {
		message.ProtoReflect().Set(id, protoreflect.ValueOfString(rand.Text()))
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := c.translate(invoke(ctx, method, message, reply, conn, options...))
		pause := cmp.Or(of(err).RetryAfter, wait)
		if !c.mayPass(err, codes.Unavailable) || time.Until(end) < pause || !c.pause(tries, pause) {
			return err
		}
	}
}

// pause waits so long, and then for a connection. False: the context or the client ends before that.
func (c *Client) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return false
	}
	c.conn.ResetConnectBackoff()
	for state := c.conn.GetState(); state != connectivity.Ready; state = c.conn.GetState() {
		c.conn.Connect()
		if state == connectivity.Shutdown || !c.conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

func (c *Client) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	return translated{stream, c}, c.translate(err)
}

type translated struct {
	grpc.ClientStream
	client *Client
}

func (t translated) SendMsg(m any) error { return t.client.translate(t.ClientStream.SendMsg(m)) }
func (t translated) RecvMsg(m any) error { return t.client.translate(t.ClientStream.RecvMsg(m)) }
